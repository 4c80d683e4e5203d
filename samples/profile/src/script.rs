//! `quipu script`: every sample of a recording, a line each, as `perf script` prints them.

mod branches;
mod data_source;
mod fields;
mod json;
mod numbers;
mod options;
mod print;
pub(crate) mod tracepoints;

use std::process::ExitCode;

use quipu_perf_data::{Features, RecordedEvent};

pub use options::Options;

use crate::recording::Input;
use quipu_shell::Failure;
use quipu_shell::pager::Pager;
use quipu_shell::terminal;

use fields::{Field, Fields};
use print::Script;

/// Reads a file and prints its samples.
///
/// # Errors
/// If the recording cannot be read, or has not what was asked for.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let fields = Fields::new(&options.fields)?;
    let input = Input {
        path: &options.input,
        force: options.force,
        lines: options.inline || fields.asks(Field::SourceLine),
        parameters: false,
        symbols: Some(&options.symbols),
        keeping: false,
        copies: None,
    };
    let mut selection = options.selection.clone();
    input.find_functions(&mut selection.names.symbols)?;
    let selection = selection.selection()?;
    let pager = Pager::begin(options.no_pager);
    let begin = |events: &[RecordedEvent], features: &Features, names: &[String]| {
        Script::new(
            options,
            &fields,
            selection,
            (events, features, names),
            pager,
        )
    };
    let (replay, script) = input.replay(begin)?;
    let nameless = script.nameless();
    script
        .finish()
        .map_err(|e| Failure::new(format_args!("cannot write the samples: {e}")))?;
    for note in replay
        .notes_on_file()
        .iter()
        .chain(&replay.notes_on_names(&nameless))
    {
        terminal::warn(note);
    }
    Ok(ExitCode::SUCCESS)
}
