//! Systems that are not Linux: no backend of theirs counts tasks that run already or control groups,
//! or tells where a CPU is.

use std::convert::Infallible;

use quipu::Target;

use crate::failure::Failure;

use super::super::options::Options;
use super::CpuPlace;

/// Refuses options that only Linux has.
pub(in super::super) fn refuse_what_is_missing(options: &Options) -> Result<(), Failure> {
    let of_linux = [
        (!options.pid.is_empty(), "-p"),
        (!options.tid.is_empty(), "-t"),
        (!options.cgroup.is_empty(), "-G"),
        (options.per_core, "--per-core"),
        (options.per_socket, "--per-socket"),
        (options.per_thread, "--per-thread"),
    ];
    match of_linux.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) => Err(Failure::usage(format_args!(
            "{option} is not on this system: only Linux's perf_event_open has it; count a command \
             (quipu stat -- ls)"
        ))),
        None => Ok(()),
    }
}

/// Fails.
pub(in super::super) fn places() -> Result<Vec<CpuPlace>, Failure> {
    Err(Failure::new(
        "where the CPUs are is not known on this system",
    ))
}

/// Threads have no names here.
pub(in super::super) fn thread_name(_: i32) -> String {
    String::new()
}

/// Counting a task that runs already is refused, so what is counted goes on until a signal.
pub(in super::super) fn any_alive(_: &[Target]) -> bool {
    true
}

/// Opening counters costs the same every time.
pub(in super::super) fn anchors() -> Option<Infallible> {
    None
}

/// Nothing is known that would permit counting in the kernel.
pub(in super::super) fn kernel_mode_hint() -> Option<String> {
    None
}

/// Fails.
#[cfg(not(any(target_os = "freebsd", target_os = "dragonfly")))]
pub(in super::super) fn on_cpus<T>(cpus: &[u32], _: impl FnOnce() -> T) -> Result<T, Failure> {
    Err(Failure::new(format_args!(
        "cannot keep the command on {}: this system does not let a program choose its CPUs",
        Target::Cpus(cpus.to_vec())
    )))
}
