//! The layout of `hyperfine --export-json`, for scripts that read it.

use serde_json::{Map, Value, json};

use crate::report::{MetricReport, Report};

use super::pretty;

pub(super) fn text(report: &Report) -> String {
    let metric = |name: &str| {
        report
            .metrics
            .iter()
            .find(|metric| metric.metric.name == name)
    };
    let results: Vec<Value> = (0..report.commands.len())
        .filter_map(|at| result(report, at, metric))
        .collect();
    pretty(&json!({ "results": results }))
}

fn result<'r>(
    report: &Report,
    at: usize,
    metric: impl Fn(&str) -> Option<&'r MetricReport>,
) -> Option<Value> {
    let command = &report.commands[at];
    let times = metric("elapsed")?;
    let elapsed = times.summaries[at];
    let mean = |name: &str| metric(name).map(|metric| metric.summaries[at].mean);
    let mut result = json!({
        "command": command.name,
        "mean": elapsed.mean,
        "stddev": (elapsed.count > 1).then_some(elapsed.deviation),
        "median": elapsed.median,
        "user": mean("user-time"),
        "system": mean("system-time"),
        "min": elapsed.least,
        "max": elapsed.most,
        "times": times.values[at],
        "exit_codes": report.statuses[at].iter().map(|status| (*status >= 0).then_some(*status)).collect::<Vec<_>>(),
    });
    if let Some(memory) = metric("peak-memory") {
        result["memory_usage_byte"] = json!(
            memory.values[at]
                .iter()
                .map(|bytes| *bytes as u64)
                .collect::<Vec<_>>()
        );
    }
    if !command.parameters.is_empty() {
        let parameters = command
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)));
        result["parameters"] = Value::Object(parameters.collect::<Map<_, _>>());
    }
    Some(result)
}
