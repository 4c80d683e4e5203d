//! A line of comma-separated values (RFC 4180) for each value.

use crate::report::Report;

pub(super) fn text(report: &Report) -> String {
    let mut out = "metric,unit,command,pair,value\n".to_owned();
    for metric in &report.metrics {
        for (command, values) in report.commands.iter().zip(&metric.values) {
            for (pair, value) in values.iter().enumerate() {
                let cells = [&metric.metric.name, &metric.metric.unit, &command.name]
                    .map(|text| cell(text));
                out += &format!("{},{},{value}\n", cells.join(","), pair + 1);
            }
        }
    }
    out
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
