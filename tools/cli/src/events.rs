//! `quipu events`: the event database itself.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use quipu::NativeEvents;
use quipu_events::{CpuTable, Database, LayerFile};

use quipu_shell::Failure;
use quipu_shell::event_files::warn_of_files_left_out;
use quipu_shell::terminal;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report all errors in event files
    Check {
        /// Event files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Find where an event, generalized event or preset is defined
    Which {
        /// The event
        name: String,
        #[command(flatten)]
        choice: CpuChoice,
    },
}

/// The choice of a CPU and a database.
#[derive(Debug, Args)]
pub(crate) struct CpuChoice {
    /// Use the events of another CPU, by its id in the event database (`quipu list cpus`)
    #[arg(long, value_name = "ID")]
    pub(crate) cpu: Option<String>,

    /// Use an event file on top of the database
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

impl CpuChoice {
    /// Returns the native events asked for, not opened yet.
    pub(crate) fn native_events(&self) -> NativeEvents {
        let mut native = NativeEvents::new();
        if let Some(id) = &self.cpu {
            native = native.for_cpu(id);
        }
        if let Some(file) = &self.events {
            native = native.with_file(file);
        }
        native
    }

    /// Returns true if another CPU or a file was asked for.
    pub(crate) fn is_explicit(&self) -> bool {
        self.cpu.is_some() || self.events.is_some()
    }

    pub(crate) fn database(&self) -> Result<Database, Failure> {
        let (database, left_out) = Database::open_lenient(self.events.as_deref())?;
        warn_of_files_left_out(&left_out);
        Ok(database)
    }

    /// Returns the tables asked for: one CPU's, or one for each kind of core of this machine.
    pub(crate) fn tables(&self) -> Result<Vec<CpuTable>, Failure> {
        let database = self.database()?;
        match &self.cpu {
            Some(id) => Ok(vec![database.cpu(id)?]),
            None => Ok(database.this_machine()?),
        }
    }
}

/// Runs the subcommand. The exit status is 1 when a check finds something.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    match &options.command {
        Command::Check { files } => check(files),
        Command::Which { name, choice } => which(name, choice),
    }
}

fn check(files: &[PathBuf]) -> Result<ExitCode, Failure> {
    let below = Database::embedded();
    let mut text = String::new();
    let mut sound = true;
    for file in files {
        let findings = quipu_events::check_file(file, &below)?;
        for finding in &findings {
            text += &format!("{finding}\n");
        }
        if findings.is_empty() {
            text += &format!("{}: no errors\n", file.display());
        }
        sound &= findings.is_empty();
    }
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::from(u8::from(!sound)))
}

fn which(name: &str, choice: &CpuChoice) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    for table in choice.tables()? {
        for (at, origin) in table.origins(name).iter().enumerate() {
            let layer = match &origin.layer {
                LayerFile::Embedded => "embedded database, ",
                _ => "",
            };
            let hidden = if at > 0 { ", overridden" } else { "" };
            text += &format!(
                "{}: {} in {layer}{}:{}{hidden}\n",
                origin.cpu, origin.name, origin.file, origin.line
            );
        }
    }
    if text.is_empty() {
        let near = nearest(name, choice)?;
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(", ")),
        };
        let name = name.escape_debug();
        let message = format!("no layer of the event database defines {name}{near}");
        return Err(Failure::with_status(message, 1));
    }
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the chosen CPUs that are nearest to one.
fn nearest(name: &str, choice: &CpuChoice) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for table in choice.tables()? {
        names.extend(table.events().into_iter().map(|event| event.name));
        names.extend(table.generalized().into_iter().map(|event| event.name));
        names.extend(table.presets().into_iter().map(|preset| preset.name));
    }
    Ok(quipu_text::nearest_of(name, names))
}
