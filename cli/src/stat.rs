//! `quipu stat`: count what a command, a process or the whole machine does.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(_options: &Options) -> Result<ExitCode, Failure> {
    Err(Failure::new("stat is not available in this version"))
}
