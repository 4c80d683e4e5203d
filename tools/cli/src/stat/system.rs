//! The differences between systems in one place: Linux knows the topology of CPUs and the state of
//! other tasks.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;

        pub(crate) use linux::any_alive;
        pub(super) use linux::{
            anchors, check_supported, cpu_topology, every_process, kernel_mode_hint, thread_name,
        };
    } else {
        mod elsewhere;

        pub(super) use elsewhere::{
            anchors, any_alive, check_supported, cpu_topology, every_process, kernel_mode_hint,
            thread_name,
        };
    }
}

use quipu::Target;

use crate::failure::Failure;

/// Raises the limit of open files as far as this process may (getrlimit(2), `RLIMIT_NOFILE`): each
/// event takes a file on each CPU or thread. Where that is refused, opening an event beyond the limit
/// fails with the reason.
pub(crate) fn raise_open_file_limit() {
    // rustix's getrlimit panics where a seccomp filter forbids the call.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
}

/// Does `work` on these CPUs (sched_setaffinity(2)); a process made there begins on them.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
pub(super) fn on_cpus<T>(cpus: &[u32], work: impl FnOnce() -> T) -> Result<T, Failure> {
    use rustix::io::Errno;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let fail = |error: Errno| cannot_keep_on(cpus, &error.to_string());
    let before = sched_getaffinity(None).map_err(fail)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        let cpu = usize::try_from(cpu)
            .ok()
            .filter(|&cpu| cpu < CpuSet::MAX_CPU);
        wanted.set(cpu.ok_or_else(|| fail(Errno::INVAL))?);
    }
    sched_setaffinity(None, &wanted).map_err(fail)?;
    let done = work();
    sched_setaffinity(None, &before).map_err(fail)?;
    Ok(done)
}

/// Fails.
#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
pub(super) fn on_cpus<T>(cpus: &[u32], _: impl FnOnce() -> T) -> Result<T, Failure> {
    let why = "a program cannot choose its CPUs on this system";
    Err(cannot_keep_on(cpus, why))
}

fn cannot_keep_on(cpus: &[u32], why: &str) -> Failure {
    let cpus = Target::Cpus(cpus.to_vec());
    Failure::new(format_args!("cannot keep the command on {cpus}: {why}"))
}
