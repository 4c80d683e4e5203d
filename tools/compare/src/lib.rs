#![doc = include_str!("../README.md")]
#![cfg(unix)]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod baseline;
mod gate;
mod machine;
mod metrics;
mod options;
mod output;
mod passes;
mod report;
mod revisions;
mod session;
pub mod stats;
mod subjects;
mod trial;

use std::process::ExitCode;

use quipu_shell::Failure;
use quipu_shell::signals::Signals;

use baseline::Baseline;
use gate::{Answer, Gate};
use machine::Machine;
pub use options::Options;
use report::Report;
use revisions::Revisions;
use session::End;
use stats::Settings;

/// The exit status when a gate failed.
const FAILED: u8 = 1;
/// The exit status when a gate is open and that is not allowed.
const INCONCLUSIVE: u8 = 3;
/// The exit status when runs ended in different ways.
const STOPPED: u8 = 4;

/// Compares commands, and reports.
///
/// # Errors
/// If the command line cannot be meant, a command cannot be executed, or a report cannot be written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let settings = settings(options);
    let gates: Vec<Gate> = options
        .gates
        .fail_if
        .iter()
        .map(|text| Gate::parse(text))
        .collect::<Result<_, _>>()?;
    let machine = Machine::this();
    let baseline = match &options.gates.baseline {
        Some(path) => Some(Baseline::read(
            path,
            &machine,
            options.gates.allow_other_machine,
        )?),
        None => None,
    };
    // From here on Ctrl-C leaves nothing behind.
    let signals = Signals::watch()?;
    let first = usize::from(baseline.is_some());
    let revisions = options
        .cargo
        .as_deref()
        .map(|range| Revisions::build(range, options))
        .transpose()?;
    let subjects = match &revisions {
        Some(revisions) => revisions.subjects()?,
        None => subjects::subjects(options, first)?,
    };
    let is_alone = first + subjects.len() < 2;
    match subjects.len() {
        0 => {
            return Err(Failure::usage(
                "there is no command: write `quipu compare -- A ::: B`, or each command quoted",
            ));
        }
        1 if is_alone && (options.gates.save.is_none() || !gates.is_empty()) => {
            return Err(Failure::usage(
                "one command is compared with nothing: write `quipu compare -- A ::: B`, keep its values with --save, or name a --baseline",
            ));
        }
        _ => {}
    }
    let mut measured = session::measure(options, settings, subjects, signals)?;
    let end = measured.end.clone();
    if let Some(path) = &options.gates.save {
        match end {
            End::Complete => output::save(path, &measured, &machine, settings)?,
            _ => measured.notes.push(format!(
                "{} was not written: not all was measured",
                path.display()
            )),
        }
    }
    let has_baseline = baseline.is_some();
    if let Some(baseline) = baseline {
        baseline.put_before(&mut measured, &machine);
    }
    let mut report = Report::new(measured, machine, settings, has_baseline);
    let mut unanswered = Ok(());
    if report.is_complete() {
        for gate in &gates {
            match gate.answer(&report, gates.len()) {
                Ok(outcomes) => report.gates.extend(outcomes),
                Err(failure) => unanswered = Err(failure),
            }
        }
    }
    // What was measured is reported in any case.
    output::write(&report, &options.forms)?;
    output::annotate(&report);
    unanswered?;
    Ok(ExitCode::from(status(
        &report,
        &end,
        options.gates.fail_inconclusive,
    )))
}

fn settings(options: &Options) -> Settings {
    let default = Settings::default();
    let share = |percent: f64| percent / 100.0;
    Settings {
        confidence: options.levels.confidence.map_or(default.confidence, share),
        resolution: options.levels.resolution.map_or(default.resolution, share),
    }
}

fn status(report: &Report, end: &End, fail_inconclusive: bool) -> u8 {
    let any = |wanted: Answer| report.gates.iter().any(|gate| gate.answer == wanted);
    match end {
        End::Stopped(_) => STOPPED,
        End::Interrupted(signal) => 128 + u8::try_from(*signal).unwrap_or(0),
        End::Complete if any(Answer::Failed) => FAILED,
        End::Complete if any(Answer::Inconclusive) && fail_inconclusive => INCONCLUSIVE,
        End::Complete => 0,
    }
}
