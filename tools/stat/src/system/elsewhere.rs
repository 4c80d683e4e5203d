//! Systems other than Linux: their backends count no control groups, processes that run already on FreeBSD alone, and the
//! topology of CPUs is unknown.

use std::convert::Infallible;

use quipu::Target;

use quipu_shell::Failure;

use super::super::aggregate::CpuPosition;
use super::super::options::Options;

/// Refuses options that only Linux supports, and FreeBSD.
pub(in super::super) fn check_supported(options: &Options) -> Result<(), Failure> {
    let of_processes = !options.target.pid.is_empty() && cfg!(not(target_os = "freebsd"));
    let of_linux = [
        (of_processes, "-p"),
        (!options.target.tid.is_empty(), "-t"),
        (!options.cgroup.is_empty(), "-G"),
        (options.places.per_core, "--per-core"),
        (options.places.per_cluster, "--per-cluster"),
        (options.places.per_cache.is_some(), "--per-cache"),
        (options.places.per_die, "--per-die"),
        (options.places.per_node, "--per-node"),
        (options.places.per_socket, "--per-socket"),
        (options.places.per_thread, "--per-thread"),
    ];
    match of_linux.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) => Err(Failure::usage(format_args!(
            "{option} is only supported on Linux, by perf_event_open; count a command instead \
             (quipu stat -- ls)"
        ))),
        None => Ok(()),
    }
}

/// Fails.
pub(in super::super) fn cpu_topology() -> Result<Vec<CpuPosition>, Failure> {
    Err(Failure::new(
        "the topology of the CPUs is not known on this system",
    ))
}

/// Returns none: running tasks cannot be targets.
pub(in super::super) fn every_process() -> Result<Vec<Target>, Failure> {
    Ok(Vec::new())
}

/// Returns an empty name: threads have none here.
pub(in super::super) fn thread_name(_: i32) -> String {
    String::new()
}

/// Returns `None`: opening counters costs the same every time.
pub(in super::super) fn anchors() -> Option<Infallible> {
    None
}

/// Returns `None`: no setting permits counting in the kernel.
pub(in super::super) fn kernel_mode_hint() -> Option<String> {
    None
}

/// The time at which a command was begun, of which nothing is known here.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Begun {}

/// Returns `None`: other systems do not show it in a way that Quipu reads.
pub(in super::super) fn begun(_: i32) -> Option<Begun> {
    None
}

/// Returns nothing, likewise.
pub(in super::super) fn left_behind(begun: Begun) -> Vec<String> {
    match begun {}
}
