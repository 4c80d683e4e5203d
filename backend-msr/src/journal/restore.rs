//! Repairing what a killed process left.

use std::fs;
use std::path::Path;

use quipu_hal::{CpuModel, Result};

use super::{Journal, Record, failed, text};
use crate::MsrBus;
use crate::guard::Guard;
use crate::layout::Layout;

/// What became of one CPU's record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// What its registers held was put back.
    Restored {
        /// The CPU.
        cpu: u32,
        /// How many registers.
        registers: usize,
    },
    /// A process counts there.
    InUse {
        /// The CPU.
        cpu: u32,
        /// The process, where its record says.
        pid: Option<u32>,
    },
    /// The machine has started anew since, so there was nothing left to repair.
    Outdated {
        /// The CPU.
        cpu: u32,
    },
}

/// Puts back what killed processes left in counters: replays the records in a directory. Registers
/// that are not on the allow-list of the CPU are not written, whatever a record says.
///
/// # Errors
/// When the CPU's counters are unknown, the directory or a record cannot be used, or the bus
/// refuses; what was repaired up to there stays repaired, and the rest can be tried again.
pub fn restore(bus: impl MsrBus, model: &CpuModel, directory: &Path) -> Result<Vec<Repair>> {
    if fs::symlink_metadata(directory).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let journal = Journal::new(directory.to_owned(), bus.boot());
    journal.check()?;
    let layout = Layout::detect(model, &bus)?;
    let guard = Guard::new(bus, layout.allowed);
    let mut repairs = Vec::new();
    for cpu in cpus(directory)? {
        let mut record = journal.open(directory.join(format!("cpu{cpu}")))?;
        repairs.extend(repair(&guard, &journal, cpu, &mut record)?);
    }
    Ok(repairs)
}

fn repair<B: MsrBus>(
    guard: &Guard<B>,
    journal: &Journal,
    cpu: u32,
    record: &mut Record,
) -> Result<Option<Repair>> {
    let free = record.lock()?;
    let left = record.read()?;
    if !free {
        let pid = text::owner(&left);
        return Ok(Some(Repair::InUse { cpu, pid }));
    }
    let Some(steps) = text::steps(&left) else {
        return Ok(None);
    };
    let outdated = text::is_of_another_boot(&left, journal.boot.as_deref());
    if !outdated {
        for &step in &steps {
            guard.apply(cpu, step)?;
        }
    }
    record.finish()?;
    let mut registers: Vec<u32> = steps.iter().map(|step| step.address).collect();
    registers.sort_unstable();
    registers.dedup();
    Ok(Some(if outdated {
        Repair::Outdated { cpu }
    } else {
        Repair::Restored {
            cpu,
            registers: registers.len(),
        }
    }))
}

/// The CPUs that have a record, in ascending order.
fn cpus(directory: &Path) -> Result<Vec<u32>> {
    let entries = fs::read_dir(directory).map_err(|e| failed("read", directory, &e))?;
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("cpu")?.parse().ok()
    };
    let mut cpus: Vec<u32> = entries.flatten().filter_map(number).collect();
    cpus.sort_unstable();
    Ok(cpus)
}
