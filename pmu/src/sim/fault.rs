//! Faults on demand.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use quipu_hal::{Error, ErrorKind, Result};

/// An operation of the simulated PMU that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimOperation {
    /// [`Pmu::acquire`](crate::Pmu::acquire).
    Acquire,
    /// [`Pmu::program`](crate::Pmu::program).
    Program,
    /// [`Pmu::clear`](crate::Pmu::clear).
    Clear,
    /// [`Pmu::start`](crate::Pmu::start).
    Start,
    /// [`Pmu::stop`](crate::Pmu::stop).
    Stop,
    /// [`Pmu::read`](crate::Pmu::read).
    Read,
    /// [`Pmu::release`](crate::Pmu::release).
    Release,
}

impl SimOperation {
    /// Every operation, in declaration order.
    pub const ALL: [Self; 7] = [
        Self::Acquire,
        Self::Program,
        Self::Clear,
        Self::Start,
        Self::Stop,
        Self::Read,
        Self::Release,
    ];
}

impl fmt::Display for SimOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquire => "acquire",
            Self::Program => "program",
            Self::Clear => "clear",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Read => "read",
            Self::Release => "release",
        })
    }
}

/// The calls so far, and those to come that shall fail.
#[derive(Debug, Default)]
pub(super) struct Faults {
    calls: [AtomicU64; SimOperation::ALL.len()],
    armed: AtomicBool,
    planned: Mutex<Vec<Fault>>,
}

#[derive(Debug)]
struct Fault {
    operation: Option<SimOperation>,
    /// Calls until it strikes, that one included.
    left: u64,
    errno: i32,
}

impl Faults {
    pub(super) fn add(&self, operation: Option<SimOperation>, nth: u64, errno: i32) {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.push(Fault {
            operation,
            left: nth.max(1),
            errno,
        });
        self.armed.store(true, Ordering::Release);
    }

    pub(super) fn forget(&self) {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.clear();
        self.armed.store(false, Ordering::Release);
    }

    pub(super) fn calls(&self, operation: SimOperation) -> u64 {
        self.calls[operation as usize].load(Ordering::Relaxed)
    }

    /// Counts a call, and fails it if it shall.
    pub(super) fn check(&self, operation: SimOperation, cpu: u32) -> Result<()> {
        self.calls[operation as usize].fetch_add(1, Ordering::Relaxed);
        if self.armed.load(Ordering::Acquire) {
            self.strike(operation, cpu)
        } else {
            Ok(())
        }
    }

    fn strike(&self, operation: SimOperation, cpu: u32) -> Result<()> {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut errno = None;
        planned.retain_mut(|fault| {
            if fault.operation.is_none_or(|o| o == operation) {
                fault.left -= 1;
                if fault.left == 0 {
                    errno = errno.or(Some(fault.errno));
                }
            }
            fault.left > 0
        });
        self.armed.store(!planned.is_empty(), Ordering::Release);
        match errno {
            None => Ok(()),
            Some(errno) => {
                let attempted = format!("{operation} simulated counters of CPU {cpu}");
                Err(Error::new(kind(errno), attempted).with_errno(errno))
            }
        }
    }
}

/// The kind a driver would give these errno (the numbers are the same on Linux and the BSDs).
fn kind(errno: i32) -> ErrorKind {
    match errno {
        1 | 13 => ErrorKind::NoPermission,
        6 => ErrorKind::NoSuchTarget,
        16 => ErrorKind::Busy,
        19 => ErrorKind::NoSuchDevice,
        _ => ErrorKind::Os,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_fails_and_only_that() {
        let faults = Faults::default();
        faults.add(Some(SimOperation::Read), 2, 16);
        let call = |operation| faults.check(operation, 0).map_err(|e| e.kind());
        assert_eq!(call(SimOperation::Read), Ok(()));
        assert_eq!(call(SimOperation::Stop), Ok(()));
        assert_eq!(call(SimOperation::Read), Err(ErrorKind::Busy));
        assert_eq!(call(SimOperation::Read), Ok(()));
        assert_eq!(faults.calls(SimOperation::Read), 3);
        faults.add(None, 1, 5);
        faults.forget();
        assert_eq!(faults.check(SimOperation::Release, 3), Ok(()));
        faults.add(None, 1, 5);
        let e = faults.check(SimOperation::Release, 3).unwrap_err();
        assert_eq!((e.kind(), e.errno()), (ErrorKind::Os, Some(5)));
    }
}
