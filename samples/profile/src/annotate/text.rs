//! A function as text: shares, addresses, instructions, source lines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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

/// As many instructions are above the others.
const HOTTEST: usize = 3;
/// The most columns of the rule below the heading.
const WIDEST_RULE: usize = 80;
/// The heading of the shares, and the column that a tab behind it leads to.
const HEAD: &str = " Percent |";
const TAB: usize = 16;
/// The columns of a share, and those before a source line.
const SHARE: usize = 8;
const MARGIN: usize = 11;

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
        self.head(&mut out, layout);
        let name = escaped(self.function.name.as_deref().unwrap_or_default());
        let line = format!("         :   {:016x} <{name}>:", self.address);
        let _ = writeln!(out, "{}", layout.fitted(&line));
        self.hottest(&mut out, layout);
        if let Some(why) = self.why_no_source(sources) {
            remark(&mut out, &why, layout);
        }
        let mut before = None;
        for ((instruction, line), weight) in
            self.instructions.iter().zip(self.lines).zip(self.weights())
        {
            if line.as_ref() != before
                && let Some((path, number)) = line
                && let Some(source) = sources.line(path, *number)
            {
                let source = escaped(source.trim_end()).replace("\\t", "    ");
                let source = format!("         : {number:<5}{source}");
                let source = layout.fitted(&source);
                let (margin, source) = source.split_at(MARGIN.min(source.len()));
                let _ = writeln!(out, "{margin}{}", layout.dim(source));
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
            let mut text = format!(" :   {:x}:   {text}", instruction.address);
            if let (true, Some((path, number)), 1..) = (with_lines, line, weight.samples) {
                let _ = write!(text, " // {}:{number}", escaped(short(path)));
            }
            let room = layout.width.map(|width| width.saturating_sub(SHARE));
            let room = Layout {
                width: room,
                ..layout
            };
            let _ = writeln!(out, "{share}{}", room.fitted(&text));
        }
        if with_lines {
            self.list_lines(&mut out);
        }
        out.push('\n');
        out
    }

    /// Appends the heading, in lines that fit on a terminal, and the rule below it.
    fn head(&self, out: &mut String, layout: Layout) {
        let samples = self.hits.total.samples;
        let title = format!(
            "Source code & Disassembly of {} for {} ({samples} sample{}, percent: local period)",
            escaped(short(&self.function.object)),
            escaped(self.event),
            if samples == 1 { "" } else { "s" }
        );
        // A tab, as perf has it.
        let mut widest = HEAD.len() + 1 + title.chars().count();
        for (at, part) in layout.wrap(&title, TAB).iter().enumerate() {
            let line = match at {
                0 => format!("{HEAD}\t{part}"),
                _ => format!("{:TAB$}{part}", ""),
            };
            let _ = writeln!(out, "{}", layout.bold(&line));
        }
        widest = widest.min(layout.width.unwrap_or(WIDEST_RULE).min(WIDEST_RULE));
        let _ = writeln!(out, "{}", "-".repeat(widest));
    }

    /// Appends the addresses of the instructions with the largest shares, and their source lines.
    fn hottest(&self, out: &mut String, layout: Layout) {
        let all = self.instructions.iter().zip(self.lines).zip(self.weights());
        let mut hit: Vec<_> = all.filter(|(_, weight)| weight.period > 0).collect();
        hit.sort_by_key(|(_, weight)| Reverse(weight.period));
        let hottest = hit
            .iter()
            .take(HOTTEST)
            .map(|((instruction, line), weight)| {
                let percent = weight.percent_of(self.hits.total);
                let line = line.as_ref();
                let line =
                    line.map(|(path, number)| format!(" ({}:{number})", escaped(short(path))));
                let line = line.unwrap_or_default();
                format!("{percent:.2} % at {:x}{line}", instruction.address)
            });
        let hottest: Vec<_> = hottest.collect();
        if !hottest.is_empty() {
            remark(out, &format!("hottest: {}", hottest.join(", ")), layout);
        }
    }

    /// Returns why source lines are missing, and what would help; `None` if none is.
    fn why_no_source(&self, sources: &mut Sources) -> Option<String> {
        let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
        let mut known = self.lines.iter().flatten().peekable();
        if known.peek().is_none() {
            let object = escaped(short(&self.function.object));
            return Some(format!(
                "no source: {object} has no lines for it: build it with -g, or install its debug symbols"
            ));
        }
        for (path, number) in known {
            if sources.line(path, *number).is_none() {
                *missing.entry(path).or_default() += 1;
            }
        }
        let (path, _) = missing.iter().max_by_key(|(_, lines)| **lines)?;
        let mut text = format!("no source: {} is not here", escaped(path));
        if missing.len() > 1 {
            let _ = write!(text, " (files missing: {})", missing.len());
        }
        if let Some(commit) = missing.keys().find_map(|path| rust_library(path)) {
            let _ = write!(
                text,
                "; rustup component add rust-src has Rust's library, in $(rustc --print sysroot)/lib/rustlib/src/rust: \
                 /rustc/{commit} as a link to that shows it"
            );
        }
        Some(text)
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

/// Appends a sentence above the instructions.
fn remark(out: &mut String, text: &str, layout: Layout) {
    for line in layout.wrap(text, MARGIN) {
        let _ = writeln!(out, "         : {line}");
    }
}

/// Returns the commit in the path of a file of Rust's standard library, as its debug information has it.
fn rust_library(path: &str) -> Option<&str> {
    let (commit, rest) = path.strip_prefix("/rustc/")?.split_once('/')?;
    rest.starts_with("library/").then_some(commit)
}

/// Returns the name of a file without its directory.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_source_files_are_named() {
        let commit = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        let library = format!("/rustc/{commit}/library/core/src/cmp.rs");
        assert_eq!(rust_library(&library), Some(commit));
        assert_eq!(rust_library("/rustc/1.95/compiler/x.rs"), None);
        let function = SampledFunction {
            object: "/usr/bin/words".into(),
            read: None,
            start: 0,
            name: Some("histogram".into()),
        };
        let hits = Hits::default();
        let why = |lines: &[Option<(String, u32)>]| {
            let shown = Shown {
                event: "cycles",
                function: &function,
                hits: &hits,
                address: 0,
                instructions: &[],
                lines,
            };
            shown.why_no_source(&mut Sources::default())
        };
        let here = (
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs").to_owned(),
            1,
        );
        let gone = ("/nowhere/words.rs".to_owned(), 7);
        let told = |lines: &[&(String, u32)]| {
            let lines: Vec<_> = lines.iter().map(|line| Some((*line).clone())).collect();
            why(&lines)
        };
        assert_eq!(told(&[&here]), None);
        assert_eq!(
            told(&[&here, &gone]).as_deref(),
            Some("no source: /nowhere/words.rs is not here")
        );
        let text = told(&[&gone, &gone, &(library, 20)]).expect("two are missing");
        assert!(
            text.contains("words.rs is not here (files missing: 2); rustup"),
            "{text}"
        );
        assert!(
            text.contains(&format!(" /rustc/{commit} as a link")),
            "{text}"
        );
        assert!(why(&[None]).is_some_and(|text| text.contains("words has no lines for it")));
    }
}
