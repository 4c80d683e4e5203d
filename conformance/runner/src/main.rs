#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod args;
mod machine;
mod output;

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use quipu_conformance::subjects::SimSubject;
use quipu_conformance::{Check, Subject, all, run};

use crate::args::{Args, BackendName};
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
    let subject = subject(backend)?;
    let report = run(&subject, checks);
    let platform = Platform::of(backend);
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

fn subject(backend: BackendName) -> Result<Arc<dyn Subject>> {
    match backend {
        BackendName::Sim => Ok(Arc::new(SimSubject::new())),
        BackendName::Linux => linux(),
    }
}

#[cfg(target_os = "linux")]
fn linux() -> Result<Arc<dyn Subject>> {
    let statuses = quipu::Machine::this().backends();
    let status = statuses.iter().find(|status| status.name() == "linux");
    let status = status.context("this build has no backend for Linux")?;
    match (status.backend(), status.error()) {
        (Some(backend), _) => {
            let subject = quipu_conformance::subjects::LinuxSubject::new(Arc::clone(backend));
            Ok(Arc::new(subject))
        }
        (None, Some(error)) => bail!("{error:#}"),
        (None, None) => bail!("the backend for Linux cannot be used here"),
    }
}

#[cfg(not(target_os = "linux"))]
fn linux() -> Result<Arc<dyn Subject>> {
    bail!("perf_event_open is of Linux, and this is another system")
}
