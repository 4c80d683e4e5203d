//! A function as text: shares, addresses, instructions, source lines.

use std::collections::HashMap;
use std::fmt::Write as _;

use quipu_shell::terminal::{Layout, escaped};

use super::disassembly::Instruction;
use super::load::{Hits, SampledFunction};
use super::source::Sources;
use crate::report::Weight;

/// The share from which on an instruction is hot, in percent.
const HOT: f64 = 5.0;
/// The share from which on a line is in the list of lines, as in perf's, in percent.
const LEAST_OF_A_LINE: f64 = 0.5;

/// The most columns of the rule below the heading.
const WIDEST_RULE: usize = 80;

/// A function that is shown.
pub(super) struct Shown<'a> {
    pub(super) event: &'a str,
    pub(super) function: &'a SampledFunction,
    pub(super) hits: &'a Hits,
    /// Address of its first instruction.
    pub(super) address: u64,
    pub(super) instructions: &'a [Instruction],
    /// The source file and line of each instruction.
    pub(super) lines: &'a [Option<(String, u32)>],
}

impl Shown<'_> {
    /// Returns the text. `with_lines` appends source lines to hot instructions, and lists the lines.
    pub(super) fn text(&self, sources: &mut Sources, with_lines: bool, layout: Layout) -> String {
        let (mut out, total) = (String::new(), self.hits.total);
        let heading = format!(
            " Percent |\tSource code & Disassembly of {} for {} ({} sample{}, percent: local period)",
            escaped(short(&self.function.object)),
            escaped(self.event),
            total.samples,
            if total.samples == 1 { "" } else { "s" }
        );
        let rule = "-".repeat(heading.chars().count().min(WIDEST_RULE));
        let _ = writeln!(out, "{}\n{rule}", layout.bold(&heading));
        let name = escaped(self.function.name.as_deref().unwrap_or_default());
        let _ = writeln!(out, "         :   {:016x} <{name}>:", self.address);
        let mut before = None;
        for ((instruction, line), weight) in
            self.instructions.iter().zip(self.lines).zip(self.weights())
        {
            if line.as_ref() != before
                && let Some((path, number)) = line
                && let Some(source) = sources.line(path, *number)
            {
                let source = escaped(source.trim_end()).replace("\\t", "    ");
                let source = format!("{number:<5}{source}");
                let _ = writeln!(out, "         : {}", layout.dim(&source));
            }
            before = line.as_ref().or(before);
            let percent = weight.percent_of(total);
            let share = format!("{percent:8.2}");
            let share = if percent >= HOT {
                layout.yellow(&share)
            } else {
                share.into()
            };
            let text = escaped(&instruction.text);
            let _ = write!(out, "{share} :   {:x}:   {text}", instruction.address);
            if let (true, Some((path, number)), 1..) = (with_lines, line, weight.samples) {
                let _ = write!(out, " // {}:{number}", escaped(short(path)));
            }
            out.push('\n');
        }
        if with_lines {
            self.list_lines(&mut out);
        }
        out.push('\n');
        out
    }

    /// The samples of each instruction: of all addresses from its own to the next one's.
    fn weights(&self) -> impl Iterator<Item = Weight> {
        let starts = self.instructions.iter().map(|i| i.address - self.address);
        let ends = starts.clone().skip(1).chain([u64::MAX]);
        starts.zip(ends).map(|(start, end)| {
            let mut sum = Weight::default();
            for weight in self.hits.at.range(start..end).map(|(_, weight)| weight) {
                sum.samples += weight.samples;
                sum.period += weight.period;
            }
            sum
        })
    }

    /// Appends the lines by their shares.
    fn list_lines(&self, out: &mut String) {
        let mut by_line: HashMap<(&str, u32), Weight> = HashMap::new();
        for (line, weight) in self.lines.iter().zip(self.weights()) {
            if let Some((path, number)) = line {
                let sum = by_line.entry((path, *number)).or_default();
                sum.samples += weight.samples;
                sum.period += weight.period;
            }
        }
        let mut lines: Vec<_> = by_line.into_iter().collect();
        lines.sort_by(|a, b| (b.1.period, a.0).cmp(&(a.1.period, b.0)));
        let _ = writeln!(
            out,
            "\nLines of {}:",
            escaped(self.function.name.as_deref().unwrap_or_default())
        );
        for ((path, number), weight) in lines {
            let percent = weight.percent_of(self.hits.total);
            if percent >= LEAST_OF_A_LINE {
                let _ = writeln!(out, "{percent:8.2} {}:{number}", escaped(short(path)));
            }
        }
    }
}

/// Returns the name of a file without its directory.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
