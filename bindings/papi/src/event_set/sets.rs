//! The event sets by their numbers: one is found without a lock that others could hold.

use std::ffi::c_int;
use std::sync::{Mutex, OnceLock};

use crate::code::{ENOEVST, ENOMEM, Outcome};
use crate::event_set::set::Set;
use crate::library::lock;

/// Slots are allocated so many at a time, and stay where they are.
const CHUNK: usize = 64;
const CHUNKS: usize = 256;

/// The slot of a set, which there may be or not. Its lock is one without poison, which takes fewer instructions; a set
/// that a call panicked with is as it was left.
type Slot = parking_lot::Mutex<Option<Set>>;

/// The slots of all sets.
pub(crate) struct Sets {
    chunks: [OnceLock<Box<[Slot; CHUNK]>>; CHUNKS],
    /// The numbers that are taken, of the first on.
    taken: Mutex<Vec<bool>>,
}

pub(crate) static SETS: Sets = Sets::new();

impl Sets {
    const fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            taken: Mutex::new(Vec::new()),
        }
    }

    /// Keeps a set and returns its number, the lowest that is free.
    pub(crate) fn insert(&self, set: Set) -> Outcome<c_int> {
        let mut taken = lock(&self.taken);
        let free = taken.iter().position(|taken| !taken);
        let number = free.unwrap_or(taken.len());
        let chunk = self.chunks.get(number / CHUNK).ok_or(ENOMEM)?;
        let slots = chunk.get_or_init(|| Box::new([const { Slot::new(None) }; CHUNK]));
        *slots[number % CHUNK].lock() = Some(set);
        match free {
            Some(free) => taken[free] = true,
            None => taken.push(true),
        }
        c_int::try_from(number).map_err(|_| ENOMEM)
    }

    /// Runs something on a set.
    pub(crate) fn with<T>(
        &self,
        number: c_int,
        body: impl FnOnce(&mut Set) -> Outcome<T>,
    ) -> Outcome<T> {
        let slot = self.slot(number).ok_or(ENOEVST)?;
        body(slot.lock().as_mut().ok_or(ENOEVST)?)
    }

    /// Returns the slot of a set if no thread is at it, for handlers of signals.
    #[cfg(target_os = "linux")]
    pub(crate) fn now(&self, number: c_int) -> Option<parking_lot::MutexGuard<'_, Option<Set>>> {
        self.slot(number)?.try_lock()
    }

    /// Forgets a set.
    pub(crate) fn remove(&self, number: c_int) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        // It is dropped where nothing is locked any longer.
        let removed = slot.lock().take();
        if let (Some(_), Ok(number)) = (&removed, usize::try_from(number)) {
            lock(&self.taken)[number] = false;
        }
        drop(removed);
    }

    /// Forgets all sets but those that a thread is at, which in a forked process no thread will leave.
    pub(crate) fn clear(&self) {
        let numbers = 0..lock(&self.taken).len();
        for number in numbers.filter_map(|number| c_int::try_from(number).ok()) {
            if self.slot(number).and_then(Slot::try_lock).is_some() {
                self.remove(number);
            }
        }
    }

    fn slot(&self, number: c_int) -> Option<&Slot> {
        let number = usize::try_from(number).ok()?;
        Some(&self.chunks.get(number / CHUNK)?.get()?[number % CHUNK])
    }
}
