//! Machines whose counters do not all count, or jump, or whose CPU is busy with others: no fault of
//! the backend, so no check fails, and none passes that rests on them.

use std::sync::Arc;

use quipu_conformance::fixtures::SimFixture;
use quipu_conformance::{Fixture, Missing, Report, all, run};

use crate::mutants::registers::{Driver, broken};

/// Runs the checks that count a steady event with all counters.
fn run_over_all_counters(fixture: SimFixture) -> Report {
    let wanted = [
        "multiplexing.",
        "never-scheduled.",
        "pinned.",
        "resources.slots-come-free",
        "groups.full",
    ];
    let fixture: Arc<dyn Fixture> = Arc::new(fixture);
    let is_wanted =
        |id: &str| wanted.iter().any(|prefix| id.starts_with(prefix)) && id != "pinned.counts";
    run(&fixture, all().filter(|check| is_wanted(check.id)))
}

fn failed(report: &Report) -> Vec<&str> {
    report.failed().map(|(check, _)| check.id).collect()
}

fn dead(driver: &mut Driver) {
    driver.dead = Some(3);
}

fn jumping(driver: &mut Driver) {
    driver.width = Some(48);
    driver.jumping = Some(2);
}

#[test]
fn a_counter_that_does_not_count_is_told_and_skips_what_needs_it() {
    let blamed = run_over_all_counters(broken(dead));
    let report = run_over_all_counters(broken(dead).with_doubtful_counters());
    assert_eq!(failed(&report), Vec::<&str>::new(), "{report}");
    let missing = Missing::WorkingCounters {
        advertised: 4,
        working: 3,
    };
    let skipped: Vec<_> = report
        .skipped()
        .filter(|(_, why)| *why == missing)
        .map(|(check, _)| check.id)
        .collect();
    for id in failed(&blamed) {
        assert!(skipped.contains(&id), "{id}: {report}");
    }
    for id in [
        "multiplexing.estimate-near-expected",
        "multiplexing.estimate-near-pinned",
        "groups.full",
        "resources.slots-come-free",
    ] {
        assert!(failed(&blamed).contains(&id), "{blamed}");
    }
    assert!(
        report
            .to_string()
            .contains("4 counters advertised, 3 of them count")
    );
}

#[test]
fn a_counter_that_jumps_is_told_and_is_no_failure() {
    let blamed = run_over_all_counters(broken(jumping));
    let report = run_over_all_counters(broken(jumping).with_doubtful_counters());
    assert_eq!(failed(&report), Vec::<&str>::new(), "{report}");
    assert!(!failed(&blamed).is_empty(), "{blamed}");
    for id in failed(&blamed) {
        let why = report.skipped().find(|(check, _)| check.id == id);
        assert!(
            matches!(why, Some((_, Missing::PossibleValue { value, .. })) if value > 1 << 46),
            "{id}: {report}"
        );
    }
    assert!(
        report
            .to_string()
            .contains("a counter of the machine jumped: ")
    );
}

#[test]
fn proper_counters_are_not_doubted() {
    let report = run_over_all_counters(SimFixture::new().with_doubtful_counters());
    let plain = run_over_all_counters(SimFixture::new());
    assert_eq!(report.to_string(), plain.to_string());
}

#[test]
fn a_cpu_that_is_busy_with_others_changes_no_verdict() {
    let verdicts = |fixture: SimFixture| {
        let fixture: Arc<dyn Fixture> = Arc::new(fixture);
        run(&fixture, all()).to_string()
    };
    let busy = verdicts(SimFixture::new().on_busy_cpu(20));
    assert_eq!(busy, verdicts(SimFixture::new()));
}
