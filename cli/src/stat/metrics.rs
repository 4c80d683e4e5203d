//! Metrics: what a count means beside the others.

use quipu::{Event, Hardware, Software};
use quipu_hal::{CacheEvent, CacheResult};

use super::rows::Row;

/// A number made of counts, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metric {
    pub(super) value: f64,
    pub(super) unit: String,
    /// True if the value is in percent.
    pub(super) percent: bool,
    /// Decimals worth printing.
    pub(super) decimals: usize,
    /// True if a count it was made of is an estimate or incomplete.
    pub(super) uncertain: bool,
}

/// Gives every row its metric. `elapsed` is in seconds.
pub(super) fn attach(rows: &mut [Row], elapsed: f64) {
    let metrics: Vec<_> = rows.iter().map(|row| metric(row, rows, elapsed)).collect();
    for (row, metric) in rows.iter_mut().zip(metrics) {
        row.metric = metric;
    }
}

fn metric(row: &Row, rows: &[Row], elapsed: f64) -> Option<Metric> {
    let amount = row.amount()?;
    let beside = |event: Event| counted_beside(row, rows, &event);
    match row.event() {
        Event::Software(Software::TaskClock | Software::CpuClock) => {
            // The clock's amount is in milliseconds.
            let busy = ratio(amount / 1e3, elapsed)?;
            Some(plain(row, busy, "CPUs utilized"))
        }
        Event::Hardware(Hardware::Cycles) => {
            let gigahertz = ratio(amount, row.time as f64)?;
            Some(plain(row, gigahertz, "GHz"))
        }
        Event::Hardware(Hardware::Instructions) => match beside(Hardware::Cycles.into()) {
            Some(cycles) => against(row, cycles, "insn per cycle", false),
            None => rate(row),
        },
        Event::Hardware(event) => {
            let (whole, unit) = match event {
                Hardware::BranchMisses => (Hardware::Branches, "of all branches"),
                Hardware::CacheMisses => (Hardware::CacheReferences, "of all cache references"),
                Hardware::StalledCyclesFrontend => (Hardware::Cycles, "front-end cycles idle"),
                Hardware::StalledCyclesBackend => (Hardware::Cycles, "back-end cycles idle"),
                _ => return rate(row),
            };
            percent(row, beside(whole.into()), unit)
        }
        Event::Cache(event) if event.result == CacheResult::Miss => {
            let whole = Event::from(CacheEvent::new(event.cache, event.op, CacheResult::Access));
            let unit = format!("of all {whole}");
            percent(row, beside(whole), &unit)
        }
        _ => rate(row),
    }
}

/// Returns the row of another event in the same place, counted in the same modes.
fn counted_beside<'a>(row: &Row, rows: &'a [Row], event: &Event) -> Option<&'a Row> {
    rows.iter().find(|other| {
        other.event() == event
            && other.spec.filter == row.spec.filter
            && other.place == row.place
            && other.cgroup == row.cgroup
            && other.backend == row.backend
            && other.count.value().is_some()
    })
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn plain(row: &Row, value: f64, unit: &str) -> Metric {
    Metric {
        value,
        unit: unit.to_owned(),
        percent: false,
        decimals: 3,
        uncertain: row.is_uncertain(),
    }
}

fn against(row: &Row, whole: &Row, unit: &str, percent: bool) -> Option<Metric> {
    let factor = if percent { 100.0 } else { 1.0 };
    Some(Metric {
        value: ratio(row.amount()?, whole.amount()?)? * factor,
        unit: unit.to_owned(),
        percent,
        decimals: 2,
        uncertain: row.is_uncertain() || whole.is_uncertain(),
    })
}

/// Returns the share of another count, in percent; a rate where that was not counted.
fn percent(row: &Row, whole: Option<&Row>, unit: &str) -> Option<Metric> {
    match whole {
        Some(whole) => against(row, whole, unit, true),
        None => rate(row),
    }
}

/// Returns the rate of the event in a second of the target's own time.
fn rate(row: &Row) -> Option<Metric> {
    if !row.unit.is_plain() || !row.unit.name.is_empty() {
        return None;
    }
    let per_second = ratio(row.amount()?, row.time as f64 / 1e9)?;
    let (factor, unit) = match per_second {
        v if v >= 1e9 => (1e-9, "G/sec"),
        v if v >= 1e6 => (1e-6, "M/sec"),
        v if v >= 1e3 => (1e-3, "K/sec"),
        _ => (1.0, "/sec"),
    };
    Some(plain(row, per_second * factor, unit))
}

#[cfg(test)]
mod tests {
    use super::super::report::sample;
    use super::*;
    use quipu::Filter;
    use quipu_hal::{Cache, CacheOp};

    /// Returns the rows' metrics for events with values, in a second of wall time, each enabled half a
    /// second.
    fn metrics(counts: &[(Event, u128)]) -> Vec<Option<(f64, String)>> {
        let mut rows: Vec<Row> = counts
            .iter()
            .map(|(event, value)| sample::row(event.clone(), *value, 500_000_000))
            .collect();
        attach(&mut rows, 1.0);
        rows.into_iter()
            .map(|row| row.metric.map(|m| (m.value, m.unit)))
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
                some(25.0, "back-end cycles idle"),
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
        assert_eq!(got[1], some(1.0, "of all dTLB-loads"));
        assert_eq!(got[3], some(25.0, "of all cache references"));
    }

    #[test]
    fn without_the_whole_it_is_a_rate() {
        let got = metrics(&[
            (Hardware::BranchMisses.into(), 1_000_000),
            (Software::PageFaults.into(), 5),
        ]);
        assert_eq!(got, [some(2.0, "M/sec"), some(10.0, "/sec")]);
    }

    #[test]
    fn modes_and_places_are_not_mixed() {
        let mut rows = vec![
            sample::row(Hardware::Cycles.into(), 100, 1_000_000_000),
            sample::row(Hardware::Instructions.into(), 100, 1_000_000_000),
        ];
        rows[1].spec.filter = Filter::USER_ONLY;
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
}
