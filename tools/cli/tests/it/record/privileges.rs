//! Sampling by an ordinary user where the kernel may not be sampled.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

use super::{Bench, skip, stderr};

/// Runs `quipu record` of nothing for a user without privileges.
fn run_unprivileged(bench: &Bench, arguments: &[&str]) -> Option<Output> {
    record_unprivileged(bench, arguments, "/bin/true")
}

/// Runs `quipu record` of a command into `nobodys.data` for a user without privileges.
pub(super) fn record_unprivileged(
    bench: &Bench,
    arguments: &[&str],
    command: &str,
) -> Option<Output> {
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(bench.directory.path(), everybody).ok()?;
    Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args(["record", "-o", "nobodys.data"])
        .args(arguments)
        .args(["--", command])
        .output()
        .ok()
}

#[test]
fn user_mode_is_sampled_and_that_is_said() {
    const TEST: &str = "user_mode_is_sampled_and_that_is_said";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    if !paranoid.as_ref().is_ok_and(|level| level.trim() == "2") {
        return skip(TEST, format_args!("perf_event_paranoid is {paranoid:?}"));
    }
    let output = match run_unprivileged(&bench, &["-e", "page-faults", "-c", "1"]) {
        Some(output) if output.status.success() => output,
        Some(output) => return skip(TEST, stderr(&output).trim()),
        None => return skip(TEST, "no setpriv(1)"),
    };
    let text = stderr(&output);
    let note = "sampling user mode only: kernel.perf_event_paranoid is 2; set it to 1 or lower";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert!(!text.contains(":u"), "{text}");
    let rows = bench.rows(&["-f", "-i", "nobodys.data"]);
    assert!(!rows.is_empty(), "{text}");
    for row in rows {
        assert_eq!(
            (&row["event"], &row["kernel"]),
            (&"page-faults:u".into(), &false.into())
        );
    }
    let output = run_unprivileged(&bench, &["--off-cpu"]).expect("it ran before");
    let text = stderr(&output);
    let reason = "of the time off the CPU only how much each thread has, not where: it takes";
    assert!(
        text.contains(reason) && text.contains("perf_event_paranoid at 1 or less"),
        "{text}"
    );
    let output = run_unprivileged(&bench, &["--off-cpu", "-a"]).expect("it ran before");
    let text = stderr(&output);
    let reason = "--off-cpu samples threads in the kernel";
    assert!(
        text.contains(reason) && text.contains("perf_event_paranoid at 0 or less"),
        "{text}"
    );
    for refused in [&["-e", "cs:k"][..], &["-e", "page-faults", "-a"]] {
        let output = run_unprivileged(&bench, refused).expect("it ran before");
        assert_eq!(output.status.code(), Some(125));
        let text = stderr(&output);
        assert!(
            text.contains("not permitted") && text.contains("perf_event_paranoid"),
            "{text}"
        );
    }
}
