//! The system: its calls, which a crate of one's own makes for real, its counters and its events.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const COUNTERS: usize = 10;

/// The events of the CPU: name, number, and the counters that can count it, a bit each. A backend of
/// many CPUs takes them from a `quipu_hal::EventMap`.
pub(crate) const EVENTS: [(&str, u64, u64); 4] = [
    ("CYCLES", 1, 0b01_1111_1111),
    ("INSTRUCTIONS", 2, 0b10_1111_1111),
    ("LOADS", 3, 0b00_1111_1111),
    ("DIVIDES", 4, 0b00_0000_0011),
];

/// The system calls, which a simulated implementation can replace.
pub(crate) trait System: Send + Sync + 'static {
    /// Selects the event of a counter in all threads; 0 is none.
    fn select(&self, counter: usize, event: u64);
    /// Reads the counters of the calling thread, which never go back, and the nanoseconds for which
    /// it has had a CPU.
    fn read(&self) -> ([u64; COUNTERS], u64);
}

/// A system in which events occur when they are made to.
#[derive(Debug, Default)]
pub(crate) struct Simulated {
    selected: [AtomicU64; COUNTERS],
}

thread_local! {
    static COUNTERS_AND_TIME: Cell<([u64; COUNTERS], u64)> = const { Cell::new(([0; COUNTERS], 0)) };
}

impl Simulated {
    /// Makes an event occur on the calling thread, which takes this many nanoseconds.
    pub(crate) fn occur(&self, event: u64, times: u64, nanoseconds: u64) {
        let (mut counters, time) = COUNTERS_AND_TIME.get();
        for (counter, selected) in counters.iter_mut().zip(&self.selected) {
            if selected.load(Relaxed) == event {
                *counter += times;
            }
        }
        COUNTERS_AND_TIME.set((counters, time + nanoseconds));
    }

    /// Returns the number of counters that an event is selected for.
    pub(crate) fn in_use(&self) -> u64 {
        self.selected
            .iter()
            .map(|event| u64::from(event.load(Relaxed) != 0))
            .sum()
    }
}

impl System for Simulated {
    fn select(&self, counter: usize, event: u64) {
        self.selected[counter].store(event, Relaxed);
    }

    fn read(&self) -> ([u64; COUNTERS], u64) {
        COUNTERS_AND_TIME.get()
    }
}
