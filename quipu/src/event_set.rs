//! Event sets: what a tool holds. Events and groups in request order, on whatever backend counts
//! each.

use std::sync::Arc;
use std::time::Duration;

use quipu_events::Formula;
use quipu_hal::{
    Attributes, DynBackend, Error, ErrorKind, Event, EventInfo, EventSpec, Filter, Group,
    GroupSpec, Part, ReadBuf, Result, Simultaneity, Target, ValueKind,
};

use crate::counts::{Counts, Place};
use crate::open::{OpenGroup, Opener};
use crate::preset::{Preset, term_refused};
use crate::{IntoGroups, Machine};

/// Several groups of events on one target, possibly on several backends.
///
/// Each group is opened on the first backend that can count it. A group that no backend can count
/// is kept with its error and does not sink the others.
///
/// ```
/// use quipu::{EventSet, Target};
///
/// let mut set = EventSet::builder()
///     .events("task-clock,{page-faults,minor-faults},no-such-event")?
///     .target(Target::CurrentThread)
///     .open()?;
/// let mut counts = set.counts();
/// set.read(&mut counts)?;
/// for event in counts.events() {
///     match event.total() {
///         Ok(total) => println!("{}: {total:?}", event.name()),
///         Err(why) => println!("{}: {why:#}", event.name()),
///     }
/// }
/// # Ok::<(), quipu::Error>(())
/// ```
pub struct EventSet {
    events: Arc<[SetEvent]>,
    groups: Vec<OpenGroup>,
}

/// One event of an [`EventSet`]: what was asked for, and what became of it.
#[derive(Debug)]
pub struct SetEvent {
    name: Box<str>,
    spec: EventSpec,
    request: usize,
    fell_back: bool,
    state: Result<Opened>,
}

/// What is known of an event that is being counted.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) place: Place,
    pub(crate) backend: &'static str,
    /// The CPUs it is counted on, where that is not the target of the set.
    pub(crate) on_cpus: Option<Target>,
    pub(crate) info: EventInfo,
    pub(crate) simultaneity: Simultaneity,
    /// The terms, where it is several events; the place is that of the first.
    pub(crate) preset: Option<Preset>,
}

impl SetEvent {
    /// The event as it was asked for, as text: `page-faults:u`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The event with the filter in force, which a fallback may have narrowed.
    pub fn spec(&self) -> &EventSpec {
        &self.spec
    }

    /// The position of the request (group or lone event) it belongs to.
    pub fn request(&self) -> usize {
        self.request
    }

    /// Whether it counts user mode only because kernel mode is not permitted
    /// ([`EventSetBuilder::user_mode_fallback`]).
    pub fn fell_back_to_user(&self) -> bool {
        self.fell_back
    }

    /// Why it cannot be counted.
    pub fn error(&self) -> Option<&Error> {
        self.state.as_ref().err()
    }

    /// What is known of it, when it is open.
    pub fn info(&self) -> Option<&EventInfo> {
        self.state.as_ref().ok().map(|o| &o.info)
    }

    /// The formula that it stands for and what is counted for it, when it is a preset of several events
    /// and open.
    #[inline]
    pub fn preset(&self) -> Option<&Preset> {
        self.state.as_ref().ok()?.preset.as_ref()
    }

    /// The backend that counts it, when it is open; of a preset, its first term.
    pub fn backend(&self) -> Option<&'static str> {
        self.state.as_ref().ok().map(|o| o.backend)
    }

    /// The CPUs it is counted on, whatever runs there, because its backend cannot follow the target
    /// of the set ([`EventSetBuilder::cpu_fallback`]).
    pub fn fell_back_to_cpus(&self) -> Option<&Target> {
        self.state.as_ref().ok()?.on_cpus.as_ref()
    }

    /// How simultaneous its group's readings are, when it is open.
    pub fn simultaneity(&self) -> Option<Simultaneity> {
        self.state.as_ref().ok().map(|o| o.simultaneity)
    }

    pub(crate) fn is_gauge(&self) -> bool {
        self.info().is_some_and(|i| i.kind == ValueKind::Gauge)
    }

    /// The events that are counted for it: its terms, or itself.
    pub(crate) fn counted(&self) -> &[Self] {
        match self.preset() {
            Some(preset) => preset.terms(),
            None => std::slice::from_ref(self),
        }
    }

    /// Where its readings are in [`Counts`], when it is open; of a preset, those of its first term.
    ///
    /// # Errors
    /// Why it cannot be counted.
    #[inline]
    pub fn place(&self) -> Result<Place, &Error> {
        self.state.as_ref().map(|opened| opened.place)
    }
}

impl EventSet {
    /// Starts describing a set; by default on the calling thread, opened without counting.
    pub fn builder() -> EventSetBuilder {
        EventSetBuilder {
            requests: Vec::new(),
            target: Target::CurrentThread,
            attributes: Attributes {
                disabled: true,
                ..Attributes::default()
            },
            user_mode_fallback: false,
            cpu_fallback: false,
            backends: None,
            machine: None,
            presets: Vec::new(),
        }
    }

    /// Every event asked for, in request order, whether it could be opened or not.
    pub fn events(&self) -> &[SetEvent] {
        &self.events
    }

    /// A buffer to read this set into; make it once and reuse it.
    pub fn counts(&self) -> Counts {
        let bufs: Vec<ReadBuf> = self.groups.iter().map(|g| g.group.read_buf()).collect();
        Counts::new(Arc::clone(&self.events), bufs)
    }

    /// The parts that the target of an open event fanned out into.
    pub fn parts(&self, event: usize) -> Option<&[Part]> {
        let place = self.events.get(event)?.place().ok()?;
        Some(self.groups[place.group].group.parts())
    }

    /// How long an open event counts at a time where it takes turns with others
    /// ([`Group::rotation_interval`]).
    pub fn rotation_interval(&self, event: usize) -> Option<Duration> {
        let place = self.events.get(event)?.place().ok()?;
        self.groups[place.group].group.rotation_interval()
    }

    /// Starts counting, group by group.
    ///
    /// # Errors
    /// The first refusal of a backend; the groups after it are still told to start.
    pub fn enable(&mut self) -> Result<()> {
        self.each(Group::enable)
    }

    /// Starts only the groups that count on CPUs because their backend cannot follow the target
    /// ([`EventSetBuilder::cpu_fallback`]), where the others start by themselves when it executes.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn enable_on_cpus(&mut self) -> Result<()> {
        let mut first = Ok(());
        for open in self.groups.iter_mut().filter(|g| g.on_cpus.is_some()) {
            let done = open.group.enable();
            if first.is_ok() {
                first = done;
            }
        }
        first
    }

    /// Stops counting, group by group. Values and times are kept.
    ///
    /// # Errors
    /// The first refusal of a backend; the groups after it are still told to stop.
    pub fn disable(&mut self) -> Result<()> {
        self.each(Group::disable)
    }

    /// Stops counting like [`disable`](Self::disable), and says of every event whose group was refused
    /// why.
    pub fn disable_each(&mut self) -> Vec<(usize, Error)> {
        let mut refusals = Vec::new();
        for (index, open) in self.groups.iter_mut().enumerate() {
            let Err(error) = open.group.disable() else {
                continue;
            };
            let is_member = |event: &SetEvent| event.place().is_ok_and(|p| p.group == index);
            let events = self.events.iter().enumerate();
            let members = events.filter(|(_, event)| event.counted().iter().any(is_member));
            refusals.extend(members.map(|(event, _)| (event, error.clone())));
        }
        refusals
    }

    /// Sets all values to zero.
    ///
    /// # Errors
    /// The first refusal of a backend; the groups after it are still reset.
    pub fn reset(&mut self) -> Result<()> {
        self.each(Group::reset)
    }

    /// Reads every group: one system call or less for each, and no allocation unless one fails.
    ///
    /// A group that cannot be read keeps its error in `out` and does not sink the others.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when `out` was made by another set.
    // Inlined to the caller's loop, as is what it is made of: with the mitigations of today's kernels
    // every return after a system call is mispredicted.
    #[inline(always)]
    pub fn read(&mut self, out: &mut Counts) -> Result<()> {
        if !out.belongs_to(&self.events) {
            return Err(of_another_set());
        }
        for (open, (buf, error)) in self.groups.iter_mut().zip(out.groups_mut()) {
            *error = open.group.read(buf).err();
        }
        Ok(())
    }

    fn each(&mut self, f: impl Fn(&mut dyn Group) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for open in &mut self.groups {
            let done = f(&mut *open.group);
            if first.is_ok() {
                first = done;
            }
        }
        first
    }
}

#[cold]
fn of_another_set() -> Error {
    Error::new(ErrorKind::InvalidConfiguration, "read an event set")
        .with_reason("the buffer was made by another set")
}

/// Describes an [`EventSet`] and opens it.
pub struct EventSetBuilder {
    requests: Vec<GroupSpec>,
    target: Target,
    attributes: Attributes,
    user_mode_fallback: bool,
    cpu_fallback: bool,
    backends: Option<Vec<Arc<dyn DynBackend>>>,
    machine: Option<Arc<Machine>>,
    presets: Vec<(String, Formula)>,
}

impl EventSetBuilder {
    /// Adds events and groups, in order; may be called again.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when a text is malformed.
    pub fn events(mut self, events: impl IntoGroups) -> Result<Self> {
        self.requests.extend(events.groups()?);
        Ok(self)
    }

    /// What is measured; the calling thread by default.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// How groups are opened; by default without counting. What a group asks for by itself
    /// (`:D`, `:e`) is added.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Where counting in the kernel is not permitted, count user mode only, group by group, and only
    /// events that mean something there. [`SetEvent::fell_back_to_user`] tells. Off by default.
    #[must_use]
    pub fn user_mode_fallback(mut self, yes: bool) -> Self {
        self.user_mode_fallback = yes;
        self
    }

    /// Where a backend counts whole CPUs only, as bare registers do, and the target is a thread or
    /// process, counts there what the CPUs do instead: all of them where the backend reaches them all,
    /// else the one that the calling thread is on. [`SetEvent::fell_back_to_cpus`] tells. Such a group
    /// heeds neither [`inherit`](Attributes::inherit) nor
    /// [`enable_on_exec`](Attributes::enable_on_exec); where the others rely on the latter,
    /// [`EventSet::enable_on_cpus`] starts it. Off by default.
    #[must_use]
    pub fn cpu_fallback(mut self, yes: bool) -> Self {
        self.cpu_fallback = yes;
        self
    }

    /// The backends to try, in order; by default the usable ones of [`Machine::this`].
    #[must_use]
    pub fn backends(mut self, backends: impl IntoIterator<Item = Arc<dyn DynBackend>>) -> Self {
        self.backends = Some(backends.into_iter().collect());
        self
    }

    /// The machine whose backends and presets are used; by default [`Machine::this`]. With
    /// [`backends`](Self::backends), only its presets are.
    #[must_use]
    pub fn machine(mut self, machine: Arc<Machine>) -> Self {
        self.machine = Some(machine);
        self
    }

    /// A name for a formula over events, for this set; it hides what else has the name. The events of
    /// the formula are no presets themselves.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut set = EventSet::builder()
    ///     .preset("ALL_FAULTS", "minor-faults + major-faults")?
    ///     .events("ALL_FAULTS:u")?
    ///     .open()?;
    /// let mut counts = set.counts();
    /// set.read(&mut counts)?;
    /// println!("{:?}", counts.event(0).total());
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the text is no formula, or one
    /// without events.
    pub fn preset(mut self, name: impl Into<String>, formula: &str) -> Result<Self> {
        let name = name.into();
        let refused = |reason: String| {
            Error::new(ErrorKind::InvalidConfiguration, format!("define {name}"))
                .with_reason(reason)
        };
        let formula = Formula::parse(formula).map_err(|error| refused(error.to_string()))?;
        if formula.events().is_empty() {
            return Err(refused("the formula counts no event".into()));
        }
        self.presets.push((name, formula));
        Ok(self)
    }

    /// Opens every group on the first backend that can count it.
    ///
    /// A preset of several events is opened as one group if there are counters for that, otherwise
    /// event by event; in a group with others, its events become members of that group.
    ///
    /// # Errors
    /// When there is no backend at all. Groups that cannot be opened are no error of the set; see
    /// [`SetEvent::error`].
    pub fn open(self) -> Result<EventSet> {
        let given = self.machine.as_deref();
        let (backends, unusable) = match self.backends.clone() {
            Some(backends) => (backends, None),
            None => {
                let machine = given.unwrap_or_else(|| Machine::this());
                (machine.require()?, machine.unusable_first().cloned())
            }
        };
        let opener = Opener {
            backends,
            unusable,
            target: &self.target,
            user_mode_fallback: self.user_mode_fallback,
            cpu_fallback: self.cpu_fallback,
        };
        let mut events = Vec::new();
        let mut groups: Vec<OpenGroup> = Vec::new();
        for (request, asked) in self.requests.iter().enumerate() {
            events.extend(self.open_request(request, asked, &opener, &mut groups));
        }
        Ok(EventSet {
            events: events.into(),
            groups,
        })
    }

    /// Opens the events of one request; what is open is added to `groups`.
    fn open_request(
        &self,
        request: usize,
        asked: &GroupSpec,
        opener: &Opener<'_>,
        groups: &mut Vec<OpenGroup>,
    ) -> Vec<SetEvent> {
        let event = |spec: &EventSpec, fell_back: bool, state: Result<Opened>| SetEvent {
            name: spec.to_string().into(),
            spec: in_force(spec, fell_back),
            request,
            fell_back,
            state,
        };
        let formulas: Result<Vec<_>> = asked.members.iter().map(|m| self.formula(m)).collect();
        let formulas = match formulas {
            Ok(formulas) => formulas,
            Err(error) => {
                let refused = |spec| event(spec, false, Err(error.clone()));
                return asked.members.iter().map(refused).collect();
            }
        };
        let members = asked.members.iter().zip(&formulas);
        let leaves: Vec<Vec<EventSpec>> = members
            .map(|(spec, formula)| match formula {
                Some(formula) => formula
                    .terms()
                    .map(|term| EventSpec {
                        event: term,
                        ..spec.clone()
                    })
                    .collect(),
                None => vec![spec.clone()],
            })
            .collect();
        let group = GroupSpec::new(leaves.iter().flatten().cloned())
            .with_attributes(with_group_attributes(self.attributes, asked.attributes));
        let may_part = matches!(formulas[..], [Some(_)]);
        let first = groups.len();
        let outcome = opener.open(&group, may_part);
        let mut from = 0;
        let mut events = Vec::new();
        let leaves_of: Vec<usize> = leaves.iter().map(Vec::len).collect();
        for ((spec, formula), leaves) in asked.members.iter().zip(formulas).zip(&leaves) {
            let leaf = |at: usize| match &outcome {
                Ok(opened) => Ok(opened.leaf(first, from + at)),
                Err(error) => Err(of_member(error, &leaves_of)),
            };
            let fell_back = outcome.as_ref().is_ok_and(|opened| opened.in_user_mode);
            let state = match (formula, &outcome) {
                (None, _) => leaf(0),
                (Some(formula), Ok(opened)) => {
                    let terms = leaves.iter().zip(formula.events()).enumerate();
                    let terms = terms
                        .map(|(at, (spec, name))| SetEvent {
                            name: name.as_str().into(),
                            ..event(spec, fell_back, leaf(at))
                        })
                        .collect();
                    leaf(0).map(|first| {
                        let preset = Preset::new(formula, terms, opened.groups.len() == 1);
                        Opened {
                            info: preset.info(),
                            simultaneity: preset.simultaneity(),
                            preset: Some(preset),
                            ..first
                        }
                    })
                }
                (Some(formula), Err(error)) => {
                    let at = error.member().and_then(|member| member.checked_sub(from));
                    let term = at.and_then(|at| formula.events().get(at));
                    Err(match term {
                        Some(term) => term_refused(&spec.to_string(), term, error),
                        None => of_member(error, &leaves_of),
                    })
                }
            };
            from += leaves.len();
            events.push(event(spec, fell_back, state));
        }
        groups.extend(outcome.into_iter().flat_map(|opened| opened.groups));
        events
    }

    /// The formula that an event is a name for, if it is one.
    fn formula(&self, spec: &EventSpec) -> Result<Option<Formula>> {
        let Event::Named(name) = &spec.event else {
            return Ok(None);
        };
        let own = self.presets.iter().rev().find(|(own, _)| own == name);
        match (own, &self.machine, &self.backends) {
            (Some((_, formula)), ..) => Ok(Some(formula.clone())),
            (None, Some(machine), _) => machine.native_events().formula(name),
            (None, None, None) => Machine::this().native_events().formula(name),
            (None, None, Some(_)) => Ok(None),
        }
    }
}

/// An error of a group with the member that was asked for, where members are several events each.
fn of_member(error: &Error, events_of: &[usize]) -> Error {
    let Some(mut at) = error.member() else {
        return error.clone();
    };
    let member = events_of.iter().position(|&events| {
        let is_here = at < events;
        at = at.saturating_sub(events);
        is_here
    });
    match member {
        Some(member) => error.clone().with_member(member),
        None => error.clone(),
    }
}

/// An event as it is counted: in user mode only where it fell back to that.
fn in_force(spec: &EventSpec, fell_back: bool) -> EventSpec {
    let mut spec = spec.clone();
    if fell_back {
        spec.filter = spec.filter.with_levels(Filter::USER);
    }
    spec
}

fn with_group_attributes(set: Attributes, group: Attributes) -> Attributes {
    Attributes {
        inherit: set.inherit || group.inherit,
        pinned: set.pinned || group.pinned,
        exclusive: set.exclusive || group.exclusive,
        enable_on_exec: set.enable_on_exec || group.enable_on_exec,
        disabled: set.disabled || group.disabled,
    }
}
