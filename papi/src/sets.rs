//! The event sets by their numbers: one is found without a lock that others could hold.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use crate::code::{ENOEVST, ENOMEM, Outcome};
use crate::event_set::Set;
use crate::library::lock;

/// Places are allocated so many at a time, and stay where they are.
const CHUNK: usize = 64;
const CHUNKS: usize = 256;

/// The place of a set, which there may be or not.
type Place = Mutex<Option<Set>>;

/// The places of all sets.
pub(crate) struct Sets {
    chunks: [OnceLock<Box<[Place; CHUNK]>>; CHUNKS],
    /// The numbers that are taken, of the first on.
    taken: Mutex<Vec<bool>>,
}

impl Sets {
    pub(crate) const fn new() -> Self {
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
        let places = chunk.get_or_init(|| Box::new([const { Mutex::new(None) }; CHUNK]));
        *lock(&places[number % CHUNK]) = Some(set);
        match free {
            Some(free) => taken[free] = true,
            None => taken.push(true),
        }
        c_int::try_from(number).map_err(|_| ENOMEM)
    }

    /// Runs something on a set.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        number: c_int,
        body: impl FnOnce(&mut Set) -> Outcome<T>,
    ) -> Outcome<T> {
        let place = self.place(number).ok_or(ENOEVST)?;
        body(lock(place).as_mut().ok_or(ENOEVST)?)
    }

    /// Returns the place of a set if no thread is at it, for handlers of signals.
    #[cfg(target_os = "linux")]
    pub(crate) fn now(&self, number: c_int) -> Option<MutexGuard<'_, Option<Set>>> {
        at_once(self.place(number)?)
    }

    /// Forgets a set.
    pub(crate) fn remove(&self, number: c_int) {
        let Some(place) = self.place(number) else {
            return;
        };
        // It is dropped where nothing is locked any longer.
        let removed = lock(place).take();
        if let (Some(_), Ok(number)) = (&removed, usize::try_from(number)) {
            lock(&self.taken)[number] = false;
        }
        drop(removed);
    }

    /// Forgets all sets but those that a thread is at, which in a forked process no thread will leave.
    pub(crate) fn clear(&self) {
        let numbers = 0..lock(&self.taken).len();
        for number in numbers.filter_map(|number| c_int::try_from(number).ok()) {
            if self.place(number).and_then(at_once).is_some() {
                self.remove(number);
            }
        }
    }

    #[inline]
    fn place(&self, number: c_int) -> Option<&Place> {
        let number = usize::try_from(number).ok()?;
        Some(&self.chunks.get(number / CHUNK)?.get()?[number % CHUNK])
    }
}

/// Locks a place if no thread is at it.
fn at_once(place: &Place) -> Option<MutexGuard<'_, Option<Set>>> {
    match place.try_lock() {
        Ok(set) => Some(set),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
