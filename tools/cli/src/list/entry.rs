//! An event of the listing, and what probing it had for an outcome.

use quipu::{Error, Event, EventSpec, Target};

use super::selection::EventKind;

/// A line of the listing: an event, or the form of one with parts to fill in.
#[derive(Debug, Clone)]
pub struct ListedEvent {
    pub kind: EventKind,
    /// The text to give after `-e`.
    pub name: String,
    /// Other names of the same.
    pub aliases: &'static [&'static str],
    pub description: String,
    /// The event to open as a probe, and its target; `None` for a form.
    pub probe: Option<(EventSpec, Target)>,
    pub state: State,
}

impl ListedEvent {
    pub fn event(kind: EventKind, event: impl Into<Event>, description: impl Into<String>) -> Self {
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

    /// Returns its names and its description.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let names = self.aliases.iter().copied();
        names.chain([self.name.as_str(), self.description.as_str()])
    }

    /// Renames it: to a form that is probed with this example of it.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// The outcome of probing an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is nothing to open: the text has to be filled in first.
    Form,
    /// It opens.
    Opens(OpenedEvent),
    /// It does not, and why.
    Refused(Error),
    /// It was not tried.
    NotProbed,
}

/// An event that opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedEvent {
    /// The backend that counts it; `stat` for what `quipu stat` knows by itself.
    pub backend: &'static str,
    /// User mode only, because kernel mode is not permitted.
    pub user_only: bool,
}
