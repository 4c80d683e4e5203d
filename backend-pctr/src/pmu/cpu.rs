//! The state of the counters of one CPU, readable without locks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use quipu_hal::MaxRate;

use crate::abi::MAX_COUNTERS;

/// The counters, the time stamp counter, and the count of the idle loop.
const SLOTS: usize = MAX_COUNTERS + 2;
/// Stands for no reading.
const NONE: u64 = u64::MAX;
/// Stands for a difference that is not known yet.
const UNKNOWN: i64 = i64::MIN;

/// The counters of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// The functions they are known to have.
    words: [AtomicU32; MAX_COUNTERS],
    /// The functions they are to have once started.
    wanted: [AtomicU32; MAX_COUNTERS],
    /// Which were set here, as a set of bits.
    touched: AtomicU32,
    /// Which another process has set since, as a set of bits.
    lost: AtomicU32,
    /// The most that each slot counts in a second, [`MaxRate`].
    rates: [AtomicU64; SLOTS],
    /// The last reading of each slot, and the time stamp counter then.
    values: [AtomicU64; SLOTS],
    times: [AtomicU64; SLOTS],
    /// The number of times that readings were kept.
    kept: AtomicU64,
    /// The counter that witnesses each counter since that was started, and 1; 0 for none.
    witness: [AtomicU8; MAX_COUNTERS],
    /// The counters that are set as witnesses, as a set of bits.
    witnesses: AtomicU32,
    /// The events by which each counter is ahead of its witness.
    ahead: [AtomicI64; MAX_COUNTERS],
    /// The functions that were found when the counters were acquired; `None` while they are not.
    pub(super) held: Mutex<Option<[u32; MAX_COUNTERS]>>,
}

impl CpuState {
    /// Returns the function that a counter is known to have.
    pub(super) fn word(&self, counter: usize) -> u32 {
        self.words[counter].load(Ordering::Acquire)
    }

    /// Notes that a counter was found with a function.
    pub(super) fn found(&self, counter: usize, word: u32) {
        self.words[counter].store(word, Ordering::Release);
    }

    /// Notes that a counter was set to a function.
    pub(super) fn set(&self, counter: usize, word: u32) {
        self.words[counter].store(word, Ordering::Release);
        self.touched.fetch_or(1 << counter, Ordering::AcqRel);
    }

    pub(super) fn wanted(&self, counter: usize) -> u32 {
        self.wanted[counter].load(Ordering::Acquire)
    }

    /// Notes the function that a counter is to have once started, which counts at most at `rate`.
    pub(super) fn want(&self, counter: usize, word: u32, rate: MaxRate) {
        self.wanted[counter].store(word, Ordering::Release);
        let rate = rate.increments_per_second().unwrap_or(0);
        self.rates[counter].store(rate, Ordering::Release);
    }

    /// Returns the most that a slot counts in a second.
    pub(super) fn rate(&self, slot: usize) -> MaxRate {
        MaxRate::per_second(self.rates[slot].load(Ordering::Acquire))
    }

    /// Returns true if a counter was set since it was acquired.
    pub(super) fn is_touched(&self, counter: usize) -> bool {
        self.touched.load(Ordering::Acquire) >> counter & 1 == 1
    }

    /// Notes that a counter was restored.
    pub(super) fn untouch(&self, counter: usize) {
        self.touched.fetch_and(!(1 << counter), Ordering::AcqRel);
    }

    /// Notes that another process has set a counter since it was set here: it is that one's now.
    pub(super) fn lose(&self, counter: usize, word: u32) {
        self.found(counter, word);
        self.untouch(counter);
        self.lost.fetch_or(1 << counter, Ordering::AcqRel);
    }

    /// Notes that a counter may be used, which was found with a function.
    pub(super) fn regain(&self, counter: usize, word: u32) {
        self.found(counter, word);
        self.lost.fetch_and(!(1 << counter), Ordering::AcqRel);
    }

    /// Returns true if another process has set a counter since.
    pub(super) fn is_lost(&self, counter: usize) -> bool {
        self.lost() >> counter & 1 == 1
    }

    /// Returns the counters that another process has set since, as a set of bits.
    pub(super) fn lost(&self) -> u32 {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns the last reading of a slot, and the time stamp counter then.
    pub(super) fn last(&self, slot: usize) -> Option<(u64, u64)> {
        let time = self.times[slot].load(Ordering::Relaxed);
        (time != NONE).then(|| (self.values[slot].load(Ordering::Relaxed), time))
    }

    /// Keeps a reading of a slot.
    pub(super) fn keep(&self, slot: usize, value: u64, time: u64) {
        self.values[slot].store(value, Ordering::Relaxed);
        self.times[slot].store(time, Ordering::Relaxed);
        self.kept.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of times that readings were kept.
    pub(super) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Acquire)
    }

    /// Forgets the last reading of a slot.
    pub(super) fn forget(&self, slot: usize) {
        self.times[slot].store(NONE, Ordering::Relaxed);
    }

    /// Returns the counter that witnesses another since that was started.
    pub(super) fn witness(&self, counter: usize) -> Option<usize> {
        usize::from(self.witness[counter].load(Ordering::Acquire)).checked_sub(1)
    }

    /// Notes the counter that witnesses another.
    pub(super) fn set_witness(&self, counter: usize, by: Option<usize>) {
        let by = by.map_or(0, |by| by as u8 + 1);
        self.witness[counter].store(by, Ordering::Release);
    }

    /// Returns the counters that are set as witnesses, as a set of bits.
    pub(super) fn witnesses(&self) -> u32 {
        self.witnesses.load(Ordering::Acquire)
    }

    /// Notes that a counter is about to be set as a witness.
    pub(super) fn begin_witness(&self, by: usize) {
        self.witnesses.fetch_or(1 << by, Ordering::AcqRel);
    }

    /// Notes that a counter is no witness any more.
    pub(super) fn end_witness(&self, by: usize) {
        self.witnesses.fetch_and(!(1 << by), Ordering::AcqRel);
    }

    /// Forgets how far a counter is ahead of its witness, which is about to be set.
    pub(super) fn forget_ahead(&self, counter: usize) {
        self.ahead[counter].store(UNKNOWN, Ordering::Release);
    }

    /// Returns true if a counter is as far ahead of its witness as it was at first, and then not behind it; but for
    /// `apart` events.
    pub(super) fn is_ahead(&self, counter: usize, ahead: i64, apart: u64) -> bool {
        match self.ahead[counter].load(Ordering::Acquire) {
            UNKNOWN if ahead < 0 && ahead.unsigned_abs() > apart => false,
            UNKNOWN => {
                self.ahead[counter].store(ahead, Ordering::Release);
                true
            }
            then => ahead.abs_diff(then) <= apart,
        }
    }
}
