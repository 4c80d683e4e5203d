//! Events that the operating system counts without a PMU.

/// A software event.
///
/// The twelve of current Linux (`enum perf_sw_ids` in `include/uapi/linux/perf_event.h`), in its
/// order. Other systems offer some of them from getrusage(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Software {
    /// Nanoseconds of a high-resolution per-CPU timer.
    CpuClock,
    /// Nanoseconds the task ran.
    TaskClock,
    /// Page faults, minor and major.
    PageFaults,
    /// Context switches.
    ContextSwitches,
    /// Moves of the task from one CPU to another.
    CpuMigrations,
    /// Page faults served without input or output.
    MinorFaults,
    /// Page faults that needed input or output.
    MajorFaults,
    /// Alignment faults the kernel repaired; always zero on x86.
    AlignmentFaults,
    /// Unimplemented instructions the kernel emulated.
    EmulationFaults,
    /// A placeholder that counts nothing; it is there for its records.
    Dummy,
    /// Output of BPF programs; counts nothing by itself.
    BpfOutput,
    /// Context switches to a task of another control group.
    CgroupSwitches,
}

impl Software {
    /// Every software event, in the order of the kernel's numbers.
    pub const ALL: &[Self] = &[
        Self::CpuClock,
        Self::TaskClock,
        Self::PageFaults,
        Self::ContextSwitches,
        Self::CpuMigrations,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::AlignmentFaults,
        Self::EmulationFaults,
        Self::Dummy,
        Self::BpfOutput,
        Self::CgroupSwitches,
    ];

    /// The unit of its values; empty for a plain count.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::CpuClock | Self::TaskClock => "ns",
            _ => "",
        }
    }

    /// The canonical name, as `perf list` prints it first.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "cpu-clock",
            Self::TaskClock => "task-clock",
            Self::PageFaults => "page-faults",
            Self::ContextSwitches => "context-switches",
            Self::CpuMigrations => "cpu-migrations",
            Self::MinorFaults => "minor-faults",
            Self::MajorFaults => "major-faults",
            Self::AlignmentFaults => "alignment-faults",
            Self::EmulationFaults => "emulation-faults",
            Self::Dummy => "dummy",
            Self::BpfOutput => "bpf-output",
            Self::CgroupSwitches => "cgroup-switches",
        }
    }

    /// Other names that mean the same.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::PageFaults => &["faults"],
            Self::ContextSwitches => &["cs"],
            Self::CpuMigrations => &["migrations"],
            _ => &[],
        }
    }
}
