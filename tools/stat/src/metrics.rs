//! Metrics: what a count means beside the others.

use std::borrow::Cow;
use std::thread;

use quipu::{Event, Hardware, Software};
use quipu_hal::{Cache, CacheEvent, CacheResult};

use super::derived::Derived;
use super::implausible;
use super::rows::{Metric, Row};

impl Metric {
    /// Marks it as uncertain if another number that it was made of is.
    fn with_uncertainty(mut self, is_uncertain: bool) -> Self {
        self.uncertain |= is_uncertain;
        self
    }
}

/// Gives every row its metric, after a 0 that cannot be has been found to be no count. `elapsed` is in seconds, 0 if nothing
/// is to be divided by it.
pub fn attach(rows: &mut [Row], elapsed: f64) {
    implausible::mark(rows);
    for at in 0..rows.len() {
        rows[at].metric = metric(&rows[at], rows, elapsed);
    }
}

fn metric(row: &Row, rows: &[Row], elapsed: f64) -> Option<Metric> {
    let amount = row.amount()?;
    if let Some(derived) = &row.derived {
        return Some(of_cpu(row, derived, rows, amount));
    }
    let (pmu, event) = generalized(row.event());
    let beside = |whole: &Event| {
        counted_beside(row, rows, |other| {
            let (other_pmu, event) = generalized(other.event());
            (other_pmu, &*event) == (pmu, whole) && other.spec.filter == row.spec.filter
        })
    };
    let rate = || rate(row, amount, &time_of(row, rows));
    let percent = |whole: Event, unit: Cow<'static, str>| match beside(&whole) {
        Some(whole) => against(row, whole, unit, true),
        None => rate(),
    };
    match &*event {
        Event::Software(Software::TaskClock | Software::CpuClock) => {
            // The clock's amount is in milliseconds.
            let busy = utilized(amount / 1e3, elapsed, sampling_interval(row))?;
            Some(plain(row, busy, "CPUs utilized"))
        }
        Event::Hardware(Hardware::Cycles) => {
            let time = time_of(row, rows);
            let gigahertz = plain(row, in_a_nanosecond(amount, &time)?, "GHz");
            Some(gigahertz.with_uncertainty(time.is_uncertain))
        }
        Event::Hardware(Hardware::Instructions) => match beside(&Hardware::Cycles.into()) {
            Some(cycles) => against(row, cycles, "insn per cycle", false),
            None => rate(),
        },
        Event::Hardware(event) => {
            let (whole, unit) = match event {
                Hardware::BranchMisses => (Hardware::Branches, "of all branches"),
                Hardware::CacheMisses => (Hardware::CacheReferences, "of all cache refs"),
                Hardware::StalledCyclesFrontend => (Hardware::Cycles, "frontend cycles idle"),
                Hardware::StalledCyclesBackend => (Hardware::Cycles, "backend cycles idle"),
                _ => return rate(),
            };
            percent(whole.into(), unit.into())
        }
        Event::Cache(event) if event.result == CacheResult::Miss => {
            let whole = Event::from(CacheEvent::new(event.cache, event.op, CacheResult::Access));
            let unit = match accesses(event.cache) {
                Some(accesses) => format!("of all {accesses}"),
                None => format!("of all {whole}"),
            };
            percent(whole, unit.into())
        }
        _ => rate(),
    }
}

/// Returns the metric that a row is, and whether its value deserves attention beside the others of its place.
fn of_cpu(row: &Row, derived: &Derived, rows: &[Row], amount: f64) -> Metric {
    let value = |name: &str| {
        let is_it = |other: &Row| {
            other
                .derived
                .as_ref()
                .is_some_and(|other| other.name == name && other.pmu == derived.pmu)
        };
        counted_beside(row, rows, is_it)?.amount()
    };
    Metric {
        decimals: 1,
        attention: derived
            .threshold
            .as_ref()
            .and_then(|threshold| threshold.holds(value)),
        ..plain(row, amount, format!("{}  {}", derived.unit, derived.name))
    }
}

/// Returns perf's name of all accesses of a cache, where it has one (`tools/perf/util/stat-shadow.c` of the
/// kernel).
fn accesses(cache: Cache) -> Option<&'static str> {
    match cache {
        Cache::L1d => Some("L1-dcache accesses"),
        Cache::L1i => Some("L1-icache accesses"),
        Cache::Ll => Some("LL-cache accesses"),
        Cache::Dtlb => Some("dTLB cache accesses"),
        Cache::Itlb => Some("iTLB cache accesses"),
        _ => None,
    }
}

/// Returns the generalized event that an event is another name of, if it is, and the core PMU that it
/// names, where there are several.
fn generalized(event: &Event) -> (Option<&str>, Cow<'_, Event>) {
    let known = match event {
        Event::Named(name) => synonym(name).map(|event| (None, event.into())),
        Event::Pmu(of_pmu) => match of_pmu.terms.as_slice() {
            [term] if term.value.is_none() && is_core(&of_pmu.pmu) => {
                let pmu = Some(of_pmu.pmu.as_str()).filter(|pmu| *pmu != "cpu");
                match (synonym(&term.name), quipu_text::parse_event(&term.name)) {
                    (Some(event), _) => Some((pmu, event.into())),
                    (None, Ok(event @ Event::Hardware(_))) => Some((pmu, event)),
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    };
    match known {
        Some((pmu, event)) => (pmu, Cow::Owned(event)),
        None => (None, Cow::Borrowed(event)),
    }
}

/// Returns the generalized event that a preset of PAPI or an event of ARM stands for.
fn synonym(name: &str) -> Option<Hardware> {
    match name.to_ascii_uppercase().as_str() {
        "PAPI_TOT_CYC" | "CPU_CYCLES" => Some(Hardware::Cycles),
        "PAPI_TOT_INS" | "INST_RETIRED" => Some(Hardware::Instructions),
        "PAPI_BR_INS" => Some(Hardware::Branches),
        "PAPI_BR_MSP" => Some(Hardware::BranchMisses),
        _ => None,
    }
}

/// Returns true for the names that Linux gives to the PMUs of cores.
fn is_core(pmu: &str) -> bool {
    pmu == "cpu" || pmu.starts_with("cpu_") || pmu.starts_with("armv8")
}

/// Returns the first counted row, of the same place and backend, that fits.
fn counted_beside<'a>(row: &Row, rows: &'a [Row], fits: impl Fn(&Row) -> bool) -> Option<&'a Row> {
    rows.iter().find(|other| {
        fits(other)
            && other.count.value().is_some()
            && other.backend == row.backend
            && other.place == row.place
            && other.cgroup == row.cgroup
    })
}

/// The time that the target had, for rates.
struct TargetTime {
    nanoseconds: f64,
    is_uncertain: bool,
}

/// Returns the time that a clock counted on the same target, as perf does; without a clock, the time for
/// which the row's event was enabled.
fn time_of(row: &Row, rows: &[Row]) -> TargetTime {
    let is_clock = |other: &Row| {
        matches!(
            other.event(),
            Event::Software(Software::TaskClock | Software::CpuClock)
        )
    };
    let clock = counted_beside(row, rows, is_clock);
    match clock.and_then(|clock| Some((clock, clock.amount()?))) {
        Some((clock, milliseconds)) => TargetTime {
            nanoseconds: milliseconds * 1e6,
            is_uncertain: clock.is_uncertain(),
        },
        _ => TargetTime {
            nanoseconds: row.time as f64,
            is_uncertain: false,
        },
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Returns the seconds between two samples of a clock, where the system samples CPU times of commands: in each of
/// them a command may seem to have run for all of it.
fn sampling_interval(row: &Row) -> Option<f64> {
    (cfg!(target_os = "openbsd") && row.backend == Some("posix")).then_some(0.01)
}

/// Returns the number of CPUs that a target had in `elapsed` seconds: none of too few samples, and no more than there are,
/// which only a sample too many makes of it.
fn utilized(seconds: f64, elapsed: f64, sampling_interval: Option<f64>) -> Option<f64> {
    const FEWEST: f64 = 20.0;
    let busy = ratio(seconds, elapsed)?;
    let Some(interval) = sampling_interval else {
        return Some(busy);
    };
    let cpus = thread::available_parallelism().map_or(f64::INFINITY, |n| n.get() as f64);
    (elapsed >= FEWEST * interval).then(|| busy.min(cpus))
}

/// Returns what of `amount` there is in a nanosecond, unless the time is less than a command takes: where
/// CPU times are sampled, one that no sample fell into.
fn in_a_nanosecond(amount: f64, time: &TargetTime) -> Option<f64> {
    const SHORTEST: f64 = 1e3;
    ratio(amount, time.nanoseconds).filter(|_| time.nanoseconds >= SHORTEST)
}

fn plain(row: &Row, value: f64, unit: impl Into<Cow<'static, str>>) -> Metric {
    Metric {
        value,
        unit: unit.into(),
        percent: false,
        decimals: 3,
        uncertain: row.is_uncertain(),
        attention: None,
    }
}

fn against(
    row: &Row,
    whole: &Row,
    unit: impl Into<Cow<'static, str>>,
    percent: bool,
) -> Option<Metric> {
    let factor = if percent { 100.0 } else { 1.0 };
    Some(Metric {
        value: ratio(row.amount()?, whole.amount()?)? * factor,
        unit: unit.into(),
        percent,
        decimals: 2,
        uncertain: row.is_uncertain() || whole.is_uncertain(),
        attention: None,
    })
}

/// Returns the rate of the event in a second of the target's own time.
fn rate(row: &Row, amount: f64, time: &TargetTime) -> Option<Metric> {
    if !row.unit.is_plain() || !row.unit.name.is_empty() {
        return None;
    }
    let per_second = in_a_nanosecond(amount, time)? * 1e9;
    let (factor, unit) = match per_second {
        v if v >= 1e9 => (1e-9, "G/sec"),
        v if v >= 1e6 => (1e-6, "M/sec"),
        v if v >= 1e3 => (1e-3, "K/sec"),
        _ => (1.0, "/sec"),
    };
    Some(plain(row, per_second * factor, unit).with_uncertainty(time.is_uncertain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_of_a_clock_are_no_utilization() {
        // 20 ms of a command that ended after 10.
        assert_eq!(utilized(0.02, 0.0104, Some(0.01)), None);
        assert_eq!(utilized(0.02, 0.0104, None), Some(0.02 / 0.0104));
        assert_eq!(utilized(0.5, 1.0, Some(0.01)), Some(0.5));
        let cpus = thread::available_parallelism().unwrap().get() as f64;
        assert_eq!(utilized(cpus + 0.01, 1.0, Some(0.01)), Some(cpus));
    }
}
