//! Overflows that the kernel reports with a signal, and the handler of that.

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use nix::unistd::gettid;
use quipu::Overflows;

use crate::abi::OverflowHandler;
use crate::boundary::inside::{defer, handling, overflow_signal};
use crate::code::{ENOMEM, Outcome};
use crate::library::lock;
use crate::overflow::handling::{install, keeping_errno};
use crate::profile::buckets::Profiled;
use crate::sys::{is_default, owner};

/// An event whose overflows are handled.
struct Listener {
    overflows: Arc<dyn Overflows>,
    call: HandlerCall,
}

/// The calls that an overflow makes.
pub(super) struct HandlerCall {
    pub(super) set: c_int,
    pub(super) vector: c_longlong,
    pub(super) handler: OverflowHandler,
    /// The profile and its flags, which is counted up in place of the call.
    pub(super) profile: Option<(Arc<Profiled>, c_int)>,
}

/// A slot for a listener, which handlers find by the descriptor. Its lock is held for moments only, and never while the
/// program's handler runs.
struct ListenerSlot {
    /// The descriptor that signals name; -1 where the slot is vacant.
    descriptor: AtomicI32,
    /// The thread that handles what came while it was inside of the library; else 0.
    deferred_by: AtomicI32,
    /// True while the set runs, so that the counter is started again behind the handler.
    runs: AtomicBool,
    listener: Mutex<Option<Listener>>,
}

/// As many events may overflow at a time.
static SLOTS: [ListenerSlot; 1024] = [const {
    ListenerSlot {
        descriptor: AtomicI32::new(-1),
        deferred_by: AtomicI32::new(0),
        runs: AtomicBool::new(false),
        listener: Mutex::new(None),
    }
}; 1024];

/// An event that is listened to until this is dropped.
pub(crate) struct Listening(&'static ListenerSlot);

impl Listening {
    /// Listens to an event from now on; the counter does not run yet.
    pub(super) fn start(overflows: Arc<dyn Overflows>, call: HandlerCall) -> Outcome<Self> {
        overflows
            .restart()
            .map_err(|error| crate::boundary::call::refused(&error))?;
        for slot in &SLOTS {
            let mut listener = lock(&slot.listener);
            if listener.is_none() {
                slot.runs.store(true, Ordering::Relaxed);
                let descriptor = overflows.descriptor();
                slot.descriptor.store(descriptor, Ordering::Relaxed);
                *listener = Some(Listener { overflows, call });
                return Ok(Self(slot));
            }
        }
        Err(ENOMEM)
    }

    /// Leaves the counter stopped from now on. What it has reported is still handled.
    pub(super) fn stop(&self) {
        let _listener = lock(&self.0.listener);
        self.0.runs.store(false, Ordering::Relaxed);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listener = lock(&self.0.listener);
        self.0.descriptor.store(-1, Ordering::Relaxed);
        self.0.deferred_by.store(0, Ordering::Relaxed);
        let removed = listener.take();
        drop(listener);
        drop(removed);
    }
}

/// Installs the handlers. Where too many signals are pending, the kernel sends `SIGIO` in place of the one asked for (fcntl(2),
/// `F_SETSIG`), which ends a program that does not handle it.
pub(super) fn install_handler() -> Outcome {
    if is_default(libc::SIGIO) {
        install(libc::SIGIO, on_plain_signal)?;
    }
    install(overflow_signal(), on_signal)
}

/// Handles overflows. It allocates nothing and waits for no lock; while the thread is inside of the library, it is put off.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    keeping_errno(|| {
        // SAFETY: the kernel gave it to the handler.
        let code = unsafe { (*info).si_code };
        if code == libc::SI_TKILL && !defer() {
            let own = SLOTS.iter().filter(|slot| slot.take_deferred());
            own.for_each(|slot| handle(slot, signal, context));
        }
        if code <= 0 {
            return;
        }
        // SAFETY: signals of descriptors have one.
        let descriptor = unsafe { descriptor(info) };
        let is_of = |slot: &&ListenerSlot| slot.descriptor.load(Ordering::Relaxed) == descriptor;
        if let Some(slot) = SLOTS.iter().find(is_of) {
            slot.on_overflow(signal, context);
        }
    });
}

/// Looks at all counters that signal this thread, as the signal names none.
extern "C" fn on_plain_signal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    keeping_errno(|| {
        let own = SLOTS.iter().filter(|slot| slot.signals_this_thread());
        own.for_each(|slot| slot.on_overflow(signal, context));
    });
}

/// Returns the calling thread's number, which is never 0.
fn tid() -> c_int {
    gettid().as_raw()
}

/// Returns the descriptor that a signal is about (`_sigpoll` of `include/uapi/asm-generic/siginfo.h`).
///
/// # Safety
/// The signal is one of a descriptor.
unsafe fn descriptor(info: *const libc::siginfo_t) -> c_int {
    #[repr(C)]
    struct OfDescriptor {
        numbers: [c_int; 3],
        band: libc::c_long,
        descriptor: c_int,
    }
    // SAFETY: the caller's promise; the struct is larger than this.
    unsafe { (*info.cast::<OfDescriptor>()).descriptor }
}

/// Makes the calls for the overflows of a slot, and starts its counter again. The program's handler may never return, and
/// nothing is held while it runs.
fn handle(slot: &ListenerSlot, signal: c_int, context: *mut c_void) {
    // Of several signals, the first one's handling may have taken all that there was, and has started the counter again.
    let mut taken = slot.take(None);
    let listener = taken.as_ref().map(|taken| taken.listener);
    while let Some(Taken { call, address, .. }) = taken {
        if let Some((set, vector, handler)) = call {
            handling(signal, || handler(set, address, vector, context));
        }
        taken = slot.take(listener);
    }
    if let Some(listener) = listener {
        slot.resume(listener);
    }
}

/// An overflow that is no longer in the ring.
struct Taken {
    /// The listener that it was taken from, which may be another one later.
    listener: usize,
    address: *mut c_void,
    /// The set, the event as a bit, and the handler to be called, unless a profile was counted up.
    call: Option<(c_int, c_longlong, OverflowHandler)>,
}

impl ListenerSlot {
    /// Handles the overflows of this slot, or puts them off.
    fn on_overflow(&self, signal: c_int, context: *mut c_void) {
        match defer() {
            true => self.deferred_by.store(tid(), Ordering::Relaxed),
            false => handle(self, signal, context),
        }
    }

    /// Returns true if this thread has put off what came; it is put off no longer then.
    fn take_deferred(&self) -> bool {
        let (now, none) = (Ordering::Relaxed, Ordering::Relaxed);
        self.deferred_by
            .compare_exchange(tid(), 0, now, none)
            .is_ok()
    }

    /// Returns true if the calling thread gets the signals of this slot's overflows (fcntl(2), `F_GETOWN_EX`).
    fn signals_this_thread(&self) -> bool {
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        descriptor >= 0 && owner(descriptor) == Some(tid())
    }

    /// Takes an overflow: the first one of a handling, before which the counter is stopped, or one of the listener of the
    /// first. Nothing is taken while another thread changes the listener.
    fn take(&self, of: Option<usize>) -> Option<Taken> {
        let listener = self.listener.try_lock().ok()?;
        let listener = listener.as_ref()?;
        if of.is_some_and(|first| first != listener.number()) {
            return None;
        }
        let address = listener.overflows.take()?;
        if of.is_none() {
            // Where it cannot be stopped, the handler is counted too.
            let _ = listener.overflows.pause();
        }
        let call = &listener.call;
        if let Some((profile, flags)) = &call.profile {
            profile.count(*flags, address as usize, 0);
        }
        Some(Taken {
            listener: listener.number(),
            address: address as usize as *mut c_void,
            call: call
                .profile
                .is_none()
                .then_some((call.set, call.vector, call.handler)),
        })
    }

    /// Starts the counter again, unless the handler has stopped the set or listens to something else now.
    fn resume(&self, handled: usize) {
        let Ok(listener) = self.listener.try_lock() else {
            return;
        };
        let Some(listener) = listener.as_ref() else {
            return;
        };
        if listener.number() == handled && self.runs.load(Ordering::Relaxed) {
            let _ = listener.overflows.resume();
        }
    }
}

impl Listener {
    /// Returns a number that no other listener has at the same time.
    fn number(&self) -> usize {
        Arc::as_ptr(&self.overflows).addr()
    }
}
