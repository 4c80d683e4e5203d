//! `quipu info`: what this machine can count, and why the rest cannot be counted.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(_options: &Options) -> Result<ExitCode, Failure> {
    Err(Failure::new("info is not available in this version"))
}
