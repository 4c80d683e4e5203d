//! The events there are, by kind.

use quipu::{Error, Event};
use quipu_hal::{Breakpoint, BreakpointAccess, RawEvent};
use quipu_text::Generalized;

use super::entry::ListedEvent;
use super::selection::{EventKind, ListFilter};
use super::spelling::suggestion;
use quipu_stat::tool_events::ToolEvent;

/// The events that were asked for, and what could not be looked into.
#[derive(Debug, Default)]
pub struct Catalog {
    pub entries: Vec<ListedEvent>,
    /// Kinds whose events cannot be listed, and why.
    pub unavailable: Vec<(EventKind, Error)>,
}

impl Catalog {
    /// Returns the events of this machine, in the order of their kinds.
    pub fn of_this_machine(selection: &ListFilter) -> Self {
        let mut catalog = Self::default();
        catalog.add_generalized(selection);
        for tool in ToolEvent::ALL {
            let entry = ListedEvent::event(
                EventKind::Tool,
                Event::Named(tool.name().into()),
                tool.description(),
            );
            let unprobed = ListedEvent {
                probe: None,
                ..entry
            };
            catalog.add(selection, unprobed, &[]);
        }
        catalog.add_raw(selection);
        #[cfg(target_os = "linux")]
        {
            catalog.add_pmus(selection, &quipu_linux::sysfs::SysfsPmus::new());
            if selection.has_kind(EventKind::Tracepoint) {
                catalog.add_tracepoints(selection, quipu_linux::tracefs::Tracefs::find());
            }
        }
        #[cfg(target_os = "freebsd")]
        catalog.add_events_of_the_kernel(selection);
        catalog.entries.sort_by_key(|entry| entry.kind);
        catalog
    }

    /// Returns the message for a selection that matches no event; `of_cpus` are the names and descriptions of
    /// all events of the CPUs.
    pub fn nothing_matches(&self, selection: &ListFilter, of_cpus: &[&str]) -> String {
        let texts = selection.texts();
        let mut message = format!("no event matches {}", texts.join(", "));
        let mut known = Self::default();
        known.add_generalized(&ListFilter::new(&[]));
        let mut known: Vec<&str> = known.entries.iter().flat_map(ListedEvent::texts).collect();
        known.extend(of_cpus);
        message.push_str(&suggestion(texts, known));
        for (_, error) in &self.unavailable {
            message.push_str(&format!("; {error:#}"));
        }
        message
    }

    /// Adds an entry if it is asked for by its kind, and by its names or these.
    pub fn add(&mut self, selection: &ListFilter, entry: ListedEvent, more: &[&str]) {
        let names = [entry.name.as_str()];
        let names = names.iter().chain(entry.aliases).chain(more).copied();
        if selection.has_kind(entry.kind) && selection.has_event(names, || Some(&entry.description))
        {
            self.entries.push(entry);
        }
    }

    pub fn add_generalized(&mut self, selection: &ListFilter) {
        for Generalized { event, aliases, .. } in quipu_text::generalized() {
            let spellings: &[&str] = match &event {
                Event::Cache(event) => event.cache.aliases(),
                _ => &[],
            };
            let kind = match event {
                Event::Hardware(_) => EventKind::Hardware,
                Event::Software(_) => EventKind::Software,
                _ => EventKind::Cache,
            };
            let description = quipu_text::describe(&event).unwrap_or_default();
            let mut entry = ListedEvent::event(kind, event, description);
            entry.aliases = aliases;
            self.add(selection, entry, spellings);
        }
    }

    pub fn add_raw(&mut self, selection: &ListFilter) {
        let raw = ListedEvent::event(
            EventKind::Raw,
            RawEvent::default(),
            "the CPU's own event select bits, in hexadecimal",
        );
        self.add(selection, raw.clone().named("rHEX"), &["raw"]);
        let words = ListedEvent {
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
        let access = ListedEvent::event(
            EventKind::Breakpoint,
            breakpoint,
            "reads (r) and writes (w) of 1, 2, 4 or 8 bytes from an address",
        );
        self.add(
            selection,
            access.named("mem:ADDRESS/LENGTH:rw"),
            &["breakpoint"],
        );
        let execution = ListedEvent::event(
            EventKind::Breakpoint,
            Breakpoint::execute(breakpoint.address),
            "executions of the instruction at an address",
        );
        self.add(selection, execution.named("mem:ADDRESS:x"), &["breakpoint"]);
    }
}
