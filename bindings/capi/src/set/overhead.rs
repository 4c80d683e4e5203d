//! The overhead that a set adds to its own counts.

use std::ffi::c_int;

use quipu::{Overhead, Spread};

use super::{quipu_set, with_open};
use crate::boundary::check_array;
use crate::quipu_status;

/// The spread of a measurement that was made several times, in the event's own unit. It does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct quipu_spread {
    /// The lowest value.
    pub lowest: u64,
    /// The median: the value to subtract.
    pub median: u64,
    /// The highest value.
    pub highest: u64,
}

/// The overhead that a set adds to the count of one of its events. The struct does not grow, so that arrays of it
/// stay what they are.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct quipu_overhead {
    /// In the count from quipu_set_start() to quipu_set_stop().
    pub start_to_stop: quipu_spread,
    /// In the difference between one quipu_set_read() and the next.
    pub read_to_read: quipu_spread,
    /// QUIPU_OK, or why there is no overhead: the event could not be opened, or was not counted all the time.
    pub status: c_int,
    /// 0.
    pub reserved: u32,
}

impl From<Spread> for quipu_spread {
    fn from(spread: Spread) -> Self {
        let value = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        Self {
            lowest: value(spread.lowest),
            median: value(spread.median),
            highest: value(spread.highest),
        }
    }
}

impl From<quipu::Result<Overhead>> for quipu_overhead {
    fn from(overhead: quipu::Result<Overhead>) -> Self {
        match overhead {
            Ok(overhead) => Self {
                start_to_stop: overhead.start_to_stop.into(),
                read_to_read: overhead.read_to_read.into(),
                ..Self::default()
            },
            Err(error) => Self {
                status: quipu_status::from(error.kind()) as c_int,
                ..Self::default()
            },
        }
    }
}

/// Measures what an open set itself adds to its counts, by starting, reading and stopping it with nothing in
/// between: for each event, in the order of adding. Instructions in user mode are the same each time as a rule,
/// so that the median can be subtracted. The calls are those of the library: a program in C adds some
/// instructions of its own.
///
/// `count` is the number of events (quipu_set_size). The set is stopped and its values are zero afterwards. It has
/// to count the calling thread, or the CPU that it is on, to meet its own overhead. Returns the first refusal to
/// start, stop or reset; an event that has no overhead has a status, and does not sink the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_calibrate(
    set: *mut quipu_set,
    out: *mut quipu_overhead,
    count: usize,
) -> quipu_status {
    with_open(set, "measure the set's own overhead", |open| {
        open.check(count, open.events.len(), "events")?;
        check_array(out, count, "out")?;
        for (index, overhead) in open.set.calibrate()?.into_iter().enumerate() {
            // SAFETY: `out` has `count` elements, by the caller's promise, and there are as many events.
            unsafe { out.add(index).write(overhead.into()) };
        }
        Ok(())
    })
}
