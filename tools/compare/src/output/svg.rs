//! A drawing: every value of each command, and the changes with their intervals.

use crate::report::{Change, MetricReport, Report};
use crate::stats::Verdict;

use super::number::{self, Shown};

/// Width of the drawing, and of its parts, in pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 150.0;
const VALUES: f64 = 380.0;
const CHANGES: f64 = LEFT + VALUES + 30.0;
const CHANGES_WIDTH: f64 = WIDTH - CHANGES - 20.0;
/// Height of a line of values.
const LINE: f64 = 18.0;

pub(super) fn text(report: &Report) -> String {
    let mut body = String::new();
    let mut y = 24.0;
    for command in &report.commands {
        body += &label(
            10.0,
            y,
            "start",
            &format!("{}  {}", command.label, command.name),
        );
        y += LINE;
    }
    y += 8.0;
    for metric in &report.metrics {
        body += &drawn(report, metric, y);
        y += LINE * report.commands.len() as f64 + 22.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{y}\" viewBox=\"0 0 {WIDTH} {y}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// Draws a metric: a line of points for each command, and its changes beside.
fn drawn(report: &Report, metric: &MetricReport, top: f64) -> String {
    let least = metric
        .summaries
        .iter()
        .map(|summary| summary.least)
        .fold(f64::INFINITY, f64::min);
    let most = metric
        .summaries
        .iter()
        .map(|summary| summary.most)
        .fold(f64::NEG_INFINITY, f64::max);
    let span = if most > least { most - least } else { 1.0 };
    let x = |value: f64| LEFT + 20.0 + (value - least) / span * (VALUES - 30.0);
    let shown = Shown::of(most, &metric.metric.unit);
    let mut out = label(10.0, top + 12.0, "start", &metric.metric.name);
    for (at, (command, summary)) in report.commands.iter().zip(&metric.summaries).enumerate() {
        let y = top + 8.0 + LINE * at as f64;
        out += &label(LEFT, y + 4.0, "end", &command.label);
        for value in &metric.values[at] {
            out += &format!(
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"steelblue\" fill-opacity=\"0.4\"/>\n",
                x(*value)
            );
        }
        let mean = x(summary.mean);
        out += &line(mean, y - 6.0, mean, y + 6.0, "black");
        if let Some(change) = at.checked_sub(1).and_then(|at| metric.changes.get(at)) {
            out += &interval(change, y);
        }
    }
    let y = top + 8.0 + LINE * report.commands.len() as f64;
    out += &label(LEFT + 20.0, y, "start", &shown.text(least));
    out + &label(LEFT + VALUES - 10.0, y, "end", &shown.text(most))
}

/// Draws a change with its interval on a scale that has no change in its middle.
fn interval(change: &Change, y: f64) -> String {
    let Some(interval) = change.change else {
        return String::new();
    };
    let reach = interval
        .low
        .abs()
        .max(interval.high.abs())
        .max(f64::MIN_POSITIVE)
        * 1.1;
    let middle = CHANGES + CHANGES_WIDTH / 3.0;
    let x = |value: f64| middle + value / reach * CHANGES_WIDTH / 3.0;
    let colour = match change.verdict {
        Verdict::Different if interval.value > 0.0 => "firebrick",
        Verdict::Different => "seagreen",
        _ => "dimgray",
    };
    let decimals = number::decimals_of(interval.low, interval.high, change.scale);
    let text = number::change(interval.value, change.scale, decimals);
    let mut out = line(middle, y - 8.0, middle, y + 8.0, "silver");
    out += &line(x(interval.low), y, x(interval.high), y, colour);
    out += &format!(
        "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>\n",
        x(interval.value)
    );
    out + &label(
        CHANGES + CHANGES_WIDTH * 2.0 / 3.0 + 8.0,
        y + 4.0,
        "start",
        &text,
    )
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, colour: &str) -> String {
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>\n"
    )
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace(|c: char| c.is_control(), " ");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}
