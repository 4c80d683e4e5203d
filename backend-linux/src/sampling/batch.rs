//! Taking records out of the memory that the kernel writes them into.

use quipu_hal::{Error, ErrorKind, Result};

use super::notices::Notices;
use super::spec::WhenFull;
use crate::sys::{Mapping, page_size};
use quipu_perf_data::record::{RawRecord, no_record};

/// Offsets in the first page (`struct perf_event_mmap_page`, `include/uapi/linux/perf_event.h`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The longest record there can be: its size is a u16, and a multiple of 8.
const LONGEST_RECORD: usize = 1 << 16;

/// The mapped pages, and how far they have been read.
#[derive(Debug)]
pub(super) struct Memory {
    mapping: Mapping,
    /// The offset of the records in the mapping.
    data: usize,
    /// The size of the records in bytes, a power of two.
    size: usize,
    tail: u64,
    when_full: WhenFull,
    /// The record that goes on at the start of the ring; of a ring that overwrites, a copy of all.
    scratch: Box<[u8]>,
}

impl Memory {
    /// Returns the memory of a ring as it was mapped: a page that has the positions, then the records.
    pub(super) fn new(mapping: Mapping, when_full: WhenFull) -> Self {
        let data = page_size();
        let size = mapping.len() - data;
        let scratch = match when_full {
            WhenFull::Lose => LONGEST_RECORD.min(size),
            WhenFull::Overwrite => size,
        };
        Self {
            tail: match when_full {
                WhenFull::Lose => mapping.load(DATA_TAIL),
                WhenFull::Overwrite => 0,
            },
            mapping,
            data,
            size,
            when_full,
            scratch: vec![0; scratch].into(),
        }
    }

    /// Returns the mapped pages.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns the room for records in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.size
    }

    /// Returns the records that there are now; takes note of what they say.
    pub(super) fn records<'r>(&'r mut self, notices: &'r mut Notices) -> Batch<'r> {
        let is_here = self.mapping.is_here();
        let (at, end) = match self.when_full {
            _ if !is_here => (self.tail, self.tail),
            // The kernel's positions only ever count up; this is how its own tools read them.
            WhenFull::Lose => (self.tail, self.mapping.load(DATA_HEAD)),
            WhenFull::Overwrite => (0, self.copy_all() as u64),
        };
        Batch {
            memory: self,
            notices,
            at,
            end,
            is_elsewhere: !is_here,
        }
    }

    fn place(&self, position: u64) -> usize {
        (position & (self.size as u64 - 1)) as usize
    }

    /// Returns the offset and length of the bytes between two positions: up to the end of the ring, and
    /// from its start.
    fn spans(&self, from: u64, to: u64) -> [(usize, usize); 2] {
        let len = usize::try_from(to.wrapping_sub(from)).unwrap_or(usize::MAX);
        let len = len.min(self.size);
        let start = self.place(from);
        let first = len.min(self.size - start);
        [(self.data + start, first), (self.data, len - first)]
    }

    /// Copies what a ring that overwrites holds into the scratch memory, the newest record first;
    /// how many bytes of whole records that are.
    ///
    /// The kernel may be writing meanwhile if it was not stopped in time, so words are copied one
    /// by one as they are, and what makes no sense ends it.
    fn copy_all(&mut self) -> usize {
        // Records are whole words, so this changes nothing that a kernel writes.
        let head = self.mapping.load(DATA_HEAD) & !7;
        let mask = self.size as u64 - 1;
        for (i, word) in self.scratch.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let from = (head.wrapping_add(8 * i as u64) & mask) as usize;
            *word = self.mapping.load_relaxed(self.data + from).to_ne_bytes();
        }
        // Written downwards from 0, so this is how much has been written.
        let written = usize::try_from(head.wrapping_neg()).unwrap_or(self.size);
        let copied = &self.scratch[..written.min(self.size)];
        let mut len = 0;
        // The oldest record may have been written over in part; beyond what was written is zero.
        while let Some(record) = RawRecord::at_start(&copied[len..]) {
            len += record.bytes().len();
        }
        len
    }
}

/// Records of a ring, in the order they were written; of a ring that overwrites, the newest first.
///
/// ```no_run
/// # fn show(ring: &mut quipu_linux::sampling::Ring, layout: &quipu_linux::sampling::RecordLayout)
/// # -> quipu_hal::Result<()> {
/// for record in &mut ring.records() {
///     println!("{:?}", record?.decode(layout)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Batch<'r> {
    memory: &'r mut Memory,
    notices: &'r mut Notices,
    at: u64,
    end: u64,
    /// Set in a process that does not have the ring, until it got an error for that.
    is_elsewhere: bool,
}

/// Lends the bytes of spans between the tail and the head.
fn unread(mapping: &Mapping, spans: [(usize, usize); 2]) -> [&[u8]; 2] {
    spans.map(|(from, len)| {
        // SAFETY: the kernel writes nothing between the tail and the head as long as the tail stays. It
        // is moved when the batch is dropped, and the slices, which borrow the batch, are gone then.
        unsafe { mapping.slice(from, len) }
    })
}

impl Batch<'_> {
    /// Returns the bytes of records that have not been looked at.
    pub fn remaining(&self) -> usize {
        usize::try_from(self.end.wrapping_sub(self.at)).unwrap_or(usize::MAX)
    }

    /// The bytes of the records that have not been looked at, in two pieces that follow one another: for
    /// a file that takes them as they are. They count as looked at once they have been
    /// [iterated](Self::iter) over.
    pub fn bytes(&self) -> [&[u8]; 2] {
        match self.memory.when_full {
            _ if self.at == self.end => [&[], &[]],
            WhenFull::Lose => unread(&self.memory.mapping, self.memory.spans(self.at, self.end)),
            WhenFull::Overwrite => {
                let all = self.memory.scratch.get(self.at as usize..self.end as usize);
                [all.unwrap_or_default(), &[]]
            }
        }
    }

    /// The records that have not been looked at.
    pub fn iter(&mut self) -> BatchIter<'_> {
        let memory = &mut *self.memory;
        let (first, second, scratch): (&[u8], &[u8], &mut [u8]) = match memory.when_full {
            _ if self.at == self.end => (&[], &[], &mut []),
            WhenFull::Lose => {
                let [first, second] = unread(&memory.mapping, memory.spans(self.at, self.end));
                (first, second, &mut memory.scratch)
            }
            WhenFull::Overwrite => {
                let all = memory.scratch.get(self.at as usize..self.end as usize);
                (all.unwrap_or_default(), &[], &mut [])
            }
        };
        BatchIter {
            first,
            second,
            scratch,
            at: &mut self.at,
            end: self.end,
            notices: self.notices,
            is_elsewhere: &mut self.is_elsewhere,
        }
    }
}

impl<'b> IntoIterator for &'b mut Batch<'_> {
    type Item = Result<RawRecord<'b>>;
    type IntoIter = BatchIter<'b>;

    fn into_iter(self) -> BatchIter<'b> {
        self.iter()
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.memory.when_full == WhenFull::Lose && self.memory.mapping.is_here() {
            self.memory.tail = self.at;
            self.memory.mapping.store(DATA_TAIL, self.at);
        }
    }
}

/// The smallest power of two that is whole pages and has room for `bytes`.
pub(super) fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.max(page_size()).checked_next_power_of_two()
}

/// Returns the error of a forked process that asks for the records of a ring of its parent's.
pub(super) fn elsewhere() -> Error {
    Error::new(ErrorKind::WrongThread, "read a ring buffer")
        .with_reason(
            "it is mapped in the process that opened the sampler, and this one was forked from it",
        )
        .with_hint("open a sampler in this process")
}

/// The iterator over a [`Batch`]. Where the ring holds no record it gives an error, and ends: what
/// has been written so far is given up.
#[derive(Debug)]
pub struct BatchIter<'b> {
    /// The records up to the end of the ring, or all of them.
    first: &'b [u8],
    /// The records from the start of the ring.
    second: &'b [u8],
    /// The buffer for the record that begins in one and ends in the other.
    scratch: &'b mut [u8],
    at: &'b mut u64,
    end: u64,
    notices: &'b mut Notices,
    is_elsewhere: &'b mut bool,
}

impl<'b> Iterator for BatchIter<'b> {
    type Item = Result<RawRecord<'b>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.first.is_empty() {
            if self.second.is_empty() {
                return std::mem::take(self.is_elsewhere).then(|| Err(elsewhere()));
            }
            self.first = std::mem::take(&mut self.second);
        }
        let record = match RawRecord::at_start(self.first) {
            Some(record) => {
                self.first = self.first.get(record.bytes().len()..).unwrap_or_default();
                record
            }
            None => match self.wrapped() {
                Some(record) => record,
                None => {
                    let left = self.first.len() + self.second.len();
                    (self.first, self.second) = (&[], &[]);
                    *self.at = self.end;
                    return Some(Err(no_record(left)));
                }
            },
        };
        *self.at = self.at.wrapping_add(record.bytes().len() as u64);
        if Notices::is_notice(record.kind()) {
            self.notices.note(&record);
        }
        Some(Ok(record))
    }
}

impl<'b> BatchIter<'b> {
    /// The record that begins at the end of the ring and ends at its start.
    fn wrapped(&mut self) -> Option<RawRecord<'b>> {
        let scratch = std::mem::take(&mut self.scratch);
        let len = (self.first.len() + self.second.len()).min(scratch.len());
        let whole = scratch.get_mut(..len)?;
        let (begin, end) = whole.split_at_mut_checked(self.first.len())?;
        begin.copy_from_slice(self.first);
        end.copy_from_slice(self.second.get(..end.len())?);
        let record = RawRecord::at_start(whole)?;
        let rest = record.bytes().len().checked_sub(self.first.len())?;
        self.first = self.second.get(rest..)?;
        self.second = &[];
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use super::super::notices::Losses;
    use quipu_perf_data::Words;
    use quipu_perf_data::record::kind;

    /// A ring of one page whose next record is `tail` bytes from its start.
    fn ring(tail: u64, when_full: WhenFull) -> Memory {
        let mapping = Mapping::anonymous(2 * page_size()).expect("memory");
        mapping.store(DATA_TAIL, tail);
        mapping.store(DATA_HEAD, tail);
        Memory::new(mapping, when_full)
    }

    /// Writes words as the kernel does, and moves the head.
    fn write(memory: &Memory, words: &[u64]) {
        let mut head = memory.mapping.load(DATA_HEAD);
        for word in words {
            memory
                .mapping
                .store(memory.data + memory.place(head), *word);
            head += 8;
        }
        memory.mapping.store(DATA_HEAD, head);
    }

    /// The header of a record of `words` words, itself included.
    fn header(kind: u32, words: usize) -> u64 {
        let size = (8 * words) as u16;
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..].copy_from_slice(&size.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    /// The words after the header of each record, errors as `None`, and what was lost.
    fn drain(memory: &mut Memory) -> (Vec<Option<Vec<u64>>>, Losses) {
        let mut notices = Notices::new();
        let mut batch = memory.records(&mut notices);
        let body = |record: Result<RawRecord<'_>>| {
            let record = record.ok()?;
            Some(Words::new(record.body()).iter().collect())
        };
        let records = batch.iter().map(body).collect();
        assert_eq!(batch.remaining(), 0);
        drop(batch);
        (records, notices.losses)
    }

    #[test]
    fn notices_are_taken_as_they_pass_by() {
        let mut memory = ring(0, WhenFull::Lose);
        let words = [
            header(kind::LOST, 3),
            1,
            40,
            header(kind::LOST_SAMPLES, 2),
            5,
        ];
        write(&memory, &words);
        let (_, losses) = drain(&mut memory);
        assert_eq!((losses.records, losses.samples), (40, 5));
    }

    #[test]
    fn what_is_no_record_ends_it_and_the_ring_goes_on_behind_it() {
        for (size_in_words, tail) in [(0, 0), (600, 0), (3, 0), (0, 4080), (8000, 4088)] {
            let mut memory = ring(tail, WhenFull::Lose);
            write(&memory, &[header(1, 2), 7, header(1, size_in_words), 8]);
            assert_eq!(drain(&mut memory).0, [Some(vec![7]), None], "{tail}");
            assert_eq!(memory.mapping.load(DATA_TAIL), tail + 32);
            write(&memory, &[header(1, 2), 9]);
            assert_eq!(drain(&mut memory).0, [Some(vec![9])]);
        }
    }

    /// A head that is further away than the ring is long.
    #[test]
    fn positions_that_make_no_sense_are_survived() {
        for head in [1 << 40, u64::MAX, 3] {
            let mut memory = ring(16, WhenFull::Lose);
            memory.mapping.store(DATA_HEAD, head);
            drain(&mut memory);
            assert_eq!(memory.mapping.load(DATA_TAIL), head);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Records of any length, from any place on, over and over: what is written is read.
        #[test]
        fn what_is_written_is_read(
            tail in 0..10_000u64,
            rounds in prop::collection::vec(prop::collection::vec(1..120usize, 0..5), 1..40),
        ) {
            let mut memory = ring(8 * tail, WhenFull::Lose);
            let mut next = 0;
            for lengths in rounds {
                let mut expected = Vec::new();
                for words in lengths {
                    let body: Vec<u64> = (next..next + words as u64 - 1).collect();
                    next += words as u64;
                    write(&memory, &[header(100, words)]);
                    write(&memory, &body);
                    expected.push(Some(body));
                }
                prop_assert_eq!(drain(&mut memory).0, expected);
                let head = memory.mapping.load(DATA_HEAD);
                prop_assert_eq!(memory.mapping.load(DATA_TAIL), head);
            }
        }

        /// Any bytes: it ends, without a panic.
        #[test]
        fn any_bytes_are_survived(
            tail in any::<u64>(),
            len in 0..8192u64,
            words in prop::collection::vec(prop_oneof![any::<u64>(), 0..1u64 << 52], 512),
        ) {
            let tail = tail & !7;
            let mut memory = ring(tail, WhenFull::Lose);
            write(&memory, &words);
            memory.mapping.store(DATA_HEAD, tail.wrapping_add(len));
            drain(&mut memory);
            memory.when_full = WhenFull::Overwrite;
            memory.scratch = vec![0; memory.size].into();
            let copied = memory.copy_all();
            prop_assert!(copied <= memory.size);
        }
    }
}
