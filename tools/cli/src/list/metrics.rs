//! The metrics of CPUs, and their groups.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quipu_events::{CpuTable, MetricDetails};
use serde_json::{Value, json};

use quipu_shell::terminal::Layout;

use super::description::{Descriptions, named};
use super::selection::ListFilter;

/// The selected metrics of some CPUs.
pub(super) struct Metrics {
    cpus: Vec<(CpuTable, Vec<MetricDetails>)>,
}

impl Metrics {
    pub(super) fn new(tables: Vec<CpuTable>, selection: &ListFilter) -> Self {
        let of_cpu = |table: CpuTable| {
            let mut metrics = table.metrics();
            metrics.retain(|metric| {
                let groups = metric.groups.iter().map(String::as_str);
                let names = groups.chain([metric.name.as_str()]);
                selection.has_event(names, || Some(&metric.description))
            });
            (table, metrics)
        };
        let mut cpus: Vec<_> = tables.into_iter().map(of_cpu).collect();
        cpus.retain(|(_, metrics)| !metrics.is_empty());
        Self { cpus }
    }

    /// Returns true if no metric is selected.
    pub(super) fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Returns the metrics, CPU by CPU, each with its formula.
    pub(super) fn text(&self, descriptions: Descriptions, layout: Layout) -> String {
        let mut text = String::new();
        for (table, metrics) in &self.cpus {
            let separator = if text.is_empty() { "" } else { "\n" };
            let heading = format!("{} ({}), metrics", table.id(), table.name());
            let _ = writeln!(text, "{separator}{}", layout.bold(&heading));
            for metric in metrics {
                let mut facts = format!("in {}, {}", metric.unit, metric.groups.join(", "));
                if !metric.threshold.is_empty() {
                    let _ = write!(facts, "; threshold: {}", metric.threshold);
                }
                if !metric.revisions.is_empty() {
                    let _ = write!(facts, "; revisions {}", metric.revisions);
                }
                text += &named(&metric.name, "  ", &facts, layout);
                text += &descriptions.lines(Some(&metric.description), layout);
                if descriptions == Descriptions::Long {
                    let formula = format!("= {}", metric.formula);
                    text += &descriptions.lines(Some(&formula), layout);
                }
            }
        }
        text
    }

    /// Returns the metrics as JSON objects, with perf's keys.
    pub(super) fn objects(&self) -> Vec<Value> {
        let of_cpu = |(table, metrics): &(CpuTable, Vec<MetricDetails>)| -> Vec<Value> {
            let object = |metric: &MetricDetails| {
                json!({
                    "cpu": table.id(),
                    "MetricName": metric.name,
                    "MetricGroup": metric.groups.join(";"),
                    "MetricExpr": metric.formula,
                    "MetricThreshold": metric.threshold,
                    "ScaleUnit": format!("1{}", metric.unit),
                    "BriefDescription": metric.description,
                })
            };
            metrics.iter().map(object).collect()
        };
        self.cpus.iter().flat_map(of_cpu).collect()
    }

    /// Returns the names of the metrics of each group, by the group's name.
    pub(super) fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for metric in self.cpus.iter().flat_map(|(_, metrics)| metrics) {
            for group in &metric.groups {
                groups.entry(group).or_default().push(&metric.name);
            }
        }
        groups
    }

    /// Returns the groups, each with its metrics.
    pub(super) fn groups_text(&self, layout: Layout) -> String {
        let mut text = String::new();
        for (group, metrics) in self.groups() {
            let _ = writeln!(text, "{}", layout.bold(group));
            for line in layout.wrap(&metrics.join(", "), 2) {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}
