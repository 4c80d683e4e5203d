//! Linux: topology, threads and permissions.

use quipu::{Software, Target};
use quipu_linux::Anchors;
use quipu_linux::privileges::Privileges;
use quipu_linux::topology::Topology;

use quipu_shell::Failure;
pub(in super::super) use quipu_shell::left_behind::{Begun, left_behind};

use super::super::aggregate::CpuPosition;
use super::super::options::Options;

/// Succeeds: every option is supported.
pub(in super::super) fn check_supported(_: &Options) -> Result<(), Failure> {
    Ok(())
}

/// Returns the topology of the CPUs that are online.
pub(in super::super) fn cpu_topology() -> Result<Vec<CpuPosition>, Failure> {
    let topology = Topology::new();
    let places = topology.places()?.into_iter();
    let places = places.map(|place| {
        Ok(CpuPosition {
            cpu: place.cpu,
            socket: place.socket,
            die: place.die,
            cluster: topology.cluster(place.cpu)?,
            core: place.core,
            node: topology.node(place.cpu)?,
            caches: topology.caches(place.cpu)?,
        })
    });
    places.collect()
}

/// Returns every process that runs (proc(5)).
pub(in super::super) fn every_process() -> Result<Vec<Target>, Failure> {
    let entries = std::fs::read_dir("/proc");
    let entries = entries
        .map_err(|e| Failure::new(format_args!("cannot find the processes in /proc: {e}")))?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(ids.map(Target::Process).collect())
}

/// Returns the time at which a process was made, if that can be read.
pub(in super::super) fn begun(process: i32) -> Option<Begun> {
    Begun::of(process)
}

/// Returns the name of a thread (proc_pid_comm(5)); that of a thread that has ended is empty.
pub(in super::super) fn thread_name(id: i32) -> String {
    std::fs::read_to_string(format!("/proc/{id}/comm"))
        .map(|name| name.trim_end().to_owned())
        .unwrap_or_default()
}

/// Opens counters that keep the kernel from patching its code for every run. Without permission for
/// them, runs just take longer.
pub(in super::super) fn anchors() -> Option<impl Sized> {
    const PATCHED: [Software; 3] = [
        Software::PageFaults,
        Software::ContextSwitches,
        Software::CpuMigrations,
    ];
    Anchors::hold(&PATCHED).ok()
}

/// Returns a hint on how to permit counting in the kernel.
pub(in super::super) fn kernel_mode_hint() -> Option<String> {
    let privileges = Privileges::read();
    let level = privileges.perf_event_paranoid?;
    let capability = match privileges.initial_user_namespace {
        Some(false) => ", and so does CAP_PERFMON outside of this user namespace",
        _ => ", and so does CAP_PERFMON",
    };
    Some(format!(
        "kernel.perf_event_paranoid is {level}; 1 or lower permits it{capability}"
    ))
}
