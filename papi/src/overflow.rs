//! Overflow: a handler is called when an event passes a threshold, which a timer of the thread's time looks for.

use std::ffi::{c_int, c_longlong, c_void};

use crate::code::{ECNFLCT, EINVAL, ENOEVNT, Outcome, done, read, write};
use crate::event_set::{ATTACHED, CPU_ATTACHED, Set};
use crate::library::LIBRARY;
use crate::preset::is_preset;

#[cfg(target_os = "linux")]
mod timer;

/// Software finds the overflow, whatever the hardware offers.
pub(crate) const FORCE_SW: c_int = 0x40;

/// The program's handler: it gets the set, the address of the code, the events as bits, and the context.
pub(crate) type Handler = extern "C" fn(c_int, *mut c_void, c_longlong, *mut c_void);

/// An event whose overflow is looked for.
#[derive(Clone, Copy)]
struct Watched {
    code: c_int,
    threshold: c_longlong,
    /// The value that is reached next.
    deadline: c_longlong,
}

/// The events that a set looks for.
#[derive(Default)]
pub(crate) struct Overflow {
    watched: Vec<Watched>,
    handler: Option<Handler>,
    flags: c_int,
    #[cfg(target_os = "linux")]
    timer: Option<timer::Timer>,
}

/// An event that passed its threshold, by its position in the set, and by how much.
#[cfg(target_os = "linux")]
struct Passed {
    index: usize,
    code: c_int,
    excess: c_longlong,
}

impl Overflow {
    /// Returns true if nothing is looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Looks no longer for an event.
    pub(crate) fn forget(&mut self, code: c_int) {
        self.watched.retain(|watched| watched.code != code);
    }

    /// Stops the timer.
    pub(crate) fn disarm(&mut self) {
        #[cfg(target_os = "linux")]
        {
            self.timer = None;
        }
    }
}

impl Set {
    /// Sets the threshold of an event; 0 ends looking for it.
    pub(crate) fn watch(
        &mut self,
        code: c_int,
        threshold: c_int,
        flags: c_int,
        handler: Option<Handler>,
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
        self.overflow.handler = handler.filter(|_| !self.overflow.is_empty());
        self.note_overflow();
        Ok(())
    }

    /// Returns the events that passed their thresholds since the last look, one after the other.
    #[cfg(target_os = "linux")]
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

/// Begins to look for overflows in a set that runs, with the values from zero.
pub(crate) fn arm(set: &mut Set, number: c_int) -> Outcome {
    if set.overflow.is_empty() {
        return Ok(());
    }
    for watched in &mut set.overflow.watched {
        watched.deadline = watched.threshold;
    }
    #[cfg(target_os = "linux")]
    {
        set.overflow.timer = Some(timer::Timer::start(number)?);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = number;
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_overflow(
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
    handler: Option<Handler>,
) -> c_int {
    done(|| LIBRARY.with(number, |set| set.watch(code, threshold, flags, handler)))
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
        LIBRARY.with(number, |set| {
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
