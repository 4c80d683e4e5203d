//! Runs of the suite: over the backends that are named, or over each that can run here.

use anyhow::{Result, bail};
use quipu_conformance::{Check, Report, run};

use crate::args::{Args, Format};
use crate::fixtures::BackendName;
use crate::machine::Platform;

/// One run over one backend.
pub(crate) struct Run {
    /// As `--backend` takes it.
    pub(crate) backend: String,
    pub(crate) report: Report,
    pub(crate) platform: Platform,
}

/// A backend that the suite was not run over.
pub(crate) struct NotRun {
    pub(crate) backend: String,
    pub(crate) reason: String,
}

/// All runs of one call.
pub(crate) struct Runs {
    pub(crate) done: Vec<Run>,
    pub(crate) not_run: Vec<NotRun>,
}

/// The outcome of all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No check failed, and each run has passed some.
    Passed,
    Failed,
    /// No check failed, and a run has passed none.
    Unproven,
}

impl Run {
    fn over(backend: BackendName, args: &Args, checks: &[&'static Check]) -> Result<Self> {
        let tested = backend.fixture(args.device.as_deref())?;
        let report = run(&tested.fixture, checks.iter().copied());
        let platform = if backend.is_simulated() && args.format == Format::Record {
            Platform::simulated(tested.pmu.as_deref().unwrap_or_default())
        } else {
            Platform::of(&tested).called(args.machine.as_deref(), args.cpu.as_deref())
        };
        Ok(Self {
            backend: backend.to_string(),
            report,
            platform,
        })
    }

    /// Returns the number of checks that failed.
    pub(crate) fn failed(&self) -> usize {
        self.report.failed().count()
    }

    /// Returns the reasons of skips, each with the number of its checks; the most frequent first.
    pub(crate) fn unproven(&self) -> Vec<(String, usize)> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for (_, missing) in self.report.skipped() {
            let reason = missing.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, number)) => *number += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        reasons
    }
}

impl Runs {
    /// Runs checks over the backends that are named, or over those of this machine.
    ///
    /// A backend that was named and cannot be used is an error; of others the reason is kept.
    pub(crate) fn of(args: &Args, checks: &[&'static Check]) -> Result<Self> {
        let mut runs = Self {
            done: Vec::new(),
            not_run: Vec::new(),
        };
        for &backend in &args.backend {
            runs.done.push(Run::over(backend, args, checks)?);
        }
        if !args.backend.is_empty() {
            return Ok(runs);
        }
        for backend in BackendName::of_this_machine() {
            match Run::over(backend, args, checks) {
                Ok(run) => runs.done.push(run),
                Err(error) => runs.skip(backend, crate::in_full(&error)),
            }
        }
        let reason =
            "it writes registers of the CPU, which taints a Linux kernel; `--backend msr` runs it";
        runs.skip(BackendName::Msr, reason.into());
        if runs.done.is_empty() {
            let reasons = runs.not_run.iter();
            let reasons: Vec<_> = reasons
                .map(|not_run| format!("{}: {}", not_run.backend, not_run.reason))
                .collect();
            bail!("no backend can be used here: {}", reasons.join("; "));
        }
        Ok(runs)
    }

    fn skip(&mut self, backend: BackendName, reason: String) {
        let backend = backend.to_string();
        self.not_run.push(NotRun { backend, reason });
    }

    pub(crate) fn outcome(&self) -> Outcome {
        if self.done.iter().any(|run| run.failed() > 0) {
            return Outcome::Failed;
        }
        match self.done.iter().any(|run| run.report.passed() == 0) {
            true => Outcome::Unproven,
            false => Outcome::Passed,
        }
    }
}
