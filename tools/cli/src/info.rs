//! `quipu info`: what this machine can count, and why the rest cannot be counted.

#[cfg(all(unix, not(target_os = "linux")))]
mod bsd;
mod facts;
#[cfg(target_os = "linux")]
mod linux;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod linux_facts;
mod refusal;
mod report;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod words;

#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use quipu::Machine;

use crate::events::CpuChoice;
use facts::Facts;
use quipu_shell::Failure;
use quipu_shell::event_files::warn_of_files_left_out;
use quipu_shell::terminal::{self, Layout};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print one JSON object
    #[arg(short, long)]
    json: bool,

    /// Test again which hardware counters count, and keep the result for this boot
    #[arg(long)]
    test: bool,

    /// Consent to raw counter registers (msr) where the event database prefers them, as with `quipu stat`
    #[arg(long)]
    allow_msr: bool,

    #[command(flatten)]
    choice: CpuChoice,
}

/// Reports on this machine on standard output.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let native = Arc::new(options.choice.native_events());
    if options.choice.is_explicit() {
        native.tables()?;
    }
    let mut machine = Machine::with_native_events(Arc::clone(&native));
    if options.allow_msr {
        machine = machine.allow_registers();
    }
    let facts = facts(&machine, options.test);
    warn_of_files_left_out(native.skipped_files());
    let text = if options.json {
        let mut text = serde_json::to_string_pretty(&facts).map_err(Failure::new)?;
        text.push('\n');
        text
    } else {
        report::text(&facts, Layout::of_stdout())
    };
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the facts of this machine. With `test` its counters are tested again, before all else, which rests on it.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
fn facts(machine: &Machine, test: bool) -> Facts {
    #[cfg(target_os = "linux")]
    let counters = linux::counters(test);
    let facts = Facts::of(machine);
    #[cfg(target_os = "linux")]
    let facts = linux::add(facts, Path::new("/"), counters, &linux::Tried::here());
    #[cfg(all(unix, not(target_os = "linux")))]
    let facts = bsd::add(facts);
    facts
}
