//! One simulated counter with its select register.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Contents of a simulated counter and its select register.
///
/// Exhaustive: a register of the simulated PMU holds nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SimRegister {
    /// The select register; see [`SimSelect`](super::SimSelect).
    pub select: u64,
    /// Set while it is enabled.
    pub counting: bool,
    /// The counter.
    pub raw: u64,
}

/// A register as it is kept: under the sequence lock of its CPU, so that it can be read while
/// others change.
#[derive(Debug)]
pub(super) struct Register {
    select: AtomicU64,
    counting: AtomicBool,
    /// The counter while it stands still; while it counts, what it shows beyond the event's total.
    value: AtomicU64,
    /// The event's position in the model.
    event: AtomicUsize,
    /// Select bits the driver wrote last.
    written: AtomicU64,
    started: AtomicBool,
}

/// No event.
const NONE: usize = usize::MAX;

impl Default for Register {
    fn default() -> Self {
        Self {
            select: AtomicU64::new(0),
            counting: AtomicBool::new(false),
            value: AtomicU64::new(0),
            event: AtomicUsize::new(NONE),
            written: AtomicU64::new(0),
            started: AtomicBool::new(false),
        }
    }
}

impl Register {
    pub(super) fn select(&self) -> u64 {
        self.select.load(Ordering::Relaxed)
    }

    pub(super) fn is_counting(&self) -> bool {
        self.counting.load(Ordering::Relaxed)
    }

    pub(super) fn event(&self) -> Option<usize> {
        let event = self.event.load(Ordering::Relaxed);
        (event != NONE).then_some(event)
    }

    pub(super) fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    pub(super) fn set_value(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
    }

    pub(super) fn set_counting(&self, counting: bool) {
        self.counting.store(counting, Ordering::Relaxed);
    }

    pub(super) fn set_event(&self, select: u64, event: Option<usize>) {
        self.select.store(select, Ordering::Relaxed);
        self.event.store(event.unwrap_or(NONE), Ordering::Relaxed);
    }

    /// Records the contents as written by the driver.
    pub(super) fn note(&self) {
        self.written.store(self.select(), Ordering::Relaxed);
        self.started.store(self.is_counting(), Ordering::Relaxed);
    }

    /// Returns true if it differs from what the driver has written.
    pub(super) fn is_disturbed(&self) -> bool {
        self.select() != self.written.load(Ordering::Relaxed)
            || self.is_counting() != self.started.load(Ordering::Relaxed)
    }
}
