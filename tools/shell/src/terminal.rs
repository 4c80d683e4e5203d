//! Layout for an output stream: its width and colours, and writing to it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use textwrap::WordSplitter::NoHyphenation;
use textwrap::WrapAlgorithm::FirstFit;

use crate::output::Endable;

/// The layout of text for an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns to fit into; `None` for a pipe or file.
    pub width: Option<usize>,
    /// True if colours are used.
    pub colour: bool,
    /// True if digits are in groups of three.
    pub grouped: bool,
}

impl Layout {
    /// Lines of any length without colours, as for a file.
    pub const PLAIN: Self = Self {
        width: None,
        colour: false,
        grouped: true,
    };

    /// Returns the layout for standard output.
    pub fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// Returns the layout for standard error.
    pub fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl RawStream + AsFd)) -> Self {
        let width = || terminal_size::terminal_size_of(stream).map_or(80, |(w, _)| w.0.into());
        Self {
            width: stream.is_terminal().then(width),
            colour: AutoStream::choice(stream) != ColorChoice::Never,
            grouped: true,
        }
    }

    /// Returns the same without colours.
    pub fn without_colour(self) -> Self {
        Self {
            colour: false,
            ..self
        }
    }

    /// Returns the text as a heading.
    pub fn bold<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.styled(Style::new().bold(), text)
    }

    /// Returns the text as of less interest.
    pub fn dim<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.styled(Style::new().dimmed(), text)
    }

    /// Returns the text as a warning.
    pub fn yellow<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.styled(AnsiColor::Yellow.on_default(), text)
    }

    /// Returns the text as of most interest.
    pub fn red<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.styled(AnsiColor::Red.on_default(), text)
    }

    /// Returns the beginning of a line that fits; without a width all of it.
    pub fn fitted<'a>(self, line: &'a str) -> Cow<'a, str> {
        match self.width {
            Some(width) => shortened(line, width),
            None => line.into(),
        }
    }

    fn styled<'a>(self, style: Style, text: &'a str) -> Cow<'a, str> {
        if self.colour && !text.is_empty() {
            Cow::Owned(format!("{style}{text}{style:#}"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Returns an empty table without borders whose lines fit, as long as they may be `least` wide.
    pub fn table(self, least: usize) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING);
        match self.width.map(|width| u16::try_from(width.max(least))) {
            Some(Ok(width)) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            _ => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table
    }

    /// Breaks text into lines that fit when they start at column `indent`; a word longer than a line
    /// stays whole. Without a width there is one line.
    pub fn wrap(self, text: &str, indent: usize) -> Vec<Cow<'_, str>> {
        /// The least width that text is broken to.
        const NARROWEST: usize = 24;
        let Some(width) = self.width else {
            return vec![text.into()];
        };
        let options = textwrap::Options::new(width.saturating_sub(indent).max(NARROWEST))
            .break_words(false)
            .word_splitter(NoHyphenation)
            .wrap_algorithm(FirstFit);
        textwrap::wrap(text, options)
    }
}

/// Returns the lines of a table, each column two spaces after the one before, the first at `indent`.
pub fn table_lines(mut table: Table, indent: u16) -> impl Iterator<Item = String> {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { indent } else { 2 }, 0));
    }
    let lines: Vec<String> = table.lines().collect();
    lines.into_iter().map(|line| line.trim_end().to_owned())
}

/// Returns text with its control characters as escapes (`\\x1b`): names of processes, files, symbols and events can hold
/// any, and a terminal obeys them. Marks that reorder text are escaped too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    // Most text is of printable ASCII, which is seen without decoding it.
    if text
        .bytes()
        .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
    {
        return Cow::Borrowed(text);
    }
    let is_obeyed = |c: char| {
        let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || reorders
    };
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' | '\n' | '\r' => shown.extend(c.escape_default()),
            c if !is_obeyed(c) => shown.push(c),
            '\0'..='\u{ff}' => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// Returns a text of at most so many characters: what is longer is cut, and ends with an ellipsis.
pub fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    match text.char_indices().nth(width) {
        None => text.into(),
        Some(_) => {
            let kept = text.chars().take(width.saturating_sub(1));
            kept.chain((width > 0).then_some('…')).collect()
        }
    }
}

/// Writes a whole text to standard output. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> io::Result<()> {
    print_to_reader(text).map(|_| ())
}

/// Writes a part of an endless text to standard output; returns `Break` if its reader went away.
pub fn print_to_reader(text: &str) -> io::Result<ControlFlow<()>> {
    let mut out = Endable(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        result => result.map(ControlFlow::Continue),
    }
}

/// Writes a message to standard error, unless that cannot be written to: in lines that fit, on a terminal.
pub fn warn(message: impl Display) {
    warn_in(Layout::of_stderr(), message);
}

/// Writes a message in lines that fit on the terminal, or into 80 columns, for the person who typed a command line.
pub(crate) fn advise(message: impl Display) {
    let layout = Layout::of_stderr();
    let width = layout.width.or(Some(80));
    warn_in(Layout { width, ..layout }, message);
}

fn warn_in(layout: Layout, message: impl Display) {
    say(&warning(layout, &message.to_string()));
}

/// Writes text to standard error as it is, unless that cannot be written to.
pub fn say(text: &str) {
    let _ = Endable(io::stderr()).write_all(text.as_bytes());
}

/// Returns a message as it is written. A line that is not the first is indented, so that none looks like a message of
/// its own.
fn warning(layout: Layout, message: &str) -> String {
    const NAME: &str = "quipu: ";
    let lines: Vec<_> = message.lines().map(escaped).collect();
    let parts = lines.iter().flat_map(|line| layout.wrap(line, NAME.len()));
    format!("{NAME}{}\n", parts.collect::<Vec<_>>().join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_other_text_is_as_it_was() {
        let evil = "a\x1b[31m\n\u{9b}2J\u{202e}b\x7f";
        assert_eq!(escaped(evil), r"a\x1b[31m\n\x9b2J\u{202e}b\x7f");
        assert!(matches!(escaped("größe · f<T>()"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis() {
        for (width, expected) in [(5, "größe"), (4, "grö…"), (1, "…"), (0, "")] {
            assert_eq!(shortened("größe", width), expected);
        }
        assert_eq!(Layout::PLAIN.fitted("größe"), "größe");
    }

    #[test]
    fn a_message_is_wrapped_where_it_has_to_fit() {
        let message = "there is no such field; there are comm, pid, tid\nand more";
        let narrow = Layout {
            width: Some(40),
            ..Layout::PLAIN
        };
        let wrapped = "quipu: there is no such field; there are\n  comm, pid, tid\n  and more\n";
        assert_eq!(warning(narrow, message), wrapped);
        let unwrapped = "quipu: there is no such field; there are comm, pid, tid\n  and more\n";
        assert_eq!(warning(Layout::PLAIN, message), unwrapped);
        assert_eq!(warning(narrow, ""), "quipu: \n");
    }
}
