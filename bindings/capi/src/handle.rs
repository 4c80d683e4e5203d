//! Handles: what C has instead of an address, so that a stale one is an error.
//!
//! A handle is a slot's number and the generation it was exported in, in the shape of a pointer that
//! is never followed. Slots are never freed, so looking one up is always sound; a slot whose object was
//! removed has another generation, so the old handle no longer fits. Looking up takes no lock and never
//! waits: an object that another thread uses is busy.

use std::array;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::{self, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// The low bits of a handle say what it is of. They are odd, which addresses of C objects are not.
const TAG_BITS: u32 = 4;
const INDEX_BITS: u32 = if usize::BITS == 64 { 20 } else { 12 };
/// One generation further.
const GENERATION: usize = 1 << (TAG_BITS + INDEX_BITS);

/// The slots of a table are allocated so many at a time.
const CHUNK_BITS: u32 = 6;
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << (INDEX_BITS - CHUNK_BITS);

/// The longest wait for a lock that threads hold for some instructions.
const PATIENCE: Duration = Duration::from_secs(1);

/// All objects of one kind.
pub(crate) struct HandleTable<T> {
    tag: usize,
    kind: &'static str,
    /// Null before the first slot of the chunk was taken. What they point to is never freed.
    chunks: [AtomicPtr<[Slot<T>; CHUNK]>; CHUNKS],
    vacancies: Mutex<Vacancies>,
}

/// Slots without an object. The one vacated first is used first, so that a generation lasts long.
struct Vacancies {
    vacated: VecDeque<usize>,
    never_used: usize,
}

/// In lines of the cache of its own, which makes its size one that is quickly multiplied where it is a power of two, and keeps
/// sets of other threads out of the line.
#[repr(align(64))]
struct Slot<T> {
    /// The handle of the object, but in place of its index how many share the object, or [`ALONE`], or [`VACANT`]: one
    /// comparison shows that a handle is of this kind, of this generation, and of an object that is not used.
    state: AtomicUsize,
    object: UnsafeCell<MaybeUninit<T>>,
}

/// The bits of a slot's state that say who uses the object; in a handle, its index.
const USERS: usize = ((1 << INDEX_BITS) - 1) << TAG_BITS;
/// One that shares the object.
const USER: usize = 1 << TAG_BITS;
/// There is no object.
const VACANT: usize = USERS;
/// One has the object to itself.
const ALONE: usize = VACANT - USER;

// SAFETY: the object is reached through `Borrowed`, of which there is one at a time (for that `T` need only
// be `Send`), or through `Shared`, which is made only where `T` is `Sync`.
unsafe impl<T: Send> Sync for Slot<T> {}

/// The reason why a handle has no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupError {
    /// It was never exported, or it was closed.
    Stale,
    /// Another thread uses the object.
    Busy,
}

/// An object that no other thread uses meanwhile.
pub(crate) struct Borrowed<'t, T> {
    slot: &'t Slot<T>,
    /// The slot's state while no thread uses the object.
    unused: usize,
}

/// An object that others may look at too.
pub(crate) struct Shared<'t, T> {
    slot: &'t Slot<T>,
}

impl<T> HandleTable<T> {
    /// An empty table of objects that are called `kind`; each table has another odd `tag`.
    pub(crate) const fn new(tag: usize, kind: &'static str) -> Self {
        assert!(
            tag % 2 == 1 && tag < 1 << TAG_BITS,
            "a tag is odd and small"
        );
        Self {
            tag,
            kind,
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            vacancies: Mutex::new(Vacancies {
                vacated: VecDeque::new(),
                never_used: 0,
            }),
        }
    }

    /// Returns the name of the kind of its objects.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Keeps an object and returns its handle, or `None` if there are too many.
    pub(crate) fn insert(&self, object: T) -> Option<usize> {
        let index = self.take_vacancy()?;
        let slot = self.slot(index)?;
        // SAFETY: the slot is vacant, so no other thread can reach its object, and the vacancy is ours.
        unsafe { (*slot.object.get()).write(object) };
        let unused = slot.state.load(Ordering::Relaxed) & !USERS;
        slot.state.store(unused, Ordering::Release);
        Some(unused | index << TAG_BITS)
    }

    /// Removes an object; its handle is stale from now on.
    pub(crate) fn remove(&self, handle: usize) -> Result<T, LookupError> {
        let borrowed = self.borrow(handle)?;
        let slot = borrowed.slot;
        // Not given back, but vacant from now on, in the next generation.
        mem::forget(borrowed);
        // SAFETY: the slot was borrowed, so there is an object that no other thread uses; it is not read
        // again before `insert` has written another.
        let object = unsafe { (*slot.object.get()).assume_init_read() };
        let next = (slot.state.load(Ordering::Relaxed) & !USERS).wrapping_add(GENERATION);
        slot.state.store(next | VACANT, Ordering::Relaxed);
        if let Some(mut vacancies) = self.vacancies_soon() {
            vacancies.vacated.push_back(index(handle));
        }
        Ok(object)
    }

    /// Borrows the object of a handle, for the caller alone.
    pub(crate) fn borrow(&self, handle: usize) -> Result<Borrowed<'_, T>, LookupError> {
        let (slot, unused) = self.find(handle)?;
        let alone = unused | ALONE;
        let exchanged =
            slot.state
                .compare_exchange(unused, alone, Ordering::Acquire, Ordering::Relaxed);
        match exchanged {
            Ok(_) => Ok(Borrowed { slot, unused }),
            Err(state) => Err(lookup_error(state, unused)),
        }
    }

    /// Returns the slot that a handle names, and its state while no thread uses the object.
    fn find(&self, handle: usize) -> Result<(&Slot<T>, usize), LookupError> {
        let slot = self.slot(index(handle)).ok_or(LookupError::Stale)?;
        Ok((slot, handle & !USERS))
    }

    /// Returns a slot that was taken once, or is in the chunk of one that was.
    fn slot(&self, index: usize) -> Option<&Slot<T>> {
        let chunk = self.chunks.get(index / CHUNK)?.load(Ordering::Acquire);
        // SAFETY: null, or a chunk that `take_vacancy` has made, published, and left where it is.
        let chunk = unsafe { chunk.as_ref() }?;
        Some(&chunk[index % CHUNK])
    }

    /// Takes a slot that is vacant, in a chunk that is there.
    fn take_vacancy(&self) -> Option<usize> {
        let mut vacancies = self.vacancies();
        if let Some(index) = vacancies.vacated.pop_front() {
            return Some(index);
        }
        let index = vacancies.never_used;
        let chunk = self.chunks.get(index / CHUNK)?;
        if index.is_multiple_of(CHUNK) {
            // The vacancies are locked: no other thread makes it.
            let slots = Box::new(array::from_fn(|_| Slot::vacant(self.tag)));
            chunk.store(Box::into_raw(slots), Ordering::Release);
        }
        vacancies.never_used += 1;
        Some(index)
    }

    /// Locks the vacancies; `None` where another thread held them as this process was forked, which does not exist
    /// here. The slot is then not used again.
    fn vacancies_soon(&self) -> Option<MutexGuard<'_, Vacancies>> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.vacancies.try_lock() {
                Ok(vacancies) => return Some(vacancies),
                Err(TryLockError::Poisoned(vacancies)) => return Some(vacancies.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::yield_now(),
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }

    fn vacancies(&self) -> MutexGuard<'_, Vacancies> {
        self.vacancies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Sync> HandleTable<T> {
    /// Shares the object of a handle, which other threads may share too.
    pub(crate) fn share(&self, handle: usize) -> Result<Shared<'_, T>, LookupError> {
        let (slot, unused) = self.find(handle)?;
        let one_more = |state: usize| {
            let shared = state & !USERS == unused && state & USERS < ALONE - USER;
            shared.then_some(state + USER)
        };
        match slot
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more)
        {
            Ok(_) => Ok(Shared { slot }),
            Err(state) => Err(lookup_error(state, unused)),
        }
    }
}

/// Returns the number of the slot that a handle names.
fn index(handle: usize) -> usize {
    (handle & USERS) >> TAG_BITS
}

/// Returns the reason why a slot in state `state` has no object for a handle that expects `expected`.
fn lookup_error(state: usize, expected: usize) -> LookupError {
    if state & !USERS == expected && state & USERS != VACANT {
        LookupError::Busy
    } else {
        LookupError::Stale
    }
}

impl<T> Slot<T> {
    fn vacant(tag: usize) -> Self {
        Self {
            state: AtomicUsize::new(VACANT | tag),
            object: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a borrowed slot has an object, which no other thread uses while this value lives.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T> DerefMut for Borrowed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `self` is borrowed for as long as the reference lives.
        unsafe { (*self.slot.object.get()).assume_init_mut() }
    }
}

impl<T> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        // No other thread changes the state of an object that is borrowed.
        self.slot.state.store(self.unused, Ordering::Release);
    }
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a shared slot has an object, which no thread has alone while this value lives.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        self.slot.state.fetch_sub(USER, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_it_is_closed() {
        let table = HandleTable::new(3, "number");
        let (one, two) = (table.insert(1).unwrap(), table.insert(2).unwrap());
        *table.borrow(one).unwrap() += 10;
        assert_eq!(
            (*table.share(one).unwrap(), *table.share(two).unwrap()),
            (11, 2)
        );
        assert_eq!(table.remove(one), Ok(11));
        assert_eq!(table.remove(one), Err(LookupError::Stale));
        let again = table.insert(3).unwrap();
        assert_eq!(index(again), index(one), "the slot is used again");
        assert_eq!(table.borrow(one).err(), Some(LookupError::Stale));
        assert_eq!(*table.borrow(again).unwrap(), 3);
    }

    /// As in a process forked while another thread had the lock: it is never given back.
    #[test]
    fn closing_does_not_wait_for_a_thread_that_is_not_there() {
        let table = HandleTable::new(3, "number");
        let handle = table.insert(1).unwrap();
        let locked = table.vacancies();
        assert_eq!(table.remove(handle), Ok(1));
        drop(locked);
        let next = table.insert(2).unwrap();
        assert_ne!(index(next), index(handle), "the slot stays vacant");
    }

    #[test]
    fn what_is_no_handle_is_found_out() {
        let (table, other) = (HandleTable::new(3, "number"), HandleTable::new(5, "number"));
        let handle = table.insert(1).unwrap();
        other.insert(1).unwrap();
        assert_eq!(other.borrow(handle).err(), Some(LookupError::Stale));
        for wrong in [
            0,
            3 + (1 << TAG_BITS),
            !0,
            handle & !1,
            handle | 1 << (usize::BITS - 1),
        ] {
            assert_eq!(
                table.borrow(wrong).err(),
                Some(LookupError::Stale),
                "{wrong:#x}"
            );
            assert_eq!(
                table.share(wrong).err(),
                Some(LookupError::Stale),
                "{wrong:#x}"
            );
        }
    }

    #[test]
    fn one_alone_or_many_together() {
        let table = HandleTable::new(3, "number");
        let handle = table.insert(1).unwrap();
        let borrowed = table.borrow(handle).unwrap();
        assert_eq!(table.borrow(handle).err(), Some(LookupError::Busy));
        assert_eq!(table.share(handle).err(), Some(LookupError::Busy));
        assert_eq!(table.remove(handle).err(), Some(LookupError::Busy));
        drop(borrowed);
        let (a, b) = (table.share(handle).unwrap(), table.share(handle).unwrap());
        assert_eq!(table.borrow(handle).err(), Some(LookupError::Busy));
        drop((a, b));
        assert!(table.borrow(handle).is_ok());
    }

    #[test]
    fn there_are_as_many_objects_as_slots() {
        const MOST: usize = 1 << INDEX_BITS;
        let table = Box::new(HandleTable::new(3, "number"));
        let handles: Vec<usize> = (0..MOST).map(|i| table.insert(i).unwrap()).collect();
        assert_eq!(table.insert(MOST), None);
        for (i, handle) in handles.iter().enumerate() {
            assert_eq!(*table.borrow(*handle).unwrap(), i);
        }
        assert_eq!(table.remove(handles[MOST / 2]), Ok(MOST / 2));
        assert!(
            table
                .insert(0)
                .is_some_and(|again| index(again) == MOST / 2)
        );
    }

    #[test]
    fn threads_take_turns() {
        let table = HandleTable::new(3, "number");
        let handle = table.insert(0u32).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < 1000 {
                        if let Ok(mut number) = table.borrow(handle) {
                            *number += 1;
                            done += 1;
                        }
                        thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(table.remove(handle), Ok(2000));
    }

    /// One thread sits on the only lock there is; objects are found all the same.
    #[test]
    fn looking_up_takes_no_lock() {
        let table = HandleTable::new(3, "number");
        let handle = table.insert(1).unwrap();
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (locked, is_locked) = std::sync::mpsc::channel();
        let unlocked = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (table, unlocked) = (&table, &unlocked);
            scope.spawn(move || {
                let vacancies = table.vacancies();
                locked.send(()).unwrap();
                // Only so that a failure is one, and no hang.
                let _ = told.recv_timeout(Duration::from_secs(20));
                unlocked.store(1, Ordering::SeqCst);
                drop(vacancies);
            });
            is_locked.recv().unwrap();
            assert_eq!(*table.borrow(handle).unwrap(), 1);
            assert_eq!(*table.share(handle).unwrap(), 1);
            assert_eq!(
                table.borrow(handle + (1 << TAG_BITS)).err(),
                Some(LookupError::Stale)
            );
            assert_eq!(unlocked.load(Ordering::SeqCst), 0, "waited for the lock");
            tell.send(()).unwrap();
        });
    }
}
