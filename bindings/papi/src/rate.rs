//! Rates: instructions and floating-point operations for a time, between one call and the next.

use std::cell::RefCell;
use std::ffi::{c_float, c_int, c_longlong};

use crate::boundary::call::done;
use crate::boundary::pointer::write;
use crate::code::{EINVAL, ENOCMP, ENOEVNT, Outcome};
use crate::event::{lookup, native, preset};
use crate::event_set::set::Set;
use crate::library::LIBRARY;
use crate::machine::clock;

/// The denominator of a rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denominator {
    /// Millions of events in a second of the thread.
    ThreadTime,
    /// Events in a cycle.
    Cycles,
}

/// A rate that is being measured in this thread.
struct Measured {
    set: Set,
    events: Vec<c_int>,
    denominator: Denominator,
    real: f64,
    of_thread: f64,
}

/// The results of a call.
#[derive(Default)]
struct Rates {
    real: f64,
    of_thread: f64,
    values: [c_longlong; 3],
    rate: f64,
}

thread_local! {
    static MEASURED: RefCell<Option<Measured>> = const { RefCell::new(None) };
}

/// Returns what happened since the last call, or begins to measure.
fn measure(events: &[c_int], denominator: Denominator) -> Outcome<Rates> {
    MEASURED.with_borrow_mut(|measured| {
        if let Some(known) = measured
            && known.events == events
            && known.denominator == denominator
        {
            return known.rates();
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
            denominator,
            real,
            of_thread,
        });
        Ok(Rates::default())
    })
}

impl Measured {
    fn rates(&mut self) -> Outcome<Rates> {
        let (real, of_thread) = clock::seconds();
        let mut rates = Rates {
            real: real - self.real,
            of_thread: of_thread - self.of_thread,
            ..Rates::default()
        };
        for (to, value) in rates.values.iter_mut().zip(self.set.values()?) {
            *to = *value;
        }
        self.set.reset()?;
        (self.real, self.of_thread) = (real, of_thread);
        let events = rates.values[0] as f64;
        rates.rate = match self.denominator {
            Denominator::ThreadTime => events / (rates.of_thread * 1e6),
            Denominator::Cycles => events / rates.values[1] as f64,
        };
        if !rates.rate.is_finite() {
            rates.rate = 0.0;
        }
        Ok(rates)
    }
}

/// Initializes the library for a program that has not.
pub(crate) fn initialize() -> Outcome {
    if !LIBRARY.is_initialized() {
        crate::initialize::initialize(None)?;
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
        lookup::query(event)?;
        let rates = measure(&[event], Denominator::ThreadTime)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, rates.real as c_float)?;
            write(of_thread, rates.of_thread as c_float)?;
            write(events, rates.values[0])?;
            write(rate, rates.rate as c_float)
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
        let rates = measure(
            &[code("PAPI_TOT_INS"), code("PAPI_TOT_CYC")],
            Denominator::Cycles,
        )?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, rates.real as c_float)?;
            write(of_thread, rates.of_thread as c_float)?;
            write(instructions, rates.values[0])?;
            write(rate, rates.rate as c_float)
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
        lookup::query(first).map_err(|code| match native::is_native(first) {
            true => ENOCMP,
            false => code,
        })?;
        let mut measured = vec![first, code("PAPI_TOT_CYC"), code("PAPI_REF_CYC")];
        measured.truncate(if lookup::query(measured[2]).is_ok() {
            3
        } else {
            2
        });
        let rates = measure(&measured, Denominator::Cycles)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe {
            write(real, rates.real as c_float)?;
            write(of_thread, rates.of_thread as c_float)?;
            write(reference, rates.values[2])?;
            write(cycles, rates.values[1])?;
            write(events, rates.values[0])?;
            write(rate, rates.rate as c_float)
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
