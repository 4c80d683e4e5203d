//! Recordings in the formats of viewers.

mod collect;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use quipu_perf_data::{Features, RecordedEvent};
use quipu_viewers::{Recording, file, firefox, pprof, speedscope};

use crate::recording::{Input, Replay};
use quipu_shell::{Failure, output_file};

use super::load::Loading;
use super::options::Options;
use super::profile::Profile;
use super::sort::Key;

use collect::Collect;

/// The keys by which frames are told apart: a line of a function is one.
const KEYS: [Key; 3] = [Key::Object, Key::Symbol, Key::SourceLine];

/// The options of files for viewers, which `report` and `record` share. Names of functions, source lines and inlined
/// functions are in them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ViewerOptions {
    /// Write FILE for Firefox Profiler (profiler.firefox.com), compressed if it ends in .gz: a track for each thread and event
    #[arg(long, value_name = "FILE", help_heading = "For viewers")]
    pub(crate) firefox: Option<PathBuf>,
    /// Write FILE for pprof, compressed if it ends in .gz: a sample type for each event
    #[arg(long, value_name = "FILE", help_heading = "For viewers")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write FILE for speedscope (speedscope.app), compressed if it ends in .gz: a profile for each event and thread
    #[arg(long, value_name = "FILE", help_heading = "For viewers")]
    pub(crate) speedscope: Option<PathBuf>,
}

impl ViewerOptions {
    /// Returns true if no file is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.files().is_empty()
    }

    /// Returns the files that are asked for, with what writes them.
    fn files(&self) -> Vec<(&Path, Writer)> {
        let all: [(_, Writer); 3] = [
            (&self.firefox, firefox::write),
            (&self.pprof, pprof::write),
            (&self.speedscope, speedscope::write),
        ];
        let all = all.into_iter();
        all.filter_map(|(path, write)| Some((path.as_deref()?, write)))
            .collect()
    }
}

/// Writer of a format.
type Writer = fn(&Recording, &mut dyn Write) -> io::Result<()>;

/// Reads the file that the options name, writes the files, and returns what was read.
pub(super) fn write(options: &Options) -> Result<Profile, Failure> {
    let input = Input {
        path: &options.input,
        force: options.shown.force,
        lines: true,
        parameters: true,
        symbols: Some(&options.shown.symbols),
        keeping: false,
        copies: None,
    };
    let inline = Options {
        inline: true,
        ..options.clone()
    };
    let selection = options.selection()?;
    let begin = |events: &[RecordedEvent], features: &Features, names: &[String]| {
        let loading = Loading::new(&inline, (selection, &KEYS), events, names);
        Ok(Collect::new(loading, (events, features, names), input))
    };
    let (replay, collected): (Replay, Collect) = input.replay(begin)?;
    let (mut recording, profile) = collected.finish(&replay);
    if let Some(wanted) = options
        .shown
        .event
        .as_ref()
        .filter(|name| *name != super::wall_time::NAME)
    {
        super::chosen_events(&profile, options)?;
        let events = &recording.events;
        recording
            .samples
            .retain(|s| events[s.event].name == *wanted);
        recording
            .markers
            .retain(|m| events[m.event].name == *wanted);
    }
    if recording.samples.is_empty() {
        profile.notes.iter().for_each(quipu_shell::terminal::warn);
        let input = options.input.display();
        return Err(Failure::new(format_args!(
            "{input} has no samples of what was chosen"
        )));
    }
    for (path, write) in options.viewers.files() {
        output_file::open(path, false)
            .and_then(|file| file::fill(file, path, |out| write(&recording, out)))
            .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", path.display())))?;
    }
    Ok(profile)
}
