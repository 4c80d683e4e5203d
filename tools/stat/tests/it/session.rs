//! A whole measurement on a scripted backend.

use std::process::ExitCode;
use std::sync::Arc;

use quipu_scripted::Scripted;
use quipu_shell::target::TargetOptions;
use quipu_stat::{Backends, Options, Output, Plan, Session};

/// Returns the options of measuring a command on all CPUs.
pub(crate) fn options(command: &[&str]) -> Options {
    Options {
        target: TargetOptions {
            command: command.iter().map(Into::into).collect(),
            all_cpus: true,
            ..TargetOptions::default()
        },
        ..Options::default()
    }
}

/// Returns the report of a measurement and its exit status, or why it failed.
pub(crate) fn measured(
    backend: Scripted,
    mut options: Options,
    change: impl FnOnce(&mut Plan),
) -> Result<(String, ExitCode), String> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report");
    options.output = Some(file.clone());
    let backends = Backends::these(vec![Arc::new(backend)]);
    let mut plan = Plan::new(&options).expect("a plan");
    change(&mut plan);
    let output = Output::open(&options).expect("a report");
    let session = Session::new(&plan, &backends, output).expect("a session");
    let status = session.run().map_err(|failure| failure.to_string())?;
    Ok((std::fs::read_to_string(file).expect("a report"), status))
}
