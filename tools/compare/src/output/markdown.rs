//! A table in Markdown, for a comment on a pull request.

use crate::gate::Answer;
use crate::report::Report;
use crate::stats::{Scale, Verdict};

use super::number::{self, Shown};

pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for command in &report.commands {
        out += &format!("- **{}**: {}\n", command.label, code(&command.name));
    }
    if !report.is_complete() {
        out += &format!("\n**Not complete:** {}\n", cell(&report.end));
    }
    for (other, command) in report.commands.iter().enumerate().skip(1) {
        let (base, label) = (&report.commands[0].label, &command.label);
        out += &format!(
            "\n| | {base} | {label} | change | {} % interval | verdict |\n",
            report.percent()
        );
        out += "| :-- | --: | --: | --: | --: | :-- |\n";
        for metric in &report.metrics {
            let change = &metric.changes[other - 1];
            let means = [metric.summaries[0].mean, metric.summaries[other].mean];
            let shown = Shown::of(means[0].max(means[1]), &metric.metric.unit);
            let [a, b] = means.map(|mean| shown.text(mean));
            let (relative, interval) = number::columns(change.change, change.scale, &shown);
            let verdict = match change.verdict {
                Verdict::Different => format!("**{}**", change.word()),
                Verdict::Inconclusive
                    if change.scale == Scale::Relative && change.detectable.is_finite() =>
                {
                    format!(
                        "inconclusive: would see {:.1} % or more",
                        change.detectable * 100.0
                    )
                }
                _ => change.word().to_owned(),
            };
            out += &format!(
                "| {} | {a} | {b} | {relative} | {interval} | {verdict} |\n",
                cell(&metric.metric.name)
            );
        }
    }
    out.push('\n');
    for gate in &report.gates {
        let word = match gate.answer {
            Answer::Passed => "passed",
            Answer::Failed => "**failed**",
            Answer::Inconclusive => "inconclusive",
        };
        out += &format!(
            "- {word} for {}: {}: {}\n",
            gate.command,
            code(&gate.condition),
            cell(&gate.why)
        );
    }
    for (why, names) in report.missing() {
        out += &format!(
            "- not counted: {}: {}\n",
            cell(&names.join(", ")),
            cell(why)
        );
    }
    for note in &report.notes {
        out += &format!("- {}\n", cell(note));
    }
    out += &format!(
        "\n{} pairs in random order (seed {}) on {}\n",
        report.pairs,
        report.seed,
        cell(&report.machine.cpu)
    );
    out
}

/// Returns text as code, in more back quotes than it has in a row.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let quotes = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{quotes}{space}{text}{space}{quotes}")
}

/// Returns text without what Markdown and HTML would read.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
