//! The events of a set, each with its state.

use std::sync::OnceLock;

use quipu_hal::{Error, EventInfo, EventSpec, Filter, Result, Simultaneity, Target, ValueKind};

use crate::counts::MemberIndex;
use crate::open::OpenGroup;
use crate::preset::Preset;

/// One event of an [`EventSet`](crate::EventSet): the request, and the counter that was opened for it
/// or the reason why there is none.
#[derive(Debug)]
pub struct SetEvent {
    /// Made when it is first asked for.
    name: OnceLock<Box<str>>,
    spec: EventSpec,
    request: usize,
    /// The levels asked for, if it fell back to user mode.
    asked_levels: Option<Filter>,
    state: Result<OpenEvent>,
}

/// An event that is being counted.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    pub(crate) index: MemberIndex,
    pub(crate) backend: &'static str,
    /// The CPUs it is counted on, where that is not the target of the set.
    pub(crate) on_cpus: Option<Box<Target>>,
    pub(crate) info: EventInfo,
    pub(crate) simultaneity: Simultaneity,
    /// Set for presets of several events; the index is that of the first term.
    pub(crate) preset: Option<Box<Preset>>,
}

impl OpenEvent {
    /// Returns the member of a request whose groups are at `first` in the set: they are one group, or one
    /// for each member.
    pub(crate) fn of_member(groups: &[OpenGroup], first: usize, member: usize) -> Self {
        let (at, member) = match groups.len() {
            1 => (0, member),
            _ => (member, 0),
        };
        let open = &groups[at];
        Self {
            index: MemberIndex {
                group: first + at,
                member,
            },
            backend: open.backend,
            on_cpus: open.on_cpus.clone(),
            info: open.group.members()[member].clone(),
            simultaneity: open.group.simultaneity(),
            preset: None,
        }
    }
}

impl SetEvent {
    /// Returns an event as it is counted: in user mode only if it fell back to that.
    pub(crate) fn new(
        asked: &EventSpec,
        request: usize,
        fell_back: bool,
        state: Result<OpenEvent>,
    ) -> Self {
        let mut spec = asked.clone();
        if fell_back {
            spec.filter = spec.filter.with_levels(Filter::USER);
        }
        Self {
            name: OnceLock::new(),
            spec,
            request,
            asked_levels: fell_back.then_some(asked.filter & Filter::LEVELS),
            state,
        }
    }

    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.name = OnceLock::from(Box::from(name));
        self
    }

    /// Returns the event as it was asked for, as text: `page-faults:u`.
    pub fn name(&self) -> &str {
        self.name.get_or_init(|| {
            let asked = match self.asked_levels {
                Some(levels) => &self
                    .spec
                    .clone()
                    .with_filter(self.spec.filter.with_levels(levels)),
                None => &self.spec,
            };
            format!("{asked}").into()
        })
    }

    /// Returns the event with the filter in force, which a fallback may have narrowed.
    pub fn spec(&self) -> &EventSpec {
        &self.spec
    }

    /// Returns the position of the request (group or lone event) it belongs to.
    pub fn request(&self) -> usize {
        self.request
    }

    /// Returns true if it counts user mode only because kernel mode is not permitted
    /// ([`EventSetBuilder::user_mode_fallback`](crate::EventSetBuilder::user_mode_fallback)).
    pub fn fell_back_to_user(&self) -> bool {
        self.asked_levels.is_some()
    }

    /// Returns the reason why it cannot be counted, or `None` if it is open.
    pub fn error(&self) -> Option<&Error> {
        self.state.as_ref().err()
    }

    /// Returns its name, unit and scale on the backend, if it is open.
    pub fn info(&self) -> Option<&EventInfo> {
        self.state.as_ref().ok().map(|o| &o.info)
    }

    /// Returns its formula and terms, if it is a preset of several events and open.
    pub fn preset(&self) -> Option<&Preset> {
        self.state.as_ref().ok()?.preset.as_deref()
    }

    /// Returns the name of the backend that counts it, if it is open; for a preset, its first term.
    pub fn backend(&self) -> Option<&'static str> {
        self.state.as_ref().ok().map(|o| o.backend)
    }

    /// Returns the CPUs it is counted on, whatever runs there, if its backend cannot follow the target
    /// of the set ([`EventSetBuilder::cpu_fallback`](crate::EventSetBuilder::cpu_fallback)).
    pub fn fell_back_to_cpus(&self) -> Option<&Target> {
        self.state.as_ref().ok()?.on_cpus.as_deref()
    }

    /// Returns how simultaneous its group's readings are, if it is open.
    pub fn simultaneity(&self) -> Option<Simultaneity> {
        self.state.as_ref().ok().map(|o| o.simultaneity)
    }

    pub(crate) fn is_gauge(&self) -> bool {
        self.info().is_some_and(|i| i.kind == ValueKind::Gauge)
    }

    /// Returns the events that are counted for it: its terms, or itself.
    pub(crate) fn counted(&self) -> &[Self] {
        match self.preset() {
            Some(preset) => preset.terms(),
            None => std::slice::from_ref(self),
        }
    }

    /// Returns the position of its readings in [`Counts`](crate::Counts); for a preset, those of its
    /// first term.
    ///
    /// # Errors
    /// The reason why it cannot be counted.
    pub fn index(&self) -> Result<MemberIndex, &Error> {
        self.state.as_ref().map(|open| open.index)
    }
}
