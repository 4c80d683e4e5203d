//! Layout of records: the bits of `perf_event_attr` that say what a sample consists of.

use bitflags::bitflags;

bitflags! {
    /// `PERF_SAMPLE_*`: the fields of a sample (perf_event_open(2), `sample_type`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SampleType: u64 {
        /// The instruction pointer.
        const IP = 1;
        /// Process and thread.
        const TID = 1 << 1;
        /// Nanoseconds of the clock that was asked for.
        const TIME = 1 << 2;
        /// The address that the event is about.
        const ADDR = 1 << 3;
        /// The values of the counter, or of its whole group.
        const READ = 1 << 4;
        /// The call chain.
        const CALLCHAIN = 1 << 5;
        /// The id of the counter as opened.
        const ID = 1 << 6;
        /// The CPU.
        const CPU = 1 << 7;
        /// The events since the sample before.
        const PERIOD = 1 << 8;
        /// The id of the counter that took the sample; differs from the id where it was inherited.
        const STREAM_ID = 1 << 9;
        /// Data of the event itself: the fields of a tracepoint.
        const RAW = 1 << 10;
        /// The last branches taken.
        const BRANCH_STACK = 1 << 11;
        /// Registers of user mode.
        const REGS_USER = 1 << 12;
        /// A copy of the top of the user stack.
        const STACK_USER = 1 << 13;
        /// Cost of the sampled access, as one number.
        const WEIGHT = 1 << 14;
        /// Data source of the sampled access.
        const DATA_SRC = 1 << 15;
        /// The id of the counter, in a place that can be found in every record.
        const IDENTIFIER = 1 << 16;
        /// Why a hardware transaction was aborted.
        const TRANSACTION = 1 << 17;
        /// Registers at the interrupt.
        const REGS_INTR = 1 << 18;
        /// The physical address of the access.
        const PHYS_ADDR = 1 << 19;
        /// A piece of the AUX area.
        const AUX = 1 << 20;
        /// The control group.
        const CGROUP = 1 << 21;
        /// The size of the page that holds the data.
        const DATA_PAGE_SIZE = 1 << 22;
        /// The size of the page that holds the code.
        const CODE_PAGE_SIZE = 1 << 23;
        /// Cost of the sampled access, as three numbers.
        const WEIGHT_STRUCT = 1 << 24;
    }
}

impl SampleType {
    /// The fields that `sample_id_all` appends to every other record.
    pub const TRAILER: Self = Self::TID
        .union(Self::TIME)
        .union(Self::ID)
        .union(Self::STREAM_ID)
        .union(Self::CPU)
        .union(Self::IDENTIFIER);
}

bitflags! {
    /// `PERF_SAMPLE_BRANCH_*`: which branches are recorded, and what of them
    /// (perf_event_open(2), `branch_sample_type`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct BranchSampleType: u64 {
        /// Branches to user mode.
        const USER = 1;
        /// Branches to the kernel.
        const KERNEL = 1 << 1;
        /// Branches to the hypervisor.
        const HYPERVISOR = 1 << 2;
        /// Branches of every type.
        const ANY = 1 << 3;
        /// Calls, direct and indirect, and system calls.
        const ANY_CALL = 1 << 4;
        /// Returns, from system calls too.
        const ANY_RETURN = 1 << 5;
        /// Indirect calls.
        const INDIRECT_CALL = 1 << 6;
        /// Aborts of transactions.
        const ABORT_TX = 1 << 7;
        /// Branches in transactions.
        const IN_TX = 1 << 8;
        /// Branches outside transactions.
        const NO_TX = 1 << 9;
        /// Conditional branches.
        const CONDITIONAL = 1 << 10;
        /// The stack of calls that have not returned.
        const CALL_STACK = 1 << 11;
        /// Indirect jumps.
        const INDIRECT_JUMP = 1 << 12;
        /// Direct calls.
        const CALL = 1 << 13;
        /// Without flags.
        const NO_FLAGS = 1 << 14;
        /// Without cycles.
        const NO_CYCLES = 1 << 15;
        /// With the type of each branch.
        const TYPE_SAVE = 1 << 16;
        /// With the hardware's index of the newest branch.
        const HW_INDEX = 1 << 17;
        /// With the privilege level of each branch.
        const PRIV_SAVE = 1 << 18;
        /// With counts of events at each branch.
        const COUNTERS = 1 << 19;
    }
}

bitflags! {
    /// `PERF_FORMAT_*`: what a read of a counter consists of (perf_event_open(2), `read_format`).
    #[repr(transparent)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ReadFormat: u64 {
        /// Nanoseconds enabled.
        const TOTAL_TIME_ENABLED = 1;
        /// Nanoseconds running.
        const TOTAL_TIME_RUNNING = 1 << 1;
        /// The id of each counter.
        const ID = 1 << 2;
        /// Every counter of the group.
        const GROUP = 1 << 3;
        /// Number of samples of each counter that were lost (Linux 6.0).
        const LOST = 1 << 4;
    }
}

impl ReadFormat {
    /// Both times: nothing is counted without them.
    pub const TIMES: Self = Self::TOTAL_TIME_ENABLED.union(Self::TOTAL_TIME_RUNNING);
}

/// Layout of the records of a counter: those fields of its `perf_event_attr` that decoding needs,
/// taken from the counter that is open here or from a `perf.data` file.
///
/// ```
/// use quipu_perf_data::{RecordLayout, SampleType};
///
/// let layout = RecordLayout::new(SampleType::IP | SampleType::TID | SampleType::CALLCHAIN);
/// assert!(layout.sample_type().contains(SampleType::CALLCHAIN));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLayout {
    sample_type: SampleType,
    read_format: ReadFormat,
    branch_sample_type: BranchSampleType,
    user_registers: u64,
    interrupt_registers: u64,
    sample_id_all: bool,
    period: Option<u64>,
    /// Offset of each word of a sample's fixed part, in bytes.
    pub(crate) fixed: FixedPart,
    /// Which fields of varying length follow it.
    pub(crate) has_variable: bool,
    /// True if that is a call chain and nothing else.
    pub(crate) has_chain_alone: bool,
    /// Length of the trailer of other records, in bytes.
    pub(crate) trailer: u8,
}

/// Offsets of the fields that every sample of a layout has at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FixedPart {
    pub(crate) identifier: u8,
    pub(crate) ip: u8,
    pub(crate) tid: u8,
    pub(crate) time: u8,
    pub(crate) addr: u8,
    pub(crate) id: u8,
    pub(crate) stream_id: u8,
    pub(crate) cpu: u8,
    pub(crate) period: u8,
    pub(crate) len: u8,
}

/// The fields of the fixed part, each of 8 bytes.
const FIXED: SampleType = SampleType::TRAILER
    .union(SampleType::IP)
    .union(SampleType::ADDR)
    .union(SampleType::PERIOD);

impl RecordLayout {
    /// Returns the layout of samples with these fields. Everything else is absent until it is set.
    pub fn new(sample_type: SampleType) -> Self {
        let mut len = 0;
        let mut place = |field| {
            let at = len;
            if sample_type.contains(field) {
                len += 8;
            }
            at
        };
        let mut fixed = FixedPart {
            identifier: place(SampleType::IDENTIFIER),
            ip: place(SampleType::IP),
            tid: place(SampleType::TID),
            time: place(SampleType::TIME),
            addr: place(SampleType::ADDR),
            id: place(SampleType::ID),
            stream_id: place(SampleType::STREAM_ID),
            cpu: place(SampleType::CPU),
            period: place(SampleType::PERIOD),
            len: 0,
        };
        fixed.len = len;
        Self {
            sample_type,
            read_format: ReadFormat::empty(),
            branch_sample_type: BranchSampleType::empty(),
            user_registers: 0,
            interrupt_registers: 0,
            sample_id_all: false,
            period: None,
            fixed,
            has_variable: !FIXED.contains(sample_type),
            has_chain_alone: sample_type.difference(FIXED) == SampleType::CALLCHAIN,
            trailer: 0,
        }
    }

    /// Sets the format of values that were read.
    #[must_use]
    pub fn with_read_format(mut self, read_format: ReadFormat) -> Self {
        self.read_format = read_format;
        self
    }

    /// Sets what is recorded of branches.
    #[must_use]
    pub fn with_branches(mut self, branch_sample_type: BranchSampleType) -> Self {
        self.branch_sample_type = branch_sample_type;
        self
    }

    /// Sets the sets of registers: bit n is register n of the architecture's
    /// `asm/perf_regs.h`.
    #[must_use]
    pub fn with_registers(mut self, user: u64, interrupt: u64) -> Self {
        self.user_registers = user;
        self.interrupt_registers = interrupt;
        self
    }

    /// Sets whether records that are no samples have a trailer.
    #[must_use]
    pub fn with_sample_id_all(mut self, sample_id_all: bool) -> Self {
        self.sample_id_all = sample_id_all;
        self.trailer = match sample_id_all {
            true => 8 * (self.sample_type & SampleType::TRAILER).bits().count_ones() as u8,
            false => 0,
        };
        self
    }

    /// Sets the number of events that every sample stands for, if it is fixed and not in the samples.
    #[must_use]
    pub fn with_period(mut self, period: Option<u64>) -> Self {
        self.period = period;
        self
    }

    /// Returns the fields of a sample.
    pub fn sample_type(&self) -> SampleType {
        self.sample_type
    }

    /// Returns the format of values that were read.
    pub fn read_format(&self) -> ReadFormat {
        self.read_format
    }

    /// Returns what is recorded of branches.
    pub fn branch_sample_type(&self) -> BranchSampleType {
        self.branch_sample_type
    }

    /// Returns the registers of user mode in a sample.
    pub fn user_registers(&self) -> u64 {
        self.user_registers
    }

    /// Returns the registers at the interrupt in a sample.
    pub fn interrupt_registers(&self) -> u64 {
        self.interrupt_registers
    }

    /// Returns the length of the trailer of records that are no samples, in bytes; 0 if they have none.
    pub fn trailer_len(&self) -> usize {
        self.trailer.into()
    }

    /// Returns true if records that are no samples have a trailer.
    pub fn sample_id_all(&self) -> bool {
        self.sample_id_all
    }

    /// Returns the fixed number of events that a sample stands for.
    pub fn period(&self) -> Option<u64> {
        self.period
    }

    /// Returns true if samples have one of these fields.
    #[cfg(feature = "records")]
    #[inline(always)]
    pub(crate) fn has(&self, fields: SampleType) -> bool {
        self.sample_type.intersects(fields)
    }
}
