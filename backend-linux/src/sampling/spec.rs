//! The description of a sampler.

use std::path::Path;

use bitflags::bitflags;
use quipu_hal::{Attributes, EventSpec};
use quipu_perf_data::{BranchSampleType, ReadFormat, SampleType};

use crate::machine::kernel_file;

/// The kernel's behaviour when a ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// It drops new records, and says how many.
    #[default]
    Lose,
    /// It writes over the oldest ones (`write_backward`).
    Overwrite,
}

/// The rate at which an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rate {
    /// Once in so many events.
    ///
    /// With [`SampleType::PERIOD`] the kernel samples software events, tracepoints and breakpoints
    /// at each event instead, and says for how many it stands (`perf_swevent_event`,
    /// `kernel/events/core.c`).
    Period(u64),
    /// So many times in a second, for which the kernel keeps changing the period.
    Frequency(u64),
    /// Never: it is a member of a group that its leader samples, or is there for its other records.
    Never,
}

impl Rate {
    /// Returns the most samples a second that the kernel takes at present (`kernel.perf_event_max_sample_rate`); it lowers
    /// that by itself where sampling takes too much of the time (`perf_sample_event_took`, `kernel/events/core.c`).
    pub fn most_frequent() -> Option<u64> {
        let limit = Path::new("/proc/sys/kernel/perf_event_max_sample_rate");
        let limit = kernel_file::read(limit).ok()?;
        limit.parse().ok().filter(|most| *most > 0)
    }
}

/// The effect of an event on a trace in the AUX area (`aux_action`, Linux 6.13, where the PMU of the trace can do so).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuxAction {
    /// The event is the trace, and starts paused (`aux_start_paused`).
    StartPaused,
    /// Each overflow of the event pauses the trace that leads its group (`aux_pause`).
    Pause,
    /// Each overflow of the event resumes the trace that leads its group (`aux_resume`).
    Resume,
}

/// An event that is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampledEvent {
    /// The event, its filter, and how precise its samples are to be.
    pub event: EventSpec,
    /// The rate of its samples.
    pub rate: Rate,
    /// True if it is in the group of the event before it, scheduled together with that. With
    /// [`SampleType::READ`] and [`ReadFormat::GROUP`] samples hold the values of the whole group.
    pub is_member: bool,
    /// Its effect on the trace of hardware, such as Intel PT, that the first event of its group writes.
    pub aux_action: Option<AuxAction>,
}

impl SampledEvent {
    /// Returns an event with its rate.
    pub fn new(event: impl Into<EventSpec>, rate: Rate) -> Self {
        Self {
            event: event.into(),
            rate,
            is_member: false,
            aux_action: None,
        }
    }
}

bitflags! {
    /// The records beside samples (perf_event_open(2), the bit-fields of `perf_event_attr`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ExtraRecords: u32 {
        /// Executable memory that is mapped (`mmap2`, else `mmap`).
        const MAPPINGS = 1;
        /// Other memory that is mapped (`mmap_data`).
        const DATA_MAPPINGS = 1 << 1;
        /// With the build id in place of the inode (`build_id`, Linux 5.12).
        const BUILD_IDS = 1 << 2;
        /// Names of threads (`comm` and `comm_exec`).
        const NAMES = 1 << 3;
        /// Threads that start and end (`task`).
        const TASKS = 1 << 4;
        /// Context switches (`context_switch`, Linux 4.3).
        const SWITCHES = 1 << 5;
        /// Namespaces of threads (`namespaces`, Linux 4.12).
        const NAMESPACES = 1 << 6;
        /// Symbols of the kernel that come and go (`ksymbol`, Linux 5.1).
        const KSYMBOLS = 1 << 7;
        /// BPF programs that come and go (`bpf_event`, Linux 5.1).
        const BPF_PROGRAMS = 1 << 8;
        /// Control groups (`cgroup`, Linux 5.7).
        const CGROUPS = 1 << 9;
        /// Changes of the kernel's text (`text_poke`, Linux 5.9).
        const TEXT_POKES = 1 << 10;
        /// The user's frames of call chains, taken later (`defer_output`, Linux 6.19).
        const DEFERRED_CALLCHAINS = 1 << 11;
    }
}

bitflags! {
    /// Options of a sampler (perf_event_open(2), the bit-fields of `perf_event_attr`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SamplerFlags: u32 {
        /// Call chains without the kernel's frames (`exclude_callchain_kernel`).
        const NO_KERNEL_FRAMES = 1;
        /// Call chains without the user's frames (`exclude_callchain_user`).
        const NO_USER_FRAMES = 1 << 1;
        /// The user's frames come later, in records of their own (`defer_callchain`, Linux 6.19).
        const DEFER_USER_FRAMES = 1 << 2;
        /// A [`Read`](super::Record::Read) record of each counter when a thread that inherited it ends, with what it has
        /// counted there (`inherit_stat`). The one task that has the counters as they were opened has no such records:
        /// the target itself, or one that it made, as the kernel may exchange the counters of two tasks when it switches
        /// between them (`perf_event_context_sched_out`, `kernel/events/core.c`).
        const THREAD_COUNTS = 1 << 3;
        /// Samples go to the AUX area of the first event (`aux_output`, Linux 5.4).
        const AUX_OUTPUT = 1 << 4;
    }
}

/// The moment at which a wait for a ring ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Wakeup {
    /// When the ring is half full.
    #[default]
    HalfFull,
    /// After so many samples.
    Samples(u32),
    /// After so many bytes of records.
    Bytes(u32),
}

/// The description of a [`Sampler`](super::Sampler): events, sample fields, records and rings.
///
/// ```
/// use quipu_hal::Software;
/// use quipu_linux::sampling::{ExtraRecords, Rate, SampleType, SamplerSpec};
///
/// let mut spec = SamplerSpec::new([(Software::CpuClock, Rate::Frequency(999))]);
/// spec.sample_type |= SampleType::CALLCHAIN;
/// spec.extra_records = ExtraRecords::MAPPINGS | ExtraRecords::NAMES | ExtraRecords::TASKS;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplerSpec {
    /// The events. All of them have the samples, the records and the attributes below.
    pub events: Vec<SampledEvent>,
    /// The attributes with which the counters are opened and scheduled.
    pub attributes: Attributes,
    /// The fields of a sample. With several events [`IDENTIFIER`](SampleType::IDENTIFIER) is added,
    /// to distinguish them.
    pub sample_type: SampleType,
    /// The values in samples, and of [reads](super::SampledCounter::read).
    /// [`LOST`](ReadFormat::LOST) is left out where the kernel does not have it (before 6.0).
    pub read_format: ReadFormat,
    /// Which branches, for [`SampleType::BRANCH_STACK`].
    pub branches: BranchSampleType,
    /// Which registers, for [`SampleType::REGS_USER`]: bit n is register n of the architecture's
    /// `asm/perf_regs.h`.
    pub user_registers: u64,
    /// Which registers, for [`SampleType::REGS_INTR`].
    pub interrupt_registers: u64,
    /// Bytes of stack, for [`SampleType::STACK_USER`]: a multiple of 8 below 64 KiB.
    pub user_stack: u32,
    /// The most frames of a call chain; 0 for as many as `kernel.perf_event_max_stack` says.
    pub max_frames: u16,
    /// Bytes of the AUX area in a sample, for [`SampleType::AUX`].
    pub aux_bytes: u32,
    /// The records beside samples. Those of the first event are enough, so only it writes them.
    pub extra_records: ExtraRecords,
    /// True if these records have thread, time and CPU (`sample_id_all`).
    pub sample_id_all: bool,
    /// Options that are off by default.
    pub flags: SamplerFlags,
    /// The clock of all times: a `CLOCK_*` of clock_gettime(2), or the kernel's own `sched_clock`.
    pub clock: Option<i32>,
    /// Bytes of records that a ring can hold at least; it is made a power of two of pages.
    pub ring_bytes: usize,
    /// The kernel's behaviour when a ring is full.
    pub when_full: WhenFull,
    /// The moment at which a wait for a ring ends.
    pub wakeup: Wakeup,
    /// Bytes of new data in the AUX area that end a wait; 0 for half of it.
    pub aux_wakeup: u32,
    /// Has each overflow raise SIGTRAP in the thread that caused it, with this as `si_perf_data`
    /// (`sigtrap`, Linux 5.13). Asks for [`remove_on_exec`](Attributes::remove_on_exec).
    pub trap: Option<u64>,
}

impl SamplerSpec {
    /// Samples of instruction pointer, thread and time, into rings of 128 KiB; no other records but
    /// losses.
    pub fn new<E: Into<EventSpec>>(events: impl IntoIterator<Item = (E, Rate)>) -> Self {
        Self {
            events: events
                .into_iter()
                .map(|(event, rate)| SampledEvent::new(event, rate))
                .collect(),
            attributes: Attributes::default(),
            sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
            read_format: ReadFormat::TIMES | ReadFormat::ID | ReadFormat::LOST,
            branches: BranchSampleType::empty(),
            user_registers: 0,
            interrupt_registers: 0,
            user_stack: 0,
            max_frames: 0,
            aux_bytes: 0,
            extra_records: ExtraRecords::empty(),
            sample_id_all: true,
            flags: SamplerFlags::empty(),
            clock: None,
            ring_bytes: 128 << 10,
            when_full: WhenFull::Lose,
            wakeup: Wakeup::default(),
            aux_wakeup: 0,
            trap: None,
        }
    }
}
