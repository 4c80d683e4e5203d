//! Bytes of the other byte order, brought into the machine's own.

use crate::record::{HEADER_LEN, kind};
use crate::{BranchSampleType, ReadFormat, RecordLayout, SampleType};

/// The byte order of a file, seen from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ByteOrder {
    /// The machine's own.
    #[default]
    Native,
    /// The other one.
    Swapped,
}

impl ByteOrder {
    pub(crate) fn u16(self, read: u16) -> u16 {
        match self {
            Self::Native => read,
            Self::Swapped => read.swap_bytes(),
        }
    }

    pub(crate) fn u32(self, read: u32) -> u32 {
        match self {
            Self::Native => read,
            Self::Swapped => read.swap_bytes(),
        }
    }

    pub(crate) fn u64(self, read: u64) -> u64 {
        match self {
            Self::Native => read,
            Self::Swapped => read.swap_bytes(),
        }
    }

    /// Brings numbers of 64 bits that follow one another into the machine's order.
    pub(crate) fn words(self, bytes: &mut [u8]) {
        if self == Self::Swapped {
            bytes
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .for_each(|word| word.reverse());
        }
    }
}

/// Brings a `struct perf_event_attr` of the other byte order into the machine's, as far as it goes.
pub(crate) fn swap_attr(bytes: &mut [u8]) {
    /// Up to `read_format`; from `wakeup_events` on.
    const BEFORE: [usize; 6] = [4, 4, 8, 8, 8, 8];
    const AFTER: [usize; 17] = [4, 4, 8, 8, 8, 8, 4, 4, 8, 4, 2, 2, 4, 4, 8, 8, 8];
    let mut fields = Fields { rest: bytes };
    let _ = fields.each(&BEFORE).and_then(|()| {
        // C numbers bit-fields from the other end of each byte.
        let flags = fields.take(8)?;
        flags
            .iter_mut()
            .for_each(|byte| *byte = byte.reverse_bits());
        fields.each(&AFTER)
    });
}

/// Brings the header of a record into the machine's order.
pub(crate) fn swap_header(header: &mut [u8; HEADER_LEN]) {
    let _ = Fields { rest: header }.each(&[4, 2, 2]);
}

/// Brings a record of the kernel, whose header is in the machine's order already, into it as well. Where
/// a field does not fit, the rest stays as it is, and decoding it fails. Raw data of tracepoints stays as
/// it is, and so do perf's own records but those of counts.
pub(crate) fn swap_body(of: u32, misc: u16, body: &mut [u8], layout: &RecordLayout) {
    if of >= kind::FIRST_OF_USER {
        let _ = swap_stat(of, &mut Fields { rest: body });
        return;
    }
    if of == kind::SAMPLE {
        let _ = swap_sample(&mut Fields { rest: body }, layout);
        return;
    }
    let Some(len) = body.len().checked_sub(layout.trailer.into()) else {
        return;
    };
    let (body, trailer) = body.split_at_mut(len);
    let _ = swap_fixed(&mut Fields { rest: trailer }, layout, SampleType::empty());
    let _ = swap_other(of, misc, &mut Fields { rest: body }, layout);
}

/// The records of counts ([`stat`](crate::stat)).
fn swap_stat(of: u32, fields: &mut Fields<'_>) -> Option<()> {
    match of {
        kind::STAT => fields.each(&[8, 4, 4, 8, 8, 8]),
        kind::STAT_CONFIG | kind::STAT_ROUND => fields.words(fields.rest.len() as u64 / 8),
        kind::THREAD_MAP => {
            for _ in 0..fields.u64()? {
                fields.each(&[8])?;
                fields.skip(16)?;
            }
            Some(())
        }
        kind::CPU_MAP => {
            let form = fields.u16()?;
            match form {
                // A list of numbers.
                0 => fields.each(&vec![2; fields.rest.len() / 2]),
                // A mask of words.
                1 => {
                    fields.u16()?;
                    let size = usize::from(fields.u16()?);
                    fields.skip(if size == 8 { 4 } else { 0 })?;
                    fields.each(&vec![size; fields.rest.len() / size.max(1)])
                }
                // Two bytes, and the ends of a range.
                _ => {
                    fields.skip(2)?;
                    fields.each(&[2, 2])
                }
            }
        }
        kind::EVENT_UPDATE => {
            /// `PERF_EVENT_UPDATE__SCALE`.
            const SCALE: u64 = 1;
            let what = fields.u64()?;
            fields.u64()?;
            fields.each(if what == SCALE { &[8] } else { &[] })
        }
        _ => Some(()),
    }
}

/// Fields of a record, brought into the machine's order one after the other.
struct Fields<'a> {
    rest: &'a mut [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a mut [u8]> {
        let (taken, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Fields of these sizes.
    fn each(&mut self, sizes: &[usize]) -> Option<()> {
        sizes.iter().try_for_each(|size| {
            self.take(*size)?.reverse();
            Some(())
        })
    }

    fn u16(&mut self) -> Option<u16> {
        let half = self.take(2)?;
        half.reverse();
        Some(u16::from_ne_bytes(*half.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        let word = self.take(8)?;
        word.reverse();
        Some(u64::from_ne_bytes(*word.first_chunk()?))
    }

    /// Numbers of 64 bits, as many as there are if fewer are left.
    fn words(&mut self, count: u64) -> Option<()> {
        let len = usize::try_from(count).ok()?.checked_mul(8)?;
        ByteOrder::Swapped.words(self.take(len)?);
        Some(())
    }

    fn skip(&mut self, len: u64) -> Option<()> {
        self.take(usize::try_from(len).ok()?).map(drop)
    }
}

/// The fields that every sample has at the same place, and those of trailers, which have none of `more`.
fn swap_fixed(fields: &mut Fields<'_>, layout: &RecordLayout, more: SampleType) -> Option<()> {
    use SampleType as S;
    let first = S::IDENTIFIER & more;
    let last = S::IDENTIFIER - more;
    let order: [(S, &[usize]); 10] = [
        (first, &[8]),
        (S::IP & more, &[8]),
        (S::TID, &[4, 4]),
        (S::TIME, &[8]),
        (S::ADDR & more, &[8]),
        (S::ID, &[8]),
        (S::STREAM_ID, &[8]),
        (S::CPU, &[4, 4]),
        (S::PERIOD & more, &[8]),
        (last, &[8]),
    ];
    let there = order.iter().filter(|(field, _)| layout.has(*field));
    for (_, sizes) in there {
        fields.each(sizes)?;
    }
    Some(())
}

fn swap_sample(fields: &mut Fields<'_>, layout: &RecordLayout) -> Option<()> {
    use SampleType as S;
    swap_fixed(fields, layout, S::all())?;
    let has = |field| layout.has(field);
    if has(S::READ) {
        swap_values(fields, layout.read_format())?;
    }
    if has(S::CALLCHAIN) {
        let count = fields.u64()?;
        fields.words(count)?;
    }
    if has(S::RAW) {
        let len = fields.take(4)?;
        len.reverse();
        let len = u32::from_ne_bytes(*len.first_chunk()?);
        fields.skip(len.into())?;
    }
    if has(S::BRANCH_STACK) {
        swap_branches(fields, layout.branch_sample_type())?;
    }
    if has(S::REGS_USER) {
        swap_registers(fields, layout.user_registers())?;
    }
    if has(S::STACK_USER) {
        let len = fields.u64()?;
        fields.skip(len)?;
        if len > 0 {
            fields.u64()?;
        }
    }
    if has(S::WEIGHT) {
        fields.u64()?;
    } else if has(S::WEIGHT_STRUCT) {
        fields.take(8)?.reverse();
    }
    fields.words(
        [S::DATA_SRC, S::TRANSACTION]
            .map(|f| u64::from(has(f)))
            .iter()
            .sum(),
    )?;
    if has(S::REGS_INTR) {
        swap_registers(fields, layout.interrupt_registers())?;
    }
    let memory = [
        S::PHYS_ADDR,
        S::CGROUP,
        S::DATA_PAGE_SIZE,
        S::CODE_PAGE_SIZE,
    ];
    fields.words(memory.map(|f| u64::from(has(f))).iter().sum())?;
    if has(S::AUX) {
        fields.u64()?;
    }
    Some(())
}

fn swap_values(fields: &mut Fields<'_>, format: ReadFormat) -> Option<()> {
    let flags = |of: ReadFormat| u64::from((format & of).bits().count_ones());
    let each = 1 + flags(ReadFormat::ID | ReadFormat::LOST);
    let first = fields.u64()?;
    fields.words(flags(ReadFormat::TIMES))?;
    match format.contains(ReadFormat::GROUP) {
        true => fields.words(first.checked_mul(each)?),
        false => fields.words(each - 1),
    }
}

fn swap_registers(fields: &mut Fields<'_>, mask: u64) -> Option<()> {
    match fields.u64()? {
        0 => Some(()),
        _ => fields.words(mask.count_ones().into()),
    }
}

fn swap_branches(fields: &mut Fields<'_>, what: BranchSampleType) -> Option<()> {
    /// Bits of each field of a branch's flags (`struct perf_branch_entry`).
    const FLAGS: [u32; 10] = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31];
    let count = fields.u64()?;
    if count == 0 {
        return Some(());
    }
    if what.contains(BranchSampleType::HW_INDEX) {
        fields.u64()?;
    }
    for _ in 0..count {
        fields.words(2)?;
        let flags = fields.take(8)?;
        flags.reverse();
        let read = u64::from_ne_bytes(*flags.first_chunk()?);
        // C numbers bit-fields from the other end.
        let (mut swapped, mut low, mut high) = (0, 0, 64);
        for bits in FLAGS {
            high -= bits;
            let mask = (1 << bits) - 1;
            let (from, to) = match cfg!(target_endian = "big") {
                false => (high, low),
                true => (low, high),
            };
            swapped |= (read >> from & mask) << to;
            low += bits;
        }
        flags.copy_from_slice(&swapped.to_ne_bytes());
    }
    match what.contains(BranchSampleType::COUNTERS) {
        true => fields.words(count),
        false => Some(()),
    }
}

fn swap_other(of: u32, misc: u16, fields: &mut Fields<'_>, layout: &RecordLayout) -> Option<()> {
    const HAS_BUILD_ID: u16 = 1 << 14;
    match of {
        kind::MMAP => fields.each(&[4, 4, 8, 8, 8]),
        kind::MMAP2 => {
            fields.each(&[4, 4, 8, 8, 8])?;
            match misc & HAS_BUILD_ID {
                0 => fields.each(&[4, 4, 8, 8])?,
                _ => fields.skip(24)?,
            }
            fields.each(&[4, 4])
        }
        kind::COMM | kind::ITRACE_START | kind::SWITCH_CPU_WIDE => fields.each(&[4, 4]),
        kind::EXIT | kind::FORK => fields.each(&[4, 4, 4, 4, 8]),
        kind::READ => {
            fields.each(&[4, 4])?;
            swap_values(fields, layout.read_format())
        }
        kind::NAMESPACES => {
            fields.each(&[4, 4])?;
            let count = fields.u64()?;
            fields.words(count.checked_mul(2)?)
        }
        kind::KSYMBOL => fields.each(&[8, 4, 2, 2]),
        kind::BPF_EVENT => fields.each(&[2, 2, 4]),
        kind::CGROUP => fields.each(&[8]),
        kind::TEXT_POKE => fields.each(&[8, 2, 2]),
        kind::LOST
        | kind::THROTTLE
        | kind::UNTHROTTLE
        | kind::AUX
        | kind::LOST_SAMPLES
        | kind::AUX_OUTPUT_HW_ID
        | kind::CALLCHAIN_DEFERRED => {
            let left = fields.rest.len() / 8;
            fields.words(left as u64)
        }
        _ => Some(()),
    }
}
