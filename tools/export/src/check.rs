//! `quipu export --check`: whether the file is right, what is found here, and what cannot be counted.

use std::process::ExitCode;

use quipu_shell::{Failure, tasks, terminal};

use crate::Options;
use crate::collector::Collector;
use crate::config::Config;
use crate::otlp::Endpoint;

pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let config = match Config::checked(options)? {
        Ok(config) => config,
        Err(findings) => {
            let lines = findings.iter().map(|finding| format!("{finding}\n"));
            terminal::print(&lines.collect::<String>()).map_err(Failure::new)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Some(url) = &options.otlp {
        Endpoint::parse(url)?;
    }
    tasks::raise_open_file_limit();
    let mut collector = Collector::new(config);
    collector.collect();
    let mut lines = collector.describe();
    if let Some(path) = &options.config {
        lines.insert(0, format!("{}: no errors", path.display()));
    }
    let text = lines.join("\n") + "\n";
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}
