//! The timer of a thread's CPU time (timer_create(2)), and the handler of its signal.

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::atomic::Ordering;

use nix::sys::time::TimeSpec;
use nix::sys::time::TimeValLike as _;

use crate::abi::OverflowHandler;
use crate::boundary::inside::{handling, is_inside};
use crate::code::{ESYS, Outcome};
use crate::event_set::set::Set;
use crate::event_set::sets::SETS;
use crate::library::ITIMER;
use crate::overflow::handling::{install, keeping_errno};
use crate::overflow::watched::Watched;
use crate::sys::Timer;

/// Starts a timer of the calling thread's CPU time for an event set.
pub(super) fn start(number: c_int) -> Outcome<Timer> {
    let signal = ITIMER[1].load(Ordering::Relaxed);
    install(signal, on_signal)?;
    let every = i64::from(ITIMER[2].load(Ordering::Relaxed).max(1));
    let value = number as usize as *mut c_void;
    Timer::start(signal, value, TimeSpec::nanoseconds(every)).map_err(|_| ESYS)
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
fn look(number: c_int, address: usize) -> Option<(OverflowHandler, c_longlong)> {
    let mut place = SETS.now(number)?;
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

/// An event that passed its threshold, by its position in the set, and by how much.
struct Passed {
    index: usize,
    code: c_int,
    excess: c_longlong,
}

impl Set {
    /// Returns the events that passed their thresholds since the last look, one after the other.
    fn next_passed(&mut self, from: usize) -> Option<(usize, Passed)> {
        for at in from..self.overflow.watched.len() {
            let Watched {
                code,
                threshold,
                deadline,
            } = self.overflow.watched[at];
            let Some(index) = self.index(code) else {
                continue;
            };
            let value = self.last_values().get(index).copied().unwrap_or(0);
            if value >= deadline {
                let excess = value - deadline;
                let next = deadline + threshold * (excess / threshold + 1);
                self.overflow.watched[at].deadline = next;
                return Some((
                    at + 1,
                    Passed {
                        index,
                        code,
                        excess,
                    },
                ));
            }
        }
        None
    }
}
