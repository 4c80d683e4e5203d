//! Samples: `PERF_RECORD_SAMPLE`.

use crate::bytes::{Cursor, Malformed, Words, u32_pair_at, u64_at};
use crate::record_header::{Misc, ThreadId};
use crate::{BranchSampleType, RecordLayout, SampleType};

mod branch;
mod callchain;
mod cost;
mod data_source;
mod registers;
mod values;

pub use branch::{Branch, BranchPrivilege, BranchStack, BranchType, Speculation};
pub use callchain::{Callchain, Context, Frame};
pub use cost::{AbortReason, Transaction, Weight};
pub use data_source::{
    Blocked, DataSource, MemoryLevel, MemoryLevels, MemoryOperation, Snoop, TlbAccess,
};
pub use registers::{RegisterAbi, SampledRegisters, UserStack};
pub use values::{CounterValue, ReadValues};

/// A sample: what was asked for, at one event.
///
/// Its fields are found in the record and read when they are asked for; that all of them are there has
/// been checked. A field that was not in the counter's [`SampleType`] is `None`.
///
/// ```
/// use quipu_perf_data::{RawRecord, Record, RecordLayout, SampleType};
///
/// let layout = RecordLayout::new(SampleType::IP).with_period(Some(1000));
/// let mut bytes = 9u32.to_ne_bytes().to_vec(); // PERF_RECORD_SAMPLE
/// bytes.extend([2u16, 16].iter().flat_map(|n| n.to_ne_bytes())); // misc and size
/// bytes.extend(0x401000u64.to_ne_bytes());
/// let record = RawRecord::at_start(&bytes).expect("it is whole");
/// let Record::Sample(sample) = record.decode(&layout)? else {
///     panic!("it is one");
/// };
/// assert_eq!((sample.ip(), sample.time()), (Some(0x401000), None));
/// assert_eq!(sample.period(), Some(1000));
/// # Ok::<_, quipu_hal::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    misc: Misc,
    body: &'a [u8],
    layout: &'a RecordLayout,
}

/// Offsets of the fields of varying length, in bytes from the start of the body.
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    read: u16,
    callchain: u16,
    raw: u16,
    branches: u16,
    user_registers: u16,
    user_stack: u16,
    /// Weight, data source and transaction.
    access: u16,
    interrupt_registers: u16,
    /// Physical address, control group and page sizes.
    memory: u16,
    aux: u16,
}

impl<'a> Sample<'a> {
    #[inline(always)]
    pub(crate) fn decode(
        misc: Misc,
        body: &'a [u8],
        layout: &'a RecordLayout,
    ) -> Result<Self, Malformed> {
        if body.len() < usize::from(layout.fixed.len) {
            return Err(Malformed("fixed fields"));
        }
        let sample = Self { misc, body, layout };
        if layout.has_chain_alone {
            let chain = body.get(usize::from(layout.fixed.len)..);
            callchain(&mut Cursor::new(chain.unwrap_or_default()))?;
        } else if layout.has_variable {
            sample.find()?;
        }
        Ok(sample)
    }

    /// Returns the places of the fields of varying length, which are looked for when one of them is asked for: most samples have
    /// no more than a call chain, whose place is known.
    #[inline]
    fn offsets(&self) -> Offsets {
        if self.layout.has_chain_alone {
            return Offsets {
                callchain: self.layout.fixed.len.into(),
                ..Offsets::default()
            };
        }
        self.find().unwrap_or_default()
    }

    /// Walks the fields of varying length; an error where one does not fit.
    #[inline(never)]
    fn find(&self) -> Result<Offsets, Malformed> {
        use SampleType as S;
        let layout = self.layout;
        let mut offsets = Offsets::default();
        let fixed = usize::from(layout.fixed.len);
        let mut cursor = Cursor::new(self.body.get(fixed..).unwrap_or_default());
        if layout.has(S::READ) {
            offsets.read = self.offset(&cursor);
            ReadValues::decode(&mut cursor, layout.read_format())?;
        }
        if layout.has(S::CALLCHAIN) {
            offsets.callchain = self.offset(&cursor);
            callchain(&mut cursor)?;
        }
        if !layout.has(S::all() - FIXED_AND_CHAIN) {
            return Ok(offsets);
        }
        if layout.has(S::RAW) {
            offsets.raw = self.offset(&cursor);
            raw(&mut cursor)?;
        }
        if layout.has(S::BRANCH_STACK) {
            offsets.branches = self.offset(&cursor);
            if let Some(offsets) = self.find_after_no_branches(cursor, offsets) {
                return Ok(offsets);
            }
            branches(&mut cursor, layout.branch_sample_type())?;
        }
        self.find_after_branches(&mut cursor, &mut offsets)?;
        Ok(offsets)
    }

    /// Walks the fields from the branch stack on as the kernel writes them when it has none: a
    /// count of 0, and not even the index (`perf_output_sample`, `kernel/events/core.c`). A stack
    /// that is there and empty has the index; the length of the record distinguishes the two.
    fn find_after_no_branches(
        &self,
        mut cursor: Cursor<'a>,
        mut offsets: Offsets,
    ) -> Option<Offsets> {
        let what = self.layout.branch_sample_type();
        if !what.contains(BranchSampleType::HW_INDEX) || cursor.u64("branch stack") != Ok(0) {
            return None;
        }
        self.find_after_branches(&mut cursor, &mut offsets).ok()?;
        cursor.rest().is_empty().then_some(offsets)
    }

    fn find_after_branches(
        &self,
        cursor: &mut Cursor<'a>,
        offsets: &mut Offsets,
    ) -> Result<(), Malformed> {
        use SampleType as S;
        let layout = self.layout;
        if layout.has(S::REGS_USER) {
            offsets.user_registers = self.offset(cursor);
            registers(cursor, layout.user_registers())?;
        }
        if layout.has(S::STACK_USER) {
            offsets.user_stack = self.offset(cursor);
            user_stack(cursor)?;
        }
        offsets.access = self.offset(cursor);
        skip_words(cursor, layout, &ACCESS)?;
        if layout.has(S::REGS_INTR) {
            offsets.interrupt_registers = self.offset(cursor);
            registers(cursor, layout.interrupt_registers())?;
        }
        offsets.memory = self.offset(cursor);
        skip_words(cursor, layout, &MEMORY)?;
        if layout.has(S::AUX) {
            offsets.aux = self.offset(cursor);
            aux(cursor)?;
        }
        Ok(())
    }

    /// Returns the offset of the cursor in the body.
    #[inline]
    fn offset(&self, cursor: &Cursor<'_>) -> u16 {
        (self.body.len() - cursor.rest().len()) as u16
    }

    /// Returns the `misc` field of the record: the mode of the CPU, whether the instruction pointer is
    /// exact.
    pub fn misc(&self) -> Misc {
        self.misc
    }

    #[inline(always)]
    fn word(&self, field: SampleType, at: u8) -> Option<u64> {
        self.layout
            .has(field)
            .then(|| u64_at(self.body, at.into()))?
    }

    /// Returns the id of the counter, from whichever of [`IDENTIFIER`](SampleType::IDENTIFIER) and
    /// [`ID`](SampleType::ID) there is.
    #[inline]
    pub fn id(&self) -> Option<u64> {
        let fixed = &self.layout.fixed;
        self.word(SampleType::IDENTIFIER, fixed.identifier)
            .or_else(|| self.word(SampleType::ID, fixed.id))
    }

    /// Returns the instruction pointer.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        self.word(SampleType::IP, self.layout.fixed.ip)
    }

    /// Returns process and thread.
    #[inline]
    pub fn thread(&self) -> Option<ThreadId> {
        let at = usize::from(self.layout.fixed.tid);
        let pair = self
            .layout
            .has(SampleType::TID)
            .then(|| u32_pair_at(self.body, at))?;
        pair.map(ThreadId::from_pair)
    }

    /// When it was taken, in nanoseconds of the counter's clock.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.word(SampleType::TIME, self.layout.fixed.time)
    }

    /// Returns the address that the event is about: of the data, the fault, the breakpoint.
    #[inline]
    pub fn addr(&self) -> Option<u64> {
        self.word(SampleType::ADDR, self.layout.fixed.addr)
    }

    /// Returns the id of the counter that took it: another than [`id`](Self::id) where it was inherited. It
    /// says nothing of the thread, since the kernel swaps the counters of threads that are alike.
    #[inline]
    pub fn stream_id(&self) -> Option<u64> {
        self.word(SampleType::STREAM_ID, self.layout.fixed.stream_id)
    }

    /// Returns the CPU.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        let at = usize::from(self.layout.fixed.cpu);
        let pair = self
            .layout
            .has(SampleType::CPU)
            .then(|| u32_pair_at(self.body, at))?;
        pair.map(|(cpu, _)| cpu)
    }

    /// Returns the number of events it stands for: its own, or that which is fixed for its event
    /// ([`RecordLayout::with_period`]).
    #[inline]
    pub fn period(&self) -> Option<u64> {
        match self.layout.has(SampleType::PERIOD) {
            true => u64_at(self.body, self.layout.fixed.period.into()),
            false => self.layout.period(),
        }
    }

    /// A cursor at one of the offsets, if the field is there.
    #[inline(always)]
    fn at(&self, field: SampleType, place: impl FnOnce(Offsets) -> u16) -> Option<Cursor<'a>> {
        if !self.layout.has(field) {
            return None;
        }
        let place = place(self.offsets());
        self.body.get(usize::from(place)..).map(Cursor::new)
    }

    /// Returns the values of the counter or its group.
    pub fn values(&self) -> Option<ReadValues<'a>> {
        let mut cursor = self.at(SampleType::READ, |at| at.read)?;
        ReadValues::decode(&mut cursor, self.layout.read_format()).ok()
    }

    /// Returns the call chain.
    #[inline]
    pub fn callchain(&self) -> Option<Callchain<'a>> {
        let mut cursor = self.at(SampleType::CALLCHAIN, |at| at.callchain)?;
        callchain(&mut cursor).ok()
    }

    /// Returns the event's own data, padded to where the next field starts. For a tracepoint, what its
    /// `format` file describes.
    pub fn raw(&self) -> Option<&'a [u8]> {
        let mut cursor = self.at(SampleType::RAW, |at| at.raw)?;
        raw(&mut cursor).ok()
    }

    /// Returns the last branches; empty also if the kernel had none.
    pub fn branches(&self) -> Option<BranchStack<'a>> {
        let mut cursor = self.at(SampleType::BRANCH_STACK, |at| at.branches)?;
        let mut what = self.layout.branch_sample_type();
        let offsets = Offsets::default();
        if self.find_after_no_branches(cursor, offsets).is_some() {
            what.remove(BranchSampleType::HW_INDEX);
        }
        branches(&mut cursor, what).ok()
    }

    /// Returns registers of user mode; `None` also in a thread that has none.
    pub fn user_registers(&self) -> Option<SampledRegisters<'a>> {
        let mut cursor = self.at(SampleType::REGS_USER, |at| at.user_registers)?;
        registers(&mut cursor, self.layout.user_registers()).ok()?
    }

    /// Returns the top of the user stack; empty in a thread that has none.
    pub fn user_stack(&self) -> Option<UserStack<'a>> {
        let mut cursor = self.at(SampleType::STACK_USER, |at| at.user_stack)?;
        user_stack(&mut cursor).ok()
    }

    /// Returns the cost of the access.
    pub fn weight(&self) -> Option<Weight> {
        let word = self.nth_word(&ACCESS, WEIGHTS, |at| at.access)?;
        Some(match self.layout.has(SampleType::WEIGHT) {
            true => Weight::Full(word),
            false => Weight::parts(word),
        })
    }

    /// Returns the data source of the access.
    pub fn data_source(&self) -> Option<DataSource> {
        let word = self.nth_word(&ACCESS, SampleType::DATA_SRC, |at| at.access);
        word.map(DataSource)
    }

    /// Returns why a transaction was aborted.
    pub fn transaction(&self) -> Option<Transaction> {
        let word = self.nth_word(&ACCESS, SampleType::TRANSACTION, |at| at.access);
        word.map(Transaction)
    }

    /// Returns registers at the interrupt.
    pub fn interrupt_registers(&self) -> Option<SampledRegisters<'a>> {
        let mut cursor = self.at(SampleType::REGS_INTR, |at| at.interrupt_registers)?;
        registers(&mut cursor, self.layout.interrupt_registers()).ok()?
    }

    /// Returns the physical address of the access.
    pub fn physical_address(&self) -> Option<u64> {
        self.nth_word(&MEMORY, SampleType::PHYS_ADDR, |at| at.memory)
    }

    /// Returns the control group, by the id that a [`Cgroup`](crate::record::Cgroup) record names.
    pub fn cgroup(&self) -> Option<u64> {
        self.nth_word(&MEMORY, SampleType::CGROUP, |at| at.memory)
    }

    /// Returns the size of the page that the data is in, in bytes.
    pub fn data_page_size(&self) -> Option<u64> {
        self.nth_word(&MEMORY, SampleType::DATA_PAGE_SIZE, |at| at.memory)
    }

    /// Returns the size of the page that the instruction is in, in bytes.
    pub fn code_page_size(&self) -> Option<u64> {
        self.nth_word(&MEMORY, SampleType::CODE_PAGE_SIZE, |at| at.memory)
    }

    /// Returns a piece of the AUX area.
    pub fn aux(&self) -> Option<&'a [u8]> {
        let mut cursor = self.at(SampleType::AUX, |at| at.aux)?;
        aux(&mut cursor).ok()
    }

    /// The word of a field among `order`, of which those that there are start at `place`.
    fn nth_word(
        &self,
        order: &[SampleType],
        field: SampleType,
        place: impl FnOnce(Offsets) -> u16,
    ) -> Option<u64> {
        if !self.layout.has(field) {
            return None;
        }
        let before = order.iter().take_while(|other| **other != field);
        let words = before.filter(|other| self.layout.has(**other)).count();
        u64_at(self.body, usize::from(place(self.offsets())) + 8 * words)
    }
}

impl std::fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Sample");
        macro_rules! fields {
            ($($name:ident)*) => {$(
                if let Some(value) = self.$name() {
                    out.field(stringify!($name), &value);
                }
            )*};
        }
        fields!(id ip thread time addr stream_id cpu period values callchain raw branches
            user_registers user_stack weight data_source transaction interrupt_registers
            physical_address cgroup data_page_size code_page_size aux);
        out.finish()
    }
}

/// Both forms of the weight; there is at most one of them.
const WEIGHTS: SampleType = SampleType::WEIGHT.union(SampleType::WEIGHT_STRUCT);

/// The words between the user stack and the registers at the interrupt.
const ACCESS: [SampleType; 3] = [WEIGHTS, SampleType::DATA_SRC, SampleType::TRANSACTION];

/// The words after those registers.
const MEMORY: [SampleType; 4] = [
    SampleType::PHYS_ADDR,
    SampleType::CGROUP,
    SampleType::DATA_PAGE_SIZE,
    SampleType::CODE_PAGE_SIZE,
];

/// Fields that most samples consist of.
const FIXED_AND_CHAIN: SampleType = SampleType::TRAILER
    .union(SampleType::IP)
    .union(SampleType::ADDR)
    .union(SampleType::PERIOD)
    .union(SampleType::READ)
    .union(SampleType::CALLCHAIN);

fn skip_words(
    cursor: &mut Cursor<'_>,
    layout: &RecordLayout,
    order: &[SampleType],
) -> Result<(), Malformed> {
    let words = order.iter().filter(|field| layout.has(**field)).count();
    cursor.words(words as u64, "memory access").map(drop)
}

#[inline]
fn callchain<'a>(cursor: &mut Cursor<'a>) -> Result<Callchain<'a>, Malformed> {
    let count = cursor.u64("call chain")?;
    Ok(Callchain(cursor.words(count, "call chain")?))
}

fn raw<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let len = cursor.u32("raw data")?;
    cursor.bytes(len as usize, "raw data")
}

fn branches<'a>(
    cursor: &mut Cursor<'a>,
    what: BranchSampleType,
) -> Result<BranchStack<'a>, Malformed> {
    const FIELD: &str = "branch stack";
    let count = cursor.u64(FIELD)?;
    let hw_index = match what.contains(BranchSampleType::HW_INDEX) {
        true => Some(cursor.u64(FIELD)?),
        false => None,
    };
    let len = BranchStack::len_of(count).ok_or(Malformed(FIELD))?;
    let entries = cursor.bytes(len, FIELD)?;
    let counters = match what.contains(BranchSampleType::COUNTERS) {
        true => Some(cursor.words(count, FIELD)?),
        false => None,
    };
    Ok(BranchStack::new(hw_index, entries, counters))
}

fn registers<'a>(
    cursor: &mut Cursor<'a>,
    mask: u64,
) -> Result<Option<SampledRegisters<'a>>, Malformed> {
    let abi = match cursor.u64("registers")? {
        0 => return Ok(None),
        1 => RegisterAbi::Bits32,
        2 => RegisterAbi::Bits64,
        other => RegisterAbi::Other(other),
    };
    let values = cursor.words(mask.count_ones().into(), "registers")?;
    Ok(Some(SampledRegisters { abi, mask, values }))
}

fn user_stack<'a>(cursor: &mut Cursor<'a>) -> Result<UserStack<'a>, Malformed> {
    const FIELD: &str = "user stack";
    let len = cursor.u64(FIELD)?;
    if len == 0 {
        // Then the kernel writes no dynamic size either (`perf_output_sample_ustack`).
        return Ok(UserStack {
            bytes: &[],
            valid: 0,
        });
    }
    let bytes = sized(cursor, len, FIELD)?;
    let valid = cursor.u64(FIELD)?;
    Ok(UserStack {
        bytes,
        valid: usize::try_from(valid).unwrap_or(bytes.len()),
    })
}

fn aux<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let len = cursor.u64("AUX data")?;
    sized(cursor, len, "AUX data")
}

fn sized<'a>(
    cursor: &mut Cursor<'a>,
    len: u64,
    field: &'static str,
) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(len).map_err(|_| Malformed(field))?;
    cursor.bytes(len, field)
}

/// The trailer that `sample_id_all` puts at the end of every record that is no sample: the fields of
/// [`SampleType::TRAILER`] that the counter's samples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SampleId {
    /// Process and thread.
    pub thread: Option<ThreadId>,
    /// Nanoseconds of the counter's clock.
    pub time: Option<u64>,
    /// The id of the counter.
    pub id: Option<u64>,
    /// The id of the counter that wrote it: another where it was inherited.
    pub stream_id: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
}

impl SampleId {
    /// Decodes a trailer, of the layout's length.
    pub(crate) fn decode(trailer: &[u8], layout: &RecordLayout) -> Self {
        let mut words = Words::new(trailer).iter();
        let mut next = |field| layout.has(field).then(|| words.next())?;
        let pair = |word: u64| u32_pair_at(&word.to_ne_bytes(), 0).unwrap_or_default();
        let thread = next(SampleType::TID).map(|word| ThreadId::from_pair(pair(word)));
        let time = next(SampleType::TIME);
        let id = next(SampleType::ID);
        let stream_id = next(SampleType::STREAM_ID);
        let cpu = next(SampleType::CPU).map(|word| pair(word).0);
        Self {
            thread,
            time,
            id: next(SampleType::IDENTIFIER).or(id),
            stream_id,
            cpu,
        }
    }
}
