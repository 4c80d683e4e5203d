//! The number of groups and sampled counters that are open in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A mark that counters are open, as long as it lives.
#[derive(Debug)]
pub(crate) struct CountersOpen(());

impl CountersOpen {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Returns true if there is a mark.
    #[cfg(feature = "counter-test")]
    pub(crate) fn any() -> bool {
        OPEN.load(Ordering::Relaxed) > 0
    }
}

impl Drop for CountersOpen {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}
