//! `quipu msr`: counters on raw model-specific registers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use quipu::msr::{self, Repair};

use crate::failure::Failure;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put back what a killed measurement left in counter registers
    Restore,
}

/// Does what was asked, and says what was done on standard output.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let repairs = match options.command {
        Command::Restore => msr::restore()?,
    };
    let mut text: String = repairs.iter().map(line).collect();
    if text.is_empty() {
        text.push_str("nothing to restore\n");
    }
    terminal::print(&text).map_err(Failure::new)?;
    let in_use = repairs.iter().any(|r| matches!(r, Repair::InUse { .. }));
    Ok(ExitCode::from(u8::from(in_use)))
}

fn line(repair: &Repair) -> String {
    match repair {
        Repair::Restored { cpu, registers } => {
            format!("CPU {cpu}: {registers} registers restored\n")
        }
        Repair::InUse {
            cpu,
            pid: Some(pid),
        } => format!("CPU {cpu}: in use by process {pid}\n"),
        Repair::InUse { cpu, pid: None } => format!("CPU {cpu}: in use\n"),
        Repair::Outdated { cpu } => {
            format!("CPU {cpu}: nothing to restore, the machine has started anew since\n")
        }
        other => format!("{other:?}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_is_told_in_a_line() {
        let restored = Repair::Restored {
            cpu: 3,
            registers: 9,
        };
        assert_eq!(line(&restored), "CPU 3: 9 registers restored\n");
        let used = Repair::InUse {
            cpu: 0,
            pid: Some(7),
        };
        assert_eq!(line(&used), "CPU 0: in use by process 7\n");
    }
}
