//! `quipu stat`: count what a command, a process or the whole machine does.

mod aggregate;
mod backend;
pub(crate) mod command;
mod events;
mod metrics;
mod notes;
#[cfg(test)]
mod on_registers;
pub(crate) mod open_files;
mod options;
mod plan;
mod repeat;
mod report;
mod rows;
mod run;
mod sets;
pub(crate) mod signals;
mod simulated;
mod system;

use std::process::ExitCode;

pub(crate) use options::Options;
#[cfg(target_os = "linux")]
pub(crate) use system::any_alive;

use crate::failure::Failure;

/// Counts and reports; the exit status is the measured command's.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let plan = plan::Plan::new(options)?;
    let output = report::Output::open(options)?;
    let backends = backend::Backends::of(&plan)?;
    let status = run::Session::new(&plan, &backends, output)?.run()?;
    for line in plan.aftermath(&backends) {
        eprintln!("quipu: {line}");
    }
    Ok(status)
}
