//! Threads that the library knows, their pointers, and the two locks.

use std::cell::RefCell;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::abi::AllThreads;
use crate::boundary::call::done;
use crate::boundary::pointer::read;
use crate::code::{EINVAL, EMISC, Outcome};
use crate::component::COMPONENTS;
use crate::library::{LIBRARY, THREAD_LEVEL, lock};

pub(crate) type IdFunction = extern "C" fn() -> c_ulong;

const TLS_NUM: usize = 3;
const TLS_ALL_THREADS: c_int = 0x10;

/// One thread: what it stores, and which components count for it.
pub(crate) struct Thread {
    id: c_ulong,
    stored: Mutex<[usize; TLS_NUM + 1]>,
    /// True while an event set of this thread runs on the component.
    pub(crate) running: [AtomicBool; COMPONENTS],
}

impl Thread {
    fn new(id: c_ulong) -> Arc<Self> {
        Arc::new(Self {
            id,
            stored: Mutex::new([0; TLS_NUM + 1]),
            running: std::array::from_fn(|_| AtomicBool::new(false)),
        })
    }
}

/// The threads that are known, the first one being that which initialized the library.
pub(crate) struct Threads {
    known: Mutex<Vec<Arc<Thread>>>,
    /// The address of the function that names threads; 0 before `PAPI_thread_init`.
    id_function: AtomicUsize,
    /// The number of times that the threads were forgotten.
    generation: AtomicUsize,
}

pub(crate) static THREADS: Threads = Threads::new();

thread_local! {
    /// The calling thread, and the generation it was known in.
    static CURRENT: RefCell<Option<(usize, Arc<Thread>)>> = const { RefCell::new(None) };
}

impl Threads {
    const fn new() -> Self {
        Self {
            known: Mutex::new(Vec::new()),
            id_function: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
        }
    }

    /// Begins with the calling thread.
    pub(crate) fn start(&self) {
        lock(&self.known).push(Thread::new(c_ulong::from(std::process::id())));
    }

    /// Forgets all threads.
    pub(crate) fn clear(&self) {
        lock(&self.known).clear();
        self.id_function.store(0, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    fn id(&self) -> Option<c_ulong> {
        let function = self.id_function.load(Ordering::Relaxed);
        if function == 0 {
            return None;
        }
        // SAFETY: the address is that of a function of this type, which `PAPI_thread_init` was given.
        let function: IdFunction = unsafe { std::mem::transmute(function) };
        Some(function())
    }

    /// Returns the calling thread, if it is known.
    fn find(&self) -> Option<Arc<Thread>> {
        if self.id_function.load(Ordering::Relaxed) == 0 {
            return lock(&self.known).first().cloned();
        }
        let generation = self.generation.load(Ordering::Relaxed);
        CURRENT.with_borrow(|current| {
            let (known_in, thread) = current.as_ref()?;
            (*known_in == generation).then(|| Arc::clone(thread))
        })
    }

    /// Returns the calling thread, which is known from now on.
    pub(crate) fn current(&self) -> Outcome<Arc<Thread>> {
        LIBRARY.require()?;
        if let Some(thread) = self.find() {
            return Ok(thread);
        }
        let id = self.id().ok_or(EMISC)?;
        let thread = Thread::new(id);
        lock(&self.known).push(Arc::clone(&thread));
        self.enter(&thread);
        Ok(thread)
    }

    fn enter(&self, thread: &Arc<Thread>) {
        let generation = self.generation.load(Ordering::Relaxed);
        CURRENT.with_borrow_mut(|current| *current = Some((generation, Arc::clone(thread))));
    }

    /// Sets the function that names threads; the first thread has to be the only one.
    fn name_by(&self, function: Option<IdFunction>) -> Outcome {
        let mut known = lock(&self.known);
        let is_set = self.id_function.load(Ordering::Relaxed) != 0;
        if known.len() != 1 || (function.is_some() && is_set) {
            return Err(EINVAL);
        }
        let id = function.map_or_else(|| c_ulong::from(std::process::id()), |function| function());
        let first = Thread::new(id);
        // Event sets that the first thread has made keep what runs in it.
        if let Some(old) = known.first() {
            for (new, old) in first.running.iter().zip(&old.running) {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        known[0] = Arc::clone(&first);
        self.id_function.store(
            function.map_or(0, |function| function as usize),
            Ordering::Relaxed,
        );
        self.enter(&first);
        Ok(())
    }

    fn forget_current(&self) -> Outcome {
        let thread = self.find().ok_or(EMISC)?;
        lock(&self.known).retain(|known| !Arc::ptr_eq(known, &thread));
        CURRENT.with_borrow_mut(Option::take);
        Ok(())
    }

    /// Writes the names of all threads and a pointer of each, and how many there are.
    ///
    /// # Safety
    /// `into` has arrays of as many elements as it says, or none.
    unsafe fn gather(&self, tag: usize, into: &mut AllThreads) -> Outcome {
        let known = lock(&self.known);
        let mut number = known.len();
        if !into.id.is_null() || !into.data.is_null() {
            number = number.min(usize::try_from(into.num).map_err(|_| EINVAL)?);
        }
        for (at, thread) in known.iter().take(number).enumerate() {
            if !into.id.is_null() {
                // SAFETY: the array is that long.
                unsafe { into.id.add(at).write_unaligned(thread.id) };
            }
            if !into.data.is_null() {
                let stored = lock(&thread.stored)[tag] as *mut c_void;
                // SAFETY: the array is that long.
                unsafe { into.data.add(at).write_unaligned(stored) };
            }
        }
        into.num = c_int::try_from(number).unwrap_or(c_int::MAX);
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_thread_init(function: Option<IdFunction>) -> c_int {
    done(|| {
        LIBRARY.require()?;
        static INITIALIZED_IN: AtomicUsize = AtomicUsize::new(usize::MAX);
        let generation = THREADS.generation.load(Ordering::Relaxed);
        if INITIALIZED_IN.swap(generation, Ordering::Relaxed) == generation {
            return Ok(());
        }
        LIBRARY.add_level(THREAD_LEVEL);
        THREADS.name_by(function)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_thread_id() -> c_ulong {
    let unknown = EMISC.number() as c_ulong;
    crate::boundary::call::call_or(unknown, || THREADS.id().unwrap_or(unknown))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_register_thread() -> c_int {
    done(|| THREADS.current().map(drop))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_unregister_thread() -> c_int {
    done(|| THREADS.forget_current())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_list_threads(ids: *mut c_ulong, number: *mut c_int) -> c_int {
    done(|| {
        // SAFETY: null, or the number that the caller points to.
        let given = unsafe { read(number) }?;
        if !ids.is_null() && given <= 0 {
            return Err(EINVAL);
        }
        let mut all = AllThreads {
            num: given,
            id: ids,
            data: std::ptr::null_mut(),
        };
        // SAFETY: the caller's array is as long as it says.
        unsafe { THREADS.gather(0, &mut all) }?;
        // SAFETY: not null, and the caller's to be written.
        unsafe { crate::boundary::pointer::write(number, all.num) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_thr_specific(tag: c_int, pointer: *mut *mut c_void) -> c_int {
    done(|| {
        LIBRARY.require()?;
        let index = usize::try_from(tag & !TLS_ALL_THREADS).map_err(|_| EINVAL)?;
        if index > TLS_NUM || pointer.is_null() {
            return Err(EINVAL);
        }
        if tag & TLS_ALL_THREADS != 0 {
            let all: *mut AllThreads = pointer.cast();
            // SAFETY: with this tag the pointer is to such a struct.
            let mut gathered = unsafe { read(all) }?;
            // SAFETY: the caller's arrays are as long as the struct says.
            unsafe { THREADS.gather(index, &mut gathered) }?;
            // SAFETY: as it was read.
            return unsafe { crate::boundary::pointer::write(all, gathered) };
        }
        let thread = THREADS.current()?;
        let stored = lock(&thread.stored)[index] as *mut c_void;
        // SAFETY: not null, and the caller's to be written.
        unsafe { crate::boundary::pointer::write(pointer, stored) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_thr_specific(tag: c_int, pointer: *mut c_void) -> c_int {
    done(|| {
        LIBRARY.require()?;
        let index = usize::try_from(tag).map_err(|_| EINVAL)?;
        let thread = THREADS.current()?;
        let mut stored = lock(&thread.stored);
        *stored.get_mut(index).ok_or(EINVAL)? = pointer as usize;
        Ok(())
    })
}

/// The locks that programs may use; any thread may give one back.
static LOCKS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

fn user_lock(number: c_int) -> Outcome<&'static AtomicBool> {
    let index = usize::try_from(number).map_err(|_| EINVAL)?;
    LOCKS.get(index).ok_or(EINVAL)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_lock(number: c_int) -> c_int {
    done(|| {
        let lock = user_lock(number)?;
        while lock.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_unlock(number: c_int) -> c_int {
    done(|| {
        user_lock(number)?.store(false, Ordering::Release);
        Ok(())
    })
}
