//! Restores the registers that a killed process left programmed.

use std::fs;
use std::path::Path;

use quipu_hal::{CpuModel, Result};
use quipu_pmu::Slot;

use super::{Journal, Record, failed, text};
use crate::MsrBus;
use crate::guard::{Guard, RestoreStep};
use crate::layout::{Control, Counter, Gate, Layout};

/// The outcome of restoring one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Its registers have their saved values again.
    Restored {
        /// The CPU.
        cpu: u32,
        /// The number of registers.
        registers: usize,
        /// Counters that another program has taken since, recognised by their interrupt, pin control
        /// or counting of sibling threads. They are not written.
        left: Vec<Slot>,
    },
    /// A running process counts there.
    InUse {
        /// The CPU.
        cpu: u32,
        /// The process, if its record names it.
        pid: Option<u32>,
    },
    /// The machine has rebooted since, so its registers were reset.
    Outdated {
        /// The CPU.
        cpu: u32,
    },
}

/// Restores the registers that killed processes left programmed: replays the records in a directory.
/// Registers that are not on the allow-list of the CPU are never written.
///
/// # Errors
/// When the CPU's counters are unknown, the directory or a record cannot be used, or the bus
/// refuses. The other CPUs are restored all the same, the first error is returned, and the call can
/// be repeated.
pub fn restore(bus: impl MsrBus, model: &CpuModel, directory: &Path) -> Result<Vec<Repair>> {
    if fs::symlink_metadata(directory).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let journal = Journal::new(directory.to_owned(), bus.boot());
    journal.check()?;
    let layout = Layout::detect(model, &bus)?;
    let guard = Guard::new(bus, layout.allowed.clone());
    let repair = |cpu| {
        let mut record = journal.open(directory.join(format!("cpu{cpu}")))?;
        repair(&guard, &layout, &journal, cpu, &mut record)
    };
    // All are restored before an error is returned.
    let repairs: Vec<_> = cpus(directory)?.into_iter().map(repair).collect();
    repairs.into_iter().filter_map(Result::transpose).collect()
}

fn repair<B: MsrBus>(
    guard: &Guard<B>,
    layout: &Layout,
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
    let Some(mut steps) = text::steps(&left) else {
        return Ok(None);
    };
    let outdated = text::is_of_another_boot(&left, journal.boot.as_deref());
    let mut left = Vec::new();
    if !outdated {
        for counter in &layout.counters {
            if taken_since(guard, cpu, counter, &steps)? {
                leave(&mut steps, layout.gate, counter);
                left.push(counter.slot);
            }
        }
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
            left,
        }
    }))
}

/// Returns true if another program has taken a counter since these steps were recorded.
fn taken_since<B: MsrBus>(
    guard: &Guard<B>,
    cpu: u32,
    counter: &Counter,
    steps: &[RestoreStep],
) -> Result<bool> {
    let control = counter.control;
    let Some(found) = steps.iter().rfind(|step| sets(step, control)) else {
        return Ok(false);
    };
    let held = control.part(guard.read(cpu, control.address())?);
    Ok(held != control.part(found.value) && counter.set_by_another(held))
}

/// Returns true if a step sets all of a control.
fn sets(step: &RestoreStep, control: Control) -> bool {
    step.address == control.address() && step.mask == control.mask()
}

/// Removes a counter from the steps.
fn leave(steps: &mut Vec<RestoreStep>, gate: Gate, counter: &Counter) {
    steps.retain(|step| !sets(step, counter.control) && step.address != counter.writing);
    if let Gate::Global(global) = gate {
        for step in steps
            .iter_mut()
            .filter(|step| step.address == global.control)
        {
            step.mask &= !counter.bit;
        }
    }
}

/// Returns the CPUs that have a record, in ascending order.
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
