//! Handles: what C holds instead of an address, so that a stale one is an error.
//!
//! A handle is a slot's number and the generation it was given out in, in the shape of a pointer that
//! is never followed. Slots are never freed, so looking one up is always sound; a slot that was given
//! back has another generation, so the old handle no longer fits. Looking up takes no lock and never
//! waits: where somebody else uses the object, the answer is that it is busy.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::{self, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The low bits of a handle say what it is of. They are odd, which addresses of C objects are not.
const TAG_BITS: u32 = 4;
const INDEX_BITS: u32 = if usize::BITS == 64 { 20 } else { 12 };
const GENERATIONS: u32 = match usize::BITS - TAG_BITS - INDEX_BITS {
    bits @ 0..32 => (1 << bits) - 1,
    _ => u32::MAX,
};

/// The first chunk has so many slots, each other as many as all before it and these once more.
const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = (INDEX_BITS - FIRST_CHUNK.trailing_zeros()) as usize;

/// All objects of one kind.
pub(crate) struct Table<T> {
    tag: usize,
    kind: &'static str,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    vacancies: Mutex<Vacancies>,
}

/// Slots that nobody has. The one given back first is used first, so that a generation lasts long.
struct Vacancies {
    given_back: VecDeque<usize>,
    never_used: usize,
}

struct Slot<T> {
    /// The generation in the high half; in the low half how many share the object, or [`ALONE`], or
    /// [`VACANT`].
    state: AtomicU64,
    object: UnsafeCell<MaybeUninit<T>>,
}

/// In the low half of a slot's state: there is no object.
const VACANT: u64 = u32::MAX as u64;
/// In the low half of a slot's state: one has the object to itself.
const ALONE: u64 = VACANT - 1;
/// The low half of a slot's state.
const USERS: u64 = u32::MAX as u64;

// SAFETY: the object is reached through `Held`, of which there is one at a time (for that `T` need only
// be `Send`), or through `Shared`, which is made only where `T` is `Sync`.
unsafe impl<T: Send> Sync for Slot<T> {}

/// Why there is no object to a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It is none that was given out, or it was given back.
    Stale,
    /// Another thread uses the object.
    Busy,
}

/// An object that nobody else uses meanwhile.
pub(crate) struct Held<'t, T> {
    slot: &'t Slot<T>,
    /// The slot's state while nobody uses the object.
    unused: u64,
}

/// An object that others may look at too.
pub(crate) struct Shared<'t, T> {
    slot: &'t Slot<T>,
}

impl<T> Table<T> {
    /// An empty table of objects that are called `kind`; each table has another odd `tag`.
    pub(crate) const fn new(tag: usize, kind: &'static str) -> Self {
        assert!(
            tag % 2 == 1 && tag < 1 << TAG_BITS,
            "a tag is odd and small"
        );
        Self {
            tag,
            kind,
            chunks: [const { OnceLock::new() }; CHUNKS],
            vacancies: Mutex::new(Vacancies {
                given_back: VecDeque::new(),
                never_used: 0,
            }),
        }
    }

    /// What its objects are called.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Keeps an object, and says its handle; `None` when there are too many.
    pub(crate) fn insert(&self, object: T) -> Option<usize> {
        let index = self.take_vacancy()?;
        let (chunk, at) = place(index);
        let slots = self.chunks[chunk].get_or_init(|| {
            let slots = FIRST_CHUNK << chunk;
            (0..slots).map(|_| Slot::vacant()).collect()
        });
        let slot = &slots[at];
        // SAFETY: the slot is vacant, so nobody else can reach its object, and the vacancy is ours.
        unsafe { (*slot.object.get()).write(object) };
        let state = slot.state.load(Ordering::Relaxed) & !USERS;
        slot.state.store(state, Ordering::Release);
        let generation = (state >> 32) as usize;
        Some(generation << (TAG_BITS + INDEX_BITS) | index << TAG_BITS | self.tag)
    }

    /// Takes an object back; the handle is worth nothing from now on.
    pub(crate) fn remove(&self, handle: usize) -> Result<T, Miss> {
        let held = self.hold(handle)?;
        let slot = held.slot;
        // Not given back, but vacant from now on, in the next generation.
        mem::forget(held);
        // SAFETY: the slot was held, so there is an object and nobody else uses it; it is not read
        // again before `insert` has written another.
        let object = unsafe { (*slot.object.get()).assume_init_read() };
        let generation = (slot.state.load(Ordering::Relaxed) >> 32) + 1;
        let generation = generation & u64::from(GENERATIONS);
        slot.state
            .store(generation << 32 | VACANT, Ordering::Relaxed);
        self.vacancies().given_back.push_back(index(handle));
        Ok(object)
    }

    /// The object of a handle, for the caller alone.
    #[inline]
    pub(crate) fn hold(&self, handle: usize) -> Result<Held<'_, T>, Miss> {
        let (slot, unused) = self.find(handle)?;
        let alone = unused | ALONE;
        let exchanged =
            slot.state
                .compare_exchange(unused, alone, Ordering::Acquire, Ordering::Relaxed);
        match exchanged {
            Ok(_) => Ok(Held { slot, unused }),
            Err(state) => Err(miss(state, unused)),
        }
    }

    /// The slot that a handle names, and what its state is while nobody uses the object.
    fn find(&self, handle: usize) -> Result<(&Slot<T>, u64), Miss> {
        if handle & ((1 << TAG_BITS) - 1) != self.tag {
            return Err(Miss::Stale);
        }
        let (chunk, at) = place(index(handle));
        let slots = self.chunks.get(chunk).and_then(OnceLock::get);
        let slot = slots.and_then(|slots| slots.get(at)).ok_or(Miss::Stale)?;
        let generation = (handle >> (TAG_BITS + INDEX_BITS)) as u64;
        if generation > u64::from(GENERATIONS) {
            return Err(Miss::Stale);
        }
        Ok((slot, generation << 32))
    }

    fn take_vacancy(&self) -> Option<usize> {
        let mut vacancies = self.vacancies();
        if let Some(index) = vacancies.given_back.pop_front() {
            return Some(index);
        }
        let index = vacancies.never_used;
        if place(index).0 == CHUNKS {
            return None;
        }
        vacancies.never_used += 1;
        Some(index)
    }

    fn vacancies(&self) -> MutexGuard<'_, Vacancies> {
        self.vacancies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Sync> Table<T> {
    /// The object of a handle, which other threads may look at too.
    pub(crate) fn share(&self, handle: usize) -> Result<Shared<'_, T>, Miss> {
        let (slot, unused) = self.find(handle)?;
        let one_more = |state: u64| {
            let shared = state >> 32 == unused >> 32 && state & USERS < ALONE - 1;
            shared.then_some(state + 1)
        };
        match slot
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more)
        {
            Ok(_) => Ok(Shared { slot }),
            Err(state) => Err(miss(state, unused)),
        }
    }
}

/// Which slot a handle names.
fn index(handle: usize) -> usize {
    handle >> TAG_BITS & ((1 << INDEX_BITS) - 1)
}

/// Which chunk a slot is in, and where.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

/// Why a slot in this state has nothing for a handle that expects the other.
fn miss(state: u64, expected: u64) -> Miss {
    if state >> 32 == expected >> 32 && state & USERS != VACANT {
        Miss::Busy
    } else {
        Miss::Stale
    }
}

impl<T> Slot<T> {
    fn vacant() -> Self {
        Self {
            state: AtomicU64::new(VACANT),
            object: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a held slot has an object, and nobody else uses it while this value lives.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `self` is borrowed for as long as the reference lives.
        unsafe { (*self.slot.object.get()).assume_init_mut() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Nobody else changes the state of an object that one has alone.
        self.slot.state.store(self.unused, Ordering::Release);
    }
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a shared slot has an object, which nobody holds alone while this value lives.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_it_is_given_back() {
        let table = Table::new(3, "number");
        let (one, two) = (table.insert(1).unwrap(), table.insert(2).unwrap());
        *table.hold(one).unwrap() += 10;
        assert_eq!(
            (*table.share(one).unwrap(), *table.share(two).unwrap()),
            (11, 2)
        );
        assert_eq!(table.remove(one), Ok(11));
        assert_eq!(table.remove(one), Err(Miss::Stale));
        let again = table.insert(3).unwrap();
        assert_eq!(index(again), index(one), "the slot is used again");
        assert_eq!(table.hold(one).err(), Some(Miss::Stale));
        assert_eq!(*table.hold(again).unwrap(), 3);
    }

    #[test]
    fn what_is_no_handle_is_found_out() {
        let (table, other) = (Table::new(3, "number"), Table::new(5, "number"));
        let handle = table.insert(1).unwrap();
        other.insert(1).unwrap();
        assert_eq!(other.hold(handle).err(), Some(Miss::Stale));
        for wrong in [
            0,
            3 + (1 << TAG_BITS),
            !0,
            handle & !1,
            handle | 1 << (usize::BITS - 1),
        ] {
            assert_eq!(table.hold(wrong).err(), Some(Miss::Stale), "{wrong:#x}");
            assert_eq!(table.share(wrong).err(), Some(Miss::Stale), "{wrong:#x}");
        }
    }

    #[test]
    fn one_alone_or_many_together() {
        let table = Table::new(3, "number");
        let handle = table.insert(1).unwrap();
        let held = table.hold(handle).unwrap();
        assert_eq!(table.hold(handle).err(), Some(Miss::Busy));
        assert_eq!(table.share(handle).err(), Some(Miss::Busy));
        assert_eq!(table.remove(handle).err(), Some(Miss::Busy));
        drop(held);
        let (a, b) = (table.share(handle).unwrap(), table.share(handle).unwrap());
        assert_eq!(table.hold(handle).err(), Some(Miss::Busy));
        drop((a, b));
        assert!(table.hold(handle).is_ok());
    }

    #[test]
    fn slots_are_numbered_without_gaps() {
        let mut next = (0, 0);
        for index in 0..1000 {
            assert_eq!(place(index), next);
            next.1 += 1;
            if next.1 == FIRST_CHUNK << next.0 {
                next = (next.0 + 1, 0);
            }
        }
    }

    #[test]
    fn threads_take_turns() {
        let table = Table::new(3, "number");
        let handle = table.insert(0u32).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < 1000 {
                        if let Ok(mut number) = table.hold(handle) {
                            *number += 1;
                            done += 1;
                        }
                        std::thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(table.remove(handle), Ok(2000));
    }

    /// One thread sits on the only lock there is; objects are found all the same.
    #[test]
    fn looking_up_takes_no_lock() {
        let table = Table::new(3, "number");
        let handle = table.insert(1).unwrap();
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (locked, is_locked) = std::sync::mpsc::channel();
        let unlocked = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (table, unlocked) = (&table, &unlocked);
            scope.spawn(move || {
                let vacancies = table.vacancies();
                locked.send(()).unwrap();
                // Only so that a failure is one, and no hang.
                let _ = told.recv_timeout(std::time::Duration::from_secs(20));
                unlocked.store(1, Ordering::SeqCst);
                drop(vacancies);
            });
            is_locked.recv().unwrap();
            assert_eq!(*table.hold(handle).unwrap(), 1);
            assert_eq!(*table.share(handle).unwrap(), 1);
            assert_eq!(
                table.hold(handle + (1 << TAG_BITS)).err(),
                Some(Miss::Stale)
            );
            assert_eq!(unlocked.load(Ordering::SeqCst), 0, "waited for the lock");
            tell.send(()).unwrap();
        });
    }
}
