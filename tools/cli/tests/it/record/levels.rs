//! Choices of what is sampled: modes, the highest rate, threads, context switches.

use super::peer::perf;
use super::{Bench, skip, stderr, stdout};

/// Records a command and returns what perf says of the events, `None` without perf.
fn events_of(bench: &Bench, options: &[&str]) -> Option<String> {
    let output = bench.record(options, "true");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    Some(stdout(&perf(bench, &["evlist", "-v"])?))
}

#[test]
fn modes_are_those_that_perf_would_choose() {
    const TEST: &str = "modes_are_those_that_perf_would_choose";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for (option, own) in [
        ("--all-user", "exclude_kernel: 1"),
        ("--all-kernel", "exclude_user: 1"),
    ] {
        let events = "cpu-clock,page-faults:u,context-switches";
        let Some(told) = events_of(&bench, &["-e", events, option]) else {
            return skip(TEST, "perf does not start here");
        };
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].contains(own), "{option}: {told}");
        // What has a mode of its own keeps it, and what is the kernel's alone stays so.
        assert!(lines[1].contains("exclude_kernel: 1"), "{option}: {told}");
        assert!(!lines[2].contains("exclude_"), "{option}: {told}");
    }
    let both = bench.record(&["--all-user", "--all-kernel"], "true");
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}

#[test]
fn the_highest_rate_is_the_kernels_limit() {
    const TEST: &str = "the_highest_rate_is_the_kernels_limit";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    // The kernel may lower it at any moment.
    let limit = || std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let before = limit().expect("Linux has it");
    let told = events_of(&bench, &["-e", "cpu-clock:u", "-F", "max"]);
    let after = limit().expect("Linux has it");
    let Some(told) = told else {
        return skip(TEST, "perf does not start here");
    };
    let is = |rate: &str| told.contains(&format!("sample_freq }}: {},", rate.trim()));
    assert!(is(&before) || is(&after), "{before} {after}: {told}");
}

#[test]
fn threads_have_counters_of_their_own_or_pass_them_on() {
    const TEST: &str = "threads_have_counters_of_their_own_or_pass_them_on";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for (option, inherits) in [
        ("--per-thread", false),
        ("--no-inherit", false),
        ("-i", false),
        ("-d", true),
    ] {
        let Some(told) = events_of(&bench, &["-e", "page-faults:u", "-c", "1", option]) else {
            return skip(TEST, "perf does not start here");
        };
        assert_eq!(told.contains("inherit: 1"), inherits, "{option}: {told}");
    }
    let output = bench.record(
        &["-e", "page-faults:u", "-c", "1", "--per-thread"],
        "sh -c true;true",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let commands: Vec<_> = bench
        .rows(&[])
        .iter()
        .map(|row| row["command"].clone())
        .collect();
    assert!(
        commands.iter().all(|command| command == "sh"),
        "{commands:?}"
    );
    let system = bench.record(&["--per-thread", "-a"], "true");
    assert_eq!(system.status.code(), Some(2), "{}", stderr(&system));
}

#[test]
fn context_switches_are_recorded_where_they_are_asked_for() {
    const TEST: &str = "context_switches_are_recorded_where_they_are_asked_for";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for (options, expected) in [(&["--switch-events"][..], true), (&[], false)] {
        let options = [&["-e", "page-faults:u"], options].concat();
        bench.record(&options, "sleep 0.01");
        let Some(script) = perf(&bench, &["script", "--show-switch-events"]) else {
            return skip(TEST, "perf does not start here");
        };
        let text = stdout(&script);
        assert_eq!(text.contains("PERF_RECORD_SWITCH OUT"), expected, "{text}");
        assert_eq!(stderr(&script), "");
    }
}
