//! Rows: a run, and the means of several with their standard errors.

use quipu::{Count, Hardware, Software};
use quipu_stat::repeat::{Merge, Samples};
use quipu_stat::rows::Row;

use super::sample;

#[test]
fn mean_and_standard_error_are_exact() {
    let mut samples = Samples::default();
    assert_eq!((samples.mean(), samples.standard_error()), (0.0, 0.0));
    samples.add(10.0);
    assert_eq!((samples.mean(), samples.standard_error()), (10.0, 0.0));
    // 10, 20, 30: variance 100, of the mean 100/3.
    samples.add(20.0);
    samples.add(30.0);
    assert_eq!(samples.mean(), 20.0);
    assert_eq!(samples.standard_error(), (100.0f64 / 3.0).sqrt());
    assert_eq!(samples.percent(), (100.0f64 / 3.0).sqrt() * 5.0);
}

#[test]
fn large_values_close_together_keep_their_spread() {
    let mut samples = Samples::default();
    for value in [1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0] {
        samples.add(value);
    }
    assert_eq!(samples.standard_error(), (1.0f64 / 3.0).sqrt());
}

fn faults(value: u128) -> Row {
    sample::row(Software::PageFaults.into(), value, 1000)
}

fn merged(runs: Vec<Row>) -> Row {
    let mut merge = Merge::default();
    for row in runs {
        merge.add(vec![row]);
    }
    merge.rows().pop().expect("one line")
}

#[test]
fn runs_become_means() {
    let row = merged(vec![faults(48), faults(49), faults(52)]);
    assert_eq!(row.count.value(), Some(50));
    let spread = row.spread.expect("several runs");
    assert!((spread.mean - 149.0 / 3.0).abs() < 1e-12);
    assert_eq!(row.time, 1000);
    assert_eq!(merged(vec![faults(7)]).spread, None);
}

#[test]
fn a_run_that_jumped_is_left_out_and_that_is_said() {
    let mut jumped = faults(0);
    jumped.count = Count::Jumped;
    for runs in [[jumped.clone(), faults(50)], [faults(50), jumped.clone()]] {
        let row = merged(runs.into());
        assert_eq!(row.count, Count::Exact(50));
        assert!(row.disturbance.is_some_and(|why| why.contains("jumped")));
    }
    assert_eq!(merged(vec![jumped.clone(), jumped]).count, Count::Jumped);
}

/// Neither is a second run of the other.
#[test]
fn the_same_event_twice_has_two_lines() {
    let mut merge = Merge::default();
    for values in [[10, 30], [20, 50]] {
        merge.add(values.map(faults).into());
    }
    let values: Vec<_> = merge.rows().iter().map(|row| row.count.value()).collect();
    assert_eq!(values, [Some(15), Some(40)]);
    let mut once = Merge::default();
    once.add(vec![faults(10), faults(30)]);
    assert!(once.rows().iter().all(|row| row.spread.is_none()));
}

#[test]
fn one_estimate_makes_the_mean_one_and_a_gap_is_left_out() {
    let estimate = sample::estimate(Software::PageFaults.into(), 50);
    assert!(merged(vec![faults(50), estimate]).count.is_estimate());
    let gap = sample::not_counted(Software::PageFaults.into());
    let row = merged(vec![gap.clone(), faults(50), faults(52)]);
    assert_eq!(row.count.value(), Some(51));
    assert_eq!(merged(vec![gap.clone(), gap]).count, Count::NotCounted);
}

#[test]
fn a_counter_that_the_command_never_started_has_no_count() {
    let after = |value, time| {
        let mut row = sample::row(Hardware::Cycles.into(), value, time);
        row.command_has_ended();
        row.count
    };
    assert_eq!(after(0, 0), Count::NotCounted);
    assert_eq!(after(0, 1), Count::Exact(0));
}
