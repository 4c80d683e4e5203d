//! `quipu stat` where a seccomp filter forbids a system call, as the profiles of containers do.

use std::io;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes a system call fail with this errno, here and in every program executed.
fn forbid(number: libc::c_long, errno: i32) -> io::Result<()> {
    let op = |code: u32, jump: [u8; 2], k: u32| libc::sock_filter {
        code: code as u16,
        jt: jump[0],
        jf: jump[1],
        k,
    };
    let filter = [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, [0, 0], 0),
        op(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            [0, 1],
            number as u32,
        ),
        op(
            libc::BPF_RET | libc::BPF_K,
            [0, 0],
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        op(libc::BPF_RET | libc::BPF_K, [0, 0], libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: prctl(2) reads the program and the filter it points to, which live through the call.
    let status = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        } else {
            -1
        }
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Runs `quipu stat` where a system call is forbidden; `None`, which is said, if none can be.
fn stat_without(
    number: libc::c_long,
    errno: i32,
    arguments: &[&str],
) -> Option<std::process::Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("stat").args(arguments).args(["--", "true"]);
    // SAFETY: between fork and exec it makes two system calls and touches no memory but its own.
    unsafe { command.pre_exec(move || forbid(number, errno)) };
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let _ = writeln!(io::stderr(), "SKIP no call can be forbidden here: {error}");
            None
        }
    }
}

#[test]
fn the_limit_of_open_files_need_not_be_known() {
    // It is raised where many counters may be opened.
    let own = std::process::id().to_string();
    let arguments = ["-e", "page-faults", "-p", &own];
    let Some(output) = stat_without(libc::SYS_prlimit64, libc::EPERM, &arguments) else {
        return;
    };
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(!report.contains("panicked"), "{report}");
    assert!(matches!(output.status.code(), Some(0 | 125)), "{report}");
}

#[test]
fn what_needs_no_counter_is_counted_and_the_rest_says_why_not() {
    // Docker's profile says EPERM, others ENOSYS.
    for errno in [libc::EPERM, libc::ENOSYS] {
        let arguments = ["-e", "page-faults,task-clock,cycles"];
        let Some(output) = stat_without(libc::SYS_perf_event_open, errno, &arguments) else {
            return;
        };
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{report}");
        let line = |event: &str| report.lines().find(|l| l.contains(event));
        let faults = line("page-faults").and_then(|l| l.split_whitespace().next());
        let faults: u64 = faults.unwrap_or_default().replace(',', "").parse().unwrap();
        assert!(faults > 0, "{report}");
        assert!(
            report.contains("counted by posix: page-faults, task-clock"),
            "{report}"
        );
        assert!(
            line("cycles").is_some_and(|l| l.contains("<not counted>")),
            "{report}"
        );
        assert!(report.contains("seccomp filter forbids"), "{report}");
    }
}

/// As in the default profile of a container.
#[test]
fn what_may_be_counted_is_tried_and_not_guessed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("info");
    // SAFETY: between fork and exec it makes two system calls and touches no memory but its own.
    unsafe { command.pre_exec(|| forbid(libc::SYS_perf_event_open, libc::EPERM)) };
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            let _ = writeln!(io::stderr(), "SKIP no call can be forbidden here: {error}");
            return;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("  may count           nothing\n"), "{text}");
    assert!(text.contains("--security-opt seccomp="), "{text}");
}
