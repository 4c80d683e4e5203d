//! Opening the samplers of a plan: with less than was asked for where the kernel does not allow it all, which is told.

use quipu::{Error, ErrorKind, EventSpec, Filter, Software, Target};
use quipu_linux::sampling::{
    ExtraRecords, Rate, SampleType, SampledEvent, Sampler, SamplerFlags, SamplerSpec, WhenFull,
};

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::off_cpu;
use super::plan::RecordPlan;

/// The open samplers.
pub(super) struct OpenSamplers {
    pub(super) samplers: Vec<Sampler>,
    /// Samplers of the records beside samples, where those are recorded apart.
    pub(super) tracking: Vec<Sampler>,
    /// The samples that are taken.
    pub(super) spec: SamplerSpec,
    /// Notes for the user on what is other than it was asked for.
    pub(super) notes: Vec<String>,
}

impl OpenSamplers {
    /// Opens a sampler for each target.
    pub(super) fn open(plan: &RecordPlan, targets: &[Target]) -> Result<Self, Failure> {
        let (mut spec, mut notes) = (plan.spec.clone(), plan.notes.clone());
        let mut tracked = plan.tracked;
        let mut denied: Option<Error> = None;
        loop {
            let samplers = samplers_of(plan, &spec, targets);
            let refused = match samplers {
                Ok(samplers) if samplers.is_empty() => {
                    return Err(Failure::new("-u: the processes of that user have ended"));
                }
                Ok(samplers) => {
                    let mut infos = samplers.iter().flat_map(Sampler::events);
                    let is_lost = infos.any(|info| !info.occurs_in.contains(Filter::USER));
                    if let Some(denied) = denied.filter(|_| is_lost) {
                        return Err(denied.into());
                    }
                    let tracking = loop {
                        let tracking = tracking(plan, &spec, tracked);
                        let tracking = tracking.map(|spec| samplers_of(plan, &spec, targets));
                        match tracking.transpose() {
                            Ok(tracking) => break tracking.unwrap_or_default(),
                            Err(refused) if without_newest(&mut tracked, &refused) => {}
                            Err(refused) => return Err(refused.into()),
                        }
                    };
                    return Ok(Self {
                        tracking,
                        samplers,
                        spec,
                        notes,
                    });
                }
                Err(refused) => refused,
            };
            if spec.flags.contains(SamplerFlags::DEFER_USER_FRAMES)
                && refused.kind() == ErrorKind::UnsupportedFeature
                && refused.reason().is_some_and(|why| why.contains("defer_"))
            {
                return Err(Failure::usage(
                    "--call-graph fp,defer: this kernel takes call chains at once (defer_callchain is of Linux 6.19): leave \
                     out ,defer",
                ));
            }
            if without_newest(&mut spec.extra_records, &refused) {
                continue;
            }
            if let Some(note) = user_mode_only(&mut spec, &refused) {
                notes.push(note);
                denied = Some(refused);
                continue;
            }
            if plan.off_cpu && refused.kind() == ErrorKind::NoPermission {
                let on_cpus = matches!(plan.scope, Scope::Cpus(_) | Scope::Cgroups(..));
                let most = i32::from(!on_cpus);
                let takes = format!(
                    "it takes kernel.perf_event_paranoid at {most} or less, CAP_PERFMON or root"
                );
                if on_cpus || !times_alone(&mut spec) {
                    return Err(Failure::new(format_args!(
                        "--off-cpu samples threads in the kernel, where they leave their CPUs, and that is not permitted: \
                         {takes} ({refused})"
                    )));
                }
                notes.push(format!(
                    "sampling user mode only, and of the time off the CPU only how much each thread has, not where: {takes}"
                ));
                continue;
            }
            let less = without_inheritance(&mut spec, &refused)
                .or_else(|| without_weak_groups(&mut spec, &plan.weak, &refused));
            notes.push(less.ok_or(refused)?);
        }
    }
}

/// Opens a sampler of each target; of a user's processes those may have ended that there were.
fn samplers_of(
    plan: &RecordPlan,
    spec: &SamplerSpec,
    targets: &[Target],
) -> quipu::Result<Vec<Sampler>> {
    let samplers = targets
        .iter()
        .map(|target| plan.backend.open_sampler(spec, target));
    let has_ended = |sampler: &quipu::Result<Sampler>| {
        let kind = sampler.as_ref().err().map(Error::kind);
        plan.of_user && kind == Some(ErrorKind::NoSuchTarget)
    };
    samplers.filter(|sampler| !has_ended(sampler)).collect()
}

/// Returns the description of a sampler of records beside samples: those that are to be there from the beginning on,
/// whenever samples are taken, and that none of those writes over.
fn tracking(plan: &RecordPlan, spec: &SamplerSpec, tracked: ExtraRecords) -> Option<SamplerSpec> {
    const RING: usize = 64 << 10;
    if tracked.is_empty() {
        return None;
    }
    let mut tracking = spec.clone();
    let dummy = EventSpec::new(Software::Dummy).with_filter(Filter::USER_ONLY);
    tracking.events = vec![SampledEvent::new(dummy, Rate::Never)];
    tracking.sample_type &= SampleType::TRAILER;
    tracking.extra_records = tracked;
    tracking.attributes = spec.attributes.with_pinned(false).with_exclusive(false);
    tracking.attributes.enable_on_exec = plan.scope == Scope::Command;
    tracking.flags -= SamplerFlags::THREAD_COUNTS;
    tracking.ring_bytes = spec.ring_bytes.min(RING);
    tracking.when_full = WhenFull::Lose;
    Some(tracking)
}

/// Leaves out the newest records that a kernel may not have: build IDs (Linux 5.12), then symbols that come and go (5.1). Without
/// them less is known of names, which is said where that matters.
fn without_newest(records: &mut ExtraRecords, refused: &Error) -> bool {
    let newest = [ExtraRecords::BUILD_IDS, ExtraRecords::KSYMBOLS];
    let newest = newest.into_iter().find(|one| records.contains(*one));
    match newest.filter(|_| refused.kind() == ErrorKind::UnsupportedFeature) {
        Some(newest) => {
            records.remove(newest);
            true
        }
        None => false,
    }
}

/// Leaves out the kernel where it may not be sampled, if every event was to be sampled in both modes.
fn user_mode_only(spec: &mut SamplerSpec, refused: &Error) -> Option<String> {
    const BOTH: Filter = Filter::USER.union(Filter::KERNEL);
    if refused.kind() != ErrorKind::NoPermission
        || !spec
            .events
            .iter()
            .all(|sampled| sampled.event.filter.contains(BOTH))
    {
        return None;
    }
    for sampled in &mut spec.events {
        sampled.event.filter = sampled.event.filter.with_levels(Filter::USER);
    }
    let hint = refused.hint().unwrap_or("it is not permitted");
    let hint = hint.trim_end_matches(", or count user mode only (:u)");
    Some(format!("sampling user mode only: {hint}"))
}

/// Leaves out the kernel, and takes times off the CPU without samples of where threads left it; returns false if that is so
/// already.
fn times_alone(spec: &mut SamplerSpec) -> bool {
    let Some((last, others)) = spec.events.split_last_mut() else {
        return false;
    };
    if last.rate == Rate::Never {
        return false;
    }
    *last = off_cpu::event_of_times_alone();
    for sampled in others {
        if sampled.event.filter.contains(Filter::USER) {
            sampled.event.filter = sampled.event.filter.with_levels(Filter::USER);
        }
    }
    true
}

/// Leaves out the threads that are made later, where samples hold values of a group: before Linux 6.13 they cannot have
/// those of counters that are inherited.
fn without_inheritance(spec: &mut SamplerSpec, refused: &Error) -> Option<String> {
    use ErrorKind::{InvalidConfiguration, UnsupportedFeature};
    if !spec.attributes.inherit
        || !spec.sample_type.contains(SampleType::READ)
        || !matches!(refused.kind(), InvalidConfiguration | UnsupportedFeature)
    {
        return None;
    }
    spec.attributes.inherit = false;
    let note =
        "threads and processes that start later are not sampled: with :S that takes Linux 6.13";
    Some(note.to_owned())
}

/// Takes weak groups apart, if there are any that sample each of their events.
fn without_weak_groups(spec: &mut SamplerSpec, weak: &[bool], refused: &Error) -> Option<String> {
    let events = spec.events.iter_mut().zip(weak);
    let members: Vec<_> = events
        .filter(|(sampled, weak)| **weak && sampled.is_member && sampled.rate != Rate::Never)
        .collect();
    if members.is_empty() {
        return None;
    }
    members
        .into_iter()
        .for_each(|(sampled, _)| sampled.is_member = false);
    Some(format!(
        "groups with :W are sampled event by event: {refused}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_is_asked_for_fewer_records() {
        let refused = Error::new(ErrorKind::UnsupportedFeature, "sample".to_owned());
        let rest = ExtraRecords::MAPPINGS | ExtraRecords::NAMES;
        let mut records = rest | ExtraRecords::BUILD_IDS | ExtraRecords::KSYMBOLS;
        let other = Error::new(ErrorKind::NoPermission, "sample".to_owned());
        assert!(!without_newest(&mut records, &other));
        assert!(without_newest(&mut records, &refused));
        assert_eq!(records, rest | ExtraRecords::KSYMBOLS);
        assert!(without_newest(&mut records, &refused));
        assert_eq!(records, rest);
        assert!(!without_newest(&mut records, &refused));
    }
}
