//! Linux: topology, threads and permissions.

use quipu::{Software, Target};
use quipu_linux::Anchors;
use quipu_linux::privileges::Privileges;
use quipu_linux::topology::Topology;

use crate::failure::Failure;

use super::super::aggregate::CpuTopology;
use super::super::options::Options;

/// Succeeds: every option is supported.
pub(in super::super) fn check_supported(_: &Options) -> Result<(), Failure> {
    Ok(())
}

/// Returns the topology of the CPUs that are online.
pub(in super::super) fn cpu_topology() -> Result<Vec<CpuTopology>, Failure> {
    let topology = Topology::new();
    let places = topology.places()?.into_iter();
    let places = places.map(|place| {
        Ok(CpuTopology {
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
    let level = Privileges::read().perf_event_paranoid?;
    Some(format!(
        "kernel.perf_event_paranoid is {level}; 1 or lower permits it, and so does CAP_PERFMON"
    ))
}

/// Returns true if any of these processes and threads runs. A target that is not a task always does.
pub(crate) fn any_alive(targets: &[Target]) -> bool {
    targets.iter().any(|target| match target {
        Target::Process(id) | Target::Thread(id) => is_alive(*id),
        _ => true,
    })
}

/// Returns a zombie has ended, although it still has its entry (proc_pid_stat(5), `state`).
fn is_alive(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    // The name before the state is in parentheses and may contain anything.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    !state.is_some_and(|rest| rest.starts_with(['Z', 'X', 'x']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn zombies_and_the_gone_are_dead() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let id = i32::try_from(child.id()).expect("a pid");
        assert!(any_alive(&[Target::Process(id)]));
        child.kill().expect("it is ours");
        // It becomes a zombie in its own time; it cannot go away before it is waited for.
        while any_alive(&[Target::Thread(id)]) {
            std::thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{id}")).exists());
        child.wait().expect("it has ended");
        assert!(!any_alive(&[Target::Process(id)]));
        assert!(any_alive(&[Target::Process(id), Target::AllCpus]));
    }
}
