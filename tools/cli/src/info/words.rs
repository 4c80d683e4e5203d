//! Facts in words.

use super::linux_facts::{LimitFact, PrivilegeFacts};

/// Returns the modes and places that the user may count, and those that not.
pub(super) fn may_count(privileges: &PrivilegeFacts) -> String {
    let may = &privileges.may_count;
    let all = [
        (may.user_mode, "user mode"),
        (may.kernel_mode, "kernel mode"),
        (may.whole_cpus, "whole CPUs"),
        (may.raw_tracepoints, "every tracepoint"),
    ];
    let names = |yes| -> Vec<&str> {
        let those = all.iter().filter(|(may, _)| *may == yes);
        those.map(|(_, name)| *name).collect()
    };
    match (names(true).as_slice(), names(false).as_slice()) {
        ([], _) => "nothing".to_owned(),
        (some, []) => some.join(", "),
        (some, not) => format!("{}; not {}", some.join(", "), not.join(", ")),
    }
}

/// Returns the meaning of a value of perf_event_paranoid without privilege
/// (`Documentation/admin-guide/sysctl/kernel.rst`).
pub(super) fn paranoia(level: i32, may_count_user: bool) -> &'static str {
    match level {
        ..=-1 => "every user may count everything",
        0 => "every user may count everything but raw tracepoints",
        1 => "users may count their own processes, not whole CPUs",
        2 => "users may count their own processes, in user mode only",
        3.. if may_count_user => {
            "like 2 on this kernel: users may count their own processes, in user mode only"
        }
        3.. => "users may count nothing, on kernels of Debian, Ubuntu and Android",
    }
}

/// Returns a hint on what would let this user count more.
pub(super) fn what_helps(privileges: &PrivilegeFacts) -> Option<String> {
    let may = &privileges.may_count;
    if may.whole_cpus {
        return None;
    }
    let is_forbidden = !may.user_mode
        && (privileges.exempt || privileges.perf_event_paranoid.is_some_and(|p| p <= 2));
    if is_forbidden && privileges.seccomp == Some("filter") {
        return Some(
            "a filter of system calls may forbid perf_event_open: run the container with a profile that allows it \
             (docker, podman: --security-opt seccomp=FILE, or unconfined)"
                .to_owned(),
        );
    }
    let level = privileges
        .perf_event_paranoid
        .filter(|_| !privileges.exempt && !is_forbidden)?;
    let (wanted, gains) = match (may.user_mode, may.kernel_mode) {
        (false, _) => (2, "user mode"),
        (true, false) => (1, "kernel mode"),
        (true, true) => (0, "whole CPUs"),
    };
    let capability = match privileges.initial_user_namespace {
        Some(false) => "",
        _ => ", or run with CAP_PERFMON",
    };
    Some(format!(
        "to count {gains}, as root: sysctl kernel.perf_event_paranoid={wanted} \
         (it is {level}){capability}"
    ))
}

/// Returns CPUs as the kernel writes them: `0-3,8`.
pub(super) fn ranges(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let written = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let runs: Vec<String> = runs.iter().map(written).collect();
    runs.join(",")
}

/// Returns a limit, and how far the process may raise it.
pub(super) fn limited(limit: LimitFact, show: impl Fn(u64) -> String) -> String {
    match (limit.soft, limit.hard) {
        (None, _) => "unlimited".to_owned(),
        (Some(soft), Some(hard)) if soft == hard => show(soft),
        (Some(soft), Some(hard)) => format!("{}, may be raised to {}", show(soft), show(hard)),
        (Some(soft), None) => format!("{}, may be raised without limit", show(soft)),
    }
}

/// Returns a size in the largest unit that shows it exactly.
pub(super) fn bytes(size: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let exact = units
        .iter()
        .find(|(shift, _)| size > 0 && size.trailing_zeros() >= *shift);
    match exact {
        Some((shift, unit)) => format!("{} {unit}", size >> shift),
        None => format!("{size} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux_facts::MayCount;
    use super::*;

    #[test]
    fn cpus_in_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), "4294967294-4294967295");
    }

    #[test]
    fn limits_in_words() {
        let show = |soft, hard| limited(LimitFact { soft, hard }, bytes);
        assert_eq!(show(Some(8 << 20), Some(8 << 20)), "8 MiB");
        assert_eq!(
            show(Some(65_536), None),
            "64 KiB, may be raised without limit"
        );
        assert_eq!(
            show(Some(1000), Some(1 << 30)),
            "1000 bytes, may be raised to 1 GiB"
        );
        assert_eq!(show(None, None), "unlimited");
        assert_eq!(bytes(0), "0 bytes");
    }

    fn user(level: i32, may: [bool; 4], exempt: bool) -> PrivilegeFacts {
        let [user_mode, kernel_mode, whole_cpus, raw_tracepoints] = may;
        PrivilegeFacts {
            user_id: Some(1000),
            perf_event_paranoid: Some(level),
            exempt,
            may_count: MayCount {
                user_mode,
                kernel_mode,
                whole_cpus,
                raw_tracepoints,
            },
            capabilities: Vec::new(),
            initial_user_namespace: Some(true),
            seccomp: None,
        }
    }

    #[test]
    fn what_an_ordinary_user_may_and_what_would_help() {
        let two = user(2, [true, false, false, false], false);
        assert_eq!(
            may_count(&two),
            "user mode; not kernel mode, whole CPUs, every tracepoint"
        );
        assert_eq!(
            what_helps(&two).unwrap(),
            "to count kernel mode, as root: sysctl kernel.perf_event_paranoid=1 (it is 2), \
             or run with CAP_PERFMON"
        );
        let mut contained = user(1, [true, true, false, false], false);
        contained.initial_user_namespace = Some(false);
        assert_eq!(
            what_helps(&contained).unwrap(),
            "to count whole CPUs, as root: sysctl kernel.perf_event_paranoid=0 (it is 1)"
        );
        let four = user(4, [false; 4], false);
        assert_eq!(may_count(&four), "nothing");
        assert!(what_helps(&four).unwrap().contains("paranoid=2 (it is 4)"));
        assert_eq!(what_helps(&user(4, [true; 4], true)), None);
        assert_eq!(what_helps(&user(2, [false; 4], false)), None);
        let mut filtered = user(2, [false; 4], true);
        filtered.seccomp = Some("filter");
        assert!(what_helps(&filtered).unwrap().contains("seccomp="));
        assert!(paranoia(3, true).starts_with("like 2") && paranoia(4, false).contains("nothing"));
        assert_eq!(what_helps(&user(0, [true, true, true, false], false)), None);
    }
}
