//! The metrics that `-M` and `--topdown` ask for: formulas over this CPU's events, each counted like a preset.

use quipu::{Event, EventSpec, GroupSpec};
use quipu_events::{CpuTable, Formula, MetricDetails, Threshold};
use quipu_hal::PmuEvent;

use crate::names::Names;
use quipu_shell::Failure;
use quipu_shell::target::threads_share_cores;

use super::events::Request;
use super::options::Options;

/// A metric to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    pub name: String,
    /// The core PMU whose events it is made of, where there are several: `cpu_atom`.
    pub pmu: Option<String>,
    pub formula: String,
    pub unit: String,
    pub groups: Vec<String>,
    /// The condition under which its value deserves attention.
    pub threshold: Option<Threshold>,
}

impl Derived {
    fn new(metric: MetricDetails, pmu: Option<String>, threads_share_cores: bool) -> Self {
        let with_smt = metric.smt_formula.filter(|_| threads_share_cores);
        let formula = with_smt.unwrap_or(metric.formula);
        let on_core = pmu.as_deref().and_then(|pmu| {
            let formula = Formula::parse(&formula).ok()?;
            Some(formula.on_core(pmu))
        });
        Self {
            formula: on_core.unwrap_or(formula),
            pmu,
            threshold: Threshold::parse(&metric.threshold),
            name: metric.name,
            unit: metric.unit,
            groups: metric.groups,
        }
    }

    /// Returns its name as an event: `retiring`, `cpu_atom/tma_retiring/`.
    pub fn event_name(&self) -> String {
        match &self.pmu {
            Some(pmu) => PmuEvent::new(pmu).with(&self.name).to_string(),
            None => self.name.clone(),
        }
    }

    /// Returns the event that stands for it in an event set.
    pub fn event(&self) -> Event {
        Event::Named(self.event_name())
    }

    /// Returns the request for its events.
    pub fn request(&self) -> Request {
        Request {
            group: GroupSpec::single(EventSpec::new(self.event())),
            labels: vec![self.event_name().into()],
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
    if options.topdown {
        check_topdown(tables, options.td_level.unwrap_or(1))?;
    }
    of_cpus(&wanted, tables, threads_share_cores())
}

/// Fails if there is no top-down analysis of these kinds of core, or none of a level.
fn check_topdown(tables: &[CpuTable], level: u8) -> Result<(), Failure> {
    let has_level = |level: u8| {
        let name = format!("TopdownL{level}");
        let mut metrics = tables.iter().flat_map(CpuTable::metrics);
        metrics.any(|metric| metric.is_called(&name))
    };
    let Some(missing) = (1..=level).find(|level| !has_level(*level)) else {
        return Ok(());
    };
    let cpus: Vec<&str> = tables.iter().map(CpuTable::id).collect();
    let of_level = match missing {
        1 => String::new(),
        level => format!(" of level {level}"),
    };
    Err(Failure::usage(format_args!(
        "--topdown: there is no top-down analysis{of_level} for {}; `quipu list metrics` lists the metrics of this CPU",
        cpus.join(", ")
    )))
}

/// Returns the metrics of these kinds of core that have one of the names, or are of a group that has; each is made of the
/// events of its own core PMU.
///
/// # Errors
/// When there is none of a name, or it depends on a revision that is not known.
pub fn of_cpus(
    wanted: &[String],
    tables: &[CpuTable],
    threads_share_cores: bool,
) -> Result<Vec<Derived>, Failure> {
    let is_hybrid = tables.len() > 1;
    let of_cpu = |table: &CpuTable| {
        let core_type = table.model().core_type.as_deref().filter(|_| is_hybrid);
        let pmu = core_type.map(|core_type| format!("cpu_{core_type}"));
        let metrics = table.metrics().into_iter();
        metrics.map(move |metric| (metric, pmu.clone()))
    };
    let of_cpus: Vec<(MetricDetails, Option<String>)> = tables.iter().flat_map(of_cpu).collect();
    for name in wanted {
        if !of_cpus.iter().any(|(metric, _)| metric.is_called(name)) {
            let cpus: Vec<&str> = tables.iter().map(CpuTable::id).collect();
            let metrics = of_cpus.iter().map(|(metric, _)| metric);
            let names = metrics.flat_map(|metric| metric.groups.iter().chain([&metric.name]));
            let way_out = match quipu_text::nearest_of(name, names.map(String::as_str)) {
                near if near.is_empty() => {
                    "`quipu list metrics` lists those of this CPU".to_owned()
                }
                near => format!("did you mean {}?", near.join(", ")),
            };
            return Err(Failure::usage(format_args!(
                "{} has no metric or group of metrics called {name}; {way_out}",
                cpus.join(", ")
            )));
        }
    }
    let mut chosen: Vec<Derived> = Vec::new();
    for (metric, pmu) in of_cpus {
        if !wanted.iter().any(|name| metric.is_called(name)) {
            continue;
        }
        let revisions = metric.revisions.clone();
        let metric = Derived::new(metric, pmu, threads_share_cores);
        match chosen.iter().find(|known| known.event() == metric.event()) {
            None => chosen.push(metric),
            Some(known) if known.formula != metric.formula && !revisions.is_empty() => {
                return Err(Failure::new(format_args!(
                    "{} has another formula on revisions {revisions} of the core, and which one this is is not known; leave --cpu out, \
                     or count the events of one of them (quipu list -v metrics)",
                    metric.name
                )));
            }
            Some(_) => {}
        }
    }
    Ok(chosen)
}
