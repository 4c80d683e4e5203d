//! What -p, -t and -C say is measured, where it is counted and where it is sampled.

use quipu::Target;
use quipu::hal::text::parse_cpu_list;

use crate::failure::Failure;

/// The processes and threads.
pub(crate) fn tasks(processes: &[i32], threads: &[i32]) -> Result<Vec<Target>, Failure> {
    if let Some(bad) = processes.iter().chain(threads).find(|id| **id < 1) {
        return Err(Failure::usage(format_args!(
            "{bad} is no process or thread id"
        )));
    }
    let processes = processes.iter().copied().map(Target::Process);
    Ok(processes
        .chain(threads.iter().copied().map(Target::Thread))
        .collect())
}

/// The CPUs of a list; there is at least one.
pub(crate) fn cpus(list: &str) -> Result<Vec<u32>, Failure> {
    let cpus = parse_cpu_list(list).map_err(|e| Failure::usage(format_args!("{e:#}")))?;
    if cpus.is_empty() {
        return Err(Failure::usage("-C needs CPUs, written like 0-3,8"));
    }
    Ok(cpus)
}
