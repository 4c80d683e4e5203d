//! Facts about Linux alone. A fact that could not be found out is `null`.

use serde::Serialize;

use super::refusal::Refusal;

/// Facts about Linux.
#[derive(Debug, Serialize)]
pub(super) struct LinuxFacts {
    pub(super) pmus: Vec<PmuFacts>,
    /// True if one of them belongs to the CPU cores.
    pub(super) has_cpu_pmu: bool,
    pub(super) counters: CounterFacts,
    pub(super) privileges: PrivilegeFacts,
    pub(super) limits: LimitFacts,
    pub(super) tracepoints: TracepointFacts,
}

/// The counters of the CPU's own PMUs.
#[derive(Debug, Default, Serialize)]
pub(super) struct CounterFacts {
    /// The result of each core PMU's test, or one entry that says why there is none.
    pub(super) tests: Vec<CounterTestFacts>,
    /// Why they cannot be read without a system call; `null` if they can.
    pub(super) no_user_reads: Option<Refusal>,
}

/// Which counters of a core PMU count.
#[derive(Debug, Default, Serialize)]
pub(super) struct CounterTestFacts {
    /// The PMU; `null` where it was not tested.
    pub(super) pmu: Option<String>,
    /// The result in words.
    pub(super) state: String,
    /// The event it was tested with.
    pub(super) event: Option<&'static str>,
    /// The number that the kernel takes a group of this event for.
    pub(super) advertised: Option<usize>,
    /// The number of those that were shown to count.
    pub(super) counting: Option<usize>,
}

impl CounterTestFacts {
    /// Returns the entry that has nothing but words.
    pub(super) fn untested(state: impl Into<String>) -> Self {
        Self {
            state: state.into(),
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct PmuFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) type_: u32,
    pub(super) fields: usize,
    pub(super) events: usize,
    /// The CPUs it counts on or is opened on; `null` for any.
    pub(super) cpus: Option<Vec<u32>>,
    /// True if it counts whole CPUs only.
    pub(super) system_wide: bool,
    pub(super) core: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct PrivilegeFacts {
    pub(super) user_id: Option<u32>,
    pub(super) perf_event_paranoid: Option<i32>,
    /// True if this process is exempt from that setting.
    pub(super) exempt: bool,
    pub(super) may_count: MayCount,
    /// The effective capabilities that matter for counting.
    pub(super) capabilities: Vec<&'static str>,
    pub(super) initial_user_namespace: Option<bool>,
    /// `disabled`, `strict` or `filter`.
    pub(super) seccomp: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct MayCount {
    pub(super) user_mode: bool,
    pub(super) kernel_mode: bool,
    pub(super) whole_cpus: bool,
    pub(super) raw_tracepoints: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct LimitFacts {
    pub(super) open_files: Option<LimitFact>,
    pub(super) locked_memory: Option<LimitFact>,
}

/// A resource limit; `null` is unlimited.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct LimitFact {
    pub(super) soft: Option<u64>,
    pub(super) hard: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct TracepointFacts {
    /// The mount point of tracefs.
    pub(super) path: Option<String>,
    pub(super) systems: Option<usize>,
    #[serde(flatten)]
    pub(super) refusal: Option<Refusal>,
}
