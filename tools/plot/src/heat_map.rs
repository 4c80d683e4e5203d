//! The counts of several places: a row for each, the darker the more.

use std::fmt::Write as _;

use super::axis::{self, Axis};
use super::line::text;
use super::page::{LEFT, RIGHT, escaped, hatch, round};
use super::{Interval, Panel};

/// Shades that are told apart.
const SHADES: f64 = 32.0;
/// Intervals that are drawn beside each other: more are put together.
const MOST_COLUMNS: usize = 435;
/// Pixels that a label takes.
const LABEL: f64 = 13.0;

/// Returns the pixels of so many rows.
pub(crate) fn height(places: usize) -> f64 {
    row_height(places) * places as f64
}

fn row_height(places: usize) -> f64 {
    match places {
        ..=16 => 18.0,
        17..=64 => 9.0,
        _ => 4.0,
    }
}

/// Draws the places of a panel.
pub(crate) fn draw(out: &mut String, panel: &Panel, times: Axis, top: f64) {
    let height = row_height(panel.places.len());
    let end = axis::end(panel.largest());
    scale(out, end, top);
    let every = (LABEL / height).ceil().max(1.0) as usize;
    for (at, place) in panel.places.iter().enumerate() {
        let y = top + at as f64 * height;
        if at % every == 0 {
            let (x, y) = (LEFT - 8.0, y + height / 2.0 + 4.0);
            let name = escaped(&place.name);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text>"
            );
        }
        let columns = columns(&place.intervals);
        let shade = |interval: &Interval| shade(interval, end);
        let runs = columns.chunk_by(|a, b| shade(a) == shade(b) && a.is_estimate == b.is_estimate);
        for run in runs {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let span = (times.at(first.begin), times.at(last.end));
            let Some(shade) = shade(first) else {
                hatch(out, span, (y, height), &place.name);
                continue;
            };
            let joined = Interval {
                end: last.end,
                ..*first
            };
            let (x, width) = (round(span.0), round((span.1 - span.0).max(0.5)));
            let title = escaped(&format!("{}: {}", place.name, text(&joined)));
            let _ = writeln!(
                out,
                "<rect class=\"heat\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                 fill-opacity=\"{}\"><title>{title}</title></rect>",
                round(shade / SHADES)
            );
            if first.is_estimate {
                let (y, height) = (y + 0.5, height - 1.0);
                let _ = writeln!(
                    out,
                    "<rect class=\"cell-estimate\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
                );
            }
        }
    }
}

/// Returns the shade of an interval, of which the darkest stands for the end of the scale; `None` without a value. The
/// lightest is for zero alone.
fn shade(interval: &Interval, end: f64) -> Option<f64> {
    Some((interval.value? / end * SHADES).ceil().clamp(0.0, SHADES))
}

/// Returns intervals, with as many put together as there is no room for: the mean of what was counted.
fn columns(intervals: &[Interval]) -> Vec<Interval> {
    let together = intervals.len().div_ceil(MOST_COLUMNS).max(1);
    let joined = intervals.chunks(together).map(|chunk| {
        let counted = chunk
            .iter()
            .filter_map(|i| Some((i.value?, i.end - i.begin)));
        let (sum, time) = counted.fold((0.0, 0.0), |(sum, time), (value, length)| {
            (sum + value * length, time + length)
        });
        Interval {
            begin: chunk[0].begin,
            end: chunk[chunk.len() - 1].end,
            value: (time > 0.0).then(|| sum / time),
            is_estimate: chunk.iter().any(|i| i.is_estimate || i.value.is_none()),
        }
    });
    match together {
        1 => intervals.to_vec(),
        _ => joined.collect(),
    }
}

/// Writes which shade stands for what, beside the name of the event.
fn scale(out: &mut String, end: f64, top: f64) {
    const STEPS: u32 = 8;
    const STEP: f64 = 12.0;
    let begin = RIGHT - 60.0 - f64::from(STEPS) * STEP;
    let (y, base) = (top - 24.0, top - 14.0);
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">0</text>",
        begin - 6.0
    );
    for step in 0..STEPS {
        let x = begin + f64::from(step) * STEP;
        let opacity = f64::from(step + 1) / f64::from(STEPS);
        let _ = writeln!(
            out,
            "<rect class=\"heat\" x=\"{x}\" y=\"{y}\" width=\"{STEP}\" height=\"12\" fill-opacity=\"{opacity}\"/>"
        );
    }
    let (x, end) = (begin + f64::from(STEPS) * STEP + 6.0, axis::short(end));
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{base}\">{end}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: f64, value: Option<f64>) -> Interval {
        Interval {
            begin,
            end: begin + 1.0,
            value,
            is_estimate: false,
        }
    }

    #[test]
    fn only_zero_is_white_and_nothing_has_no_shade() {
        let of = |value| shade(&interval(0.0, value), 100.0);
        assert_eq!(of(Some(0.0)), Some(0.0));
        assert_eq!(of(Some(0.1)), Some(1.0));
        assert_eq!(of(Some(100.0)), Some(SHADES));
        assert_eq!(of(None), None);
    }

    #[test]
    fn more_intervals_than_columns_are_put_together() {
        let few = [interval(0.0, Some(1.0)), interval(1.0, None)];
        assert_eq!(columns(&few), few);
        let many: Vec<_> = (0..870)
            .map(|at| interval(f64::from(at), Some(f64::from(at % 2))))
            .collect();
        let joined = columns(&many);
        assert_eq!(
            (joined.len(), joined[0].value, joined[0].end),
            (435, Some(0.5), 2.0)
        );
        let gaps: Vec<_> = (0..870)
            .map(|at| interval(f64::from(at), (at % 2 == 0).then_some(4.0)))
            .collect();
        assert!(
            columns(&gaps)
                .iter()
                .all(|i| i.value == Some(4.0) && i.is_estimate)
        );
    }
}
