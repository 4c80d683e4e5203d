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

    /// Opens a group on the first backend that can, in user mode if no more is permitted.
    ///
    /// # Errors
    /// The first that says more than "no such event"; for software events, that of a backend that has
    /// some.
    fn group(&self, spec: &GroupSpec, user_mode_fallback: bool) -> Result<OpenGroup> {
        let mut most_specific: Option<Error> = None;
        for backend in self.backends {
            let mut refusal = match self.open_on(backend, spec) {
                Ok(open) => return Ok(open),
                Err(error) => error,
            };
            if user_mode_fallback && refusal.kind() == ErrorKind::NoPermission {
                match self.open_in_user_mode(backend, spec, refusal) {
                    Ok(open) => return Ok(open),
                    Err(error) => refusal = error,
                }
            }
            let says_more = |e: &Error| e.kind() != ErrorKind::UnsupportedEvent;
            let knows_best = says_more(&refusal) || counts_such_software(backend, spec);
            if most_specific
                .as_ref()
                .is_none_or(|kept| knows_best && !says_more(kept))
            {
                most_specific = Some(refusal);
            }
        }
        Err(most_specific.unwrap_or_else(|| {
            Error::new(ErrorKind::NoSuchDevice, "open a group without a backend")
        }))
    }

    /// Opens a group on one backend, on CPUs if that is its fallback.
    ///
    /// Asks for the backend's abilities after a refusal only: to find them out, some open counters.
    fn open_on(&self, backend: &Arc<dyn Backend>, spec: &GroupSpec) -> Result<OpenGroup> {
        let refused = match backend.open(spec, self.target) {
            Ok(group) => {
                return Ok(OpenGroup {
                    backend: backend.name(),
                    on_cpus: None,
                    in_user_mode: false,
                    group,
                });
            }
            Err(error) => error,
        };
        if refused.kind() == ErrorKind::UnsupportedEvent {
            // It has no such event on other targets either.
            return Err(refused);
        }
        let is_on_cpus = self.falls_back_to_cpus(backend);
        let instead = match (is_on_cpus, self.child_instead(backend)) {
            (false, Some(child)) => Target::Process(child),
            (false, None) => return Err(refused),
            (true, _) => Target::AllCpus,
        };
        let mut spec = spec.clone();
        spec.attributes.inherit = !is_on_cpus;
        spec.attributes.enable_on_exec &= !is_on_cpus;
        let group = backend.open(&spec, &instead)?;
        Ok(OpenGroup {
            backend: backend.name(),
            on_cpus: is_on_cpus.then(|| Box::new(instead)),
            in_user_mode: false,
            group,
        })
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
        denied: Error,
    ) -> Result<OpenGroup> {
        if !spec.members.iter().all(|m| m.filter.contains(Filter::USER)) {
            return Err(denied);
        }
        let open = match self.open_on(backend, &restricted_to_user(spec)) {
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
