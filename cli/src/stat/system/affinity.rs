//! Staying on CPUs: sched_setaffinity(2), of Linux and FreeBSD.

use quipu::Target;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::failure::Failure;

/// Does something on these CPUs; a process made meanwhile begins on them.
pub(in super::super) fn on_cpus<T>(cpus: &[u32], what: impl FnOnce() -> T) -> Result<T, Failure> {
    let fail = |error: Errno| {
        Failure::new(format_args!(
            "cannot keep the command on {}: {error}",
            Target::Cpus(cpus.to_vec())
        ))
    };
    let before = sched_getaffinity(None).map_err(fail)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        let cpu = usize::try_from(cpu)
            .ok()
            .filter(|&cpu| cpu < CpuSet::MAX_CPU);
        wanted.set(cpu.ok_or_else(|| fail(Errno::INVAL))?);
    }
    sched_setaffinity(None, &wanted).map_err(fail)?;
    let done = what();
    sched_setaffinity(None, &before).map_err(fail)?;
    Ok(done)
}
