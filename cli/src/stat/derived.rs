//! The metrics that `-M` and `--topdown` ask for: formulas over this CPU's events, each counted like a preset.

use quipu::{Event, EventSpec, GroupSpec};
use quipu_events::{CpuTable, MetricDetails, Threshold};

use crate::failure::Failure;
use crate::names::Names;

use super::events::Request;
use super::options::Options;

/// A metric to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    pub name: String,
    pub formula: String,
    pub unit: String,
    pub groups: Vec<String>,
    /// The condition under which its value deserves attention.
    pub threshold: Option<Threshold>,
}

impl Derived {
    fn new(metric: MetricDetails, threads_share_cores: bool) -> Self {
        let with_smt = metric.smt_formula.filter(|_| threads_share_cores);
        Self {
            formula: with_smt.unwrap_or(metric.formula),
            threshold: Threshold::parse(&metric.threshold),
            name: metric.name,
            unit: metric.unit,
            groups: metric.groups,
        }
    }

    /// Returns the event that stands for it in an event set.
    pub fn event(&self) -> Event {
        Event::Named(self.name.clone())
    }

    /// Returns the request for its events.
    pub fn request(&self) -> Request {
        Request {
            group: GroupSpec::single(EventSpec::new(self.event())),
            labels: vec![self.name.clone()],
            optional: false,
        }
    }
}

/// Returns the metrics that the options ask for, each once, in the order of the database.
///
/// # Errors
/// When the CPU is not known, or it has no metric or group of a name.
pub fn chosen(options: &Options, names: Option<&Names>) -> Result<Vec<Derived>, Failure> {
    let mut wanted = options.metrics.clone();
    if options.topdown {
        // The condition of a metric of level 2 is over its parent too.
        let levels = 1..=options.td_level.unwrap_or(1);
        wanted.extend(levels.map(|level| format!("TopdownL{level}")));
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let tables = Names::native(names).tables().map_err(Failure::new)?;
    of_cpus(&wanted, tables, threads_share_cores())
}

/// Returns the metrics of these CPUs that have one of the names, or are of a group that has.
///
/// # Errors
/// When there is none of a name.
pub fn of_cpus(
    wanted: &[String],
    tables: &[CpuTable],
    threads_share_cores: bool,
) -> Result<Vec<Derived>, Failure> {
    let of_cpus: Vec<MetricDetails> = tables.iter().flat_map(CpuTable::metrics).collect();
    for name in wanted {
        if !of_cpus.iter().any(|metric| metric.is_called(name)) {
            let cpus: Vec<&str> = tables.iter().map(CpuTable::id).collect();
            return Err(Failure::usage(format_args!(
                "{} has no metric or group of metrics called {name}; `quipu list metrics` lists those of this CPU",
                cpus.join(", ")
            )));
        }
    }
    let mut chosen: Vec<Derived> = Vec::new();
    for metric in of_cpus {
        let is_wanted = wanted.iter().any(|name| metric.is_called(name));
        if is_wanted && !chosen.iter().any(|known| known.name == metric.name) {
            chosen.push(Derived::new(metric, threads_share_cores));
        }
    }
    Ok(chosen)
}

/// Returns true if two threads of a core are online, which the formulas of some CPUs depend on.
fn threads_share_cores() -> bool {
    let active = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
    active.is_ok_and(|active| active.trim() == "1")
}
