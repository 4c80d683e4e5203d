//! The keys of a `generalized` table: hardware events and cache events by their usual names.

use quipu_hal::{CacheEvent, CacheOp, CacheResult, Hardware, Software};

/// The name of a cache event: `L1-dcache-load-misses`.
pub(crate) fn cache_key(event: CacheEvent) -> String {
    let what = match (event.op, event.result) {
        (CacheOp::Read, CacheResult::Access) => "loads",
        (CacheOp::Read, CacheResult::Miss) => "load-misses",
        (CacheOp::Write, CacheResult::Access) => "stores",
        (CacheOp::Write, CacheResult::Miss) => "store-misses",
        (CacheOp::Prefetch, CacheResult::Access) => "prefetches",
        (CacheOp::Prefetch, CacheResult::Miss) => "prefetch-misses",
    };
    format!("{}-{what}", event.cache.name())
}

/// Whether a key names a generalized event.
pub(crate) fn is_generalized(key: &str) -> bool {
    Hardware::ALL.iter().any(|event| event.name() == key)
        || CacheEvent::all().any(|event| cache_key(event) == key)
}

/// Whether a name is that of an event the operating system counts, which every CPU has.
pub(crate) fn is_software(name: &str) -> bool {
    Software::ALL.iter().any(|event| event.name() == name)
}
