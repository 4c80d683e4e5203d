//! Errnos, refused settings and rights, without a kernel.

use super::*;
use quipu_hal::{Hardware, PmuEvent, RawEvent};

fn refused(type_: u32, member: usize) -> RefusedMember {
    RefusedMember {
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

fn unprivileged() -> Privileges {
    let mut privileges = machine(true);
    privileges.capabilities = Some(0);
    privileges.perf_event_paranoid = Some(2);
    privileges.seccomp = None;
    privileges
}

#[test]
fn every_errno_has_its_kind() {
    use ErrorKind as K;
    let event = Event::Hardware(Hardware::Cycles);
    for (kind, errnos) in [
        (K::NoPermission, &[libc::EACCES, libc::EPERM][..]),
        (K::Busy, &[libc::EBUSY, libc::ENOSPC]),
        (K::InvalidConfiguration, &[libc::EOVERFLOW]),
        (K::UnsupportedFeature, &[libc::E2BIG, libc::ENODEV]),
        (
            K::UnsupportedEvent,
            &[libc::ENOENT, libc::ENXIO, libc::EOPNOTSUPP, libc::EINVAL],
        ),
        (K::NoSuchDevice, &[libc::ENOSYS]),
        (K::NoSuchTarget, &[libc::ESRCH]),
        (
            K::Os,
            &[
                libc::EBADF,
                libc::EFAULT,
                libc::EINTR,
                libc::EMFILE,
                libc::ENFILE,
                libc::ENOMEM,
            ],
        ),
    ] {
        for errno in errnos {
            let refused = refused(event_type::HARDWARE, 0);
            let got = meaning(*errno, &refused, &event, &machine(false), |_, _| false);
            assert_eq!(got.0, kind, "{}", std::io::Error::from_raw_os_error(*errno));
        }
    }
}

#[test]
fn an_errno_of_the_moment_is_not_taken_for_another() {
    let event = Event::Hardware(Hardware::Cycles);
    let tracepoint = Event::Named("sched:sched_switch".into());
    let what = |type_, flags, event: &Event, errno| {
        let mut refused = refused(type_, 0);
        refused.attr.flags = flags;
        meaning(errno, &refused, event, &machine(true), |_, _| true)
    };
    let (hardware, none) = (event_type::HARDWARE, AttrFlags::empty());
    for (kind, reason, got) in [
        (
            ErrorKind::Os,
            "signals interrupted",
            what(hardware, none, &event, libc::EINTR),
        ),
        (
            ErrorKind::Busy,
            "same probe",
            what(event_type::TRACEPOINT, none, &tracepoint, libc::EINTR),
        ),
        (
            ErrorKind::Os,
            "asked again",
            what(hardware, none, &event, libc::EINVAL),
        ),
        (
            ErrorKind::UnsupportedFeature,
            "pinned",
            what(hardware, AttrFlags::PINNED, &event, libc::EINVAL),
        ),
    ] {
        assert_eq!(got.0, kind, "{}", got.1);
        assert!(got.1.contains(reason), "{}", got.1);
    }
}

#[test]
fn a_missing_event_and_a_missing_pmu_are_different_errors() {
    let (cycles, switches) = (Hardware::Cycles.into(), Software::CgroupSwitches.into());
    for (type_, event, pmu, reason) in [
        (
            event_type::HARDWARE,
            &cycles,
            false,
            "this machine shows no CPU PMU",
        ),
        (
            event_type::HARDWARE,
            &cycles,
            true,
            "the CPU's PMU does not have this event",
        ),
        (
            event_type::SOFTWARE,
            &switches,
            false,
            "this kernel does not have this event",
        ),
    ] {
        let refused = refused(type_, 0);
        let got = meaning(libc::ENOENT, &refused, event, &machine(pmu), |_, _| false);
        assert_eq!(got.1, reason);
    }
}

/// The drivers of the Pentium Pro to III and of Knights Corner answer EINVAL for a generalized event that they do not have.
#[test]
fn an_event_that_is_refused_without_settings_is_not_there() {
    let branches = Event::Hardware(Hardware::Branches);
    let loads = quipu_hal::CacheEvent::new(
        quipu_hal::Cache::L1d,
        quipu_hal::CacheOp::Read,
        quipu_hal::CacheResult::Access,
    );
    let user = AttrFlags::EXCLUDE_KERNEL;
    for (event, type_) in [
        (branches, event_type::HARDWARE),
        (loads.into(), event_type::HW_CACHE),
    ] {
        let mut refused = refused(type_, 0);
        refused.attr.flags = AttrFlags::EXCLUDE_IDLE | user;
        let meaning = |opens: &dyn Fn(&PerfEventAttr, Attach) -> bool| {
            meaning(libc::EINVAL, &refused, &event, &machine(true), opens)
        };
        let missing = meaning(&|_, _| false);
        let unsupported = (ErrorKind::UnsupportedEvent, NO_SUCH_EVENT);
        assert_eq!(missing, unsupported);
        // It is there, and cannot be counted as asked for: not even with one setting less.
        let bare = |attr: &PerfEventAttr, attach: Attach| {
            attach.pid == 0 && attr.flags - AttrFlags::DISABLED - user == AttrFlags::empty()
        };
        refused.attach = Attach::thread(1);
        let meaning = super::meaning(libc::EINVAL, &refused, &event, &machine(true), bare);
        assert_eq!(meaning.0, ErrorKind::InvalidConfiguration);
    }
}

#[test]
fn what_is_too_precise_has_a_way_out() {
    let mut refused = refused(event_type::HARDWARE, 0);
    refused.attr.flags = AttrFlags::precise_ip(3);
    let up_to = |level: u8| {
        move |attr: &PerfEventAttr, _| {
            let bits = attr.flags & AttrFlags::precise_ip(3);
            (0..=level).any(|level| bits == AttrFlags::precise_ip(level))
        }
    };
    assert_eq!(
        less_precise(&refused, up_to(2)),
        "write :pp, which this CPU can"
    );
    assert_eq!(
        less_precise(&refused, up_to(1)),
        "write :p, which this CPU can"
    );
    assert!(less_precise(&refused, up_to(0)).starts_with("leave out the p's"));
}

/// Each setting is found by taking it away.
#[test]
fn the_unsupported_setting_is_found() {
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
    let privileges = unprivileged();
    let mut refused = refused(event_type::HARDWARE, 0);
    let text = |refused: &RefusedMember, p: &Privileges| {
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
    // There, capabilities permit nothing.
    let mut contained = unprivileged();
    contained.initial_user_namespace = Some(false);
    let elsewhere = hint(libc::EACCES, &refused, &contained, Instead::Nothing).unwrap();
    let outside = "or run with CAP_PERFMON outside of this user namespace";
    assert!(elsewhere.ends_with(outside), "{elsewhere}");
    refused.attr.flags = AttrFlags::EXCLUDE_KERNEL;
    assert_eq!(text(&refused, &privileges), "");
    refused.attach = Attach::cpu(0);
    assert!(text(&refused, &privileges).contains("set it to 0"));
}

/// Debian 12's kernel, at the level that Debian sets.
#[test]
fn a_kernel_that_wants_more_than_cap_perfmon_is_told() {
    let mut privileges = unprivileged();
    privileges.perf_event_paranoid = Some(3);
    let refused = refused(event_type::HARDWARE, 0);
    let text = |p: &Privileges| hint(libc::EACCES, &refused, p, Instead::Nothing).unwrap();
    let without = text(&privileges);
    assert!(without.ends_with("or run with CAP_SYS_ADMIN"), "{without}");
    privileges.capabilities = Some(1 << 38);
    assert_eq!(
        text(&privileges),
        "kernel.perf_event_paranoid is 3, at which this kernel asks for CAP_SYS_ADMIN, not CAP_PERFMON; \
         set it to 2 or lower (sysctl kernel.perf_event_paranoid=2)"
    );
    // Others have other reasons.
    privileges.capabilities = Some(1 << 38 | 1 << 21);
    assert_eq!(
        hint(libc::EACCES, &refused, &privileges, Instead::Nothing),
        None
    );
}

/// No setting permits it, so none is named.
#[test]
fn a_foreign_process_takes_a_capability() {
    let privileges = unprivileged();
    let mut refused = refused(event_type::HARDWARE, 0);
    refused.attach = Attach::thread(1);
    let text = |refused: &RefusedMember| {
        hint(libc::EACCES, refused, &privileges, Instead::OwnProcess).unwrap_or_default()
    };
    let takes = "counting another user's process requires CAP_PERFMON, or";
    assert_eq!(
        text(&refused),
        format!("{takes} in user mode only CAP_SYS_PTRACE")
    );
    refused.attr.flags = AttrFlags::EXCLUDE_KERNEL;
    assert_eq!(text(&refused), format!("{takes} CAP_SYS_PTRACE"));

    assert!(is_foreign_process(&refused, |_, _| false));
    assert!(!is_foreign_process(&refused, |_, attach| attach.pid == 1));
    for own in [Attach::thread(0), Attach::cpu(0)] {
        refused.attach = own;
        assert!(!is_foreign_process(&refused, |_, _| false));
    }
}

#[test]
fn user_mode_is_offered_only_where_it_opens_and_means_something() {
    let tsc = Event::Pmu(PmuEvent::new("msr").with("tsc"));
    let switches = Event::from(Software::ContextSwitches);
    let faults = Event::from(Software::PageFaults);
    let refused = refused(event_type::SOFTWARE, 0);
    let without_kernel = |attr: &PerfEventAttr, _| attr.flags.contains(AttrFlags::EXCLUDE_KERNEL);
    assert!(opens_in_user_mode(&refused, &faults, without_kernel));
    assert!(!opens_in_user_mode(&refused, &switches, without_kernel));
    assert!(!opens_in_user_mode(&refused, &tsc, |_, _| false));
    let tracepoint = self::refused(event_type::TRACEPOINT, 0);
    let named = Event::Named("sched:sched_switch".into());
    assert!(!opens_in_user_mode(&tracepoint, &named, |_, _| true));

    let privileges = unprivileged();
    let reason =
        |event, opens: bool| meaning(libc::EACCES, &refused, event, &privileges, |_, _| opens).1;
    assert!(reason(&tsc, false).starts_with("this PMU cannot exclude the kernel"));
    assert_eq!(reason(&tsc, true), "");
    assert_eq!(reason(&faults, false), "");
}
