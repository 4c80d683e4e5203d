//! The report: what it consists of, and the forms it is written in.

pub mod csv;
pub mod json;
mod metric_only;
pub mod number;
pub mod overhead;
pub mod text;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::path::PathBuf;

use quipu_command::standard_error_was_closed;
use quipu_regions::Counted;

use quipu_shell::output::Endable;
use quipu_shell::terminal::{self, Layout};
use quipu_shell::{Failure, output_file};

use super::aggregate::AggregateId;
use super::notes::Note;
use super::options::Options;
use super::picture::Picture;
use super::repeat::Samples;
use super::rows::Row;
use metric_only::MetricTable;
use overhead::OverheadRow;

/// The escapes that move the cursor home and clear the screen (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[2J";

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
#[derive(Debug, Clone, Default)]
pub struct Times {
    pub elapsed: Samples,
    /// With `--table`: those that elapsed in each run.
    pub runs: Vec<f64>,
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

/// The part of a measurement that rows are about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Of {
    /// All of it.
    All,
    /// An interval that ended so many seconds after the start.
    Interval(f64),
    /// The totals after intervals.
    Totals,
    /// One of several runs, from 1.
    Run(usize),
}

/// The form of a report.
enum Format {
    Text(Layout),
    Separated(String),
    Json,
}

/// The destination and format of reports. What cannot be written to a file goes to standard error.
pub struct Output {
    format: Format,
    sink: Box<dyn Write>,
    /// The file that is written.
    file: Option<PathBuf>,
    /// The text that could not be written, and why.
    failure: Option<Failure>,
    /// True if standard error cannot be written.
    is_lost: bool,
    /// True if the report is text on a terminal.
    is_interactive: bool,
    /// True if programs are told what perf does not say.
    extra: bool,
    /// True if the totals after intervals have a column that says so.
    marks_totals: bool,
    /// True if metrics alone are written.
    metric_only: bool,
    /// True if each interval takes the place of the one before on the screen.
    clears: bool,
    begun: bool,
    /// The picture of intervals, if one is asked for.
    picture: Option<Picture>,
    /// Room for the text of an interval, and its columns.
    text: String,
    columns: text::Columns,
}

impl Output {
    pub fn open(options: &Options) -> Result<Self, Failure> {
        Self::open_to(options, options.output.clone())
    }

    /// Opens the output into a file that is another one than the options have.
    pub(super) fn open_to(options: &Options, file: Option<PathBuf>) -> Result<Self, Failure> {
        let is_file = file.as_ref().is_some_and(|path| path.as_os_str() != "-");
        let mut output = Self::open_empty(options, file)?;
        if is_file && !options.form.json {
            output.write(&started());
        }
        Ok(output)
    }

    fn open_empty(options: &Options, file: Option<PathBuf>) -> Result<Self, Failure> {
        // Opened anew, so that an offset of its own is not that of others: then at its end.
        let descriptor = options
            .log_fd
            .map(|fd| PathBuf::from(format!("/dev/fd/{fd}")));
        let append = options.append || descriptor.is_some();
        let file = file.or(descriptor);
        let (sink, layout): (Box<dyn Write>, Layout) = match &file {
            _ if options.quiet => (Box::new(io::sink()), Layout::PLAIN),
            Some(path) if path.as_os_str() == "-" => {
                (Box::new(Endable(io::stdout())), Layout::of_stdout())
            }
            Some(path) => {
                let file = output_file::open(path, append).map_err(|e| {
                    Failure::new(format_args!("cannot write {}: {e}", path.display()))
                })?;
                (Box::new(Endable(file)), Layout::PLAIN)
            }
            None if standard_error_was_closed() => {
                // A message on standard error would be lost like the report.
                let why = "standard error is closed, and the report would be lost: use -o FILE";
                let _ = terminal::print(&format!("quipu: {why}\n"));
                return Err(Failure::new(why));
            }
            None => (Box::new(Endable(io::stderr())), Layout::of_stderr()),
        };
        let format = if options.form.json {
            Format::Json
        } else if let Some(separator) = &options.form.field_separator {
            Format::Separated(separator.replace("\\t", "\t"))
        } else if options.form.csv {
            Format::Separated(",".into())
        } else {
            Format::Text(Layout {
                grouped: !options.form.no_big_num,
                ..layout
            })
        };
        Ok(Self {
            is_interactive: io::stderr().is_terminal() && matches!(format, Format::Text(_)),
            format,
            sink,
            extra: options.adds_to_perf(),
            marks_totals: !options.no_csv_summary,
            metric_only: options.form.metric_only,
            clears: options.interval_clear,
            file,
            failure: None,
            is_lost: false,
            begun: false,
            picture: options.form.plot.clone().map(Picture::new),
            text: String::new(),
            columns: text::Columns::new(layout),
        })
    }

    /// Writes a progress message to a terminal.
    pub fn progress(&self, text: &str) {
        if self.is_interactive {
            terminal::warn(text);
        }
    }

    /// Writes the rows of one interval, `time` seconds after the start.
    pub fn interval(&mut self, time: f64, rows: &[Row]) {
        let first = !mem::replace(&mut self.begun, true);
        let of = Of::Interval(time);
        if let Some(picture) = &mut self.picture {
            picture.interval(time, rows);
        }
        let mut out = mem::take(&mut self.text);
        out.clear();
        match &self.format {
            Format::Text(layout) => {
                if self.clears && layout.width.is_some() {
                    out.push_str(CLEAR);
                }
                let heading = first || self.clears;
                match self.metric_only {
                    true => MetricTable::of(rows).text(&mut out, of, heading, *layout),
                    false => (self.columns).interval(&mut out, time, rows, heading, *layout),
                }
            }
            _ => self.push_rows(&mut out, rows, of, first),
        }
        self.write(&out);
        self.text = out;
    }

    /// Writes the rows of one of several runs, for programs that want more than perf says.
    pub fn run(&mut self, number: usize, rows: &[Row]) {
        let mut out = String::new();
        self.push_rows(&mut out, rows, Of::Run(number), false);
        self.write(&out);
    }

    /// Writes the notes after the last interval.
    pub fn notes(&mut self, report: &Report) {
        if let Format::Text(layout) = self.format {
            let mut out = String::new();
            let behind_mark = Layout {
                width: layout.width.map(|width| width.saturating_sub(1)),
                ..layout
            };
            text::notes(&mut out, report, behind_mark);
            // What reads the lines of intervals skips these.
            let lines = out.lines().filter(|line| !line.is_empty());
            let out: String = lines.map(|line| format!("#{line}\n")).collect();
            self.write(&out);
        }
    }

    /// Writes a warning that every format must have: text has it among its notes.
    pub fn write_warning(&mut self, note: &Note) {
        let line = match &self.format {
            Format::Text(_) => return,
            Format::Separated(_) => csv::comment(note),
            Format::Json => json::remark(note),
        };
        self.write(&line);
    }

    /// Writes what a set counts of itself.
    pub fn overhead(&mut self, rows: &[OverheadRow]) {
        let out = match &self.format {
            Format::Text(layout) => overhead::text(rows, *layout),
            Format::Separated(separator) => overhead::csv(rows, separator),
            Format::Json => overhead::json(rows),
        };
        self.write(&out);
    }

    /// Writes the whole report.
    pub fn report(&mut self, report: &Report) {
        let mut out = String::new();
        match &self.format {
            Format::Text(layout) => text::report(&mut out, report, self.metric_only, *layout),
            _ => {
                let totals = self.begun && self.marks_totals;
                let of = if totals { Of::Totals } else { Of::All };
                self.push_rows(&mut out, &report.rows, of, !self.begun);
            }
        }
        self.write(&out);
    }

    /// Appends rows in a form for programs.
    fn push_rows(&self, out: &mut String, rows: &[Row], of: Of, first: bool) {
        let rows = self.told(rows);
        match &self.format {
            Format::Text(_) => {}
            Format::Separated(separator) if self.metric_only => {
                MetricTable::of(&rows).csv(out, of, first, separator);
            }
            Format::Json if self.metric_only => MetricTable::of(&rows).json(out, of),
            Format::Separated(separator) => csv::rows(out, &rows, of, separator, self.extra),
            Format::Json => json::rows(out, &rows, of, self.extra),
        }
    }

    /// Returns the rows that are told in this format: perf has none of an event without a count in any thread.
    fn told<'r>(&self, rows: &'r [Row]) -> Cow<'r, [Row]> {
        let is_of_thread = |row: &Row| matches!(row.place, AggregateId::Thread { .. });
        if self.extra || matches!(self.format, Format::Text(_)) || !rows.iter().any(is_of_thread) {
            return rows.into();
        }
        rows.iter()
            .filter(|row| is_of_thread(row))
            .cloned()
            .collect()
    }

    /// Writes the regions of processes, and what was counted outside of them.
    pub(super) fn regions(&mut self, reports: &[quipu_regions::Report], outside: &[Counted]) {
        let out = match (&self.format, reports) {
            (Format::Json, reports) => {
                let lines = reports.iter().filter_map(|report| report.json().ok());
                lines
                    .map(|line| String::from_utf8_lossy(&line).into_owned())
                    .collect()
            }
            (_, []) => "  No program entered a region.\n\n".to_owned(),
            (_, reports) => format!("{}\n", quipu_regions::table(reports, outside)),
        };
        self.write(&out);
    }

    /// Returns true if what is still to come can be written nowhere.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns what could not be written where it was asked for.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if let Some(picture) = self.picture {
            picture.write()?;
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn write(&mut self, text: &str) {
        let Err(error) = self.sink.write_all(text.as_bytes()) else {
            return;
        };
        // The reader is gone, as of `-o /dev/stdout | head`.
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.is_lost = true;
            return;
        }
        if let Some(path) = self.file.take() {
            let path = path.display();
            self.failure = Some(Failure::new(format_args!(
                "cannot write {path}: {error}; what it lacks is on standard error"
            )));
            self.sink = Box::new(Endable(io::stderr()));
            return self.write(text);
        }
        self.is_lost = true;
        if self.failure.is_none() {
            self.failure = Some(Failure::new(format_args!(
                "cannot write the report: {error}"
            )));
        }
    }
}

/// Returns the line that perf begins files with: the time in the form of asctime(3).
fn started() -> String {
    let now = jiff::ZonedDateTime::now();
    format!("# started on {}\n\n", now.strftime("%a %b %e %H:%M:%S %Y"))
}
