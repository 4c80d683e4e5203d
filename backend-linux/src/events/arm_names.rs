//! The names that ARM's core PMUs give generalized events in sysfs.

use quipu_hal::Hardware;

/// Returns the names, the best first, that ARM's core PMUs give a generalized event in sysfs.
///
/// On a machine with several core PMUs, kernels before 6.6 take a generalized event for one of them
/// only under that PMU's own type. These are the events that the kernel itself takes
/// (`armv8_pmuv3_perf_map`, `drivers/perf/arm_pmuv3.c`); which of them a PMU has, it shows. Cache
/// events are not here, because the kernel takes others on some cores.
pub(crate) fn arm_names(event: Hardware) -> &'static [&'static str] {
    match event {
        Hardware::Cycles => &["cpu_cycles"],
        Hardware::Instructions => &["inst_retired"],
        Hardware::CacheReferences => &["l1d_cache"],
        Hardware::CacheMisses => &["l1d_cache_refill"],
        Hardware::Branches => &["br_retired", "pc_write_retired"],
        Hardware::BranchMisses => &["br_mis_pred"],
        Hardware::BusCycles => &["bus_cycles"],
        Hardware::StalledCyclesFrontend => &["stall_frontend"],
        Hardware::StalledCyclesBackend => &["stall_backend"],
        _ => &[],
    }
}
