//! The events of a set whose overflows are looked for.

use std::ffi::{c_int, c_longlong};

#[cfg(target_os = "linux")]
use super::signal;
use crate::abi::OverflowHandler;

/// Software finds the overflow, whatever the hardware offers.
pub(crate) const FORCE_SW: c_int = 0x40;

/// An event whose overflow is looked for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Watched {
    pub(crate) code: c_int,
    pub(crate) threshold: c_longlong,
    /// The value that is reached next.
    pub(crate) deadline: c_longlong,
}

/// The events that a set looks for.
#[derive(Default)]
pub(crate) struct Overflow {
    pub(crate) watched: Vec<Watched>,
    pub(crate) handler: Option<OverflowHandler>,
    pub(crate) flags: c_int,
    #[cfg(target_os = "linux")]
    pub(crate) timer: Option<crate::sys::Timer>,
    #[cfg(target_os = "linux")]
    pub(crate) listening: Vec<signal::Listening>,
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

    /// Looks no longer for overflows. Overflows that the kernel has reported are still handled.
    pub(crate) fn disarm(&mut self) {
        #[cfg(target_os = "linux")]
        {
            self.timer = None;
            self.listening.iter().for_each(signal::Listening::stop);
        }
    }

    /// Listens to no counter any more, as they are closed.
    pub(crate) fn forget_counters(&mut self) {
        #[cfg(target_os = "linux")]
        self.listening.clear();
    }
}
