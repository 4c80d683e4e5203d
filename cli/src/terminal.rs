//! Layout for an output stream: its width and colours, and writing to it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use textwrap::WordSplitter::NoHyphenation;
use textwrap::WrapAlgorithm::FirstFit;

/// The layout of text for an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns to fit into; `None` for a pipe or file.
    pub width: Option<usize>,
    /// True if colours are used.
    pub colour: bool,
}

impl Layout {
    /// Lines of any length without colours, as for a file.
    pub const PLAIN: Self = Self {
        width: None,
        colour: false,
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
        table.load_preset(NOTHING);
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

/// Writes a whole text to standard output. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a message to standard error, unless that cannot be written to.
pub fn warn(message: impl Display) {
    let _ = writeln!(io::stderr(), "quipu: {message}");
}
