//! From the kernel's refusal to sample to an error that says what is the matter.

use std::path::Path;

use quipu_hal::{Error, ErrorKind, GroupSpec, Part, Result, Target};
use quipu_perf_data::SampleType;

use super::spec::{Rate, SamplerSpec};
use crate::events::EventSource;
use crate::group::open_part::{self, RefusedMember};
use crate::machine::kernel_file;
use crate::machine::privileges::{Capability, Privileges};
use crate::sys::{Attach, AttrFlags, OpenFailure, PerfEventAttr, perf_event_open};
use crate::targets::PlannedPart;

/// A kind of error and the reason.
type Meaning = (ErrorKind, String);

/// Refuses what is wrong on every machine.
pub(super) fn check(spec: &SamplerSpec) -> Result<()> {
    let invalid =
        |reason| Error::new(ErrorKind::InvalidConfiguration, "open a sampler").with_reason(reason);
    if spec.events.is_empty() {
        return Err(invalid("it has no events"));
    }
    for (i, sampled) in spec.events.iter().enumerate() {
        if i == 0 && sampled.is_member {
            return Err(invalid("the first event is a member of no group").with_member(i));
        }
        if sampled.event.overflow.is_some() {
            return Err(
                invalid("signals for overflows are those of a group that is counted")
                    .with_member(i),
            );
        }
        if matches!(sampled.rate, Rate::Period(0) | Rate::Frequency(0)) {
            return Err(
                invalid("a rate of 0 would never sample; say `Never` for that").with_member(i),
            );
        }
    }
    let mut attributes = spec.attributes;
    attributes.remove_on_exec |= spec.trap.is_some();
    open_part::check(attributes, "open a sampler")
}

/// The error for a ring that was not mapped.
pub(super) fn of_ring(errno: i32, bytes: usize) -> Error {
    let fail = |kind| Error::new(kind, format!("map a ring of {bytes} bytes")).with_errno(errno);
    match errno {
        libc::EPERM => {
            let limit = match setting("perf_event_mlock_kb") {
                Some(kib) => format!("kernel.perf_event_mlock_kb is {kib}: "),
                None => String::new(),
            };
            fail(ErrorKind::NoPermission)
                .with_reason("it exceeds the locked memory that this user may have")
                .with_hint(format!(
                    "{limit}raise it or RLIMIT_MEMLOCK, ask for smaller rings, or {}",
                    Privileges::rights(false).run_with(Capability::IpcLock)
                ))
        }
        libc::EINVAL => fail(ErrorKind::InvalidConfiguration)
            .with_reason("it is too large, or the counter cannot have a ring"),
        _ => fail(ErrorKind::Os),
    }
}

/// The error for a refused event. Everything that was opened together with it must be closed.
pub(super) fn explain(
    refused: &RefusedMember,
    spec: &SamplerSpec,
    group: &GroupSpec,
    target: &Target,
    planned: &PlannedPart,
    events: &EventSource,
) -> Error {
    let opens = |attr: &PerfEventAttr, attach| perf_event_open(attr, attach, None).is_ok();
    let Some((kind, reason)) = unsupported_field(refused, spec, opens) else {
        return crate::group::open_error::explain(refused, group, target, planned, events);
    };
    let event = &group.members[refused.member];
    let place = match planned.part == Part::whole() {
        true => target.to_string(),
        false => planned.part.to_string(),
    };
    Error::new(kind, format!("sample {event} on {place}"))
        .with_member(refused.member)
        .with_errno(refused.failure.errno())
        .with_reason(reason)
}

/// Finds the first setting of the sampling without which the counter opens by itself. `None` when it
/// is something else.
fn unsupported_field(
    refused: &RefusedMember,
    spec: &SamplerSpec,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> Option<Meaning> {
    use ErrorKind as K;
    // By itself, idle, as quietly as possible: it must not disturb what is being measured.
    let mut attr = *refused.attr;
    attr.flags |= AttrFlags::DISABLED;
    attr.flags -= AttrFlags::ENABLE_ON_EXEC | AttrFlags::PINNED | AttrFlags::EXCLUSIVE;
    let opens = |attr: &PerfEventAttr| opens(attr, refused.attach);
    if opens(&attr) || !opens(&only_counting(&attr)) {
        return None;
    }
    let unsupported = |what: &str| Some((K::UnsupportedFeature, what.to_owned()));
    let rate = spec.events[refused.member].rate;
    let never = PerfEventAttr {
        sample_period: 0,
        flags: attr.flags - AttrFlags::FREQ,
        ..attr
    };
    if opens(&never) {
        return match (rate, Rate::most_frequent()) {
            (Rate::Frequency(frequency), Some(most)) if frequency > most => Some((
                K::InvalidConfiguration,
                format!(
                    "a frequency of {frequency} Hz is more than kernel.perf_event_max_sample_rate \
                     allows, which is {most}"
                ),
            )),
            (Rate::Period(period), _) if period >> 63 != 0 => Some((
                K::InvalidConfiguration,
                "a period has to be below 2^63".to_owned(),
            )),
            _ => unsupported("this event can be counted, but not sampled"),
        };
    }
    let without_action = PerfEventAttr {
        aux_action: 0,
        ..attr
    };
    if attr.aux_action != 0 && opens(&without_action) {
        return unsupported(
            "pausing a trace takes a PMU that can (Intel PT since Linux 6.13) as the first event of the group",
        );
    }
    let mut seen = PerfEventAttr { ..attr };
    for (flag, name) in FLAGS {
        if seen.flags.contains(*flag) {
            seen.flags -= *flag;
            if opens(&seen) {
                return unsupported(&format!("this kernel or target does not take `{name}`"));
            }
        }
    }
    for field in SampleType::from_bits_retain(attr.sample_type).iter() {
        let mut less = attr;
        less.sample_type &= !field.bits();
        if opens(&less) {
            let permission = refused.failure == OpenFailure::Errno(libc::EACCES)
                || refused.failure == OpenFailure::Errno(libc::EPERM);
            let name = field.iter_names().next().map_or("", |(name, _)| name);
            return match permission {
                true => Some((
                    K::NoPermission,
                    format!("samples with {name} take CAP_PERFMON or a lower perf_event_paranoid"),
                )),
                false if field == SampleType::READ && lacks_tid(&attr) => Some((
                    K::InvalidConfiguration,
                    "samples with READ of counters that are inherited need TID too (and Linux 6.12)".to_owned(),
                )),
                false if field == SampleType::BRANCH_STACK => unsupported(
                    "its samples cannot have BRANCH_STACK: that takes an event of a CPU that records branches of these kinds (LBR, BRBE), \
                     which virtual machines often hide",
                ),
                false => unsupported(&format!("its samples cannot have {name} as asked for")),
            };
        }
    }
    unsupported("this event can be counted, but not sampled with these fields")
}

/// Returns true if an event is inherited and its samples do not have the thread.
fn lacks_tid(attr: &PerfEventAttr) -> bool {
    let fields = SampleType::from_bits_retain(attr.sample_type);
    attr.flags.contains(AttrFlags::INHERIT) && !fields.contains(SampleType::TID)
}

/// The bit-fields to try without, by the kernel's names.
const FLAGS: &[(AttrFlags, &str)] = &[
    (AttrFlags::USE_CLOCKID, "use_clockid"),
    (AttrFlags::WRITE_BACKWARD, "write_backward"),
    (AttrFlags::SIGTRAP, "sigtrap"),
    (AttrFlags::REMOVE_ON_EXEC, "remove_on_exec"),
    (AttrFlags::INHERIT_THREAD, "inherit_thread"),
    (AttrFlags::AUX_OUTPUT, "aux_output"),
    (AttrFlags::DEFER_OUTPUT, "defer_output"),
    (AttrFlags::DEFER_CALLCHAIN, "defer_callchain"),
    (AttrFlags::BUILD_ID, "build_id"),
    (AttrFlags::TEXT_POKE, "text_poke"),
    (AttrFlags::CGROUP, "cgroup"),
    (AttrFlags::BPF_EVENT, "bpf_event"),
    (AttrFlags::KSYMBOL, "ksymbol"),
    (AttrFlags::NAMESPACES, "namespaces"),
    (AttrFlags::CONTEXT_SWITCH, "context_switch"),
];

/// Returns the event without anything about samples.
fn only_counting(attr: &PerfEventAttr) -> PerfEventAttr {
    const KEPT: AttrFlags = AttrFlags::EXCLUSIONS
        .union(AttrFlags::DISABLED)
        .union(AttrFlags::INHERIT)
        .union(AttrFlags::PRECISE_LOW)
        .union(AttrFlags::PRECISE_HIGH);
    PerfEventAttr {
        type_: attr.type_,
        config: attr.config,
        config1: attr.config1,
        config2: attr.config2,
        config3: attr.config3,
        config4: attr.config4,
        bp_type: attr.bp_type,
        flags: attr.flags & KEPT,
        ..PerfEventAttr::default()
    }
}

/// A setting of the kernel in `/proc/sys/kernel`.
fn setting(name: &str) -> Option<String> {
    kernel_file::read(&Path::new("/proc/sys/kernel").join(name)).ok()
}
