//! Metrics: what a count means beside the others.

use quipu::{Event, Hardware, Software};
use quipu_hal::{CacheEvent, CacheResult};

use super::rows::Row;

/// A number made of counts, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub value: f64,
    pub unit: String,
    /// True if the value is in percent.
    pub percent: bool,
    /// Decimals worth printing.
    pub decimals: usize,
    /// True if a count it was made of is an estimate or incomplete.
    pub uncertain: bool,
}

/// Gives every row its metric. `elapsed` is in seconds.
pub fn attach(rows: &mut [Row], elapsed: f64) {
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
