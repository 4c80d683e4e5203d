//! Findings in event files, each with its location: every finding, not only the first.

use std::fmt;
use std::ops::Range;

use crate::printable::printable;

/// One finding in an event file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The finding, in one sentence.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
        } = self;
        let file = printable(file);
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

/// The text of one event file, and where its lines begin.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    /// The start of every [`LINES`](Self::LINES)th line.
    marks: Vec<usize>,
}

impl<'a> Source<'a> {
    /// The lines from one mark to the next.
    const LINES: usize = 64;

    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1));
        let marks = starts.step_by(Self::LINES).collect();
        Self { file, text, marks }
    }

    /// Returns the line of a byte offset, from 1.
    pub(crate) fn line(&self, at: usize) -> u32 {
        let marks = self.marks.partition_point(|&start| start <= at);
        let passed = marks.saturating_sub(1);
        let start = self.marks.get(passed).copied().unwrap_or(0);
        let since = self.text.as_bytes().get(start..at).unwrap_or_default();
        let newlines = since.iter().filter(|byte| **byte == b'\n').count();
        u32::try_from(passed * Self::LINES + newlines + 1).unwrap_or(u32::MAX)
    }

    fn column(&self, at: usize) -> u32 {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        u32::try_from(line.chars().count() + 1).unwrap_or(u32::MAX)
    }
}

/// Collects findings. A file of junk cannot make it grow without bound.
#[derive(Default)]
pub(crate) struct Findings {
    found: Vec<Diagnostic>,
    left_out: usize,
}

impl Findings {
    /// The most findings that are kept; the rest are counted.
    const KEPT: usize = 1000;
    /// The longest message in characters; keys and names in a file may be of any length.
    const LONGEST: usize = 240;

    pub(crate) fn add(&mut self, source: &Source<'_>, at: &Range<usize>, message: String) {
        if self.found.len() >= Self::KEPT {
            self.left_out += 1;
            return;
        }
        self.found.push(Diagnostic {
            file: source.file.to_owned(),
            line: source.line(at.start),
            column: source.column(at.start),
            message: printable(&match message.char_indices().nth(Self::LONGEST) {
                Some((end, _)) => format!("{}…", &message[..end]),
                None => message,
            }),
        });
    }

    pub(crate) fn add_at_line(&mut self, file: &str, line: u32, message: String) {
        if self.found.len() >= Self::KEPT {
            self.left_out += 1;
            return;
        }
        self.found.push(Diagnostic {
            file: file.to_owned(),
            line,
            column: 1,
            message,
        });
    }

    /// Counts findings that are not kept.
    pub(crate) fn leave_out(&mut self, more: usize) {
        self.left_out += more;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the findings by place; the last says how many more there were.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        if self.left_out > 0
            && let Some(last) = self.found.last().cloned()
        {
            self.found.push(Diagnostic {
                message: format!("{} more findings are not shown", self.left_out),
                ..last
            });
        }
        self.found
    }
}
