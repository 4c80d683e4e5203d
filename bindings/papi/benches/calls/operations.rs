//! The calls that are measured.

use std::ffi::{CStr, c_int};

use crate::library::Papi;

/// One or two calls.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// The number of events of its set, and true if the set counts.
    set: Option<(usize, bool)>,
    /// The number of times that are timed at once.
    pub(crate) times: u32,
    /// The largest ratio of its time to that of PAPI.
    pub(crate) most_time: f64,
    /// The most instructions, where events are those of software.
    pub(crate) most_instructions: f64,
    call: fn(&Papi, c_int, &[&CStr; 5]) -> bool,
}

pub(crate) const OPERATIONS: [Operation; 8] = [
    Operation {
        name: "PAPI_library_init and PAPI_shutdown",
        set: None,
        times: 3,
        most_time: 0.1,
        most_instructions: 2_000.0,
        call: |papi, _, _| {
            let initialized = papi.initialize().is_ok();
            // SAFETY: it takes nothing.
            unsafe { (papi.PAPI_shutdown)() };
            initialized
        },
    },
    Operation {
        name: "PAPI_event_name_to_code of a preset",
        set: Some((0, false)),
        times: 1000,
        most_time: 1.0,
        most_instructions: 2_500.0,
        call: |papi, _, _| {
            let mut code = 0;
            // SAFETY: a text, and a number to be written.
            unsafe { (papi.PAPI_event_name_to_code)(c"PAPI_TOT_INS".as_ptr(), &mut code) == 0 }
        },
    },
    Operation {
        name: "PAPI_get_real_nsec",
        set: Some((0, false)),
        times: 10_000,
        most_time: 1.0,
        most_instructions: 60.0,
        // SAFETY: it takes nothing.
        call: |papi, _, _| unsafe { (papi.PAPI_get_real_nsec)() > 0 },
    },
    Operation {
        name: "PAPI_add_named_event of 5 events, with a set of their own",
        set: Some((0, false)),
        times: 20,
        most_time: 0.5,
        most_instructions: 200_000.0,
        call: |papi, _, events| papi.open(events).is_ok_and(|set| close(papi, set)),
    },
    Operation {
        name: "PAPI_add_events of 5 events at once, with a set of their own",
        set: Some((0, false)),
        times: 20,
        most_time: 0.5,
        most_instructions: 80_000.0,
        call: |papi, _, events| {
            let opened = papi.open_at_once(events);
            opened.is_ok_and(|set| close(papi, set))
        },
    },
    Operation {
        name: "PAPI_start and PAPI_stop of 5 events",
        set: Some((5, false)),
        times: 200,
        most_time: 1.0,
        most_instructions: 2_000.0,
        call: |papi, set, _| {
            let mut values = [0; 5];
            // SAFETY: there are as many values as events.
            unsafe { (papi.PAPI_start)(set) + (papi.PAPI_stop)(set, values.as_mut_ptr()) == 0 }
        },
    },
    Operation {
        name: "PAPI_read of 1 event",
        set: Some((1, true)),
        times: 1000,
        most_time: 0.8,
        most_instructions: 500.0,
        call: read,
    },
    Operation {
        name: "PAPI_read of 5 events",
        set: Some((5, true)),
        times: 1000,
        most_time: 0.8,
        most_instructions: 750.0,
        call: read,
    },
];

fn close(papi: &Papi, set: c_int) -> bool {
    papi.close(set);
    true
}

fn read(papi: &Papi, set: c_int, _: &[&CStr; 5]) -> bool {
    let mut values = [0; 5];
    // SAFETY: there are as many values as events.
    unsafe { (papi.PAPI_read)(set, values.as_mut_ptr()) == 0 }
}

/// An operation of a library, ready to be called.
pub(crate) struct Ready<'p> {
    papi: &'p Papi,
    operation: &'p Operation,
    events: &'static [&'static CStr; 5],
    set: Option<c_int>,
}

impl<'p> Ready<'p> {
    /// Makes the event set that it needs, and calls it once.
    pub(crate) fn new(
        papi: &'p Papi,
        operation: &'p Operation,
        events: &'static [&'static CStr; 5],
    ) -> Result<Self, String> {
        let mut ready = Self {
            papi,
            operation,
            events,
            set: None,
        };
        if let Some((number, counts)) = operation.set {
            papi.initialize()?;
            let set = papi.open(&events[..number])?;
            ready.set = Some(set);
            // SAFETY: it takes a number.
            if counts && unsafe { (papi.PAPI_start)(set) } != 0 {
                return Err("the set cannot be started".into());
            }
        }
        match ready.call(1) {
            true => Ok(ready),
            false => Err("the call fails".into()),
        }
    }

    /// Calls it so many times, and returns true if no call failed.
    pub(crate) fn call(&self, times: u32) -> bool {
        let set = self.set.unwrap_or(-1);
        (0..times).all(|_| (self.operation.call)(self.papi, set, self.events))
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        let mut values = [0; 5];
        if let Some(set) = self.set {
            // SAFETY: there are as many values as events.
            unsafe { (self.papi.PAPI_stop)(set, values.as_mut_ptr()) };
            self.papi.close(set);
        }
    }
}
