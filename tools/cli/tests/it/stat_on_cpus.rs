//! `quipu stat` over what other systems than Linux have: getrusage(2), and a simulated pctr(4).

use std::process::{Command, Output};

use crate::interrupted::start;

fn stat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("stat").args(arguments);
    command
}

fn report(output: Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8(output.stderr).expect("the report is text"),
    )
}

/// Returns the first word of the line of an event.
fn count<'a>(report: &'a str, event: &str) -> &'a str {
    report
        .lines()
        .find(|line| line.split_whitespace().any(|word| word == event))
        .and_then(|line| line.split_whitespace().next())
        .unwrap_or_else(|| panic!("no line for {event}: {report}"))
}

#[test]
fn posix_alone_counts_what_it_can_and_is_named() {
    let (status, report) = report(
        stat(&["--backend", "posix", "--", "sh", "-c", "exit 3"])
            .output()
            .expect("it starts"),
    );
    assert_eq!(status, Some(3), "{report}");
    assert!(
        count(&report, "page-faults")
            .parse::<u64>()
            .is_ok_and(|n| n > 0)
    );
    assert_eq!(count(&report, "cycles"), "<not");
    assert!(
        report.contains("counted by posix: task-clock, context-switches, page-faults"),
        "{report}"
    );
}

/// It is known in the end, of the whole run, and no share of the last interval.
#[test]
fn intervals_know_nothing_of_what_posix_tells_in_the_end() {
    let arguments = ["--backend", "posix", "-e", "task-clock", "-I", "50"];
    let command = [
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.12",
    ];
    let (status, report) = report(
        stat(&[&arguments[..], &command].concat())
            .output()
            .expect("it starts"),
    );
    assert_eq!(status, Some(0), "{report}");
    let lines = report
        .lines()
        .filter(|line| line.contains(" msec task-clock"));
    let lines: Vec<&str> = lines.collect();
    let (last, others) = lines.split_last().expect("intervals");
    assert!(!others.is_empty() && others.iter().all(|line| line.contains("<not counted>")));
    assert!(!last.contains("<not"), "{report}");
    assert!(!report.contains("CPUs utilized"), "{report}");
}

/// The simulated events occur 1010 times, whatever the command does.
#[test]
fn events_of_cpus_join_those_of_the_command_and_each_says_who_counted_it() {
    for machine in [
        "i386-2003:p5",
        "i386-2003:p6",
        "amd64-2016:core",
        "amd64-2019:k8",
    ] {
        let (status, report) = report(
            stat(&[
                "--simulate",
                machine,
                "-e",
                "instructions,page-faults",
                "true",
            ])
            .output()
            .expect("it starts"),
        );
        assert_eq!(status, Some(0), "{machine}: {report}");
        assert_eq!(
            count(&report, "instructions"),
            "1,010",
            "{machine}: {report}"
        );
        assert!(
            count(&report, "page-faults")
                .parse::<u64>()
                .is_ok_and(|n| n > 0)
        );
        assert!(report.contains("counted by posix: page-faults"), "{report}");
        assert!(
            report.contains("counted by pctr: instructions\n    everything that ran on all CPUs"),
            "{report}"
        );
    }
}

#[test]
fn runs_are_counted_one_by_one() {
    let arguments = [
        "--simulate",
        "amd64-2019:core",
        "-e",
        "instructions",
        "-r",
        "3",
        "-jv",
        "true",
    ];
    let (_, lines) = report(stat(&arguments).output().expect("it starts"));
    assert!(
        lines.contains(r#""counter-value":"1010.000000""#),
        "{lines}"
    );
    assert!(lines.contains(r#""variance":0.0"#), "{lines}");
    assert!(lines.contains(r#""backend":"pctr""#), "{lines}");
}

#[test]
fn a_cpu_without_counters_says_so() {
    let arguments = [
        "--simulate",
        "i386-2023:p6",
        "-e",
        "instructions,tsc",
        "true",
    ];
    let (status, report) = report(stat(&arguments).output().expect("it starts"));
    assert_eq!(status, Some(0), "{report}");
    assert_eq!(count(&report, "instructions"), "<not");
    assert_eq!(count(&report, "tsc"), "2,000,000");
}

/// The time stamp counter needs none of the counters that three events want two of.
#[test]
fn the_time_stamp_counter_waits_for_no_counter() {
    let events = "INST_RETIRED:u,L2_LD:MESI:uk,FLOPS:u,tsc";
    let arguments = ["--simulate", "i386-2003:p6", "-e", events, "true"];
    let (status, report) = report(stat(&arguments).output().expect("it starts"));
    assert_eq!(status, Some(0), "{report}");
    assert_eq!(count(&report, "tsc"), "2,000,000", "{report}");
}

/// Counters are found set by another program, and one event can be on one of them only.
#[test]
fn an_event_of_one_counter_is_counted_beside_one_of_any_in_either_order() {
    for events in ["INST_RETIRED:u,FLOPS:u", "FLOPS:u,INST_RETIRED:u"] {
        let arguments = ["--simulate", "i386-2003:p6", "-e", events, "true"];
        let (_, report) = report(stat(&arguments).output().expect("it starts"));
        // The second starts when all is arranged.
        let last = events.rsplit(',').next().expect("an event");
        assert_eq!(count(&report, last), "1,000", "{report}");
        assert!(!report.contains("<not counted>"), "{report}");
    }
    // With an enable for each counter none has to stop for the other.
    for events in [
        "INST_RETIRED:u,FP_COMP_OPS_EXE:u",
        "FP_COMP_OPS_EXE:u,INST_RETIRED:u",
    ] {
        let arguments = ["--simulate", "amd64-2019:core", "-e", events, "true"];
        let (_, report) = report(stat(&arguments).output().expect("it starts"));
        for event in events.split(',') {
            assert_eq!(count(&report, event), "1,000", "{report}");
        }
    }
}

/// The task of counting by registers, without root and without the hardware.
#[test]
fn registers_of_every_generation_can_be_tried_out() {
    let generations = [
        "p5",
        "p6",
        "intel-v1",
        "intel-v2",
        "intel-v3",
        "intel-v4",
        "intel-v5",
        "intel-v6",
        "amd-k7",
        "amd-10h",
        "amd-15h",
        "amd-perfmonv2",
    ];
    for generation in generations {
        let machine = format!("msr:{generation}");
        for place in [&[][..], &["-a"], &["-C", "0"]] {
            let arguments = ["--simulate", &machine, "-e", "instructions:u,tsc"];
            let arguments = [&arguments[..], place, &["--", "true"]].concat();
            let (status, report) = report(stat(&arguments).output().expect("it starts"));
            assert_eq!(status, Some(0), "{generation}: {report}");
            assert_eq!(
                count(&report, "instructions:u"),
                "1,000",
                "{generation}: {report}"
            );
            assert_eq!(count(&report, "tsc"), "1,010", "{generation}: {report}");
        }
    }
    // With the bits that were written for it.
    let arguments = [
        "-v",
        "--simulate",
        "msr:intel-v5",
        "-e",
        "instructions:u",
        "true",
    ];
    let (_, lines) = report(stat(&arguments).output().expect("it starts"));
    let written = lines
        .lines()
        .find(|line| line.contains("register 0x186 was set to "));
    assert!(
        written.is_some_and(|line| line.contains("0x4100c0")),
        "{lines}"
    );
    let (status, lines) = report(
        stat(&["--simulate", "msr:p7", "true"])
            .output()
            .expect("it starts"),
    );
    assert_eq!(status, Some(2), "{lines}");
    assert!(
        lines.contains("the generations of registers are p5, p6, intel-v1"),
        "{lines}"
    );
}

/// An event that neither of them counts is refused by the one that is for it.
#[test]
fn a_software_event_is_refused_by_what_counts_software_events() {
    let arguments = [
        "--simulate",
        "amd64-2019:core",
        "-e",
        "cpu-migrations,page-faults",
        "true",
    ];
    let (_, report) = report(stat(&arguments).output().expect("it starts"));
    assert_eq!(count(&report, "cpu-migrations"), "<not");
    assert!(
        report.contains("not supported: cpu-migrations\n    getrusage(2)"),
        "{report}"
    );
}

/// Whatever ends it, counter 0 is set to what was found in it, last of all; the device's own log says
/// so.
#[test]
fn signals_leave_the_device_as_it_was_found() {
    for (machine, found) in [
        ("i386-2003:p5", "0x96"),
        ("i386-1996:p6", "0x410079"),
        ("amd64-2016:core", "0x410079"),
        ("amd64-2019:k8", "0x410079"),
    ] {
        for (signal, as_ended) in [("-INT", 130), ("-TERM", 143)] {
            let counting = start(&mut stat(&[
                "--simulate",
                machine,
                "-v",
                "-e",
                "instructions",
                "sh",
                "-c",
                "echo ready; exec sleep 20",
            ]));
            let (status, report) = counting.end(signal);
            assert_eq!(status, Some(as_ended), "{report}");
            assert_eq!(count(&report, "instructions"), "1,010", "{report}");
            let log = report
                .lines()
                .find_map(|line| line.strip_prefix("quipu: simulated counter 0 was set to "))
                .unwrap_or_else(|| panic!("no log: {report}"));
            let words: Vec<&str> = log.split(", ").collect();
            assert!(
                words.len() > 2 && words.iter().any(|w| *w != "0x0" && *w != found),
                "{log}"
            );
            assert_eq!(words.last(), Some(&found), "{machine} {signal}: {log}");
        }
    }
}
