#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod args;
mod machine;
mod output;
mod subjects;

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use quipu_conformance::{Check, all, run};

use crate::args::Args;
use crate::machine::Platform;

/// The status for a suite that could not be run; clap's for arguments it does not understand.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    match conform(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quipu-conform: {error:#}");
            ExitCode::from(NOT_RUN)
        }
    }
}

/// Whether no check failed.
fn conform(args: &Args) -> Result<bool> {
    let checks: Vec<&'static Check> = all().filter(|check| is_wanted(check, args)).collect();
    if checks.is_empty() {
        bail!("no check has {} in its id", args.filter.join(" or "));
    }
    let Some(backend) = args.backend.filter(|_| !args.list) else {
        output::list(&checks, &mut io::stdout().lock())?;
        return Ok(true);
    };
    let tested = backend.subject(args.device.as_deref())?;
    let report = run(&tested.subject, checks);
    let platform = Platform::of(&tested);
    match &args.output {
        None => {
            let mut out = io::stdout().lock();
            output::write(args.format, &report, &platform, &mut out)?;
            out.flush()?;
        }
        Some(path) => {
            let write = || -> Result<()> {
                let mut file = io::BufWriter::new(File::create(path)?);
                output::write(args.format, &report, &platform, &mut file)?;
                Ok(file.flush()?)
            };
            write().with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(report.failed().next().is_none())
}

fn is_wanted(check: &Check, args: &Args) -> bool {
    args.filter.is_empty() || args.filter.iter().any(|text| check.id.contains(text))
}
