//! Generalized cache events: a cache, what was done to it, and how it ended.

/// A generalized cache event.
///
/// Linux's `PERF_TYPE_HW_CACHE`: config = cache | operation << 8 | result << 16 (perf_event_open(2)).
/// Not every combination makes sense (an instruction cache is not written to); which ones a CPU can
/// count is the backend's to say.
///
/// Exhaustive: an event of perf_event_open(2) has these three parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheEvent {
    /// Which cache.
    pub cache: Cache,
    /// The operation on it.
    pub op: CacheOp,
    /// Every access, or misses only.
    pub result: CacheResult,
}

/// A cache of the generalized cache events, in the order of the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cache {
    /// First-level data cache.
    L1d,
    /// First-level instruction cache.
    L1i,
    /// Last-level cache.
    Ll,
    /// Data translation look-aside buffer.
    Dtlb,
    /// Instruction translation look-aside buffer.
    Itlb,
    /// Branch prediction unit.
    Bpu,
    /// Local memory node.
    Node,
}

/// An operation on a cache, in the order of the kernel's numbers.
///
/// Exhaustive: the interface of perf_event_open(2) has these three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Prefetches.
    Prefetch,
}

/// The result of a cache operation, in the order of the kernel's numbers.
///
/// Exhaustive: the interface of perf_event_open(2) has these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheResult {
    /// Every access, hit or miss.
    Access,
    /// Misses.
    Miss,
}

impl Cache {
    /// Every cache, in the order of the kernel's numbers.
    pub const ALL: &[Self] = &[
        Self::L1d,
        Self::L1i,
        Self::Ll,
        Self::Dtlb,
        Self::Itlb,
        Self::Bpu,
        Self::Node,
    ];

    /// The first part of the event's canonical name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1d => "L1-dcache",
            Self::L1i => "L1-icache",
            Self::Ll => "LLC",
            Self::Dtlb => "dTLB",
            Self::Itlb => "iTLB",
            Self::Bpu => "branch",
            Self::Node => "node",
        }
    }

    /// Other spellings of the first part.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::L1d => &["l1-d", "l1d", "L1-data"],
            Self::L1i => &["l1-i", "l1i", "L1-instruction"],
            Self::Ll => &["L2"],
            Self::Dtlb => &["d-tlb", "Data-TLB"],
            Self::Itlb => &["i-tlb", "Instruction-TLB"],
            Self::Bpu => &["branches", "bpu", "btb", "bpc"],
            Self::Node => &[],
        }
    }
}

impl CacheOp {
    /// Every operation, in the order of the kernel's numbers.
    pub const ALL: &[Self] = &[Self::Read, Self::Write, Self::Prefetch];

    /// The second part of the canonical name of an event that counts misses: `L1-dcache-load-misses`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "load",
            Self::Write => "store",
            Self::Prefetch => "prefetch",
        }
    }

    /// The second part of the canonical name of an event that counts accesses: `L1-dcache-loads`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Read => "loads",
            Self::Write => "stores",
            Self::Prefetch => "prefetches",
        }
    }

    /// Other spellings of the second part.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Read => &["read"],
            Self::Write => &["write"],
            Self::Prefetch => &["speculative-read", "speculative-load"],
        }
    }
}

impl CacheResult {
    /// Both results, in the order of the kernel's numbers.
    pub const ALL: &[Self] = &[Self::Access, Self::Miss];

    /// The last part of the name. Canonical names leave it out where every access is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "refs",
            Self::Miss => "misses",
        }
    }

    /// Other spellings of the last part.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Access => &["Reference", "ops", "access"],
            Self::Miss => &["miss"],
        }
    }
}

impl CacheEvent {
    /// A cache event.
    pub const fn new(cache: Cache, op: CacheOp, result: CacheResult) -> Self {
        Self { cache, op, result }
    }

    /// All 42 combinations of cache, operation and result.
    pub fn all() -> impl Iterator<Item = Self> {
        Cache::ALL.iter().flat_map(|&cache| {
            CacheOp::ALL.iter().flat_map(move |&op| {
                CacheResult::ALL
                    .iter()
                    .map(move |&result| Self { cache, op, result })
            })
        })
    }
}
