//! Opening groups: on the first backend that can, in user mode where that is as much as it permits,
//! and in pieces where a preset does not fit into one group.

use std::sync::Arc;

use quipu_hal::{
    DynBackend, Error, ErrorKind, Event, EventSpec, Features, Filter, Group, GroupSpec, Result,
    Target, TargetKinds,
};

use crate::counts::Place;
use crate::event_set::Opened;

/// A group on the backend that counts it.
pub(crate) struct OpenGroup {
    pub(crate) backend: &'static str,
    /// The CPUs it is counted on, where that is not the target that was asked for.
    pub(crate) on_cpus: Option<Target>,
    pub(crate) group: Box<dyn Group>,
}

/// The groups that a request became: one, or one for each member.
pub(crate) struct OpenGroups {
    pub(crate) groups: Vec<OpenGroup>,
    /// Whether they count user mode only because that is as much as is permitted.
    pub(crate) in_user_mode: bool,
}

impl OpenGroups {
    fn one(group: OpenGroup, in_user_mode: bool) -> Self {
        Self {
            groups: vec![group],
            in_user_mode,
        }
    }

    /// What is known of a member of the request, when the groups come after `first` others.
    pub(crate) fn leaf(&self, first: usize, member: usize) -> Opened {
        let (at, member) = match self.groups.len() {
            1 => (0, member),
            _ => (member, 0),
        };
        let OpenGroup {
            backend,
            on_cpus,
            group,
        } = &self.groups[at];
        Opened {
            place: Place {
                group: first + at,
                member,
            },
            backend,
            on_cpus: on_cpus.clone(),
            info: group.members()[member].clone(),
            simultaneity: group.simultaneity(),
            preset: None,
        }
    }
}

/// How the groups of a set are opened.
pub(crate) struct Opener<'a> {
    pub(crate) backends: Vec<Arc<dyn DynBackend>>,
    /// Why the backend that comes first cannot be used, if that is so.
    pub(crate) unusable: Option<Error>,
    pub(crate) target: &'a Target,
    pub(crate) user_mode_fallback: bool,
    pub(crate) cpu_fallback: bool,
}

impl Opener<'_> {
    /// Opens the events of a request as one group, or one by one where they `may_part` and do not go
    /// together.
    pub(crate) fn open(&self, spec: &GroupSpec, may_part: bool) -> Result<OpenGroups> {
        let together = self.group(spec, self.user_mode_fallback);
        let outcome = match together {
            Err(error) if may_part && spec.members.len() > 1 && may_open_apart(&error) => {
                // One by one they say better what is in the way.
                self.one_by_one(spec, self.user_mode_fallback)
            }
            outcome => outcome,
        };
        outcome.map_err(|error| match &self.unusable {
            Some(unusable) if error.kind() == ErrorKind::UnsupportedEvent => unusable.clone(),
            _ => error,
        })
    }

    /// Opens each event by itself, and all in the same modes.
    fn one_by_one(&self, spec: &GroupSpec, user_mode_fallback: bool) -> Result<OpenGroups> {
        let mut groups = Vec::new();
        let mut fell_back = 0;
        for (at, member) in spec.members.iter().enumerate() {
            let alone = GroupSpec::single(member.clone()).with_attributes(spec.attributes);
            let open = self.group(&alone, user_mode_fallback);
            let open = open.map_err(|error| error.with_member(at))?;
            fell_back += usize::from(open.in_user_mode);
            groups.extend(open.groups);
        }
        if fell_back > 0 && fell_back < groups.len() {
            let open = self.one_by_one(&in_user_mode(spec), false)?;
            return Ok(OpenGroups {
                in_user_mode: true,
                ..open
            });
        }
        Ok(OpenGroups {
            groups,
            in_user_mode: fell_back > 0,
        })
    }

    /// Opens a group on the first backend that can, in user mode where that is as much as it permits.
    ///
    /// The error that is worth telling is the first that says more than "no such event here"; of software
    /// events, a backend that has some says it best.
    fn group(&self, spec: &GroupSpec, user_mode_fallback: bool) -> Result<OpenGroups> {
        let mut worth_telling: Option<Error> = None;
        for backend in &self.backends {
            let at = Whereabouts::of(backend, self.target, self.cpu_fallback);
            let mut refusal = match at.open(spec) {
                Ok(open) => return Ok(OpenGroups::one(open, false)),
                Err(error) => error,
            };
            if user_mode_fallback && refusal.kind() == ErrorKind::NoPermission {
                match open_in_user_mode(&at, spec, refusal) {
                    Ok(open) => return Ok(OpenGroups::one(open, true)),
                    Err(error) => refusal = error,
                }
            }
            let says_more = |e: &Error| e.kind() != ErrorKind::UnsupportedEvent;
            let knows_best = says_more(&refusal) || has_kind_of(backend, spec);
            if worth_telling
                .as_ref()
                .is_none_or(|kept| knows_best && !says_more(kept))
            {
                worth_telling = Some(refusal);
            }
        }
        Err(worth_telling.unwrap_or_else(|| {
            Error::new(ErrorKind::NoSuchDevice, "open a group without a backend")
        }))
    }
}

/// Whether a group is of software events, and a backend counts such.
fn has_kind_of(backend: &Arc<dyn DynBackend>, spec: &GroupSpec) -> bool {
    let software = |member: &EventSpec| matches!(member.event, Event::Software(_));
    let features = backend.capabilities().features;
    features.contains(Features::SOFTWARE_EVENTS) && spec.members.iter().all(software)
}

/// Whether events that do not open as one group may open by themselves: there is not room for all, or
/// no backend has all of them.
fn may_open_apart(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TooManyEvents | ErrorKind::UnsupportedEvent | ErrorKind::UnsupportedFeature
    )
}

/// The same events in user mode only.
fn in_user_mode(spec: &GroupSpec) -> GroupSpec {
    let mut spec = spec.clone();
    for member in &mut spec.members {
        member.filter = member.filter.with_levels(Filter::USER);
    }
    spec
}

/// A backend and what it counts on.
struct Whereabouts<'a> {
    backend: &'a Arc<dyn DynBackend>,
    target: &'a Target,
    /// The CPUs to count on because the backend cannot follow the target.
    on_cpus: Option<Target>,
}

impl<'a> Whereabouts<'a> {
    fn of(backend: &'a Arc<dyn DynBackend>, target: &'a Target, cpu_fallback: bool) -> Self {
        const TASKS: TargetKinds = TargetKinds::CURRENT_THREAD
            .union(TargetKinds::THREAD)
            .union(TargetKinds::PROCESS);
        let reaches = backend.capabilities().targets;
        let follows = !TASKS.contains(target.kind()) || reaches.intersects(TASKS);
        let on_cpus = [Target::AllCpus, Target::CurrentCpu]
            .into_iter()
            .find(|cpus| cpu_fallback && !follows && reaches.contains(cpus.kind()));
        Self {
            backend,
            target,
            on_cpus,
        }
    }

    fn open(&self, spec: &GroupSpec) -> Result<OpenGroup> {
        let group = match &self.on_cpus {
            None => self.backend.open(spec, self.target)?,
            Some(cpus) => {
                let mut of_cpus = spec.clone();
                of_cpus.attributes.inherit = false;
                of_cpus.attributes.enable_on_exec = false;
                self.backend.open(&of_cpus, cpus)?
            }
        };
        Ok(OpenGroup {
            backend: self.backend.name(),
            on_cpus: self.on_cpus.clone(),
            group,
        })
    }
}

/// Opens a group that was denied for user mode only, where that means something; the error is the
/// one to tell then.
fn open_in_user_mode(at: &Whereabouts<'_>, spec: &GroupSpec, denied: Error) -> Result<OpenGroup> {
    if !spec.members.iter().all(|m| m.filter.contains(Filter::USER)) {
        return Err(denied);
    }
    let in_user_mode = in_user_mode(spec);
    let open = match at.open(&in_user_mode) {
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
        None => Ok(open),
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
