//! Metrics: what a count means beside the others.

use quipu::{Count, Event, EventSpec, Filter, Hardware, Software};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult};
use quipu_stat::metrics::attach;
use quipu_stat::rows::Row;

use super::sample;

/// Returns the rows' metrics for events with values, in a second of wall time, each enabled half a
/// second.
fn metrics(counts: &[(Event, u128)]) -> Vec<Option<(f64, String)>> {
    let mut rows: Vec<Row> = counts
        .iter()
        .map(|(event, value)| sample::row(event.clone(), *value, 500_000_000))
        .collect();
    attach(&mut rows, 1.0);
    rows.into_iter()
        .map(|row| row.metric.map(|m| (m.value, m.unit.into_owned())))
        .collect()
}

fn some(value: f64, unit: &str) -> Option<(f64, String)> {
    Some((value, unit.to_owned()))
}

#[test]
fn hardware_events_are_put_in_relation() {
    let got = metrics(&[
        (Software::TaskClock.into(), 500_000_000),
        (Hardware::Cycles.into(), 1_000_000_000),
        (Hardware::Instructions.into(), 2_500_000_000),
        (Hardware::Branches.into(), 400_000_000),
        (Hardware::BranchMisses.into(), 1_000_000),
        (Hardware::StalledCyclesBackend.into(), 250_000_000),
    ]);
    assert_eq!(
        got,
        [
            some(0.5, "CPUs utilized"),
            some(2.0, "GHz"),
            some(2.5, "insn per cycle"),
            some(800.0, "M/sec"),
            some(0.25, "of all branches"),
            some(25.0, "backend cycles idle"),
        ]
    );
}

#[test]
fn cache_misses_are_a_share_of_accesses() {
    let event = |result| CacheEvent::new(Cache::Dtlb, CacheOp::Read, result).into();
    let got = metrics(&[
        (event(CacheResult::Access), 1000),
        (event(CacheResult::Miss), 10),
        (Hardware::CacheReferences.into(), 200),
        (Hardware::CacheMisses.into(), 50),
    ]);
    assert_eq!(got[1], some(1.0, "of all dTLB cache accesses"));
    assert_eq!(got[3], some(25.0, "of all cache refs"));
}

#[test]
fn without_the_whole_it_is_a_rate() {
    let got = metrics(&[
        (Hardware::BranchMisses.into(), 1_000_000),
        (Software::PageFaults.into(), 5),
    ]);
    assert_eq!(got, [some(2.0, "M/sec"), some(10.0, "/sec")]);
}

/// As on a system that samples CPU times, of a command that no sample fell into.
#[test]
fn there_is_no_rate_from_a_time_of_zero() {
    let mut rows = vec![
        sample::row(Software::TaskClock.into(), 0, 1),
        sample::row(Software::PageFaults.into(), 39, 1),
        sample::row(Hardware::Cycles.into(), 1_000, 500_000_000),
    ];
    attach(&mut rows, 1.0);
    assert_eq!(rows[1].metric, None);
    assert_eq!(rows[2].metric, None);
    let mut alone = [sample::row(Software::PageFaults.into(), 39, 1)];
    attach(&mut alone, 1.0);
    assert_eq!(alone[0].metric, None);
}

#[test]
fn modes_and_places_are_not_mixed() {
    let mut rows = vec![
        sample::row(Hardware::Cycles.into(), 100, 1_000_000_000),
        sample::row(Hardware::Instructions.into(), 100, 1_000_000_000),
    ];
    let spec = EventSpec::new(Hardware::Instructions).with_filter(Filter::USER_ONLY);
    rows[1].spec = spec.into();
    attach(&mut rows, 1.0);
    assert_eq!(rows[1].metric.as_ref().expect("a rate").unit, "/sec");
}

#[test]
fn an_uncertain_part_makes_the_metric_uncertain() {
    let mut rows = vec![
        sample::estimate(Hardware::Cycles.into(), 100),
        sample::row(Hardware::Instructions.into(), 100, 1_000_000_000),
    ];
    attach(&mut rows, 1.0);
    assert!(rows[1].metric.as_ref().expect("a ratio").uncertain);
}

#[test]
fn nothing_is_divided_by_zero() {
    let got = metrics(&[
        (Hardware::Cycles.into(), 0),
        (Hardware::Instructions.into(), 100),
    ]);
    assert_eq!(got[1], None);
    let mut never = vec![sample::row(Software::PageFaults.into(), 0, 0)];
    attach(&mut never, 0.0);
    assert_eq!(never[0].metric, None);
}

/// Over what a clock counted, whatever the kernel says of the time that the counter was enabled.
#[test]
fn rates_are_over_the_clock_that_was_counted() {
    for clock in [Software::TaskClock, Software::CpuClock] {
        let mut rows = vec![
            sample::row(Hardware::Cycles.into(), 1_200_000_000, 250_000_000),
            sample::row(Software::PageFaults.into(), 100, 250_000_000),
            sample::row(clock.into(), 500_000_000, 9_000_000_000),
        ];
        attach(&mut rows, 0.25);
        let values: Vec<_> = rows
            .iter()
            .map(|r| r.metric.as_ref().map(|m| m.value))
            .collect();
        assert_eq!(values, [Some(2.4), Some(200.0), Some(2.0)]);
        rows[2].count = Count::Estimated(500_000_000);
        attach(&mut rows, 0.25);
        assert!(rows[0].metric.as_ref().expect("a rate").uncertain);
        rows[2].cgroup = Some("other".into());
        attach(&mut rows, 0.25);
        assert_eq!(rows[0].metric.as_ref().expect("a rate").value, 4.8);
    }
}

#[test]
fn other_names_of_generalized_events_have_their_metrics() {
    for (cycles, instructions) in [
        ("cycles", "instructions"),
        ("PAPI_TOT_CYC", "PAPI_TOT_INS"),
        ("papi_tot_cyc", "instructions"),
        ("cpu/cycles/", "cpu/instructions/"),
        ("cpu/cpu-cycles/", "instructions"),
        ("cpu_core/cycles/", "cpu_core/instructions/"),
        ("armv8_pmuv3_0/cpu_cycles/", "armv8_pmuv3_0/inst_retired/"),
    ] {
        let event = |text: &str| quipu_text::parse_event(text).expect("an event");
        let got = metrics(&[(event(cycles), 100), (event(instructions), 250)]);
        assert_eq!(
            got[1],
            some(2.5, "insn per cycle"),
            "{cycles}, {instructions}"
        );
    }
    for (cycles, instructions) in [
        ("cpu_atom/cycles/", "cpu_core/instructions/"),
        ("cpu/cycles=2/", "cpu/instructions/"),
        ("PAPI_REF_CYC", "PAPI_TOT_INS"),
        ("uncore_imc_0/cycles/", "instructions"),
    ] {
        let event = |text: &str| quipu_text::parse_event(text).expect("an event");
        let got = metrics(&[(event(cycles), 100), (event(instructions), 250)]);
        assert_eq!(got[1], some(500.0, "/sec"), "{cycles}, {instructions}");
    }
}
