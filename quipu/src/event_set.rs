//! Event sets: what a tool holds. Events and groups in request order, on whatever backend counts
//! each.

use std::sync::Arc;

use quipu_hal::{
    Attributes, DynBackend, Error, ErrorKind, EventInfo, EventSpec, Filter, Group, GroupSpec, Part,
    ReadBuf, Result, Simultaneity, Target, ValueKind,
};

use crate::counts::{Counts, Place};
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

struct OpenGroup {
    backend: &'static str,
    group: Box<dyn Group>,
}

impl OpenGroup {
    fn member(&self, group: usize, member: usize) -> Opened {
        Opened {
            place: Place { group, member },
            backend: self.backend,
            info: self.group.members()[member].clone(),
            simultaneity: self.group.simultaneity(),
        }
    }
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

#[derive(Debug)]
struct Opened {
    place: Place,
    backend: &'static str,
    info: EventInfo,
    simultaneity: Simultaneity,
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

    /// The backend that counts it, when it is open.
    pub fn backend(&self) -> Option<&'static str> {
        self.state.as_ref().ok().map(|o| o.backend)
    }

    /// How simultaneous its group's readings are, when it is open.
    pub fn simultaneity(&self) -> Option<Simultaneity> {
        self.state.as_ref().ok().map(|o| o.simultaneity)
    }

    pub(crate) fn is_gauge(&self) -> bool {
        self.info().is_some_and(|i| i.kind == ValueKind::Gauge)
    }

    pub(crate) fn place(&self) -> Result<Place, &Error> {
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
            backends: None,
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

    /// Starts counting, group by group.
    ///
    /// # Errors
    /// The first refusal of a backend; the groups after it are still told to start.
    pub fn enable(&mut self) -> Result<()> {
        self.each(Group::enable)
    }

    /// Stops counting, group by group. Values and times are kept.
    ///
    /// # Errors
    /// The first refusal of a backend; the groups after it are still told to stop.
    pub fn disable(&mut self) -> Result<()> {
        self.each(Group::disable)
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
    pub fn read(&mut self, out: &mut Counts) -> Result<()> {
        if !out.belongs_to(&self.events) {
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, "read an event set")
                    .with_reason("the buffer was made by another set"),
            );
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

/// Describes an [`EventSet`] and opens it.
pub struct EventSetBuilder {
    requests: Vec<GroupSpec>,
    target: Target,
    attributes: Attributes,
    user_mode_fallback: bool,
    backends: Option<Vec<Arc<dyn DynBackend>>>,
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

    /// The backends to try, in order; by default the usable ones of [`Machine::this`].
    #[must_use]
    pub fn backends(mut self, backends: impl IntoIterator<Item = Arc<dyn DynBackend>>) -> Self {
        self.backends = Some(backends.into_iter().collect());
        self
    }

    /// Opens every group on the first backend that can count it.
    ///
    /// # Errors
    /// When there is no backend at all. Groups that cannot be opened are no error of the set; see
    /// [`SetEvent::error`].
    pub fn open(self) -> Result<EventSet> {
        let (backends, forbidden) = match self.backends {
            Some(backends) => (backends, None),
            None => (Machine::this().require()?, Machine::this().forbidden()),
        };
        let mut events = Vec::new();
        let mut groups: Vec<OpenGroup> = Vec::new();
        for (request, mut spec) in self.requests.into_iter().enumerate() {
            spec.attributes = with_group_attributes(self.attributes, spec.attributes);
            let names: Vec<String> = spec.members.iter().map(ToString::to_string).collect();
            let (outcome, fell_back) =
                open_group(&backends, &mut spec, &self.target, self.user_mode_fallback);
            for (member, (spec, name)) in spec.members.into_iter().zip(names).enumerate() {
                let state = match (&outcome, forbidden) {
                    (Ok(open), _) => Ok(open.member(groups.len(), member)),
                    (Err(error), Some(forbidden))
                        if error.kind() == ErrorKind::UnsupportedEvent =>
                    {
                        Err(forbidden.clone())
                    }
                    (Err(error), _) => Err(error.clone()),
                };
                events.push(SetEvent {
                    name: name.into(),
                    spec,
                    request,
                    fell_back,
                    state,
                });
            }
            groups.extend(outcome);
        }
        Ok(EventSet {
            events: events.into(),
            groups,
        })
    }
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

/// Opens a group on the first backend that can, in user mode where that is as much as it permits;
/// second, whether it fell back to that (then `spec` says so).
///
/// The error that is worth telling is the first that says more than "no such event here".
fn open_group(
    backends: &[Arc<dyn DynBackend>],
    spec: &mut GroupSpec,
    target: &Target,
    user_mode_fallback: bool,
) -> (Result<OpenGroup>, bool) {
    let mut worth_telling: Option<Error> = None;
    for backend in backends {
        let mut refusal = match open_on(backend, spec, target) {
            Ok(open) => return (Ok(open), false),
            Err(error) => error,
        };
        if user_mode_fallback && refusal.kind() == ErrorKind::NoPermission {
            match open_in_user_mode(backend, spec, target, refusal) {
                Ok((open, in_user_mode)) => {
                    *spec = in_user_mode;
                    return (Ok(open), true);
                }
                Err(error) => refusal = error,
            }
        }
        let says_more = |e: &Error| e.kind() != ErrorKind::UnsupportedEvent;
        if worth_telling
            .as_ref()
            .is_none_or(|kept| says_more(&refusal) && !says_more(kept))
        {
            worth_telling = Some(refusal);
        }
    }
    let error = worth_telling
        .unwrap_or_else(|| Error::new(ErrorKind::NoSuchDevice, "open a group without a backend"));
    (Err(error), false)
}

fn open_on(backend: &Arc<dyn DynBackend>, spec: &GroupSpec, target: &Target) -> Result<OpenGroup> {
    let group = backend.open(spec, target)?;
    Ok(OpenGroup {
        backend: backend.name(),
        group,
    })
}

/// Opens a group that was denied for user mode only, where that means something; the error is the
/// one to tell then.
fn open_in_user_mode(
    backend: &Arc<dyn DynBackend>,
    spec: &GroupSpec,
    target: &Target,
    denied: Error,
) -> Result<(OpenGroup, GroupSpec)> {
    let mut in_user_mode = spec.clone();
    for member in &mut in_user_mode.members {
        if !member.filter.contains(Filter::USER) {
            return Err(denied);
        }
        member.filter = member.filter.with_levels(Filter::USER);
    }
    let open = match open_on(backend, &in_user_mode, target) {
        Ok(open) => open,
        // Not permitted everywhere and not there at all: the second is what to tell, unless the first
        // knew already why user mode will not do.
        Err(error) if error.kind() != ErrorKind::NoPermission && denied.reason().is_none() => {
            return Err(error);
        }
        Err(_) => return Err(denied),
    };
    let mut infos = open.group.members().iter();
    match infos.position(|i| !i.occurs_in.contains(Filter::USER)) {
        Some(member) => Err(kernel_only(&spec.members[member], member, &denied)),
        None => Ok((open, in_user_mode)),
    }
}

fn kernel_only(spec: &EventSpec, member: usize, denied: &Error) -> Error {
    let event = &spec.event;
    let error = Error::new(ErrorKind::NoPermission, denied.attempted())
        .with_member(member)
        .with_reason(format!(
            "{event} happens in the kernel only, where counting is not permitted; {event}:u would read 0"
        ));
    match denied.hint() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
