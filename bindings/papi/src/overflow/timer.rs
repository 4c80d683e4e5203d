//! The timer of a thread's CPU time (timer_create(2)), and the handler of its signal.

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::atomic::Ordering;

use super::Handler;
use super::handling::{install, keeping_errno};
use crate::code::{ESYS, Outcome, handling, is_inside};
use crate::library::LIBRARY;
use crate::option::ITIMER;

/// A timer that is running.
pub(super) struct Timer(libc::timer_t);

// SAFETY: it names a timer of the process, which any thread may delete.
unsafe impl Send for Timer {}

impl Timer {
    /// Starts a timer of the calling thread's CPU time for an event set.
    pub(super) fn start(number: c_int) -> Outcome<Self> {
        let signal = ITIMER[1].load(Ordering::Relaxed);
        install(signal, on_signal)?;
        // SAFETY: zeros are a value of the struct.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_value.sival_ptr = number as usize as *mut c_void;
        // SAFETY: it only returns a number.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: the structs are filled in, and `timer` is written to.
        if unsafe { libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) } != 0
        {
            return Err(ESYS);
        }
        let timer = Self(timer);
        let every = i64::from(ITIMER[2].load(Ordering::Relaxed).max(1));
        let interval = libc::timespec {
            tv_sec: (every / 1_000_000_000) as libc::time_t,
            tv_nsec: (every % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec {
            it_interval: interval,
            it_value: interval,
        };
        // SAFETY: the timer was made above.
        match unsafe { libc::timer_settime(timer.0, 0, &times, std::ptr::null_mut()) } {
            0 => Ok(timer),
            _ => Err(ESYS),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `start`, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Returns the address of the instruction that the signal interrupted.
fn address(context: *mut c_void) -> *mut c_void {
    let context: *const libc::ucontext_t = context.cast();
    if context.is_null() {
        return std::ptr::null_mut();
    }
    interrupted(context)
}

#[cfg(target_arch = "x86_64")]
fn interrupted(context: *const libc::ucontext_t) -> *mut c_void {
    // SAFETY: the kernel gave the context to the handler.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as *mut c_void }
}

#[cfg(target_arch = "aarch64")]
fn interrupted(context: *const libc::ucontext_t) -> *mut c_void {
    // SAFETY: the kernel gave the context to the handler.
    unsafe { (*context).uc_mcontext.pc as *mut c_void }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn interrupted(_: *const libc::ucontext_t) -> *mut c_void {
    std::ptr::null_mut()
}

/// Looks for overflows. It allocates nothing and waits for no lock: where one is taken, the next signal looks.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gave it to the handler.
    let (code, value) = unsafe { ((*info).si_code, (*info).si_value().sival_ptr) };
    if code != libc::SI_TIMER || is_inside() {
        return;
    }
    let number = value as usize as c_int;
    keeping_errno(|| {
        let address = address(context);
        if let Some((handler, vector)) = look(number, address as usize)
            && vector != 0
        {
            handling(signal, || handler(number, address, vector, context));
        }
    });
}

/// Returns the handler and the events that passed their thresholds, as bits; profiles are counted up here.
fn look(number: c_int, address: usize) -> Option<(Handler, c_longlong)> {
    let mut place = LIBRARY.sets.now(number)?;
    let set = place.as_mut()?;
    if !set.is_running() || set.values().is_err() {
        return None;
    }
    let mut vector = 0;
    let mut from = 0;
    while let Some((next, passed)) = set.next_passed(from) {
        from = next;
        if !set.profile.count(passed.code, address, passed.excess) && passed.index < 64 {
            vector |= 1 << passed.index;
        }
    }
    Some((set.overflow.handler?, vector))
}
