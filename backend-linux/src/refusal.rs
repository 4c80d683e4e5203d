//! From the kernel's refusal to open a counter to an error that says what is the matter.
//!
//! The errnos are those of perf_event_open(2), "ERRORS". EINVAL alone can mean a dozen things, so
//! what it was is found out by trying again with less.

use std::sync::OnceLock;

use quipu_hal::{Error, ErrorKind, Event, Filter, GroupSpec, Part, Software, Target};

use crate::event_bits::EventBits;
use crate::open::Refusal;
use crate::parts::PlannedPart;
use crate::privileges::{Capability, Privileges, Seccomp};
use crate::probes;
use crate::sys::{Attach, AttrFlags, OpenFailure, PerfEventAttr, event_type, perf_event_open};
use crate::topology::Topology;

/// A kind of error and the reason, where there is more to say than the kind does.
type Meaning = (ErrorKind, &'static str);

/// The error for a refused member. Everything that was opened together with it must be closed.
///
/// `machine` is what was found at an earlier refusal. Which PMUs there are holds for good; what this
/// process may do can change, and is looked at again when it matters.
pub(crate) fn explain(
    refused: &Refusal,
    spec: &GroupSpec,
    target: &Target,
    planned: &PlannedPart,
    machine: &OnceLock<Privileges>,
) -> Error {
    let member = &spec.members[refused.member];
    let place = if planned.part == Part::whole() {
        target.to_string()
    } else {
        planned.part.to_string()
    };
    let attempted = format!("open {member} on {place}");
    let errno = match refused.failure {
        OpenFailure::Errno(errno) => errno,
        OpenFailure::AttrTooNew { field } => {
            return Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_member(refused.member)
                .with_errno(libc::E2BIG)
                .with_reason(format!("this kernel is too old for `{field}`"));
        }
    };
    let now;
    let privileges = if matches!(errno, libc::EACCES | libc::EPERM | libc::EMFILE) {
        now = Privileges::read();
        &now
    } else {
        machine.get_or_init(Privileges::read)
    };
    let opens = |attr: &PerfEventAttr, attach| perf_event_open(attr, attach, None).is_ok();
    let (kind, reason) = meaning(errno, refused, &member.event, privileges, opens);
    let mut error = Error::new(kind, attempted)
        .with_member(refused.member)
        .with_errno(errno);
    if !reason.is_empty() {
        error = error.with_reason(reason);
    }
    let instead = if is_somebody_elses(refused, opens) {
        Instead::OwnProcess
    } else if opens_in_user_mode(refused, &member.event, opens) {
        Instead::UserMode
    } else {
        Instead::Nothing
    };
    match hint(errno, refused, privileges, instead) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What an errno means for what was asked. `opens` tries to open a counter by itself.
fn meaning(
    errno: i32,
    refused: &Refusal,
    event: &Event,
    privileges: &Privileges,
    opens: impl Fn(&PerfEventAttr, Attach) -> bool,
) -> Meaning {
    use ErrorKind as K;
    let hardware = is_hardware(&refused.attr);
    if let Some(meaning) = probes::of(event).and_then(|p| probes::refusal_reason(p, errno)) {
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
                    "its PMU cannot leave the kernel out, which is not permitted to be counted",
                ),
                _ => (K::NoPermission, ""),
            }
        }
        libc::ESRCH => (K::NoSuchTarget, "it has ended or never was"),
        libc::EBADF if refused.attach.cgroup => (K::NoSuchTarget, "this is no cgroup's directory"),
        libc::EINVAL | libc::ENODEV if is_offline(refused.attach, &opens) => {
            (K::NoSuchTarget, "this CPU does not exist or is not online")
        }
        libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSPC => {
            if let Some(meaning) = too_much(refused, opens) {
                return meaning;
            }
            match (errno, event) {
                (libc::ENOSPC, Event::Breakpoint(_)) => (K::Busy, "all debug registers are taken"),
                (libc::ENOSPC, _) => (K::Busy, "all counters for this event are taken"),
                (libc::EOPNOTSUPP, Event::Breakpoint(_)) => {
                    (K::UnsupportedEvent, "this CPU has no such breakpoints")
                }
                (libc::EOPNOTSUPP, _) if hardware && !privileges.has_cpu_pmu => {
                    (K::UnsupportedEvent, "this machine shows no CPU PMU")
                }
                (libc::EOPNOTSUPP, _) => (K::UnsupportedFeature, "the PMU does not offer this"),
                (_, Event::Breakpoint(_)) => (
                    K::InvalidConfiguration,
                    "the CPU takes no breakpoint of this kind, length and alignment",
                ),
                (_, Event::Raw(_) | Event::Pmu(_) | Event::Named(_)) => {
                    (K::UnsupportedEvent, "the PMU does not know these bits")
                }
                _ => (K::InvalidConfiguration, ""),
            }
        }
        libc::ENOENT if hardware && !privileges.has_cpu_pmu => {
            (K::UnsupportedEvent, "this machine shows no CPU PMU")
        }
        libc::ENOENT if hardware => (K::UnsupportedEvent, "the CPU's PMU does not have it"),
        libc::ENOENT => (K::UnsupportedEvent, "this kernel does not have it"),
        libc::ENODEV => (K::UnsupportedFeature, "the PMU does not offer this"),
        // `x86_pmu_extra_regs` in `arch/x86/events/core.c`.
        libc::ENXIO => (
            K::UnsupportedEvent,
            "it needs a register of the CPU that is not accessible here, as in many virtual machines",
        ),
        libc::EBUSY => (K::Busy, "somebody has the PMU for themselves"),
        libc::EINTR => (K::Busy, "ftrace is using the same probe"),
        libc::ENOSYS => (K::NoSuchDevice, "this kernel has no perf_event_open"),
        libc::E2BIG => (
            K::UnsupportedFeature,
            "this kernel's perf_event_attr is another",
        ),
        libc::EOVERFLOW => (
            K::InvalidConfiguration,
            "a value is larger than the kernel allows",
        ),
        libc::EMFILE => (K::Os, "this process has as many open files as it may"),
        libc::ENFILE => (K::Os, "the machine has as many open files as it may"),
        _ => (K::Os, ""),
    }
}

/// What was asked too much, found by asking for less: the first thing without which the counter
/// opens by itself.
fn too_much(refused: &Refusal, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> Option<Meaning> {
    use ErrorKind as K;
    // By itself, idle, as quietly as possible: it must not disturb what is being measured.
    let mut attr = *refused.attr;
    attr.flags |= AttrFlags::DISABLED;
    attr.flags -= AttrFlags::ENABLE_ON_EXEC | AttrFlags::PINNED | AttrFlags::EXCLUSIVE;
    if opens(&attr, refused.attach) {
        return Some(if refused.member > 0 {
            (
                K::TooManyEvents,
                "it opens by itself, but not on the PMU together with the members before it",
            )
        } else {
            (K::UnsupportedFeature, "it cannot be pinned or exclusive")
        });
    }
    let without = |flags: AttrFlags| {
        let mut less = attr;
        less.flags -= flags;
        less.flags != attr.flags && opens(&less, refused.attach)
    };
    if without(AttrFlags::EXCLUSIONS) {
        return Some((
            K::UnsupportedFeature,
            "its PMU counts everywhere and takes no filter",
        ));
    }
    if without(AttrFlags::precise_ip(3)) {
        return Some((K::UnsupportedFeature, "it cannot be counted this precisely"));
    }
    if without(AttrFlags::INHERIT) {
        return Some((K::UnsupportedFeature, "it cannot be inherited"));
    }
    if refused.attach.cpu < 0 && opens(&attr, Attach::cpu(0)) {
        return Some((K::UnsupportedFeature, "its PMU counts CPUs, not threads"));
    }
    None
}

/// Whether the attr asks for an event of the CPU's own PMU.
fn is_hardware(attr: &PerfEventAttr) -> bool {
    matches!(
        attr.type_,
        event_type::HARDWARE | event_type::HW_CACHE | event_type::RAW
    )
}

fn counts_kernel(refused: &Refusal) -> bool {
    !refused.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)
}

/// Whether counting user mode only is permitted and means something.
fn opens_in_user_mode(
    refused: &Refusal,
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

/// Whether it is the process that must not be counted: not even what counts nothing opens there.
fn is_somebody_elses(refused: &Refusal, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> bool {
    refused.attach.pid > 0 && !refused.attach.cgroup && !opens(&nothing(), refused.attach)
}

/// An event that counts nothing, and opens wherever any does.
fn nothing() -> PerfEventAttr {
    let dummy = EventBits::software(Software::Dummy).config;
    PerfEventAttr {
        type_: dummy.type_,
        config: dummy.config,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..PerfEventAttr::default()
    }
}

/// Whether the kernel has no such CPU at work. Where sysfs does not say, it is tried out.
fn is_offline(attach: Attach, opens: impl Fn(&PerfEventAttr, Attach) -> bool) -> bool {
    let Ok(cpu) = u32::try_from(attach.cpu) else {
        return false;
    };
    match Topology::new().online() {
        Ok(online) => !online.contains(&cpu),
        Err(_) => !attach.cgroup && !opens(&nothing(), Attach::cpu(cpu)),
    }
}

/// What is permitted instead of what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instead {
    /// The same in user mode only.
    UserMode,
    /// The same of a process of one's own.
    OwnProcess,
    Nothing,
}

/// What a person can do about it, as far as the facts of this machine tell.
fn hint(
    errno: i32,
    refused: &Refusal,
    privileges: &Privileges,
    instead: Instead,
) -> Option<String> {
    match errno {
        libc::EMFILE => {
            let limit = privileges.open_files.and_then(|limit| limit.soft);
            Some(match limit {
                Some(limit) => format!("the limit is {limit}; raise it with `ulimit -n`"),
                None => "raise the limit with `ulimit -n`".into(),
            })
        }
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
    refused: &Refusal,
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
    let somebody_elses = instead == Instead::OwnProcess;
    if !allowed && !somebody_elses {
        let now = match privileges.perf_event_paranoid {
            Some(level) => format!("kernel.perf_event_paranoid is {level}; "),
            None => String::new(),
        };
        return Some(format!(
            "{now}set it to {needed} or lower (sysctl kernel.perf_event_paranoid={needed}), or run \
             with {}{or_else}",
            Capability::Perfmon.name()
        ));
    }
    if errno == libc::EPERM && privileges.seccomp == Some(Seccomp::Filter) {
        return Some("a seccomp filter of this sandbox or container may forbid it".into());
    }
    if !somebody_elses {
        return None;
    }
    let (perfmon, ptrace) = (Capability::Perfmon.name(), Capability::SysPtrace.name());
    let in_user_mode = if allowed { "" } else { "in user mode only " };
    Some(format!(
        "counting somebody else's process takes {perfmon}, or {in_user_mode}{ptrace}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{Hardware, PmuEvent, RawEvent};

    const EVERY_ERRNO: [i32; 19] = [
        libc::E2BIG,
        libc::EACCES,
        libc::EBADF,
        libc::EBUSY,
        libc::EFAULT,
        libc::EINTR,
        libc::EINVAL,
        libc::EMFILE,
        libc::ENFILE,
        libc::ENODEV,
        libc::ENOENT,
        libc::ENOMEM,
        libc::ENOSPC,
        libc::ENOSYS,
        libc::ENXIO,
        libc::EOPNOTSUPP,
        libc::EOVERFLOW,
        libc::EPERM,
        libc::ESRCH,
    ];

    fn refused(type_: u32, member: usize) -> Refusal {
        Refusal {
            member,
            attr: Box::new(PerfEventAttr {
                type_,
                ..PerfEventAttr::default()
            }),
            attach: Attach::thread(0),
            failure: OpenFailure::Errno(0),
        }
    }

    fn machine(has_cpu_pmu: bool) -> Privileges {
        let mut privileges = Privileges::read();
        privileges.has_cpu_pmu = has_cpu_pmu;
        privileges
    }

    #[test]
    fn every_errno_has_its_kind() {
        use ErrorKind as K;
        let expected = [
            K::UnsupportedFeature,
            K::NoPermission,
            K::Os,
            K::Busy,
            K::Os,
            K::Busy,
            K::InvalidConfiguration,
            K::Os,
            K::Os,
            K::UnsupportedFeature,
            K::UnsupportedEvent,
            K::Os,
            K::Busy,
            K::NoSuchDevice,
            K::UnsupportedEvent,
            K::UnsupportedEvent,
            K::InvalidConfiguration,
            K::NoPermission,
            K::NoSuchTarget,
        ];
        let event = Event::Hardware(Hardware::Cycles);
        for (errno, kind) in EVERY_ERRNO.into_iter().zip(expected) {
            let refused = refused(event_type::HARDWARE, 0);
            let got = meaning(errno, &refused, &event, &machine(false), |_, _| false);
            assert_eq!(got.0, kind, "{}", std::io::Error::from_raw_os_error(errno));
        }
    }

    #[test]
    fn a_missing_event_is_told_from_a_missing_pmu() {
        let event = Event::Hardware(Hardware::Cycles);
        let reason = |type_, event: &Event, pmu| {
            meaning(
                libc::ENOENT,
                &refused(type_, 0),
                event,
                &machine(pmu),
                |_, _| false,
            )
            .1
        };
        assert_eq!(
            reason(event_type::HARDWARE, &event, false),
            "this machine shows no CPU PMU"
        );
        assert_eq!(
            reason(event_type::HARDWARE, &event, true),
            "the CPU's PMU does not have it"
        );
        let event = Event::Software(Software::CgroupSwitches);
        assert_eq!(
            reason(event_type::SOFTWARE, &event, false),
            "this kernel does not have it"
        );
    }

    /// Each thing too much is found by taking it away.
    #[test]
    fn what_was_too_much_is_found() {
        let event = Event::Raw(RawEvent::new(1));
        let find = |flags, member, opens: &dyn Fn(&PerfEventAttr, Attach) -> bool| {
            let mut refused = refused(event_type::RAW, member);
            refused.attr.flags = flags;
            meaning(libc::EINVAL, &refused, &event, &machine(true), opens).0
        };
        let all = AttrFlags::EXCLUDE_USER | AttrFlags::INHERIT | AttrFlags::precise_ip(2);
        assert_eq!(find(all, 1, &|_, _| true), ErrorKind::TooManyEvents);
        assert_eq!(find(all, 1, &|_, _| false), ErrorKind::UnsupportedEvent);
        for (flag, reason) in [
            (AttrFlags::EXCLUDE_USER, "filter"),
            (AttrFlags::precise_ip(2), "precisely"),
            (AttrFlags::INHERIT, "inherited"),
        ] {
            let mut refused = refused(event_type::RAW, 0);
            refused.attr.flags = all;
            let opens = |attr: &PerfEventAttr, _| !attr.flags.intersects(flag);
            let (kind, why) = meaning(libc::EINVAL, &refused, &event, &machine(true), opens);
            assert_eq!(kind, ErrorKind::UnsupportedFeature);
            assert!(why.contains(reason), "{why}");
        }
        let on_cpus = |_: &PerfEventAttr, attach: Attach| attach.cpu >= 0;
        assert_eq!(find(all, 0, &on_cpus), ErrorKind::UnsupportedFeature);
    }

    #[test]
    fn permission_hints_name_the_setting_that_is_in_the_way() {
        let mut privileges = machine(true);
        privileges.capabilities = Some(0);
        privileges.perf_event_paranoid = Some(2);
        let mut refused = refused(event_type::HARDWARE, 0);
        let text = |refused: &Refusal, p: &Privileges| {
            hint(libc::EACCES, refused, p, Instead::UserMode).unwrap_or_default()
        };
        let kernel = text(&refused, &privileges);
        assert!(
            kernel.starts_with("kernel.perf_event_paranoid is 2; set it to 1"),
            "{kernel}"
        );
        assert!(kernel.ends_with("(:u)"), "{kernel}");
        let elsewhere = hint(libc::EACCES, &refused, &privileges, Instead::Nothing).unwrap();
        assert!(elsewhere.ends_with("CAP_PERFMON"), "{elsewhere}");
        refused.attr.flags = AttrFlags::EXCLUDE_KERNEL;
        assert_eq!(text(&refused, &privileges), "");
        refused.attach = Attach::cpu(0);
        assert!(text(&refused, &privileges).contains("set it to 0"));
    }

    /// No setting permits it, so none is named.
    #[test]
    fn somebody_elses_process_takes_a_capability() {
        let mut privileges = machine(true);
        privileges.capabilities = Some(0);
        privileges.perf_event_paranoid = Some(2);
        privileges.seccomp = None;
        let mut refused = refused(event_type::HARDWARE, 0);
        refused.attach = Attach::thread(1);
        let text = |refused: &Refusal| {
            hint(libc::EACCES, refused, &privileges, Instead::OwnProcess).unwrap_or_default()
        };
        let takes = "counting somebody else's process takes CAP_PERFMON, or";
        assert_eq!(
            text(&refused),
            format!("{takes} in user mode only CAP_SYS_PTRACE")
        );
        refused.attr.flags = AttrFlags::EXCLUDE_KERNEL;
        assert_eq!(text(&refused), format!("{takes} CAP_SYS_PTRACE"));

        assert!(is_somebody_elses(&refused, |_, _| false));
        assert!(!is_somebody_elses(&refused, |_, attach| attach.pid == 1));
        for own in [Attach::thread(0), Attach::cpu(0)] {
            refused.attach = own;
            assert!(!is_somebody_elses(&refused, |_, _| false));
        }
    }

    #[test]
    fn user_mode_is_offered_only_where_it_opens_and_means_something() {
        let tsc = Event::Pmu(PmuEvent::new("msr").with("tsc"));
        let switches = Event::from(Software::ContextSwitches);
        let faults = Event::from(Software::PageFaults);
        let refused = refused(event_type::SOFTWARE, 0);
        let without_kernel =
            |attr: &PerfEventAttr, _| attr.flags.contains(AttrFlags::EXCLUDE_KERNEL);
        assert!(opens_in_user_mode(&refused, &faults, without_kernel));
        assert!(!opens_in_user_mode(&refused, &switches, without_kernel));
        assert!(!opens_in_user_mode(&refused, &tsc, |_, _| false));
        let tracepoint = self::refused(event_type::TRACEPOINT, 0);
        let named = Event::Named("sched:sched_switch".into());
        assert!(!opens_in_user_mode(&tracepoint, &named, |_, _| true));

        let mut privileges = machine(false);
        privileges.capabilities = Some(0);
        privileges.perf_event_paranoid = Some(2);
        let reason = |event, opens: bool| {
            meaning(libc::EACCES, &refused, event, &privileges, |_, _| opens).1
        };
        assert!(reason(&tsc, false).starts_with("its PMU cannot leave the kernel out"));
        assert_eq!(reason(&tsc, true), "");
        assert_eq!(reason(&faults, false), "");
    }
}
