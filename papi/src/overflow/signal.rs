//! Overflows that the kernel tells of with a signal, and the handler of that.

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use quipu::Overflows;

use super::Handler;
use super::handling::{install, keeping_errno};
use crate::code::{ENOMEM, Outcome, defer, handling};
use crate::library::lock;
use crate::profile::Profiled;

/// Returns the signal of overflows, PAPI's.
pub(crate) fn number() -> c_int {
    libc::SIGRTMIN() + 2
}

/// An event whose overflows are handled.
struct Listener {
    overflows: Arc<dyn Overflows>,
    call: Call,
}

/// The calls that an overflow makes.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) set: c_int,
    pub(super) vector: c_longlong,
    pub(super) handler: Handler,
    /// The profile and its flags, which is counted up in place of the call.
    pub(super) profile: Option<(Arc<Profiled>, c_int)>,
}

/// A place for a listener, which handlers find by the descriptor. Its lock is held for moments only, and never while the
/// program's handler runs.
struct Place {
    /// The descriptor that signals name; -1 where the place is vacant.
    descriptor: AtomicI32,
    /// The thread that handles what came while it was inside of the library; else 0.
    deferred_by: AtomicI32,
    /// True while the set runs, so that the counter is started again behind the handler.
    runs: AtomicBool,
    listener: Mutex<Option<Listener>>,
}

/// As many events may overflow at a time.
static PLACES: [Place; 1024] = [const {
    Place {
        descriptor: AtomicI32::new(-1),
        deferred_by: AtomicI32::new(0),
        runs: AtomicBool::new(false),
        listener: Mutex::new(None),
    }
}; 1024];

/// An event that is listened to until this is dropped.
pub(super) struct Listening(&'static Place);

impl Listening {
    /// Listens to an event from now on; the counter does not run yet.
    pub(super) fn start(overflows: Arc<dyn Overflows>, call: Call) -> Outcome<Self> {
        overflows
            .restart()
            .map_err(|error| crate::code::refused(&error))?;
        for place in &PLACES {
            let mut listener = lock(&place.listener);
            if listener.is_none() {
                place.runs.store(true, Ordering::Relaxed);
                let descriptor = overflows.descriptor();
                place.descriptor.store(descriptor, Ordering::Relaxed);
                *listener = Some(Listener { overflows, call });
                return Ok(Self(place));
            }
        }
        Err(ENOMEM)
    }

    /// Leaves the counter stopped from now on. What it has told of is still handled.
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

/// Installs the handler.
pub(super) fn install_handler() -> Outcome {
    install(number(), on_signal)
}

/// Sends the signal that came while the thread was inside of the library once more, to be handled outside.
#[cold]
pub(crate) fn again() {
    // SAFETY: the handler of the signal is installed, as it came before.
    unsafe { libc::raise(number()) };
}

/// Handles overflows. It allocates nothing and waits for no lock; while the thread is inside of the library, it is put off.
extern "C" fn on_signal(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    keeping_errno(|| {
        // SAFETY: the kernel gave it to the handler.
        let code = unsafe { (*info).si_code };
        if code == libc::SI_TKILL && !defer() {
            let own = PLACES.iter().filter(|place| place.take_deferred());
            own.for_each(|place| handle(place, context));
        }
        if code <= 0 {
            return;
        }
        // SAFETY: signals of descriptors have one.
        let descriptor = unsafe { descriptor(info) };
        let is_of = |place: &&Place| place.descriptor.load(Ordering::Relaxed) == descriptor;
        let Some(place) = PLACES.iter().find(is_of) else {
            return;
        };
        match defer() {
            true => place.deferred_by.store(tid(), Ordering::Relaxed),
            false => handle(place, context),
        }
    });
}

/// Returns the calling thread's number, which is never 0.
fn tid() -> c_int {
    // SAFETY: it only returns a number.
    unsafe { libc::gettid() }
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

/// Makes the calls for the overflows of a place, and starts its counter again.
fn handle(place: &Place, context: *mut c_void) {
    let Some((overflows, call)) = place.look() else {
        return;
    };
    // Of several signals, the first one's handling may have taken all that there was, and has started the counter again.
    let mut taken = overflows.take();
    if taken.is_none() {
        return;
    }
    // Where it cannot be stopped, the handler is counted too.
    let _ = overflows.pause();
    while let Some(address) = taken {
        match &call.profile {
            Some((profile, flags)) => profile.count(*flags, address as usize, 0),
            None => {
                let address = address as usize as *mut c_void;
                handling(|| (call.handler)(call.set, address, call.vector, context));
            }
        }
        taken = overflows.take();
    }
    // The handler may have stopped the set, or started it anew.
    let Ok(listener) = place.listener.try_lock() else {
        return;
    };
    let is_same = |now: &Listener| Arc::ptr_eq(&now.overflows, &overflows);
    if listener.as_ref().is_some_and(is_same) && place.runs.load(Ordering::Relaxed) {
        let _ = overflows.resume();
    }
}

impl Place {
    /// Returns true if this thread has put off what came; it is put off no longer then.
    fn take_deferred(&self) -> bool {
        let (now, none) = (Ordering::Relaxed, Ordering::Relaxed);
        self.deferred_by
            .compare_exchange(tid(), 0, now, none)
            .is_ok()
    }

    /// Returns what to do, unless another thread is changing that.
    fn look(&self) -> Option<(Arc<dyn Overflows>, Call)> {
        let listener = self.listener.try_lock().ok()?;
        let listener = listener.as_ref()?;
        Some((Arc::clone(&listener.overflows), listener.call.clone()))
    }
}
