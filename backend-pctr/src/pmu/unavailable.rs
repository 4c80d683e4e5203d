//! Reasons why no counter can be used.

use quipu_hal::{Error, ErrorKind};

use crate::control::{Discovery, TO_WRITE};
use crate::function::CounterKind;

/// The reason where the events are not this CPU's: setting a register that it does not have ends the kernel.
pub(crate) const FOREIGN: &str = "the events are those of a CPU of another vendor or family";

/// Why no counter can be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unavailable {
    kind: ErrorKind,
    reason: &'static str,
    hint: Option<&'static str>,
}

impl Unavailable {
    /// Returns the reason why no counter can be used, or `None` if counters can be used.
    pub(super) fn of(
        discovery: Discovery,
        kind: Option<CounterKind>,
        foreign: bool,
        writable: bool,
    ) -> Option<Self> {
        let unsupported = |reason| Self {
            kind: ErrorKind::UnsupportedEvent,
            reason,
            hint: None,
        };
        match (discovery, kind) {
            (Discovery::NoCounters, _) => Some(unsupported(
                "the driver knows no counters on this CPU, only the time stamp counter",
            )),
            (Discovery::Counters(_), None) => Some(unsupported(
                "it is not known what the functions of this CPU's counters mean",
            )),
            (Discovery::Counters(_), Some(_)) if foreign => Some(unsupported(FOREIGN)),
            (Discovery::Counters(_), Some(_)) if !writable => Some(Self {
                kind: ErrorKind::NoPermission,
                reason: "setting a function needs permission to write the device",
                hint: Some(TO_WRITE),
            }),
            _ => None,
        }
    }

    /// Returns the error for something that needs a counter.
    pub(crate) fn error(self, attempted: String) -> Error {
        let error = Error::new(self.kind, attempted).with_reason(self.reason);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}
