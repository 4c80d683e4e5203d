//! The state of the counters of one CPU, readable without locks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::MAX_COUNTERS;

/// The counters of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// The functions they are known to have.
    words: [AtomicU32; MAX_COUNTERS],
    /// The functions they are to have once started.
    wanted: [AtomicU32; MAX_COUNTERS],
    /// Which were set here, as a set of bits.
    touched: AtomicU32,
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

    pub(super) fn want(&self, counter: usize, word: u32) {
        self.wanted[counter].store(word, Ordering::Release);
    }

    /// Returns true if a counter was set since it was acquired.
    pub(super) fn is_touched(&self, counter: usize) -> bool {
        self.touched.load(Ordering::Acquire) >> counter & 1 == 1
    }

    /// Notes that a counter was restored.
    pub(super) fn untouch(&self, counter: usize) {
        self.touched.fetch_and(!(1 << counter), Ordering::AcqRel);
    }
}
