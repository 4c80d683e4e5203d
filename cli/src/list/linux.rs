//! The events that the kernel names: of its PMUs, and tracepoints.

use quipu::{Error, Event, Target};
use quipu_hal::PmuEvent;
use quipu_linux::sysfs::{Format, NamedEvent, Pmu, SysfsPmus};
use quipu_linux::tracefs::Tracefs;

use super::catalog::{Catalog, Entry};
use super::probe::State;
use super::selection::{Kind, Selection};

impl Catalog {
    /// Adds the events that the kernel's PMUs name, and how to write others.
    pub(super) fn add_pmus(&mut self, selection: &Selection, pmus: &SysfsPmus) {
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
    pub(super) fn add_tracepoints(
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

impl Entry {
    /// Returns an entry of text with parts to fill in.
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
}

/// Returns the syntax of this PMU's events by their fields.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use quipu::{ErrorKind, EventSpec};

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
    }

    #[test]
    fn tracepoints_that_cannot_be_read_say_why() {
        let mut catalog = Catalog::default();
        catalog.add_tracepoints(&selection(&[]), Ok(Tracefs::at("/nonexistent")));
        let (kind, error) = &catalog.unavailable[0];
        assert_eq!((*kind, error.kind()), (Kind::Tracepoint, ErrorKind::Os));
    }
}
