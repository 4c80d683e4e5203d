//! Opening groups: on the first backend that can, in user mode if no more is permitted, and in
//! pieces if a preset does not fit into one group.

use std::sync::Arc;

use crate::Machine;
use quipu_hal::{
    Backend, Error, ErrorKind, Event, EventSpec, Features, Filter, Group, GroupSpec, Result,
    Target, TargetKinds,
};

/// A group on the backend that counts it.
pub(crate) struct OpenGroup {
    pub(crate) backend: &'static str,
    /// The CPUs it is counted on, if that is not the target that was asked for.
    pub(crate) on_cpus: Option<Box<Target>>,
    /// True if it counts user mode only because no more is permitted.
    pub(crate) in_user_mode: bool,
    pub(crate) group: Box<dyn Group>,
}

/// The backends, target and fallbacks that the groups of a set are opened with.
pub(crate) struct Opener<'a> {
    pub(crate) backends: &'a [Arc<dyn Backend>],
    /// The machine whose backends they are, unless they were given.
    pub(crate) machine: Option<&'a Machine>,
    /// The child to count in place of CPUs, on backends that follow tasks only.
    pub(crate) child: Option<i32>,
    pub(crate) target: &'a Target,
    pub(crate) user_mode_fallback: bool,
    pub(crate) cpu_fallback: bool,
}

impl Opener<'_> {
    /// Opens the events of a request as one group, which is added to `groups`; if they do not go together and it
    /// `may_split`, as a group for each.
    pub(crate) fn open(
        &self,
        spec: &GroupSpec,
        may_split: bool,
        groups: &mut Vec<OpenGroup>,
    ) -> Result<()> {
        let outcome = match self.group(spec, self.user_mode_fallback) {
            Ok(open) => {
                groups.push(open);
                return Ok(());
            }
            Err(error) if may_split && spec.members.len() > 1 && may_open_apart(&error) => {
                // One by one they say better what is in the way.
                let each = self.one_by_one(spec, self.user_mode_fallback);
                each.map(|each| groups.extend(each))
            }
            Err(error) => Err(error),
        };
        outcome.map_err(|error| match error.kind() {
            ErrorKind::UnsupportedEvent => self.obstacle(spec).unwrap_or(error),
            _ => error,
        })
    }

    /// Returns the reason why the backend that would know events cannot be used, if it cannot.
    fn obstacle(&self, spec: &GroupSpec) -> Option<Error> {
        let machine = self.machine?;
        let of_counters = |member: &EventSpec| {
            matches!(
                member.event,
                Event::Hardware(_) | Event::Cache(_) | Event::Raw(_) | Event::Named(_)
            )
        };
        let by_name_only = || {
            let asked = spec.members.iter().any(of_counters);
            asked.then(|| machine.counts_by_name_only()).flatten()
        };
        machine.unusable_first().cloned().or_else(by_name_only)
    }

    /// Opens each event by itself, and all in the same modes.
    fn one_by_one(&self, spec: &GroupSpec, user_mode_fallback: bool) -> Result<Vec<OpenGroup>> {
        let mut groups = Vec::with_capacity(spec.members.len());
        for (at, member) in spec.members.iter().enumerate() {
            let open = self.group(&alone(member, spec), user_mode_fallback);
            groups.push(open.map_err(|error| error.with_member(at))?);
        }
        let in_user_mode = groups.iter().filter(|open| open.in_user_mode).count();
        if in_user_mode > 0 && in_user_mode < groups.len() {
            drop(groups);
            groups = self.one_by_one(&restricted_to_user(spec), false)?;
            groups.iter_mut().for_each(|open| open.in_user_mode = true);
        }
        Ok(groups)
    }

    /// Returns the backends to try for a group: with events of the CPU's counters, those that the event database lists.
    pub(crate) fn backends_for(&self, spec: &GroupSpec) -> Result<&[Arc<dyn Backend>]> {
        match self.machine {
            Some(machine)
                if spec
                    .members
                    .iter()
                    .any(|m| machine.is_of_counters(&m.event)) =>
            {
                machine.for_counters()
            }
            _ => Ok(self.backends),
        }
    }

    /// Opens a group on the first backend that counts it on the target, else on the first that counts it in another
    /// place instead, in user mode if no more is permitted.
    ///
    /// # Errors
    /// The first that says more than "no such event"; for software events, that of a backend that has
    /// some.
    fn group(&self, spec: &GroupSpec, user_mode_fallback: bool) -> Result<OpenGroup> {
        let mut refusals = Vec::new();
        let mut elsewhere = Vec::new();
        for backend in self.backends_for(spec)? {
            match self.count(backend, spec, None, user_mode_fallback) {
                Ok(open) => return Ok(open),
                Err(refusal) => {
                    if let Some(target) = self.instead(backend, &refusal) {
                        elsewhere.push((refusals.len(), target));
                    }
                    refusals.push((backend, refusal));
                }
            }
        }
        for (at, target) in elsewhere {
            let (backend, refusal) = &mut refusals[at];
            match self.count(backend, spec, Some(&target), user_mode_fallback) {
                Ok(open) => return Ok(open),
                Err(error) => *refusal = error,
            }
        }
        let says_more = |e: &Error| e.kind() != ErrorKind::UnsupportedEvent;
        let most_specific = refusals.into_iter().reduce(|kept, next| {
            let knows_best = says_more(&next.1) || counts_such_software(next.0, spec);
            match knows_best && !says_more(&kept.1) {
                true => next,
                false => kept,
            }
        });
        Err(most_specific.map_or_else(
            || Error::new(ErrorKind::NoSuchDevice, "open a group without a backend"),
            |(_, refusal)| refusal,
        ))
    }

    /// Opens a group on one backend, in user mode if no more is permitted.
    fn count(
        &self,
        backend: &Arc<dyn Backend>,
        spec: &GroupSpec,
        instead: Option<&Target>,
        user_mode_fallback: bool,
    ) -> Result<OpenGroup> {
        match self.open_on(backend, spec, instead) {
            Err(denied) if user_mode_fallback && denied.kind() == ErrorKind::NoPermission => {
                self.open_in_user_mode(backend, spec, instead, denied)
            }
            outcome => outcome,
        }
    }

    /// Opens a group on one backend, on the target or on another in its place.
    fn open_on(
        &self,
        backend: &Arc<dyn Backend>,
        spec: &GroupSpec,
        instead: Option<&Target>,
    ) -> Result<OpenGroup> {
        let on_cpus = instead.filter(|target| **target == Target::AllCpus);
        let group = match instead {
            None => backend.open(spec, self.target),
            Some(target) => {
                let mut spec = spec.clone();
                spec.attributes.inherit = on_cpus.is_none();
                spec.attributes.inherit_thread &= on_cpus.is_none();
                spec.attributes.enable_on_exec &= on_cpus.is_none();
                spec.attributes.remove_on_exec &= on_cpus.is_none();
                backend.open(&spec, target)
            }
        };
        Ok(OpenGroup {
            backend: backend.name(),
            on_cpus: on_cpus.cloned().map(Box::new),
            in_user_mode: false,
            group: group?,
        })
    }

    /// Returns the target that a backend counts in the place of the one it refused, if it has one.
    ///
    /// Asks for the backend's abilities after a refusal only: to find them out, some open counters.
    fn instead(&self, backend: &Arc<dyn Backend>, refusal: &Error) -> Option<Target> {
        if refusal.kind() == ErrorKind::UnsupportedEvent {
            // It has no such event on other targets either.
            return None;
        }
        match self.falls_back_to_cpus(backend) {
            true => Some(Target::AllCpus),
            false => self.child_instead(backend).map(Target::Process),
        }
    }

    /// Returns the child to count if the backend does not reach CPUs, which are asked for.
    fn child_instead(&self, backend: &Arc<dyn Backend>) -> Option<i32> {
        const CPUS: TargetKinds = TargetKinds::CPU.union(TargetKinds::ALL_CPUS);
        let child = self.child.filter(|_| CPUS.contains(self.target.kind()))?;
        let reaches = backend.capabilities().targets;
        (!reaches.intersects(CPUS)).then_some(child)
    }

    /// Returns true if all CPUs are to be counted as the backend cannot follow the target.
    fn falls_back_to_cpus(&self, backend: &Arc<dyn Backend>) -> bool {
        const TASKS: TargetKinds = TargetKinds::CURRENT_THREAD
            .union(TargetKinds::THREAD)
            .union(TargetKinds::PROCESS);
        if !self.cpu_fallback || !TASKS.contains(self.target.kind()) {
            return false;
        }
        let reaches = backend.capabilities().targets;
        // Fewer CPUs than all would miss what the task does on the others.
        !reaches.intersects(TASKS) && reaches.contains(TargetKinds::ALL_CPUS)
    }

    /// Opens a group that was denied in user mode only, if each of its events occurs there.
    ///
    /// # Errors
    /// `denied`, unless the second refusal is more specific.
    fn open_in_user_mode(
        &self,
        backend: &Arc<dyn Backend>,
        spec: &GroupSpec,
        instead: Option<&Target>,
        denied: Error,
    ) -> Result<OpenGroup> {
        if !spec.members.iter().all(|m| m.filter.contains(Filter::USER)) {
            return Err(denied);
        }
        let open = match self.open_on(backend, &restricted_to_user(spec), instead) {
            Ok(open) => open,
            // An event that is not there at all is the better reason, unless the first refusal told
            // already why user mode will not do.
            Err(error) if error.kind() != ErrorKind::NoPermission && denied.reason().is_none() => {
                return Err(error);
            }
            Err(_) => return Err(denied),
        };
        let mut infos = open.group.members().iter();
        match infos.position(|i| !i.occurs_in.contains(Filter::USER)) {
            Some(member) => Err(kernel_only(&spec.members[member], member, &denied)),
            None => Ok(OpenGroup {
                in_user_mode: true,
                ..open
            }),
        }
    }
}

/// Returns true if all events of a group are software events, and a backend counts such.
fn counts_such_software(backend: &Arc<dyn Backend>, spec: &GroupSpec) -> bool {
    let software = |member: &EventSpec| matches!(member.event, Event::Software(_));
    let counts = || backend.capabilities().features;
    spec.members.iter().all(software) && counts().contains(Features::SOFTWARE_EVENTS)
}

/// Returns true if events that do not open as one group may open by themselves: there are not enough
/// counters for all, or no backend has all of them.
pub(crate) fn may_open_apart(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TooManyEvents | ErrorKind::UnsupportedEvent | ErrorKind::UnsupportedFeature
    )
}

/// Returns a member of a group in a group of its own.
pub(crate) fn alone(member: &EventSpec, group: &GroupSpec) -> GroupSpec {
    GroupSpec::single(member.clone()).with_attributes(group.attributes)
}

/// Returns the same events in user mode only.
fn restricted_to_user(spec: &GroupSpec) -> GroupSpec {
    let mut spec = spec.clone();
    for member in &mut spec.members {
        member.filter = member.filter.with_levels(Filter::USER);
    }
    spec
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
