//! The events there are, by kind.

use quipu::hal::text::{self, Generalized};
use quipu::hal::{Breakpoint, BreakpointAccess, RawEvent};
use quipu::{Error, Event, EventSpec, Target};

use super::descriptions;
use super::probe::State;
use super::selection::{Kind, Selection};

/// A line of the listing: an event, or the form of one with parts to fill in.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// What is written after `-e`.
    pub(super) name: String,
    /// Other names of the same.
    pub(super) aliases: &'static [&'static str],
    pub(super) description: String,
    /// What to open to find out, and on what; `None` for a form.
    pub(super) probe: Option<(EventSpec, Target)>,
    pub(super) state: State,
}

impl Entry {
    fn event(kind: Kind, event: impl Into<Event>, description: impl Into<String>) -> Self {
        let event = event.into();
        Self {
            kind,
            name: event.to_string(),
            aliases: &[],
            description: description.into(),
            probe: Some((EventSpec::new(event), Target::CurrentThread)),
            state: State::NotProbed,
        }
    }

    fn form(kind: Kind, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            aliases: &[],
            description: description.into(),
            probe: None,
            state: State::Form,
        }
    }

    /// The same under another name: a form that is probed with an example of it.
    fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// The events that were asked for, and what could not be looked into.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) entries: Vec<Entry>,
    /// Kinds whose events cannot be listed, and why.
    pub(super) unavailable: Vec<(Kind, Error)>,
}

impl Catalog {
    /// The events of this machine, in the order of their kinds.
    pub(super) fn of_this_machine(selection: &Selection) -> Self {
        let mut catalog = Self::default();
        catalog.add_generalized(selection);
        catalog.add_raw(selection);
        #[cfg(target_os = "linux")]
        {
            catalog.add_pmus(selection, &quipu::linux::sysfs::SysfsPmus::new());
            if selection.has_kind(Kind::Tracepoint) {
                catalog.add_tracepoints(selection, quipu::linux::tracefs::Tracefs::find());
            }
        }
        catalog.entries.sort_by_key(|entry| entry.kind);
        catalog
    }

    /// What to say when nothing was found.
    pub(super) fn nothing_matches(&self, selection: &Selection) -> String {
        let texts = selection.texts();
        let mut message = format!("no event matches {}", texts.join(", "));
        let near: Vec<String> = texts
            .iter()
            .flat_map(|text| text::nearest(text, []))
            .collect();
        if !near.is_empty() {
            message.push_str(&format!("; did you mean {}?", near.join(", ")));
        }
        for (_, error) in &self.unavailable {
            message.push_str(&format!("; {error:#}"));
        }
        message
    }

    /// Adds an entry if it is asked for by its kind, and by its names or these.
    fn add(&mut self, selection: &Selection, entry: Entry, more: &[&str]) {
        let names = [entry.name.as_str()];
        let mut names = names.iter().chain(entry.aliases).chain(more).copied();
        if selection.has_kind(entry.kind) && selection.has_name(&mut names) {
            self.entries.push(entry);
        }
    }

    fn add_generalized(&mut self, selection: &Selection) {
        for Generalized { event, aliases, .. } in text::generalized() {
            let spellings: &[&str] = match &event {
                Event::Cache(event) => event.cache.aliases(),
                _ => &[],
            };
            let mut entry = match event {
                Event::Hardware(event) => {
                    Entry::event(Kind::Hardware, event, descriptions::hardware(event))
                }
                Event::Software(event) => {
                    Entry::event(Kind::Software, event, descriptions::software(event))
                }
                Event::Cache(event) => Entry::event(Kind::Cache, event, descriptions::cache(event)),
                _ => continue,
            };
            entry.aliases = aliases;
            self.add(selection, entry, spellings);
        }
    }

    fn add_raw(&mut self, selection: &Selection) {
        let raw = Entry::event(
            Kind::Raw,
            RawEvent::default(),
            "the CPU's own event select bits, in hexadecimal",
        );
        self.add(selection, raw.clone().named("rHEX"), &["raw"]);
        let words = Entry {
            description: "the same with the extra words of perf_event_attr".into(),
            ..raw
        };
        let name = "raw/config=N,config1=N,config2=N,config3=N/";
        self.add(selection, words.named(name), &[]);

        // Its address is one that may be watched.
        static WATCHED: u8 = 0;
        let breakpoint = Breakpoint {
            address: std::ptr::from_ref(&WATCHED).addr() as u64,
            len: 1,
            access: BreakpointAccess::ReadWrite,
        };
        let access = Entry::event(
            Kind::Breakpoint,
            breakpoint,
            "reads (r) and writes (w) of 1, 2, 4 or 8 bytes from an address",
        );
        self.add(
            selection,
            access.named("mem:ADDRESS/LENGTH:rw"),
            &["breakpoint"],
        );
        let execution = Entry::event(
            Kind::Breakpoint,
            Breakpoint::execute(breakpoint.address),
            "executions of the instruction at an address",
        );
        self.add(selection, execution.named("mem:ADDRESS:x"), &["breakpoint"]);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use quipu::hal::PmuEvent;
    use quipu::linux::sysfs::{Format, NamedEvent, Pmu, SysfsPmus};
    use quipu::linux::tracefs::Tracefs;

    use super::{Catalog, Entry, Error, Event, Kind, Selection, Target};

    impl Catalog {
        /// Adds the events that the kernel's PMUs name, and how to write others.
        pub(in crate::list) fn add_pmus(&mut self, selection: &Selection, pmus: &SysfsPmus) {
            if !selection.has_kind(Kind::Pmu) && !selection.has_kind(Kind::Raw) {
                return;
            }
            let pmus = match pmus.pmus() {
                Ok(pmus) => pmus,
                Err(error) => return self.unavailable.push((Kind::Pmu, error)),
            };
            for pmu in pmus {
                if !pmu.formats.is_empty() {
                    self.add(selection, terms_form(&pmu), &[]);
                }
                for event in &pmu.events {
                    self.add(selection, pmu_event(&pmu, event), &[]);
                }
            }
        }

        /// Adds the kernel's tracepoints, or why they cannot be listed.
        pub(in crate::list) fn add_tracepoints(
            &mut self,
            selection: &Selection,
            tracefs: Result<Tracefs, Error>,
        ) {
            let listed = tracefs.and_then(|tracefs| {
                for (system, name) in tracefs.tracepoints()? {
                    let plain = format!("{system}:{name}");
                    let event = Event::tracepoint(system, name);
                    self.add(
                        selection,
                        Entry::event(Kind::Tracepoint, event, "").named(plain),
                        &[],
                    );
                }
                Ok(())
            });
            if let Err(error) = listed {
                self.unavailable.push((Kind::Tracepoint, error));
            }
        }
    }

    /// How to write an event of this PMU by its fields.
    fn terms_form(pmu: &Pmu) -> Entry {
        let field = |format: &Format| match format.field() {
            Ok(field) if field.width() == 1 => format.name.clone(),
            _ => format!("{}=N", format.name),
        };
        let terms: Vec<String> = pmu.formats.iter().map(field).collect();
        let bits = |format: &Format| format!("{} {}", format.name, format.definition);
        let bits: Vec<String> = pmu.formats.iter().map(bits).collect();
        let name = format!("{}/{}/", pmu.name, terms.join(","));
        Entry::form(Kind::Raw, name, bits.join(", "))
    }

    fn pmu_event(pmu: &Pmu, named: &NamedEvent) -> Entry {
        let mut description = named.definition.clone();
        if !named.unit.is_empty() {
            description.push_str(&format!(", in {}", named.unit));
        }
        let event = PmuEvent::new(&pmu.name).with(&named.name);
        let parameters: Vec<&str> = named
            .definition
            .split(',')
            .filter(|term| term.ends_with("=?"))
            .collect();
        if !parameters.is_empty() {
            let name = format!("{}/{},{}/", pmu.name, named.name, parameters.join(","));
            return Entry::form(Kind::Pmu, name, description);
        }
        let mut entry = Entry::event(Kind::Pmu, event, description);
        if let (Some(cpu), Some((_, target))) = (
            pmu.cpumask.as_ref().and_then(|cpus| cpus.first()),
            &mut entry.probe,
        ) {
            *target = Target::Cpu(*cpu);
            entry.description.push_str(", of whole CPUs (-a)");
        }
        entry
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use quipu::ErrorKind;
    use quipu::linux::sysfs::SysfsPmus;
    use quipu::linux::tracefs::Tracefs;

    use super::*;

    fn selection(filters: &[&str]) -> Selection {
        let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
        Selection::new(&filters)
    }

    fn pmus(machine: &str, filters: &[&str]) -> Vec<Entry> {
        let fixtures =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-linux/tests/fixtures");
        let mut catalog = Catalog::default();
        catalog.add_pmus(&selection(filters), &SysfsPmus::at(fixtures.join(machine)));
        catalog.entries
    }

    fn names(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn events_of_pmus_read_back_as_events() {
        for machine in ["amd", "intel", "hybrid", "arm"] {
            let entries = pmus(machine, &["pmu"]);
            assert!(!entries.is_empty());
            for entry in entries {
                let (spec, _) = entry.probe.unwrap();
                assert_eq!(entry.name.parse::<EventSpec>().unwrap(), spec);
            }
        }
    }

    #[test]
    fn fields_units_cpus_and_parameters_are_told() {
        let form = &pmus("amd", &["raw", "amd_df/"])[0];
        assert_eq!(form.name, "amd_df/event=N,umask=N/");
        assert_eq!(
            form.description,
            "event config:0-7,32-37, umask config:8-15,24-27"
        );
        let form = &pmus("intel", &["raw", "cpu/any"])[0];
        assert!(
            form.name.starts_with("cpu/any,cmask=N,edge,"),
            "{}",
            form.name
        );

        let energy = &pmus("intel", &["energy-pkg"])[0];
        assert_eq!(energy.name, "power/energy-pkg/");
        assert_eq!(
            energy.description,
            "event=0x02, in Joules, of whole CPUs (-a)"
        );
        assert_eq!(energy.probe.as_ref().unwrap().1, Target::Cpu(0));

        let parameters = &pmus("power", &["HPM_INST"])[0];
        assert_eq!(parameters.name, "hv_24x7/HPM_INST,vcpu=?,lpar=?/");
        assert!(parameters.probe.is_none());
    }

    #[test]
    fn kinds_and_texts_select() {
        assert_eq!(names(&pmus("intel", &["pmu", "tsc"])), ["msr/tsc/"]);
        assert_eq!(names(&pmus("intel", &["hw"])), [""; 0]);
        let selection = selection(&["sw", "cs"]);
        let mut catalog = Catalog::default();
        catalog.add_generalized(&selection);
        assert_eq!(names(&catalog.entries), ["context-switches"]);
    }

    #[test]
    fn caches_are_found_by_their_other_spellings() {
        let mut catalog = Catalog::default();
        catalog.add_generalized(&selection(&["l1d"]));
        assert_eq!(catalog.entries.len(), 6);
        assert_eq!(catalog.entries[0].name, "L1-dcache-loads");
    }

    #[test]
    fn tracepoints_that_cannot_be_read_say_why() {
        let mut catalog = Catalog::default();
        catalog.add_tracepoints(&selection(&[]), Ok(Tracefs::at("/nonexistent")));
        let (kind, error) = &catalog.unavailable[0];
        assert_eq!((*kind, error.kind()), (Kind::Tracepoint, ErrorKind::Os));
        let message = catalog.nothing_matches(&selection(&["cylces"]));
        assert!(
            message.starts_with("no event matches cylces; did you mean cycles"),
            "{message}"
        );
    }
}
