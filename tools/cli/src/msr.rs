//! `quipu msr`: counters on raw model-specific registers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use quipu::msr::{self, LikelyOwner, Repair};
use quipu_hal::CpuIdentity;
use quipu_pmu::Slot;

use quipu_shell::Failure;
use quipu_shell::terminal;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Test the counters of every CPU; this writes to registers and restores them
    Check,
    /// Restore the counter registers that a killed measurement left changed
    Restore,
}

/// Runs the subcommand, which reports on standard output.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    match options.command {
        Command::Check => check(),
        Command::Restore => restore(),
    }
}

/// Fails when the counters of some CPU cannot be used.
fn check() -> Result<ExitCode, Failure> {
    let trial = msr::try_out()?;
    let heading = format!("{}{}", identity(&trial.cpu), trial.description);
    let left = (trial.in_use.as_slice(), &trial.likely_owner);
    terminal::print(&findings(&heading, &trial.cpus, left)).map_err(Failure::new)?;
    let unusable = trial.cpus.iter().any(|(_, usable)| usable.is_err());
    Ok(ExitCode::from(u8::from(unusable)))
}

/// Returns what was found of the CPUs, and the counters that were left to others.
fn findings(
    heading: &str,
    cpus: &[(u32, quipu_hal::Result<()>)],
    (in_use, likely_owner): (&[Slot], &LikelyOwner),
) -> String {
    let mut text = format!("{heading}\n");
    for (cpu, usable) in cpus {
        match usable {
            Ok(()) => text.push_str(&format!("CPU {cpu}: the counters work\n")),
            Err(error) => text.push_str(&format!("CPU {cpu}: {error:#}\n")),
        }
    }
    if !in_use.is_empty() {
        text.push_str(&left_alone(in_use, likely_owner));
    }
    text
}

/// Returns the CPU by its family and model, to stand before its counters.
fn identity(cpu: &CpuIdentity) -> String {
    match cpu {
        CpuIdentity::X86 {
            vendor,
            family,
            model,
            ..
        } => format!("{vendor} family {family:x}h model {model:x}h: "),
        _ => String::new(),
    }
}

fn left_alone(slots: &[Slot], likely_owner: &LikelyOwner) -> String {
    let names: Vec<String> = slots.iter().map(ToString::to_string).collect();
    format!(
        "not used: {}, already enabled, probably by {} ({})\n",
        names.join(", "),
        likely_owner.name,
        likely_owner.remedy
    )
}

fn restore() -> Result<ExitCode, Failure> {
    let repairs = msr::restore()?;
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
        Repair::Restored {
            cpu,
            registers,
            left,
        } => {
            let left: String = left
                .iter()
                .map(|slot| {
                    format!(", {slot} not restored because another program has enabled it since")
                })
                .collect();
            format!("CPU {cpu}: {registers} registers restored{left}\n")
        }
        Repair::InUse {
            cpu,
            pid: Some(pid),
        } => format!("CPU {cpu}: in use by process {pid}\n"),
        Repair::InUse { cpu, pid: None } => format!("CPU {cpu}: in use\n"),
        Repair::Outdated { cpu } => {
            format!("CPU {cpu}: nothing to restore, the machine has rebooted since\n")
        }
        other => format!("{other:?}\n"),
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_repair_is_told_in_a_line() {
        let restored = Repair::Restored {
            cpu: 3,
            registers: 9,
            left: Vec::new(),
        };
        assert_eq!(line(&restored), "CPU 3: 9 registers restored\n");
        let but_one = Repair::Restored {
            cpu: 3,
            registers: 7,
            left: vec![Slot::fixed(1, 48)],
        };
        assert_eq!(
            line(&but_one),
            "CPU 3: 7 registers restored, fixed counter 1 not restored because another program has enabled it since\n"
        );
        let used = Repair::InUse {
            cpu: 0,
            pid: Some(7),
        };
        assert_eq!(line(&used), "CPU 0: in use by process 7\n");
    }

    #[test]
    fn a_cpu_is_told_by_family_and_model() {
        let epyc = CpuIdentity::X86 {
            vendor: "AuthenticAMD".into(),
            family: 0x17,
            model: 1,
            stepping: 2,
        };
        assert_eq!(identity(&epyc), "AuthenticAMD family 17h model 1h: ");
        assert_eq!(identity(&CpuIdentity::Arm { midr: 0 }), "");
    }

    #[test]
    fn findings_name_cpus_and_the_counters_of_others() {
        let likely_owner = LikelyOwner::new("the watchdog", "stop it");
        let slots = [Slot::general(0, 48), Slot::fixed(1, 48)];
        let still = Error::new(ErrorKind::NoSuchDevice, "count on CPU 1")
            .with_reason("counter 0 stands still")
            .with_hint("look at the hypervisor");
        let cpus = [(0, Ok(())), (1, Err(still))];
        let heading = "GenuineIntel family 6h model 55h: 8 counters of 48 bits";
        insta::assert_snapshot!(findings(heading, &cpus, (&slots, &likely_owner)));
    }
}
