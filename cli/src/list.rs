//! `quipu list`: the events that can be counted.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(_options: &Options) -> Result<ExitCode, Failure> {
    Err(Failure::new("list is not available in this version"))
}
