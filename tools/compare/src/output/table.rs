//! The table for a person, in 80 columns.

use quipu_shell::terminal::{Layout, escaped};

use crate::gate::Answer;
use crate::report::{Change, MetricReport, Report};
use crate::stats::{Method, Scale, Verdict};

use super::histogram;
use super::number::{self, Shown};

/// The columns of a histogram.
const BARS: usize = 30;

/// Returns the report as text.
pub(super) fn text(report: &Report, layout: Layout) -> String {
    let mut out = String::new();
    for command in &report.commands {
        let of_baseline = if report.has_baseline && command.label == "A" {
            " (baseline)"
        } else {
            ""
        };
        out += &format!(
            "{}  {}{of_baseline}\n",
            layout.bold(&command.label),
            escaped(&command.name)
        );
    }
    let pairs = match report.has_baseline {
        true => format!(
            "{} runs, paired in their order with the baseline's",
            report.pairs
        ),
        false => format!("{} pairs in random order", report.pairs),
    };
    let passes = match report.passes {
        1 => "one pass".to_owned(),
        passes => format!("{passes} passes, so that no event shares its counter"),
    };
    out += &format!(
        "{pairs} (--seed {}), {passes}, {:.1} s\n",
        report.seed, report.seconds
    );
    if !report.is_complete() {
        let text = format!("NOT COMPLETE: {}", report.end);
        for line in of_a_page(layout).wrap(&text, 0) {
            out += &format!("{}\n", layout.yellow(&line));
        }
    }
    match report.commands.len() {
        // It ended before the first pair.
        _ if report.metrics.is_empty() => {}
        1 => alone(report, &mut out),
        _ => {
            for other in 1..report.commands.len() {
                compared(report, other, layout, &mut out);
            }
        }
    }
    spreads(report, layout, &mut out);
    notes(report, layout, &mut out);
    out
}

/// Adds the table of the first command alone.
fn alone(report: &Report, out: &mut String) {
    out.push('\n');
    for metric in &report.metrics {
        let of = &metric.summaries[0];
        let shown = Shown::of(of.mean, &metric.metric.unit);
        let interval = of.interval(report.confidence);
        let ends = format!(
            "[{}, {}]",
            shown.number(interval.low),
            shown.number(interval.high)
        );
        *out += &format!(
            "{:<17}{:>11}  {ends}\n",
            metric.metric.name,
            shown.text(of.mean)
        );
    }
}

/// Adds the table of the first command and another.
fn compared(report: &Report, other: usize, layout: Layout, out: &mut String) {
    let base = &report.commands[0].label;
    let label = &report.commands[other].label;
    let interval = format!("{} % interval", report.percent());
    let change = format!("{base} to {label}");
    let heading = format!(
        "{:<16} {base:>10} {label:>10} {change:>8} {interval:>16}  verdict",
        ""
    );
    *out += &format!("\n{}\n", layout.bold(heading.trim_end()));
    for metric in &report.metrics {
        let change = &metric.changes[other - 1];
        *out += &row(metric, other, change, layout);
    }
}

fn row(metric: &MetricReport, other: usize, change: &Change, layout: Layout) -> String {
    let means = [metric.summaries[0].mean, metric.summaries[other].mean];
    let shown = Shown::of(means[0].max(means[1]), &metric.metric.unit);
    let (relative, interval) = number::columns(change.change, change.scale, &shown);
    let [a, b] = means.map(|mean| shown.text(mean));
    let word = match change.word() {
        // The column ends at 80.
        "no difference found" => "no difference",
        word => word,
    };
    let word = match change.verdict {
        Verdict::Different => layout.bold(word),
        Verdict::Inconclusive => layout.yellow(word),
        Verdict::NoDifferenceFound => word.into(),
    };
    format!(
        "{:<16} {a:>10} {b:>10} {relative:>8} {interval:>16}  {word}\n",
        metric.metric.name
    )
}

/// Adds the range and the histogram of the first metric, and of those that differ.
fn spreads(report: &Report, layout: Layout, out: &mut String) {
    let is_shown = |(at, metric): &(usize, &MetricReport)| {
        *at == 0
            || metric
                .changes
                .iter()
                .any(|change| change.verdict == Verdict::Different)
    };
    out.push('\n');
    for (_, metric) in report.metrics.iter().enumerate().filter(is_shown) {
        let most = metric
            .summaries
            .iter()
            .map(|summary| summary.mean)
            .fold(0.0, f64::max);
        let shown = Shown::of(most, &metric.metric.unit);
        let drawn = histogram::lines(&metric.values, BARS);
        let each = report.commands.iter().zip(&metric.summaries).zip(drawn);
        for (at, ((command, summary), bars)) in each.enumerate() {
            let name = if at == 0 {
                metric.metric.name.as_str()
            } else {
                ""
            };
            let range = format!(
                "{} .. {} {}",
                shown.number(summary.least),
                shown.number(summary.most),
                shown.unit()
            );
            let line = format!(
                "{name:<16} {} {range:>22}  {}",
                command.label,
                layout.dim(&bars)
            );
            *out += &format!("{}\n", line.trim_end());
        }
    }
}

fn notes(report: &Report, layout: Layout, out: &mut String) {
    let mut notes = Vec::new();
    let open = report.metrics.iter().flat_map(|metric| {
        let open = metric
            .changes
            .iter()
            .filter(|change| change.verdict == Verdict::Inconclusive);
        open.map(|change| detectable(report, metric, change))
    });
    let open: Vec<String> = open.collect();
    if !open.is_empty() && report.pairs > 0 {
        notes.push(format!(
            "inconclusive: these pairs would see a difference in {}",
            open.join(", ")
        ));
    }
    let unlikely: Vec<String> = report.metrics.iter().flat_map(disagreements).collect();
    notes.extend(unlikely);
    notes.extend(far_out(report));
    let missing = report.missing().into_iter();
    notes.extend(missing.map(|(why, names)| format!("not counted: {}: {why}", names.join(", "))));
    notes.extend(report.notes.iter().cloned());
    for gate in report
        .gates
        .iter()
        .filter(|gate| gate.answer == Answer::Passed)
    {
        notes.push(format!(
            "passed for {}: {}: {}",
            gate.command, gate.condition, gate.why
        ));
    }
    for note in notes {
        let note = escaped(&note).into_owned();
        let lines = of_a_page(layout).wrap(&note, 4).join("\n    ");
        *out += &format!("  {lines}\n");
    }
}

/// Returns a layout of 80 columns where no terminal has others.
fn of_a_page(layout: Layout) -> Layout {
    Layout {
        width: Some(layout.width.unwrap_or(80)),
        ..layout
    }
}

/// Returns the least difference that would have been seen: `elapsed of 3.1 % or more`.
fn detectable(report: &Report, metric: &MetricReport, change: &Change) -> String {
    let name = &metric.metric.name;
    let of = if report.commands.len() > 2 {
        format!(" ({})", change.command)
    } else {
        String::new()
    };
    match change.scale {
        _ if !change.detectable.is_finite() => {
            format!("{name}{of} only if there were more of them")
        }
        Scale::Relative => format!(
            "{name}{of} of {} % or more",
            short(change.detectable * 100.0)
        ),
        Scale::Difference => {
            let shown = Shown::of(change.detectable, &metric.metric.unit);
            format!("{name}{of} of {} or more", shown.text(change.detectable))
        }
    }
}

/// Returns a positive number with two digits.
fn short(number: f64) -> String {
    let decimals = if number >= 10.0 {
        0
    } else if number >= 1.0 {
        1
    } else {
        2
    };
    format!("{number:.decimals$}")
}

/// Returns the intervals by the other method where that says otherwise.
fn disagreements(metric: &MetricReport) -> Vec<String> {
    let differing = metric.changes.iter().filter_map(|change| {
        let method = change.disagreement?;
        let (by, tested) = match method {
            Method::Student => ("Student's t", change.student.as_ref()?),
            Method::SignedRank => (
                "signed ranks, which assume no distribution,",
                change.signed_rank.as_ref()?,
            ),
        };
        let most = metric
            .summaries
            .iter()
            .map(|summary| summary.mean)
            .fold(0.0, f64::max);
        let shown = Shown::of(most, &metric.metric.unit);
        let (value, ends) = number::columns(Some(tested.change?), change.scale, &shown);
        let word = if change.verdict == Verdict::Different {
            "not different"
        } else {
            "different"
        };
        Some(format!(
            "{} of {}: by {by} it is {value} {ends}, {word}",
            metric.metric.name, change.command,
        ))
    });
    differing.collect()
}

/// Returns a note on values that are far from the others of the same command.
fn far_out(report: &Report) -> Option<String> {
    let metrics = report.metrics.iter().filter_map(|metric| {
        let of_each = report.commands.iter().zip(&metric.summaries);
        let counts: Vec<String> = of_each
            .filter(|(_, summary)| summary.far_out > 0)
            .map(|(command, summary)| format!("{} of {}", summary.far_out, command.label))
            .collect();
        (!counts.is_empty()).then(|| format!("{} ({})", metric.metric.name, counts.join(", ")))
    });
    let metrics: Vec<String> = metrics.collect();
    (!metrics.is_empty()).then(|| {
        format!(
            "far from the others, and in all numbers: values of {}",
            metrics.join(", ")
        )
    })
}
