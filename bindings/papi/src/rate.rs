//! Rates: instructions and floating-point operations for a time, between one call and the next.

use std::cell::RefCell;
use std::ffi::{c_float, c_int, c_longlong};

use crate::code::{EINVAL, ENOCMP, ENOEVNT, Outcome, done, write};
use crate::event_set::Set;
use crate::library::LIBRARY;
use crate::{clock, native, preset};

/// The denominator of a rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rate {
    /// Millions of events in a second of the thread.
    ForTime,
    /// Events in a cycle.
    ForCycle,
}

/// A rate that is being measured in this thread.
struct Measured {
    set: Set,
    events: Vec<c_int>,
    rate: Rate,
    real: f64,
    of_thread: f64,
}

/// The results of a call.
#[derive(Default)]
struct Told {
    real: f64,
    of_thread: f64,
    values: [c_longlong; 3],
    rate: f64,
}

thread_local! {
    static MEASURED: RefCell<Option<Measured>> = const { RefCell::new(None) };
}

/// Returns what happened since the last call, or begins to measure.
fn measure(events: &[c_int], rate: Rate) -> Outcome<Told> {
    MEASURED.with_borrow_mut(|measured| {
        if let Some(known) = measured
            && known.events == events
            && known.rate == rate
        {
            return known.tell();
        }
        if let Some(mut other) = measured.take() {
            other.set.stop()?;
        }
        let mut set = Set::for_this_thread()?;
        for event in events {
            set.add(*event)?;
        }
        set.start(crate::abi::NULL)?;
        let (real, of_thread) = clock::seconds();
        *measured = Some(Measured {
            set,
            events: events.to_vec(),
            rate,
            real,
            of_thread,
        });
        Ok(Told::default())
    })
}

impl Measured {
    fn tell(&mut self) -> Outcome<Told> {
        let (real, of_thread) = clock::seconds();
        let mut told = Told {
            real: real - self.real,
            of_thread: of_thread - self.of_thread,
            ..Told::default()
        };
        for (to, value) in told.values.iter_mut().zip(self.set.values()?) {
            *to = *value;
        }
        self.set.reset()?;
        (self.real, self.of_thread) = (real, of_thread);
        let events = told.values[0] as f64;
        told.rate = match self.rate {
            Rate::ForTime => events / (told.of_thread * 1e6),
            Rate::ForCycle => events / told.values[1] as f64,
        };
        if !told.rate.is_finite() {
            told.rate = 0.0;
        }
        Ok(told)
    }
}

/// Initializes the library for a program that has not.
pub(crate) fn initialize() -> Outcome {
    if !LIBRARY.is_initialized() {
        LIBRARY.initialize(None)?;
    }
    LIBRARY.require()
}

/// Returns the code of a preset that every list has.
fn code(name: &str) -> c_int {
    preset::code_of(name).unwrap_or(crate::abi::NULL)
}

/// Measures events for a time.
fn for_time(
    event: c_int,
    offered: [&str; 3],
    real: *mut c_float,
    of_thread: *mut c_float,
    events: *mut c_longlong,
    rate: *mut c_float,
) -> c_int {
    done(|| {
        if !offered.iter().any(|name| code(name) == event) {
            return Err(ENOEVNT);
        }
        if real.is_null() || of_thread.is_null() || events.is_null() || rate.is_null() {
            return Err(EINVAL);
        }
        initialize()?;
        native::query(event)?;
        let told = measure(&[event], Rate::ForTime)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, told.real as c_float)?;
            write(of_thread, told.of_thread as c_float)?;
            write(events, told.values[0])?;
            write(rate, told.rate as c_float)
        }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_flips_rate(
    event: c_int,
    real: *mut c_float,
    of_thread: *mut c_float,
    events: *mut c_longlong,
    rate: *mut c_float,
) -> c_int {
    let offered = ["PAPI_FP_INS", "PAPI_VEC_DP", "PAPI_VEC_SP"];
    for_time(event, offered, real, of_thread, events, rate)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_flops_rate(
    event: c_int,
    real: *mut c_float,
    of_thread: *mut c_float,
    events: *mut c_longlong,
    rate: *mut c_float,
) -> c_int {
    let offered = ["PAPI_FP_OPS", "PAPI_SP_OPS", "PAPI_DP_OPS"];
    for_time(event, offered, real, of_thread, events, rate)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_ipc(
    real: *mut c_float,
    of_thread: *mut c_float,
    instructions: *mut c_longlong,
    rate: *mut c_float,
) -> c_int {
    done(|| {
        if real.is_null() || of_thread.is_null() || instructions.is_null() || rate.is_null() {
            return Err(EINVAL);
        }
        initialize()?;
        let told = measure(
            &[code("PAPI_TOT_INS"), code("PAPI_TOT_CYC")],
            Rate::ForCycle,
        )?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, told.real as c_float)?;
            write(of_thread, told.of_thread as c_float)?;
            write(instructions, told.values[0])?;
            write(rate, told.rate as c_float)
        }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_epc(
    event: c_int,
    real: *mut c_float,
    of_thread: *mut c_float,
    reference: *mut c_longlong,
    cycles: *mut c_longlong,
    events: *mut c_longlong,
    rate: *mut c_float,
) -> c_int {
    done(|| {
        let numbers = [reference, cycles, events]
            .iter()
            .any(|pointer| pointer.is_null());
        if numbers || real.is_null() || of_thread.is_null() || rate.is_null() {
            return Err(EINVAL);
        }
        initialize()?;
        let first = if event == 0 {
            code("PAPI_TOT_INS")
        } else {
            event
        };
        native::query(first).map_err(|code| match native::is_native(first) {
            true => ENOCMP,
            false => code,
        })?;
        let mut measured = vec![first, code("PAPI_TOT_CYC"), code("PAPI_REF_CYC")];
        measured.truncate(if native::query(measured[2]).is_ok() {
            3
        } else {
            2
        });
        let told = measure(&measured, Rate::ForCycle)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, told.real as c_float)?;
            write(of_thread, told.of_thread as c_float)?;
            write(reference, told.values[2])?;
            write(cycles, told.values[1])?;
            write(events, told.values[0])?;
            write(rate, told.rate as c_float)
        }
    })
}

/// Stops measuring in this thread.
pub(crate) fn stop() -> Outcome {
    let measured = MEASURED.with_borrow_mut(Option::take);
    measured.ok_or(ENOEVNT)?.set.stop()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_rate_stop() -> c_int {
    done(stop)
}
