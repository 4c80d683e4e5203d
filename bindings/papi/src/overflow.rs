//! Overflow: a handler is called when an event passes a threshold. The kernel reports that with a signal; where software
//! is asked to find it out, a timer of the thread's time looks for it.

use std::ffi::{c_int, c_longlong};

use quipu::EventSpec;
#[cfg(target_os = "linux")]
use quipu::OverflowSignal;

use crate::abi::OverflowHandler;
use crate::boundary::call::done;
#[cfg(target_os = "linux")]
use crate::boundary::inside::overflow_signal;
use crate::boundary::pointer::{read, write};
use crate::code::{ECNFLCT, EINVAL, ENOEVNT, Outcome};
use crate::component::CPU;
use crate::event::preset::is_preset;
use crate::event_set::set::{ATTACHED, CPU_ATTACHED, Set};
use crate::event_set::sets::SETS;
use watched::{FORCE_SW, Watched};

#[cfg(target_os = "linux")]
mod handling;
#[cfg(target_os = "linux")]
mod signal;
#[cfg(target_os = "linux")]
mod timer;
pub(crate) mod watched;

impl Set {
    /// Sets the threshold of an event; 0 ends looking for it.
    pub(crate) fn watch(
        &mut self,
        code: c_int,
        threshold: c_int,
        flags: c_int,
        handler: Option<OverflowHandler>,
    ) -> Outcome {
        if cfg!(not(target_os = "linux")) {
            return Err(crate::code::ECMP);
        }
        self.component()?;
        self.require_stopped()?;
        if self.state & (ATTACHED | CPU_ATTACHED) != 0 {
            return Err(EINVAL);
        }
        self.index(code).ok_or(ENOEVNT)?;
        let derived = flags & FORCE_SW == 0 && threshold != 0 && Self::is_derived(code);
        let first = self.overflow.is_empty() && (handler.is_none() || threshold == 0);
        if threshold < 0 || derived || first {
            return Err(EINVAL);
        }
        let threshold = c_longlong::from(threshold);
        let before = (self.overflow.watched.clone(), self.overflow.flags);
        let known = self
            .overflow
            .watched
            .iter()
            .position(|watched| watched.code == code);
        let watched = Watched {
            code,
            threshold,
            deadline: threshold,
        };
        match (threshold, known) {
            (0, None) => return Err(EINVAL),
            (0, Some(at)) => {
                self.overflow.watched.remove(at);
            }
            _ => {
                let differs = (flags ^ self.overflow.flags) & FORCE_SW != 0;
                if !self.overflow.is_empty() && differs {
                    return Err(ECNFLCT);
                }
                self.overflow.flags = flags;
                match known {
                    Some(at) => self.overflow.watched[at] = watched,
                    None => self.overflow.watched.push(watched),
                }
            }
        }
        // The kernel gets a threshold when a counter is opened.
        if before.0 != self.overflow.watched
            && self.is_reported_by_kernel()
            && let Err(code) = self.reopen_with_signals()
        {
            (self.overflow.watched, self.overflow.flags) = before;
            // It could be opened before.
            let _ = self.open();
            return Err(code);
        }
        self.overflow.handler = handler.filter(|_| !self.overflow.is_empty());
        // Starting the set allocates nothing then.
        #[cfg(target_os = "linux")]
        self.overflow.listening.reserve(self.overflow.watched.len());
        self.note_overflow();
        Ok(())
    }

    /// Opens the counters again. Where it is tried out whether they count together, they may overflow already.
    fn reopen_with_signals(&mut self) -> Outcome {
        #[cfg(target_os = "linux")]
        signal::install_handler()?;
        self.open()
    }

    /// Returns true if the kernel reports overflows of the set.
    fn is_reported_by_kernel(&self) -> bool {
        self.overflow.flags & FORCE_SW == 0 && self.component == Some(CPU)
    }

    /// Returns an event with a signal for its overflows, if they are looked for and the kernel reports them.
    pub(crate) fn with_signal(&self, code: c_int, spec: EventSpec) -> EventSpec {
        #[cfg(target_os = "linux")]
        if self.is_reported_by_kernel() {
            let mut watched = self.overflow.watched.iter();
            if let Some(watched) = watched.find(|watched| watched.code == code) {
                let period = watched.threshold.unsigned_abs();
                return spec.with_overflow(OverflowSignal::new(period, overflow_signal()));
            }
        }
        let _ = code;
        spec
    }
}

/// Begins to look for overflows in a set of this number that is about to run, with the values from zero.
pub(crate) fn arm(set: &mut Set, number: c_int) -> Outcome {
    if set.overflow.is_empty() {
        return Ok(());
    }
    for watched in &mut set.overflow.watched {
        watched.deadline = watched.threshold;
    }
    #[cfg(target_os = "linux")]
    if set.is_reported_by_kernel() {
        listen(set, number)?;
    } else {
        set.overflow.timer = Some(timer::start(number)?);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = number;
    Ok(())
}

/// Listens to the counters of the events that are looked for.
#[cfg(target_os = "linux")]
fn listen(set: &mut Set, number: c_int) -> Outcome {
    set.overflow.listening.clear();
    let Some(handler) = set.overflow.handler else {
        return Ok(());
    };
    for at in 0..set.overflow.watched.len() {
        let code = set.overflow.watched[at].code;
        let index = set.index(code).ok_or(ENOEVNT)?;
        let Some(overflows) = set.overflows(index) else {
            continue;
        };
        let call = signal::HandlerCall {
            set: number,
            vector: 1_i64.checked_shl(index as u32).unwrap_or(0),
            handler,
            profile: set.profile.of(code),
        };
        let listening = signal::Listening::start(overflows, call)?;
        set.overflow.listening.push(listening);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_overflow(
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
    handler: Option<OverflowHandler>,
) -> c_int {
    done(|| SETS.with(number, |set| set.watch(code, threshold, flags, handler)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_overflow_event_index(
    number: c_int,
    vector: c_longlong,
    array: *mut c_int,
    length: *mut c_int,
) -> c_int {
    done(|| {
        if vector == 0 || array.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: null, or the caller's number.
        let room = unsafe { read(length) }?;
        if room < 1 {
            return Err(EINVAL);
        }
        SETS.with(number, |set| {
            if set.events.is_empty() {
                return Err(EINVAL);
            }
            let is_set = |at: &usize| *at < 64 && vector >> at & 1 != 0;
            let positions = (0..set.events.len()).filter(is_set);
            let simple =
                |at: &usize| !is_preset(set.events[*at]) || !Set::is_derived(set.events[*at]);
            let mut written = 0;
            for position in positions.filter(simple).take(room as usize) {
                // SAFETY: the array has room for as many as the caller says.
                unsafe { array.add(written).write_unaligned(position as c_int) };
                written += 1;
            }
            // SAFETY: as it was read.
            unsafe { write(length, written as c_int) }
        })
    })
}
