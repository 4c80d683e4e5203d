//! Groups: scheduled together, each of their events sampled, or their leader for all of them.

use super::judge::{BUSY, told_by_perf, told_by_quipu};
use super::peer::perf;
use super::{Bench, skip, stderr, stdout};

/// Records a busy program with these events; returns what perf says of the events, `None` without perf.
fn recorded(bench: &Bench, events: &str) -> Option<String> {
    bench.compile("busy", BUSY).expect("it compiled before");
    let program = bench.path("busy");
    let output = bench.record(&["-e", events, "-F", "4000"], &program.to_string_lossy());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    Some(stdout(&perf(bench, &["evlist", "-v"])?))
}

/// Returns the line of an event, and if it is sampled and reads its group.
fn event<'a>(told: &'a str, name: &str) -> (&'a str, bool, bool) {
    let lines = told.lines().find(|line| line.starts_with(name));
    let line = lines.unwrap_or_else(|| panic!("{name}: {told}"));
    let reads = line.contains("|READ|") && line.contains("|GROUP");
    (line, line.contains("sample_period"), reads)
}

#[test]
fn a_leader_samples_for_its_group_and_perf_counts_the_same() {
    const TEST: &str = "a_leader_samples_for_its_group_and_perf_counts_the_same";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let events = "{cpu-clock:u,page-faults:u}:S,context-switches";
    let Some(told) = recorded(&bench, events) else {
        return skip(TEST, "perf does not start here");
    };
    for (name, is_sampled) in [
        ("cpu-clock:u", true),
        ("page-faults:u", false),
        ("context-switches", true),
    ] {
        let (line, samples, reads) = event(&told, name);
        assert_eq!((samples, reads), (is_sampled, true), "{line}");
    }
    let groups = perf(&bench, &["evlist", "-g"]).expect("it was there before");
    let expected = "{cpu-clock:u,page-faults:u}\ncontext-switches\n";
    assert_eq!(stdout(&groups), expected);
    let ours = told_by_quipu(&bench, "perf.data");
    assert_eq!(ours, told_by_perf(&bench, "perf.data"));
    let faults = ours.counts[1];
    assert!((1..=2200).contains(&faults), "{ours:?}");
    // Each line of a member is a sample of its leader, with what the member has counted.
    let fields = ["script", "-F", "tid,time,event,period"];
    let theirs = perf(&bench, &fields).expect("it was there before");
    let ours = super::quipu()
        .current_dir(bench.directory.path())
        .args(fields)
        .output()
        .expect("it starts");
    let lines =
        |text: String| -> Vec<String> { text.lines().map(|line| line.trim().to_owned()).collect() };
    let ours = lines(stdout(&ours));
    assert!(
        ours.iter().any(|line| line.contains("page-faults:u")),
        "{ours:?}"
    );
    assert_eq!(ours, lines(stdout(&theirs)));
}

#[test]
fn every_event_of_a_group_is_sampled() {
    const TEST: &str = "every_event_of_a_group_is_sampled";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let Some(told) = recorded(&bench, "{cpu-clock:u,page-faults:u}") else {
        return skip(TEST, "perf does not start here");
    };
    for name in ["cpu-clock:u", "page-faults:u"] {
        let (line, samples, reads) = event(&told, name);
        assert_eq!((samples, reads), (true, false), "{line}");
    }
    // The members start with their leader.
    assert!(
        event(&told, "cpu-clock").0.contains("enable_on_exec"),
        "{told}"
    );
    assert!(
        !event(&told, "page-faults").0.contains("enable_on_exec"),
        "{told}"
    );
    let groups = perf(&bench, &["evlist", "-g"]).expect("it was there before");
    assert_eq!(stdout(&groups), "{cpu-clock:u,page-faults:u}\n");
    assert_eq!(
        told_by_quipu(&bench, "perf.data"),
        told_by_perf(&bench, "perf.data")
    );
    let report = perf(&bench, &["report", "--stdio"]).expect("it was there before");
    let text = stdout(&report);
    assert!(
        text.contains("anon group { cpu-clock:u, page-faults:u }"),
        "{text}"
    );
}

#[test]
fn counts_of_a_group_are_those_of_every_process() {
    const TEST: &str = "counts_of_a_group_are_those_of_every_process";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("busy", BUSY).expect("it compiled before");
    let program = bench.path("busy").to_string_lossy().into_owned();
    let script = format!("{program} & {program}; wait");
    std::fs::write(bench.path("both.sh"), script).expect("written");
    // Sampled at each page, so that no fault is after the last sample.
    let output = bench.record(
        &["-e", "{page-faults:u,minor-faults:u}:S", "-c", "1"],
        "sh both.sh",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    if stderr(&output).contains("Linux 6.13") {
        return skip(
            TEST,
            "this kernel reads no values of counters that are inherited",
        );
    }
    let rows = bench.rows(&[]);
    // The kernel counts a minor fault after the sample of its page fault: the last of each process is with a later one.
    for (event, least) in [("page-faults:u", 4000), ("minor-faults:u", 3998)] {
        let own = rows.iter().filter(|row| {
            row["event"] == event && row["command"] == "busy" && row["symbol"] == "main"
        });
        let faults: u64 = own
            .map(|row| row["period"].as_u64().expect("a number"))
            .sum();
        // Two processes touch 2000 pages each, and some more.
        assert!((least..4400).contains(&faults), "{event}: {faults}");
    }
}

#[test]
fn a_name_and_a_rate_of_an_event_are_those_in_its_text() {
    const TEST: &str = "a_name_and_a_rate_of_an_event_are_those_in_its_text";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let Some(told) = recorded(
        &bench,
        "page-faults/name=pages,period=7/u,cpu-clock/freq=99/u",
    ) else {
        return skip(TEST, "perf does not start here");
    };
    assert!(
        event(&told, "pages")
            .0
            .contains("{ sample_period, sample_freq }: 7"),
        "{told}"
    );
    let clock = event(&told, "cpu-clock:u").0;
    assert!(
        clock.contains("{ sample_period, sample_freq }: 99"),
        "{told}"
    );
}
