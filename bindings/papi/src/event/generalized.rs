//! The names that libpfm4 gives the generalized events of Linux, its PMU `perf`.

use quipu::{Event, Hardware, Software};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult};

/// libpfm4's PMU of these events.
pub(crate) const PMU: &str = "perf";

/// Hardware events: the kernel's name, others, the event, and what it counts.
#[rustfmt::skip]
pub(crate) const HARDWARE: [(&str, &[&str], Hardware, &str); 10] = [
    ("PERF_COUNT_HW_CPU_CYCLES", &["CYCLES", "CPU-CYCLES"], Hardware::Cycles, "cycles of the CPU"),
    ("PERF_COUNT_HW_INSTRUCTIONS", &["INSTRUCTIONS"], Hardware::Instructions, "retired instructions"),
    ("PERF_COUNT_HW_CACHE_REFERENCES", &["CACHE-REFERENCES"], Hardware::CacheReferences, "accesses to the last cache"),
    ("PERF_COUNT_HW_CACHE_MISSES", &["CACHE-MISSES"], Hardware::CacheMisses, "misses of the last cache"),
    ("PERF_COUNT_HW_BRANCH_INSTRUCTIONS", &["BRANCH-INSTRUCTIONS", "BRANCHES"], Hardware::Branches, "retired branches"),
    ("PERF_COUNT_HW_BRANCH_MISSES", &["BRANCH-MISSES"], Hardware::BranchMisses, "mispredicted branches"),
    ("PERF_COUNT_HW_BUS_CYCLES", &["BUS-CYCLES"], Hardware::BusCycles, "cycles of the bus"),
    ("PERF_COUNT_HW_STALLED_CYCLES_FRONTEND", &["STALLED-CYCLES-FRONTEND", "IDLE-CYCLES-FRONTEND"], Hardware::StalledCyclesFrontend, "cycles in which the front end delivers nothing"),
    ("PERF_COUNT_HW_STALLED_CYCLES_BACKEND", &["STALLED-CYCLES-BACKEND", "IDLE-CYCLES-BACKEND"], Hardware::StalledCyclesBackend, "cycles in which the back end takes nothing"),
    ("PERF_COUNT_HW_REF_CPU_CYCLES", &["REF-CYCLES"], Hardware::RefCycles, "cycles at the rate of the reference clock"),
];

/// Software events, likewise.
#[rustfmt::skip]
pub(crate) const SOFTWARE: [(&str, &[&str], Software, &str); 10] = [
    ("PERF_COUNT_SW_CPU_CLOCK", &["CPU-CLOCK"], Software::CpuClock, "nanoseconds of the CPU's clock"),
    ("PERF_COUNT_SW_TASK_CLOCK", &["TASK-CLOCK"], Software::TaskClock, "nanoseconds that the task runs"),
    ("PERF_COUNT_SW_PAGE_FAULTS", &["PAGE-FAULTS", "FAULTS"], Software::PageFaults, "page faults"),
    ("PERF_COUNT_SW_CONTEXT_SWITCHES", &["CONTEXT-SWITCHES", "CS"], Software::ContextSwitches, "context switches"),
    ("PERF_COUNT_SW_CPU_MIGRATIONS", &["CPU-MIGRATIONS", "MIGRATIONS"], Software::CpuMigrations, "moves to another CPU"),
    ("PERF_COUNT_SW_PAGE_FAULTS_MIN", &["MINOR-FAULTS"], Software::MinorFaults, "page faults without input or output"),
    ("PERF_COUNT_SW_PAGE_FAULTS_MAJ", &["MAJOR-FAULTS"], Software::MajorFaults, "page faults with input or output"),
    ("PERF_COUNT_SW_ALIGNMENT_FAULTS", &["ALIGNMENT-FAULTS"], Software::AlignmentFaults, "accesses that the kernel aligned"),
    ("PERF_COUNT_SW_EMULATION_FAULTS", &["EMULATION-FAULTS"], Software::EmulationFaults, "instructions that the kernel emulated"),
    ("PERF_COUNT_SW_CGROUP_SWITCHES", &["CGROUP-SWITCHES"], Software::CgroupSwitches, "context switches to another cgroup"),
];

/// Caches by the kernel's names, and what they are.
pub(crate) const CACHES: [(&str, Cache, &str); 7] = [
    ("PERF_COUNT_HW_CACHE_L1D", Cache::L1d, "level 1 data cache"),
    (
        "PERF_COUNT_HW_CACHE_L1I",
        Cache::L1i,
        "level 1 instruction cache",
    ),
    ("PERF_COUNT_HW_CACHE_LL", Cache::Ll, "last level cache"),
    ("PERF_COUNT_HW_CACHE_DTLB", Cache::Dtlb, "data TLB"),
    ("PERF_COUNT_HW_CACHE_ITLB", Cache::Itlb, "instruction TLB"),
    (
        "PERF_COUNT_HW_CACHE_BPU",
        Cache::Bpu,
        "branch prediction unit",
    ),
    (
        "PERF_COUNT_HW_CACHE_NODE",
        Cache::Node,
        "memory of the node",
    ),
];

/// Masks of caches, which select an operation.
pub(crate) const OPERATIONS: [(&str, CacheOp, &str); 3] = [
    ("READ", CacheOp::Read, "reads"),
    ("WRITE", CacheOp::Write, "writes"),
    ("PREFETCH", CacheOp::Prefetch, "prefetches"),
];

/// Masks of caches, which select a result.
pub(crate) const RESULTS: [(&str, CacheResult, &str); 2] = [
    ("ACCESS", CacheResult::Access, "all of them"),
    ("MISS", CacheResult::Miss, "those that miss"),
];

/// Returns an event by libpfm4's name, in any letter case, without the name of the PMU.
pub(crate) fn named(name: &str) -> Option<(Event, String)> {
    let is = |known: &str, others: &[&str]| {
        known.eq_ignore_ascii_case(name) || others.iter().any(|o| o.eq_ignore_ascii_case(name))
    };
    let hardware = HARDWARE
        .iter()
        .find(|(known, others, ..)| is(known, others));
    if let Some((.., event, what)) = hardware {
        return Some(((*event).into(), (*what).to_owned()));
    }
    let software = SOFTWARE
        .iter()
        .find(|(known, others, ..)| is(known, others));
    if let Some((.., event, what)) = software {
        return Some(((*event).into(), (*what).to_owned()));
    }
    if let Some(event) = CacheEvent::from_name(name) {
        return Some((event.into(), described(event)));
    }
    cache(name).map(|event| (event.into(), described(event)))
}

fn described(event: CacheEvent) -> String {
    let cache = CACHES.iter().find(|(_, cache, _)| *cache == event.cache);
    let operation = OPERATIONS
        .iter()
        .find(|(_, operation, _)| *operation == event.op);
    let result = RESULTS
        .iter()
        .find(|(_, result, _)| *result == event.result);
    match (cache, operation, result) {
        (Some(cache), Some(operation), Some(result)) => {
            format!("{}: {}, {}", cache.2, operation.2, result.2)
        }
        _ => String::new(),
    }
}

/// Returns the event of a cache with its masks; without them, all reads.
fn cache(name: &str) -> Option<CacheEvent> {
    let mut words = name.split(':');
    let first = words.next()?;
    let (_, cache, _) = CACHES
        .iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(first))?;
    let (mut op, mut result) = (CacheOp::Read, CacheResult::Access);
    for word in words {
        let operation = OPERATIONS
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(word));
        let outcome = RESULTS
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(word));
        match (operation, outcome) {
            (Some((_, operation, _)), _) => op = *operation,
            (_, Some((_, outcome, _))) => result = *outcome,
            _ => return None,
        }
    }
    Some(CacheEvent::new(*cache, op, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_the_kernel_and_each_other_name_is_its_event() {
        for (name, others, event, _) in HARDWARE {
            for name in others.iter().chain([&name]) {
                assert_eq!(named(name).unwrap().0, event.into(), "{name}");
            }
        }
        for (name, others, event, _) in SOFTWARE {
            for name in others.iter().chain([&name]) {
                let lower = name.to_ascii_lowercase();
                assert_eq!(named(&lower).unwrap().0, event.into(), "{name}");
            }
        }
        assert!(named("PERF_COUNT_SW_NOTHING").is_none());
    }

    #[test]
    fn masks_of_caches_select_operation_and_result() {
        let event = |name: &str| named(name).map(|(event, _)| event);
        let misses = CacheEvent::new(Cache::L1d, CacheOp::Write, CacheResult::Miss);
        assert_eq!(
            event("perf_count_hw_cache_l1d:write:miss"),
            Some(misses.into())
        );
        assert_eq!(
            event("PERF_COUNT_HW_CACHE_L1D:MISS:WRITE"),
            Some(misses.into())
        );
        assert_eq!(event("L1-DCACHE-STORE-MISSES"), Some(misses.into()));
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D:HIT"), None);
    }
}
