//! Overflows: a signal to the counted thread each time an event has occurred so many times.

use std::fmt;

use crate::Result;

/// A request for a signal each time an event has occurred so many times.
///
/// The signal goes to the thread that is counted, which has to be the one that opens the group. Its handler takes the
/// overflows out of [`Overflows`]; install it before the group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OverflowSignal {
    /// The number of occurrences from one overflow to the next.
    pub period: u64,
    /// The number of the signal. Real-time signals carry the descriptor of the counter (`si_fd`) and are queued.
    pub signal: i32,
}

impl OverflowSignal {
    /// Returns a request for a signal every `period` occurrences.
    pub fn new(period: u64, signal: i32) -> Self {
        Self { period, signal }
    }
}

/// The overflows of one counter that sends a signal for them ([`Group::overflows`](crate::Group::overflows)).
///
/// Handlers of signals may call every method but [`restart`](Self::restart): they allocate nothing and take no lock. Two
/// overflows close to each other may be one signal, so that a handler takes until there are no more.
pub trait Overflows: fmt::Debug + Send + Sync {
    /// Returns the descriptor that the signals name (`si_fd`).
    fn descriptor(&self) -> i32;

    /// Takes the oldest overflow: the address of the instruction at which the counter passed the period. The system keeps
    /// a thousand; of more that nobody takes, the newest are lost.
    fn take(&self) -> Option<u64>;

    /// Stops the counter, for a handler that is not to be counted itself. Of the leader of a group, it stops all.
    ///
    /// # Errors
    /// The error number of the operating system.
    fn pause(&self) -> Result<(), i32>;

    /// Starts the counter that was paused, or that the system stopped at an overflow; only while the group is enabled. A
    /// counter of the CPU may be stopped by the system at its next overflow, until the handler has seen that: else one of a
    /// short period would do nothing but interrupt.
    ///
    /// # Errors
    /// The error number of the operating system.
    fn resume(&self) -> Result<(), i32>;

    /// Begins a period, and forgets what nobody took; only while the group is stopped.
    ///
    /// # Errors
    /// When the operating system refuses.
    fn restart(&self) -> Result<()>;
}
