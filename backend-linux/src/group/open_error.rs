//! From the kernel's refusal to open a counter to an error that says what is the matter.
//!
//! The errnos are those of perf_event_open(2), "ERRORS". EINVAL alone can mean a dozen things, so
//! what it was is found out by trying again with less.

use quipu_hal::{
    BreakpointAccess, Error, ErrorKind, Event, Filter, GroupSpec, Part, Software, Target,
};

use super::open_part::RefusedMember;
#[cfg(feature = "names")]
use crate::events::probe;
use crate::events::{EventBits, EventSource};
use crate::machine::kernel_file;
use crate::machine::privileges::{Capability, Privileges, Seccomp};
use crate::machine::topology::Topology;
use crate::sys::{Attach, AttrFlags, OpenFailure, PerfEventAttr, event_type, perf_event_open};
use crate::targets::PlannedPart;

/// A kind of error and the reason, where there is more to say than the kind does.
type Meaning = (ErrorKind, &'static str);

const NO_SUCH_EVENT: &str = "the CPU's PMU does not have this event";
const TOO_PRECISE: &str = "this event cannot be counted this precisely";

/// The error for a refused member. Everything that was opened together with it must be closed.
///
/// Which PMUs there are holds for good, and `events` knows it; what this process may do can change, and is
/// looked at when it matters.
pub(crate) fn explain(
    refused: &RefusedMember,
    spec: &GroupSpec,
    target: &Target,
    planned: &PlannedPart,
    events: &EventSource,
) -> Error {
    let member = &spec.members[refused.member];
    let attempted = match planned.part == Part::whole() {
        true => format!("open {member} on {target}"),
        false => format!("open {member} on {}", planned.part),
    };
    let errno = match refused.failure {
        OpenFailure::Errno(libc::EMFILE) => {
            return kernel_file::too_many_open_files(attempted).with_member(refused.member);
        }
        OpenFailure::Errno(errno) => errno,
        OpenFailure::AttrTooNew { field } => {
            return Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_member(refused.member)
                .with_errno(libc::E2BIG)
                .with_reason(format!("this kernel is too old for `{field}`"));
        }
        OpenFailure::NoId(errno) => {
            return Error::new(ErrorKind::Os, attempted)
                .with_member(refused.member)
                .with_errno(errno)
                .with_reason("it was opened, but the kernel does not give its id");
        }
    };
    let denied = matches!(errno, libc::EACCES | libc::EPERM);
    let has_cpu_pmu = !events.core_pmus().all().is_empty();
    let privileges = &match denied {
        true => Privileges::rights(has_cpu_pmu),
        false => Privileges::unknown(has_cpu_pmu),
    };
    let (kind, reason) = meaning(errno, refused, &member.event, privileges, opens);
    let mut error = Error::new(kind, attempted)
        .with_member(refused.member)
        .with_errno(errno);
    if !reason.is_empty() {
        error = error.with_reason(reason);
    }
    let instead = if !denied {
        Instead::Nothing
    } else if is_foreign_process(refused, opens) {
        Instead::OwnProcess
    } else if opens_in_user_mode(refused, &member.event, opens) {
        Instead::UserMode
    } else {
        Instead::Nothing
    };
    if reason == TOO_PRECISE {
        return error.with_hint(less_precise(refused, opens));
    }
    match hint(errno, refused, privileges, instead) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Returns true if a counter opens by itself. It is closed again.
fn opens(attr: &PerfEventAttr, attach: Attach) -> bool {
    perf_event_open(attr, attach, None).is_ok()
}

/// Returns the meaning of an errno for a refused member. `opens` tries to open a counter by itself.
fn meaning(
    errno: i32,
    refused: &RefusedMember,
    event: &Event,
    privileges: &Privileges,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> Meaning {
    use ErrorKind as K;
    let hardware = is_hardware(&refused.attr);
    #[cfg(feature = "names")]
    if let Some(meaning) = probe::of(event).and_then(|p| probe::refusal_reason(p, errno)) {
        return meaning;
    }
    match errno {
        libc::EACCES | libc::EPERM => {
            let in_the_way = counts_kernel(refused)
                && privileges.may_count_user()
                && !privileges.may_count_kernel();
            match event {
                Event::Pmu(_) if in_the_way && !opens_in_user_mode(refused, event, opens) => (
                    K::NoPermission,
                    "this PMU cannot exclude the kernel, and kernel counting is not permitted",
                ),
                _ => (K::NoPermission, ""),
            }
        }
        libc::ESRCH => (K::NoSuchTarget, "it does not exist or has ended"),
        libc::EBADF if refused.attach.cgroup => {
            (K::NoSuchTarget, "this is not the directory of a cgroup")
        }
        libc::EINVAL | libc::ENODEV if is_offline(refused.attach, &opens) => {
            (K::NoSuchTarget, "this CPU does not exist or is not online")
        }
        libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSPC => {
            if let Some(meaning) = unsupported_setting(refused, &opens) {
                return meaning;
            }
            match (errno, event) {
                (libc::ENOSPC, Event::Breakpoint(_)) => (K::Busy, "all debug registers are in use"),
                (libc::ENOSPC, _) => (K::Busy, "all counters for this event are in use"),
                (libc::EOPNOTSUPP, Event::Breakpoint(_)) => (
                    K::UnsupportedEvent,
                    "this CPU has no breakpoints of this kind",
                ),
                (libc::EOPNOTSUPP, _) if hardware && !privileges.has_cpu_pmu => {
                    (K::UnsupportedEvent, "this machine shows no CPU PMU")
                }
                (libc::EOPNOTSUPP, _) => (K::UnsupportedFeature, "the PMU does not support this"),
                (_, Event::Breakpoint(breakpoint))
                    if cfg!(any(target_arch = "x86", target_arch = "x86_64"))
                        && breakpoint.access == BreakpointAccess::Read =>
                {
                    (
                        K::UnsupportedEvent,
                        "x86 has no breakpoints on reads alone; use :rw",
                    )
                }
                (_, Event::Breakpoint(_)) => (
                    K::InvalidConfiguration,
                    "the CPU does not support a breakpoint of this kind, length and alignment",
                ),
                (_, Event::Raw(_) | Event::Pmu(_) | Event::Named(_)) => (
                    K::UnsupportedEvent,
                    "the PMU does not support this encoding",
                ),
                // Drivers with a short table of generalized events, as those of the Pentium Pro to III
                // (`p6_pmu_event_map` in `arch/x86/events/intel/p6.c`) and Knights Corner.
                (_, Event::Hardware(_) | Event::Cache(_)) if !opens_bare(refused, &opens) => {
                    (K::UnsupportedEvent, NO_SUCH_EVENT)
                }
                _ => (K::InvalidConfiguration, ""),
            }
        }
        libc::ENOENT if hardware && !privileges.has_cpu_pmu => {
            (K::UnsupportedEvent, "this machine shows no CPU PMU")
        }
        libc::ENOENT if hardware => (K::UnsupportedEvent, NO_SUCH_EVENT),
        libc::ENOENT => (K::UnsupportedEvent, "this kernel does not have this event"),
        libc::ENODEV => (K::UnsupportedFeature, "the PMU does not support this"),
        // `x86_pmu_extra_regs` in `arch/x86/events/core.c`.
        libc::ENXIO => (
            K::UnsupportedEvent,
            "this event needs a CPU register that is not accessible here, as in many virtual machines",
        ),
        libc::EBUSY => (K::Busy, "another user has exclusive use of the PMU"),
        // `enable_trace_kprobe` in `kernel/trace/trace_kprobe.c`; a signal does not come each time.
        libc::EINTR
            if refused.attr.type_ == event_type::TRACEPOINT || matches!(event, Event::Probe(_)) =>
        {
            (K::Busy, "ftrace is using the same probe")
        }
        libc::EINTR => (K::Os, "signals interrupted it each time it was tried"),
        libc::ENOSYS => (K::NoSuchDevice, "this kernel has no perf_event_open"),
        libc::E2BIG => (
            K::UnsupportedFeature,
            "this kernel has another layout of perf_event_attr",
        ),
        libc::EOVERFLOW => (
            K::InvalidConfiguration,
            "a value is larger than the kernel allows",
        ),
        libc::EMFILE => (K::Os, ""),
        libc::ENFILE => (K::Os, "the machine has reached its limit of open files"),
        _ => (K::Os, ""),
    }
}

/// Finds the first setting without which the counter opens by itself.
fn unsupported_setting(
    refused: &RefusedMember,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> Option<Meaning> {
    use ErrorKind as K;
    // By itself, idle, as quietly as possible: it must not disturb what is being measured.
    let mut attr = *refused.attr;
    attr.flags |= AttrFlags::DISABLED;
    attr.flags -= AttrFlags::ENABLE_ON_EXEC | AttrFlags::PINNED | AttrFlags::EXCLUSIVE;
    if opens(&attr, refused.attach) {
        return Some(if refused.member > 0 {
            (
                K::TooManyEvents,
                "the PMU can count it alone, but not together with the members before it",
            )
        } else if refused
            .attr
            .flags
            .intersects(AttrFlags::PINNED | AttrFlags::EXCLUSIVE)
        {
            (
                K::UnsupportedFeature,
                "the PMU does not support pinned or exclusive groups",
            )
        } else {
            (K::Os, "the kernel opens it when it is asked again")
        });
    }
    let without = |flags: AttrFlags| {
        let mut less = attr;
        less.flags -= flags;
        less.flags != attr.flags && opens(&less, refused.attach)
    };
    let settings = [
        (
            AttrFlags::EXCLUSIONS,
            "this PMU takes no filter: it counts in every mode",
        ),
        (AttrFlags::precise_ip(3), TOO_PRECISE),
        (
            AttrFlags::INHERIT_THREAD,
            "this kernel cannot inherit threads alone (inherit_thread, Linux 5.13)",
        ),
        (
            AttrFlags::REMOVE_ON_EXEC,
            "this kernel cannot remove it on exec (remove_on_exec, Linux 5.13)",
        ),
        (AttrFlags::INHERIT, "this event cannot be inherited"),
    ];
    if let Some((_, reason)) = settings.into_iter().find(|(flags, _)| without(*flags)) {
        return Some((K::UnsupportedFeature, reason));
    }
    if refused.attach.cpu < 0 && opens(&attr, Attach::cpu(0)) {
        return Some((K::UnsupportedFeature, "this PMU counts CPUs, not threads"));
    }
    None
}

/// Returns true if the event opens in this thread without any setting: then it is one of these that is refused.
fn opens_bare(refused: &RefusedMember, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> bool {
    let user_only = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    [AttrFlags::empty(), user_only].into_iter().any(|levels| {
        let bare = PerfEventAttr {
            type_: refused.attr.type_,
            config: refused.attr.config,
            flags: AttrFlags::DISABLED | levels,
            ..PerfEventAttr::default()
        };
        opens(&bare, Attach::thread(0))
    })
}

/// Returns the hint to the most precise level at which an event opens.
fn less_precise(refused: &RefusedMember, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> String {
    let mut attr = *refused.attr;
    let level = [2, 1].into_iter().find(|level| {
        attr.flags -= AttrFlags::precise_ip(3);
        attr.flags |= AttrFlags::DISABLED | AttrFlags::precise_ip(*level);
        attr.flags != refused.attr.flags && opens(&attr, refused.attach)
    });
    match level {
        Some(2) => "write :pp, which this CPU can".to_owned(),
        Some(_) => "write :p, which this CPU can".to_owned(),
        None => "leave out the p's: it can be counted and sampled without them, and samples may then be some \
            instructions late"
            .to_owned(),
    }
}

/// Returns true if the attr asks for an event of the CPU's own PMU.
fn is_hardware(attr: &PerfEventAttr) -> bool {
    matches!(
        attr.type_,
        event_type::HARDWARE | event_type::HW_CACHE | event_type::RAW
    )
}

fn counts_kernel(refused: &RefusedMember) -> bool {
    !refused.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)
}

/// Returns true if counting user mode only is permitted and the event occurs there.
fn opens_in_user_mode(
    refused: &RefusedMember,
    event: &Event,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> bool {
    let mut attr = refused.attr.clone();
    attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    // Tracepoints are in the kernel, also those that were asked for as `a:b`.
    let occurs_there =
        attr.type_ != event_type::TRACEPOINT && event.levels().contains(Filter::USER);
    occurs_there && opens(&attr, refused.attach)
}

/// Returns true if the target is another process that must not be counted: not even a dummy event
/// opens there.
fn is_foreign_process(
    refused: &RefusedMember,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> bool {
    refused.attach.pid > 0 && !refused.attach.cgroup && !opens(&nothing(), refused.attach)
}

/// An event that counts nothing, and opens wherever any does.
fn nothing() -> PerfEventAttr {
    EventBits::software(Software::Dummy).idle_attr()
}

/// Returns true if the CPU does not exist or is offline. Where sysfs does not say, a dummy event is
/// tried there.
fn is_offline(attach: Attach, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> bool {
    let Ok(cpu) = u32::try_from(attach.cpu) else {
        return false;
    };
    match Topology::new().online() {
        Ok(online) => !online.contains(&cpu),
        Err(_) => !attach.cgroup && !opens(&nothing(), Attach::cpu(cpu)),
    }
}

/// A permitted alternative to a refused counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instead {
    /// The event in user mode only.
    UserMode,
    /// The event in a process of one's own.
    OwnProcess,
    Nothing,
}

/// Returns what the user can do about a refusal, by the facts of this machine.
fn hint(
    errno: i32,
    refused: &RefusedMember,
    privileges: &Privileges,
    instead: Instead,
) -> Option<String> {
    match errno {
        libc::ENOENT | libc::EOPNOTSUPP
            if is_hardware(&refused.attr) && !privileges.has_cpu_pmu =>
        {
            Some("virtual machines often hide the PMU; software events still count".into())
        }
        libc::EACCES | libc::EPERM => permission_hint(errno, refused, privileges, instead),
        _ => None,
    }
}

fn permission_hint(
    errno: i32,
    refused: &RefusedMember,
    privileges: &Privileges,
    instead: Instead,
) -> Option<String> {
    let (allowed, needed, or_else) = if refused.attach.pid < 0 || refused.attach.cgroup {
        (privileges.may_count_cpus(), 0, "")
    } else if counts_kernel(refused) {
        let or_else = match instead {
            Instead::UserMode => ", or count user mode only (:u)",
            _ => "",
        };
        (privileges.may_count_kernel(), 1, or_else)
    } else {
        (privileges.may_count_user(), 2, "")
    };
    if let (libc::EACCES, Some(why)) = (errno, privileges.why_perfmon_is_refused()) {
        return Some(format!(
            "{why}; set it to 2 or lower (sysctl kernel.perf_event_paranoid=2)"
        ));
    }
    let foreign = instead == Instead::OwnProcess;
    if !allowed && !foreign {
        let now = match privileges.perf_event_paranoid {
            Some(level) => format!("kernel.perf_event_paranoid is {level}; "),
            None => String::new(),
        };
        return Some(format!(
            "{now}set it to {needed} or lower (sysctl kernel.perf_event_paranoid={needed}), or {}{or_else}",
            privileges.run_with(privileges.counting_capability())
        ));
    }
    if errno == libc::EPERM && privileges.seccomp == Some(Seccomp::Filter) {
        return Some("a seccomp filter of this sandbox or container may forbid it".into());
    }
    if !foreign {
        return None;
    }
    let (perfmon, ptrace) = (Capability::Perfmon.name(), Capability::SysPtrace.name());
    let in_user_mode = if allowed { "" } else { "in user mode only " };
    let outside = match privileges.initial_user_namespace {
        Some(false) => ", outside of this user namespace",
        _ => "",
    };
    Some(format!(
        "counting another user's process requires {perfmon}, or {in_user_mode}{ptrace}{outside}"
    ))
}

#[cfg(test)]
mod tests;
