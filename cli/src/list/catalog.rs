//! The events there are, by kind.

use quipu::{Error, Event, EventSpec, Target};
use quipu_hal::text::{self, Generalized};
use quipu_hal::{Breakpoint, BreakpointAccess, RawEvent};

use super::probe::State;
use super::selection::{Kind, Selection};

/// A line of the listing: an event, or the form of one with parts to fill in.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// The text to give after `-e`.
    pub(super) name: String,
    /// Other names of the same.
    pub(super) aliases: &'static [&'static str],
    pub(super) description: String,
    /// The event to open as a probe, and its target; `None` for a form.
    pub(super) probe: Option<(EventSpec, Target)>,
    pub(super) state: State,
}

impl Entry {
    pub(super) fn event(
        kind: Kind,
        event: impl Into<Event>,
        description: impl Into<String>,
    ) -> Self {
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

    /// Renames it: to a form that is probed with this example of it.
    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
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
    /// Returns the events of this machine, in the order of their kinds.
    pub(super) fn of_this_machine(selection: &Selection) -> Self {
        let mut catalog = Self::default();
        catalog.add_generalized(selection);
        catalog.add_raw(selection);
        #[cfg(target_os = "linux")]
        {
            catalog.add_pmus(selection, &quipu_linux::sysfs::SysfsPmus::new());
            if selection.has_kind(Kind::Tracepoint) {
                catalog.add_tracepoints(selection, quipu_linux::tracefs::Tracefs::find());
            }
        }
        catalog.entries.sort_by_key(|entry| entry.kind);
        catalog
    }

    /// Returns the message for a selection that matches no event.
    pub(super) fn nothing_matches(&self, selection: &Selection) -> String {
        let texts = selection.texts();
        let mut message = format!("no event matches {}", texts.join(", "));
        let near: Vec<String> = texts
            .iter()
            .flat_map(|text| text::nearest(text, []))
            // An event of that very name is of a kind that was not asked for.
            .filter(|near| !texts.contains(&near.to_lowercase()))
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
    pub(super) fn add(&mut self, selection: &Selection, entry: Entry, more: &[&str]) {
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
            let kind = match event {
                Event::Hardware(_) => Kind::Hardware,
                Event::Software(_) => Kind::Software,
                _ => Kind::Cache,
            };
            let description = event.description().unwrap_or_default();
            let mut entry = Entry::event(kind, event, description);
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
            description: "raw event with the extra words of perf_event_attr".into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn generalized(filters: &[&str]) -> Vec<String> {
        let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
        let mut catalog = Catalog::default();
        catalog.add_generalized(&Selection::new(&filters));
        catalog.entries.into_iter().map(|e| e.name).collect()
    }

    #[test]
    fn events_are_found_by_their_other_names() {
        assert_eq!(generalized(&["sw", "cs"]), ["context-switches"]);
        let caches = generalized(&["l1d"]);
        assert_eq!((caches.len(), caches[0].as_str()), (6, "L1-dcache-loads"));
        assert_eq!(generalized(&[]).len(), 10 + 12 + 42);
    }

    #[test]
    fn raw_events_and_breakpoints_are_probed_by_examples() {
        let mut catalog = Catalog::default();
        catalog.add_raw(&Selection::new(&[]));
        for entry in &catalog.entries {
            let (spec, _) = entry.probe.as_ref().unwrap();
            let written: EventSpec = spec.to_string().parse().unwrap();
            assert_eq!(written, *spec);
            assert_ne!(entry.name, spec.to_string());
        }
        assert_eq!(catalog.entries.len(), 4);
    }

    #[test]
    fn nothing_found_names_what_is_near_and_what_could_not_be_looked_into() {
        let catalog = Catalog {
            entries: Vec::new(),
            unavailable: vec![(
                Kind::Tracepoint,
                Error::new(quipu::ErrorKind::NoSuchDevice, "read the tracepoints"),
            )],
        };
        let message = catalog.nothing_matches(&Selection::new(&["cylces".to_owned()]));
        assert!(message.starts_with("no event matches cylces; did you mean cycles"));
        assert!(
            message.ends_with("cannot read the tracepoints: no such device"),
            "{message}"
        );
    }
}
