//! The keys of generalized events.

use quipu_hal::{CacheEvent, CacheOp, CacheResult, Hardware};

/// Returns the name of a cache event: `L1-dcache-load-misses`.
pub fn cache_key(event: CacheEvent) -> String {
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

/// Returns true if a key names a generalized event.
pub(crate) fn is_generalized(key: &str) -> bool {
    Hardware::ALL.iter().any(|event| event.name() == key)
        || CacheEvent::all().any(|event| cache_key(event) == key)
}
