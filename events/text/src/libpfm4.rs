//! The events of libpfm4's PMU `perf`: the kernel's names of the generalized events.
//!
//! [`parse`](crate::parse) reads them with and without the PMU, in any letter case:
//!
//! ```
//! use quipu_text::{NoNames, parse_spec};
//!
//! for (text, displayed) in [
//!     ("PERF_COUNT_HW_CPU_CYCLES", "cycles"),
//!     ("perf::PERF_COUNT_SW_PAGE_FAULTS:u=1", "page-faults:u"),
//!     ("perf::CYCLES", "cycles"),
//!     ("PERF_COUNT_HW_CACHE_L1D:WRITE:MISS", "L1-dcache-store-misses"),
//! ] {
//!     assert_eq!(parse_spec(text, &NoNames)?.to_string(), displayed);
//! }
//! # Ok::<(), quipu_hal::Error>(())
//! ```

use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult, Event, Hardware, Software};

/// The name of the PMU.
pub const PMU: &str = "perf";

/// The hardware events.
pub const HARDWARE: [(&str, Hardware); 10] = [
    ("PERF_COUNT_HW_CPU_CYCLES", Hardware::Cycles),
    ("PERF_COUNT_HW_INSTRUCTIONS", Hardware::Instructions),
    ("PERF_COUNT_HW_CACHE_REFERENCES", Hardware::CacheReferences),
    ("PERF_COUNT_HW_CACHE_MISSES", Hardware::CacheMisses),
    ("PERF_COUNT_HW_BRANCH_INSTRUCTIONS", Hardware::Branches),
    ("PERF_COUNT_HW_BRANCH_MISSES", Hardware::BranchMisses),
    ("PERF_COUNT_HW_BUS_CYCLES", Hardware::BusCycles),
    (
        "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND",
        Hardware::StalledCyclesFrontend,
    ),
    (
        "PERF_COUNT_HW_STALLED_CYCLES_BACKEND",
        Hardware::StalledCyclesBackend,
    ),
    ("PERF_COUNT_HW_REF_CPU_CYCLES", Hardware::RefCycles),
];

/// The software events.
pub const SOFTWARE: [(&str, Software); 10] = [
    ("PERF_COUNT_SW_CPU_CLOCK", Software::CpuClock),
    ("PERF_COUNT_SW_TASK_CLOCK", Software::TaskClock),
    ("PERF_COUNT_SW_PAGE_FAULTS", Software::PageFaults),
    ("PERF_COUNT_SW_CONTEXT_SWITCHES", Software::ContextSwitches),
    ("PERF_COUNT_SW_CPU_MIGRATIONS", Software::CpuMigrations),
    ("PERF_COUNT_SW_PAGE_FAULTS_MIN", Software::MinorFaults),
    ("PERF_COUNT_SW_PAGE_FAULTS_MAJ", Software::MajorFaults),
    ("PERF_COUNT_SW_ALIGNMENT_FAULTS", Software::AlignmentFaults),
    ("PERF_COUNT_SW_EMULATION_FAULTS", Software::EmulationFaults),
    ("PERF_COUNT_SW_CGROUP_SWITCHES", Software::CgroupSwitches),
];

/// The caches, each an event with masks.
pub const CACHES: [(&str, Cache); 7] = [
    ("PERF_COUNT_HW_CACHE_L1D", Cache::L1d),
    ("PERF_COUNT_HW_CACHE_L1I", Cache::L1i),
    ("PERF_COUNT_HW_CACHE_LL", Cache::Ll),
    ("PERF_COUNT_HW_CACHE_DTLB", Cache::Dtlb),
    ("PERF_COUNT_HW_CACHE_ITLB", Cache::Itlb),
    ("PERF_COUNT_HW_CACHE_BPU", Cache::Bpu),
    ("PERF_COUNT_HW_CACHE_NODE", Cache::Node),
];

/// The masks of caches that select an operation, of which one is taken: by default `READ`.
pub const OPERATIONS: [(&str, CacheOp); 3] = [
    ("READ", CacheOp::Read),
    ("WRITE", CacheOp::Write),
    ("PREFETCH", CacheOp::Prefetch),
];

/// The masks of caches that select a result, of which one is taken: by default `MISS`.
pub const RESULTS: [(&str, CacheResult); 2] =
    [("ACCESS", CacheResult::Access), ("MISS", CacheResult::Miss)];

/// Returns the value of a name in a list, in any letter case.
fn find<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    let found = list
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| *value)
}

/// Returns the event of one of the kernel's names, in any letter case, with the masks behind it, and the text behind
/// these: `PERF_COUNT_HW_CACHE_L1D:READ:MISS:u` is of the event, and `u` is left.
pub(crate) fn kernel_event(text: &str) -> Option<(Event, Option<&str>)> {
    let (name, mut rest) = cut(text);
    if let Some(event) = find(&HARDWARE, name) {
        return Some((event.into(), rest));
    }
    if let Some(event) = find(&SOFTWARE, name) {
        return Some((event.into(), rest));
    }
    let cache = find(&CACHES, name)?;
    let (mut operation, mut result) = (None, None);
    while let Some(masks) = rest {
        let (mask, behind) = cut(masks);
        let is_taken = match (find(&OPERATIONS, mask), find(&RESULTS, mask)) {
            (None, None) => break,
            (Some(named), _) => operation
                .replace(named)
                .is_some_and(|before| before != named),
            (_, Some(named)) => result.replace(named).is_some_and(|before| before != named),
        };
        if is_taken {
            return None;
        }
        rest = behind;
    }
    let operation = operation.unwrap_or(CacheOp::Read);
    let result = result.unwrap_or(CacheResult::Miss);
    Some((CacheEvent::new(cache, operation, result).into(), rest))
}

/// Returns the first part of a name, and what is behind its colon.
fn cut(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((part, rest)) => (part, Some(rest)),
        None => (text, None),
    }
}

/// Returns the generalized event of a name or alias in any letter case: `CPU-CYCLES`.
///
/// A name without the PMU may be that of a CPU's own event as well, which comes first.
pub fn in_any_case(name: &str) -> Option<Event> {
    Event::generalized(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cache of branches is called `branches` too, in any letter case.
    #[test]
    fn hardware_events_in_any_case_are_no_caches() {
        for (name, event) in [
            ("BRANCHES", Hardware::Branches),
            ("Branch-Misses", Hardware::BranchMisses),
            ("CPU-CYCLES", Hardware::Cycles),
        ] {
            assert_eq!(Event::generalized(name), None, "{name}");
            assert_eq!(in_any_case(name), Some(event.into()), "{name}");
        }
        let cache = CacheEvent::new(Cache::L1d, CacheOp::Read, CacheResult::Miss);
        assert_eq!(
            Event::generalized("l1-DCACHE-load-MISSES"),
            Some(cache.into())
        );
    }

    #[test]
    fn masks_of_caches_select_operation_and_result() {
        let event = |name: &str| kernel_event(name).map(|(event, rest)| (event, rest.is_none()));
        let is =
            |operation, result| Some((CacheEvent::new(Cache::L1d, operation, result).into(), true));
        let misses = is(CacheOp::Write, CacheResult::Miss);
        assert_eq!(event("perf_count_hw_cache_l1d:write:miss"), misses);
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D:MISS:WRITE"), misses);
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D:WRITE"), misses);
        let reads = is(CacheOp::Read, CacheResult::Access);
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D:ACCESS"), reads);
        let read_misses = is(CacheOp::Read, CacheResult::Miss);
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D"), read_misses);
        assert_eq!(event("PERF_COUNT_HW_CACHE_L1D:READ:WRITE"), None);
        assert_eq!(event("PERF_COUNT_SW_NOTHING"), None);
        let rest = |name| kernel_event(name).and_then(|(_, rest)| rest);
        assert_eq!(rest("PERF_COUNT_HW_CACHE_L1D:READ:HIT"), Some("HIT"));
        assert_eq!(rest("PERF_COUNT_HW_CPU_CYCLES:u"), Some("u"));
    }
}
