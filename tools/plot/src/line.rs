//! The counts of one place: a line in steps, dashed where it is an estimate.

use std::fmt::Write as _;

use super::axis::{self, Axis};
use super::page::{LEFT, RIGHT, escaped, hatch, round};
use super::{Interval, Place};

/// Beyond so many intervals they have no texts of their own.
const MOST_TITLES: usize = 2000;

/// Draws a place into a panel between two heights.
pub(crate) fn draw(
    out: &mut String,
    place: &Place,
    largest: f64,
    times: Axis,
    (top, bottom): (f64, f64),
) {
    let values = Axis::new((0.0, axis::end(largest)), (bottom, top));
    for tick in values.ticks(4) {
        let y = round(values.at(tick));
        let (x, text) = (LEFT - 8.0, axis::short(tick));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y}H{RIGHT}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"end\">{text}</text>",
            y + 4.0
        );
    }
    let mut before: Option<f64> = None;
    for run in place.intervals.chunk_by(is_same_kind) {
        if run[0].value.is_none() {
            let span = (times.at(run[0].begin), times.at(run[run.len() - 1].end));
            hatch(out, span, (top, bottom - top), &title(&run[0]));
            before = None;
            continue;
        }
        let mut path = String::new();
        for interval in run {
            let y = round(values.at(interval.value.unwrap_or(0.0)));
            let (x, end) = (
                round(times.at(interval.begin)),
                round(times.at(interval.end)),
            );
            let _ = match before {
                Some(_) if !path.is_empty() => write!(path, "V{y}H{end}"),
                Some(before) => write!(path, "M{x} {before}V{y}H{end}"),
                None => write!(path, "M{x} {y}H{end}"),
            };
            before = Some(y);
        }
        let kind = if run[0].is_estimate { " estimate" } else { "" };
        let _ = writeln!(out, "<path class=\"line{kind}\" d=\"{path}\"/>");
    }
    // What a pointer shows, over the whole height.
    let counted = place
        .intervals
        .iter()
        .filter(|interval| interval.value.is_some());
    for interval in counted.take(MOST_TITLES) {
        let (x, end) = (times.at(interval.begin), times.at(interval.end));
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill-opacity=\"0\"><title>{}</title></rect>",
            round(x),
            round(end - x),
            bottom - top,
            escaped(&text(interval))
        );
    }
}

fn is_same_kind(a: &Interval, b: &Interval) -> bool {
    (a.value.is_some(), a.is_estimate) == (b.value.is_some(), b.is_estimate)
}

fn title(interval: &Interval) -> String {
    format!("{:.3} s", interval.begin)
}

/// Returns what is to be said of an interval.
pub(crate) fn text(interval: &Interval) -> String {
    let mark = if interval.is_estimate { "~" } else { "" };
    let value = axis::short(interval.value.unwrap_or(0.0));
    format!(
        "{:.3} to {:.3} s: {mark}{value}",
        interval.begin, interval.end
    )
}
