//! Counters that could not be restored.

use std::fmt;

use quipu_hal::{Error, ErrorKind};

/// A counter whose function was not restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnrestoredCounter {
    /// The CPU, by its APIC id.
    pub cpu: u32,
    /// The counter.
    pub counter: u8,
    /// The function it had when it was taken; `None` when that is not known, because the counter was
    /// set in passing, as the thread was moved to its CPU.
    pub found: Option<u32>,
    /// The function that another program has set since, which was left; `None` if the thread could not
    /// return to the CPU, or the driver refused.
    pub taken_over: Option<u32>,
}

impl UnrestoredCounter {
    /// Returns the error of putting the counter back.
    pub fn error(&self) -> Error {
        let (kind, reason) = match (self.found, self.taken_over) {
            (None, _) => (
                ErrorKind::Os,
                "it was set because the thread was moved there at that moment, and its previous function is \
                 not known"
                    .to_owned(),
            ),
            (Some(found), Some(word)) => (
                ErrorKind::Interference,
                format!("it was found set to {found:#x}, and another program has set it to {word:#x}"),
            ),
            (Some(found), None) => (
                ErrorKind::Os,
                format!(
                    "it was found set to {found:#x}, and the thread that counted did not return to that \
                     CPU, or the driver refused"
                ),
            ),
        };
        let attempted = format!("put back counter {} of CPU {}", self.counter, self.cpu);
        Error::new(kind, attempted).with_reason(reason)
    }
}

/// Displays the [error](UnrestoredCounter::error).
impl fmt::Display for UnrestoredCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

/// A value that was lost: a counter that another process had set was needed, and setting it zeroed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostValue {
    /// The CPU, by its APIC id.
    pub cpu: u32,
    /// The counter.
    pub counter: u8,
    /// The function it had.
    pub function: u32,
    /// The value it had.
    pub value: u64,
}

impl LostValue {
    /// Returns the error of putting the value back.
    pub fn error(&self) -> Error {
        let Self { cpu, counter, .. } = self;
        let attempted = format!("put back the value of counter {counter} of CPU {cpu}");
        Error::new(ErrorKind::UnsupportedFeature, attempted).with_reason(format!(
            "another process counted {:#x} with it, and setting it zeroed it; it stood at {}",
            self.function, self.value
        ))
    }
}
