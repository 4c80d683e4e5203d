//! The metrics of a CPU: numbers that are made of several events, such as the levels of top-down analysis.

use quipu_events_format::Revisions;
use quipu_events_format::packed::Descriptions;
use quipu_hal::CpuIdentity;

use crate::cpu_table::CpuTable;

/// The metrics of `db/metrics/*.toml`, a line each, which `quipu-import pack` compresses.
pub(crate) static EMBEDDED: &[u8] = include_bytes!("../tables/metrics.bin");

static LINES: Descriptions = Descriptions::embedded(EMBEDDED);

/// A metric of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricDetails {
    /// The name, as perf has it: `tma_frontend_bound`.
    pub name: String,
    /// The groups it is of: `TopdownL1`.
    pub groups: Vec<String>,
    /// The unit of its values, such as `%`.
    pub unit: String,
    /// The condition under which a value deserves attention, over this and other metrics: see
    /// [`Threshold`](crate::Threshold). Empty where there is none.
    pub threshold: String,
    /// The formula over the CPU's events.
    pub formula: String,
    /// The formula while two threads share a core, where it is another one.
    pub smt_formula: Option<String>,
    /// The sentence that says what it means.
    pub description: String,
    /// The revisions of an Arm core that it is for: see [`Revisions`]. Empty where it is for all.
    pub revisions: String,
}

impl MetricDetails {
    /// Returns the metric of a line, if it is one of a CPU, and of its revision where that is known.
    fn of(cpu: &str, midr: Option<u64>, line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [
            cpus,
            revisions,
            name,
            groups,
            unit,
            threshold,
            formula,
            smt_formula,
            description,
        ] = fields[..]
        else {
            return None;
        };
        let excludes = |revisions: Revisions| midr.is_some_and(|midr| !revisions.include(midr));
        let is_of = cpus.split(',').any(|id| id == cpu);
        (is_of && !Revisions::parse(revisions).is_some_and(excludes)).then(|| Self {
            name: name.to_owned(),
            groups: groups.split(';').map(str::to_owned).collect(),
            unit: unit.to_owned(),
            threshold: threshold.to_owned(),
            formula: formula.to_owned(),
            smt_formula: Some(smt_formula.to_owned()).filter(|formula| !formula.is_empty()),
            description: description.to_owned(),
            revisions: revisions.to_owned(),
        })
    }

    /// Returns true if it is called so, or of a group that is, in any letter case.
    pub fn is_called(&self, name: &str) -> bool {
        let mut names = self.groups.iter().chain([&self.name]);
        names.any(|own| own.eq_ignore_ascii_case(name))
    }
}

impl CpuTable {
    /// Returns the metrics of the CPU, by level. For a table chosen by its id, the revision is not known, and all
    /// [`revisions`](MetricDetails::revisions) are there.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let metrics = Database::embedded().cpu("amd-zen4")?.metrics();
    /// let retiring = metrics.iter().find(|metric| metric.name == "retiring").expect("it has it");
    /// assert_eq!(retiring.formula, "100 * ex_ret_ops / (6 * ls_not_halted_cyc)");
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn metrics(&self) -> Vec<MetricDetails> {
        let midr = match self.model().identity {
            CpuIdentity::Arm { midr } if self.recognised_by().is_some() => Some(midr),
            _ => None,
        };
        let lines = (0..).map_while(|number| LINES.get(number));
        let mut metrics: Vec<_> = lines
            .filter_map(|line| MetricDetails::of(self.id(), midr, line))
            .collect();
        metrics.sort_by(|a, b| (&a.groups, &a.name).cmp(&(&b.groups, &b.name)));
        metrics
    }
}
