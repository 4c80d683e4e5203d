//! A sequence lock for values kept in atomics: readers never wait for a lock, and start over when a
//! change came in between (Hans Boehm, "Can Seqlocks Get Along With Programming Language Memory
//! Models?", MSPC 2012).

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Counts changes: odd while one is being made.
#[derive(Debug, Default)]
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    /// Makes changes that readers see as one. Changes must come one at a time.
    pub(crate) fn write<T>(&self, change: impl FnOnce() -> T) -> T {
        let sequence = self.0.load(Ordering::Relaxed);
        self.0.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let done = change();
        self.0.store(sequence.wrapping_add(2), Ordering::Release);
        done
    }

    /// Begins a reader's snapshot. A change takes a few stores, so waiting for its end is short; a
    /// writer that lost its CPU in the middle gets it by the yield.
    pub(crate) fn begin(&self) -> u64 {
        let mut tries = 0u32;
        loop {
            let sequence = self.0.load(Ordering::Acquire);
            if sequence & 1 == 0 {
                return sequence;
            }
            tries = tries.wrapping_add(1);
            if tries.is_multiple_of(128) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Returns true if nothing has changed since the snapshot began.
    pub(crate) fn unchanged(&self, since: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_overlaps_a_change_is_not_valid() {
        let sequence = Sequence::default();
        let before = sequence.begin();
        assert!(sequence.unchanged(before));
        sequence.write(|| assert!(!sequence.unchanged(before)));
        assert!(!sequence.unchanged(before));
        assert!(sequence.unchanged(sequence.begin()));
    }

    #[test]
    fn readers_never_see_half_a_change() {
        const CHANGES: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let sequence = Sequence::default();
        let pair = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=CHANGES {
                    sequence.write(|| {
                        pair[0].store(n, Ordering::Relaxed);
                        // Long enough for readers to come in between.
                        (0..20).for_each(|_| std::hint::spin_loop());
                        pair[1].store(n, Ordering::Relaxed);
                    });
                }
            });
            let mut last = 0;
            while last < CHANGES {
                let since = sequence.begin();
                let [a, b] = pair.each_ref().map(|v| v.load(Ordering::Relaxed));
                if sequence.unchanged(since) {
                    assert_eq!(a, b);
                    assert!(a >= last);
                    last = a;
                }
            }
        });
    }
}
