//! The records that every contender reads, and the rings they are written into.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of records.
pub(crate) const RECORDS: u32 = 1400;
/// The frames of each.
pub(crate) const FRAMES: u64 = 16;
/// Pages of records in a ring, of 4 KiB as on most machines.
pub(crate) const PAGES: usize = 64;
/// The size of the ring in bytes.
pub(crate) const RING: usize = PAGES * 4096;

/// Header, ip, tid, time, period, and the call chain with its length and marker.
const RECORD: usize = 8 + 4 * 8 + 8 + 8 * (1 + FRAMES as usize);
/// `PERF_RECORD_SAMPLE`, in user mode.
const HEADER: u64 = 9 | 2 << 32 | (RECORD as u64) << 48;
/// `PERF_CONTEXT_USER`.
const USER: u64 = -512_i64 as u64;
/// The offsets of `data_head` and `data_tail` (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The words of one record.
fn words(i: u64) -> Vec<u64> {
    let thread = (1000 + i % 7) | (2000 + i % 11) << 32;
    let mut words = vec![
        HEADER,
        0x40_0000 + i,
        thread,
        1_000_000 + i * 1000,
        1 + i % 3,
    ];
    words.extend([1 + FRAMES, USER]);
    words.extend((0..FRAMES).map(|frame| 0x40_0000 + i + frame * 64));
    words
}

/// Returns the sum of every field and frame, which a reader of all records must find.
pub(crate) fn sum() -> u64 {
    let each = (0..RECORDS.into()).map(|i| {
        let words = words(i);
        let thread = words[2];
        let ids = (thread & u64::from(u32::MAX)) + (thread >> 32);
        words[1] + ids + words[3] + words[4] + words[7..].iter().sum::<u64>()
    });
    each.sum()
}

/// A ring that a contender has mapped.
pub(crate) struct MappedRing {
    start: usize,
    size: u64,
    words: Vec<u64>,
}

impl MappedRing {
    /// Opens a contender, and finds the ring it has mapped.
    pub(crate) fn of<T>(open: impl FnOnce() -> Result<T, String>) -> Result<(T, Self), String> {
        let before = rings();
        let opened = open()?;
        let new: Vec<_> = rings().difference(&before).copied().collect();
        let [(start, end)] = new[..] else {
            return Err(format!("{} rings were mapped", new.len()));
        };
        let page = (end - start) / (PAGES + 1);
        if page * PAGES != RING {
            return Err(format!("a ring of {} bytes was mapped", end - start));
        }
        replace(start, end - start, page);
        let ring = Self {
            start,
            size: RING as u64,
            words: (0..RECORDS.into()).flat_map(words).collect(),
        };
        Ok((opened, ring))
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offsets used here lie within the ring, which its contender keeps mapped, and are
        // multiples of 8. Nobody else writes to it while a reference lives.
        unsafe { &*((self.start + offset) as *const AtomicU64) }
    }

    /// Writes the records, such that one lies across the end of the ring.
    pub(crate) fn fill(&self) {
        // Readers remember where they were.
        let tail = self.word(TAIL).load(Ordering::Relaxed);
        let data = self.start as u64 + (self.size / PAGES as u64);
        for (i, word) in self.words.iter().enumerate() {
            let at = data + (tail + 8 * i as u64) % self.size;
            self.word((at - self.start as u64) as usize)
                .store(*word, Ordering::Relaxed);
        }
        let head = tail + 8 * self.words.len() as u64;
        self.word(HEAD).store(head, Ordering::Release);
    }
}

/// Puts memory of this process in the place of a ring, whose records only the kernel may write. The
/// first page, which says where they are, is copied.
fn replace(start: usize, len: usize, page: usize) {
    let first = start as *mut u8;
    let mut copy = vec![0u8; page];
    // SAFETY: the range is a mapping that a contender has just made and does not use meanwhile; the new
    // one is as long and as accessible, so the contender's pointers into it stay good.
    unsafe {
        std::ptr::copy_nonoverlapping(first, copy.as_mut_ptr(), page);
        let replaced = libc::mmap(
            first.cast(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
        assert_eq!(replaced, first.cast());
        std::ptr::copy_nonoverlapping(copy.as_ptr(), first, page);
    }
}

/// The rings that this process has mapped.
fn rings() -> BTreeSet<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc is mounted");
    let rings = maps
        .lines()
        .filter(|line| line.ends_with("anon_inode:[perf_event]"));
    rings
        .map(|line| {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let (start, end) = range.expect("a range");
            let address = |text| usize::from_str_radix(text, 16).expect("an address");
            (address(start), address(end))
        })
        .collect()
}
