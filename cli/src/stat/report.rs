//! The report: what it consists of, and the forms it is written in.

pub mod csv;
pub mod json;
pub mod number;
pub mod text;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};

use crate::failure::Failure;
use crate::terminal::{self, Layout};

use super::notes::Note;
use super::options::Options;
use super::overhead::{self, OverheadRow};
use super::repeat::Samples;
use super::rows::Row;

/// Everything that is reported at the end.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The measured target: `'ls -l'`, `process 1234`.
    pub title: String,
    pub runs: u32,
    pub rows: Vec<Row>,
    pub times: Times,
    pub notes: Vec<Note>,
    /// With `-v`: how each event was opened.
    pub details: Vec<String>,
}

/// Seconds, over all runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub elapsed: Samples,
    /// The resources that the command used, if there was one.
    pub command: Option<CommandTimes>,
}

/// The resources that a command used, in seconds and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandTimes {
    pub user: Samples,
    pub system: Samples,
    pub peak_memory: u64,
}

/// The form of a report.
enum Format {
    Text(Layout),
    Separated(String),
    Json,
}

/// The destination and format of reports.
pub struct Output {
    format: Format,
    sink: Box<dyn Write>,
    /// True if the report is text on a terminal.
    is_interactive: bool,
    begun: bool,
}

impl Output {
    pub fn open(options: &Options) -> Result<Self, Failure> {
        let (sink, layout): (Box<dyn Write>, Layout) = match &options.output {
            Some(path) => {
                let file = open_file(path, options.append).map_err(|e| {
                    Failure::new(format_args!("cannot write {}: {e}", path.display()))
                })?;
                (Box::new(BufWriter::new(file)), Layout::PLAIN)
            }
            None => (Box::new(BufWriter::new(io::stderr())), Layout::of_stderr()),
        };
        let format = if options.json {
            Format::Json
        } else if let Some(separator) = &options.field_separator {
            Format::Separated(separator.replace("\\t", "\t"))
        } else if options.csv {
            Format::Separated(",".into())
        } else {
            Format::Text(layout)
        };
        Ok(Self {
            is_interactive: io::stderr().is_terminal() && matches!(format, Format::Text(_)),
            format,
            sink,
            begun: false,
        })
    }

    /// Writes a progress message to a terminal.
    pub fn progress(&self, text: &str) {
        if self.is_interactive {
            terminal::warn(text);
        }
    }

    /// Writes the rows of one interval, `time` seconds after the start.
    pub fn interval(&mut self, time: f64, rows: &[Row]) -> Result<(), Failure> {
        let first = !std::mem::replace(&mut self.begun, true);
        let mut out = String::new();
        match &self.format {
            Format::Text(layout) => text::interval(&mut out, time, rows, first, *layout),
            Format::Separated(separator) => csv::rows(&mut out, rows, Some(time), separator),
            Format::Json => json::rows(&mut out, rows, Some(time)),
        }
        self.write(&out)
    }

    /// Writes the notes after the last interval.
    pub fn notes(&mut self, report: &Report) -> Result<(), Failure> {
        match self.format {
            Format::Text(layout) => {
                let mut out = String::new();
                text::notes(&mut out, report, layout);
                self.write(&out)
            }
            _ => Ok(()),
        }
    }

    /// Writes a warning that every format must have: text has it among its notes.
    pub fn write_warning(&mut self, note: &Note) -> Result<(), Failure> {
        let line = match &self.format {
            Format::Text(_) => return Ok(()),
            Format::Separated(_) => csv::comment(note),
            Format::Json => json::remark(note),
        };
        self.write(&line)
    }

    /// Writes what a set counts of itself.
    pub fn overhead(&mut self, rows: &[OverheadRow]) -> Result<(), Failure> {
        let out = match &self.format {
            Format::Text(layout) => overhead::text(rows, *layout),
            Format::Separated(separator) => overhead::csv(rows, separator),
            Format::Json => overhead::json(rows),
        };
        self.write(&out)
    }

    /// Writes the whole report.
    pub fn report(&mut self, report: &Report) -> Result<(), Failure> {
        let mut out = String::new();
        match &self.format {
            Format::Text(layout) => text::report(&mut out, report, *layout),
            Format::Separated(separator) => csv::rows(&mut out, &report.rows, None, separator),
            Format::Json => json::rows(&mut out, &report.rows, None),
        }
        self.write(&out)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self
            .sink
            .write_all(text.as_bytes())
            .and_then(|()| self.sink.flush());
        match written {
            // The reader is gone, as with `2>&1 | head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => {
                written.map_err(|e| Failure::new(format_args!("cannot write the report: {e}")))
            }
        }
    }
}

fn open_file(path: &std::path::Path, append: bool) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .append(append)
        .truncate(!append)
        .open(path)
}
