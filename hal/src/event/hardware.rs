//! Generalized hardware events.

/// A hardware event that most CPUs have under some name.
///
/// The ten of Linux (`enum perf_hw_id` in `include/uapi/linux/perf_event.h`), in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hardware {
    /// CPU cycles, at the frequency the CPU runs at.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Cache accesses, usually to the last level.
    CacheReferences,
    /// Cache misses, usually of the last level.
    CacheMisses,
    /// Retired branch instructions.
    Branches,
    /// Mispredicted branch instructions.
    BranchMisses,
    /// Bus cycles; their relation to CPU cycles varies.
    BusCycles,
    /// Cycles in which the front end stalled issue.
    StalledCyclesFrontend,
    /// Cycles in which the back end stalled retirement.
    StalledCyclesBackend,
    /// Cycles at a reference frequency that does not scale.
    RefCycles,
}

impl Hardware {
    /// Every generalized hardware event, in the order of the kernel's numbers.
    pub const ALL: &[Self] = &[
        Self::Cycles,
        Self::Instructions,
        Self::CacheReferences,
        Self::CacheMisses,
        Self::Branches,
        Self::BranchMisses,
        Self::BusCycles,
        Self::StalledCyclesFrontend,
        Self::StalledCyclesBackend,
        Self::RefCycles,
    ];

    /// The canonical name, as `perf list` prints it first.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::CacheReferences => "cache-references",
            Self::CacheMisses => "cache-misses",
            Self::Branches => "branches",
            Self::BranchMisses => "branch-misses",
            Self::BusCycles => "bus-cycles",
            Self::StalledCyclesFrontend => "stalled-cycles-frontend",
            Self::StalledCyclesBackend => "stalled-cycles-backend",
            Self::RefCycles => "ref-cycles",
        }
    }

    /// Other names that mean the same.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Cycles => &["cpu-cycles"],
            Self::Branches => &["branch-instructions"],
            Self::StalledCyclesFrontend => &["idle-cycles-frontend"],
            Self::StalledCyclesBackend => &["idle-cycles-backend"],
            _ => &[],
        }
    }
}
