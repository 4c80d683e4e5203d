//! The picture as a whole: panels below each other, and what they have in common.

use std::fmt::Write as _;

use super::axis::Axis;
use super::{Panel, heat_map, line};

/// Pixels of the page, and of a panel without what stands around it.
const WIDTH: f64 = 1000.0;
pub(crate) const LEFT: f64 = 110.0;
pub(crate) const RIGHT: f64 = 980.0;
/// Pixels above a panel for its name, and below it for the times.
const ABOVE: f64 = 44.0;
const BELOW: f64 = 30.0;
/// Pixels of a line's panel.
const LINE_HEIGHT: f64 = 150.0;

/// Colours by role, for a light page and a dark one.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}\
.name{font-size:14px;font-weight:600;fill:#1f2328}\
.page{fill:#fff}\
.grid{stroke:#d0d7de;stroke-width:1}\
.line{stroke:#0969da;stroke-width:1.5;fill:none}\
.estimate{stroke-dasharray:4 3}\
.heat{fill:#0969da}\
.cell-estimate{stroke:#0969da;stroke-width:1;stroke-dasharray:2 2;fill:none}\
.hatch{stroke:#8c959f;stroke-width:1}\
@media (prefers-color-scheme:dark){\
text{fill:#9198a1}\
.name{fill:#f0f6fc}\
.page{fill:#0d1117}\
.grid{stroke:#3d444d}\
.line{stroke:#4493f8}\
.heat{fill:#4493f8}\
.cell-estimate{stroke:#4493f8}\
.hatch{stroke:#656c76}}";

/// Draws panels.
pub(crate) fn draw(panels: &[Panel]) -> String {
    let intervals = || panels.iter().flat_map(Panel::intervals);
    let begin = intervals().map(|i| i.begin).fold(f64::INFINITY, f64::min);
    let end = intervals().map(|i| i.end).fold(0.0, f64::max);
    let times = Axis::new((begin.min(end), end), (LEFT, RIGHT));
    let mut body = String::new();
    let mut top = 0.0;
    for panel in panels {
        top += ABOVE;
        let height = match panel.places.len() {
            0 | 1 => LINE_HEIGHT,
            places => heat_map::height(places),
        };
        heading(&mut body, panel, top);
        below(&mut body, times, (top, top + height));
        match panel.places.as_slice() {
            [place] => line::draw(
                &mut body,
                place,
                panel.largest(),
                times,
                (top, top + height),
            ),
            _ => heat_map::draw(&mut body, panel, times, top),
        }
        top += height + BELOW;
    }
    let height = top.max(1.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\n\
         <style>{STYLE}</style>\n\
         <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <path class=\"hatch\" d=\"M0 6L6 0\"/></pattern></defs>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

fn heading(out: &mut String, panel: &Panel, top: f64) {
    let y = top - 14.0;
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{y}\"><tspan class=\"name\">{}</tspan> {}</text>",
        escaped(&panel.event),
        escaped(&panel.unit)
    );
}

/// Writes the times below a panel.
fn below(out: &mut String, times: Axis, (top, bottom): (f64, f64)) {
    for tick in times.ticks(10) {
        let (x, y) = (round(times.at(tick)), bottom + 16.0);
        let tick = (tick * 1e6).round() / 1e6;
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x} {top}V{bottom}\"/>\
             <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{tick} s</text>"
        );
    }
}

/// Writes that there is no value.
pub(crate) fn hatch(out: &mut String, (x, end): (f64, f64), (y, height): (f64, f64), title: &str) {
    let (x, width) = (round(x), round((end - x).max(0.5)));
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"url(#hatch)\"><title>{}: not counted</title></rect>",
        escaped(title)
    );
}

/// Returns a number of pixels to a hundredth.
pub(crate) fn round(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

/// Returns a text as XML has it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // XML has no other control characters, nor these two.
            c if c.is_control() && !matches!(c, '\t' | '\n' | '\r') => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
