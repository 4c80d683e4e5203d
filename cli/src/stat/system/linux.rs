//! Linux.

use quipu::Software;
use quipu::linux::Anchors;
use quipu::linux::privileges::Privileges;
use quipu::linux::topology::Topology;

use crate::failure::Failure;

use super::super::options::Options;
use super::CpuPlace;

pub(crate) use super::liveness::any_alive;

/// Nothing is missing.
pub(in super::super) fn refuse_what_is_missing(_: &Options) -> Result<(), Failure> {
    Ok(())
}

/// Where every CPU is that is online.
pub(in super::super) fn places() -> Result<Vec<CpuPlace>, Failure> {
    let places = Topology::new().places()?.into_iter();
    Ok(places
        .map(|place| CpuPlace {
            cpu: place.cpu,
            socket: place.socket,
            die: place.die,
            core: place.core,
        })
        .collect())
}

/// The name of a thread (proc_pid_comm(5)); a thread that has ended has none.
pub(in super::super) fn thread_name(id: i32) -> String {
    std::fs::read_to_string(format!("/proc/{id}/comm"))
        .map(|name| name.trim_end().to_owned())
        .unwrap_or_default()
}

/// Counters that keep the kernel from patching itself for every run. Without permission for them,
/// runs just take longer.
pub(in super::super) fn anchors() -> Option<impl Sized> {
    const PATCHED: [Software; 3] = [
        Software::PageFaults,
        Software::ContextSwitches,
        Software::CpuMigrations,
    ];
    Anchors::hold(&PATCHED).ok()
}

/// What would permit counting in the kernel.
pub(in super::super) fn kernel_mode_hint() -> Option<String> {
    let level = Privileges::read().perf_event_paranoid?;
    Some(format!(
        "kernel.perf_event_paranoid is {level}; 1 or lower permits it, and so does CAP_PERFMON"
    ))
}
