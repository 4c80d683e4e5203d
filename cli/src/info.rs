//! `quipu info`: what this machine can count, and why the rest cannot be counted.

mod facts;
#[cfg(target_os = "linux")]
mod linux;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod linux_facts;
mod report;
mod words;

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::terminal::{self, Layout};
use facts::Facts;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print one JSON object
    #[arg(short, long)]
    json: bool,
}

/// Reports on this machine on standard output.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let facts = Facts::of_this_machine();
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
