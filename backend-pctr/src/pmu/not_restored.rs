//! What could not be put back, for whoever has to know.

use std::fmt;

/// A counter that was not put back as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotRestored {
    /// The CPU, by its APIC id.
    pub cpu: u32,
    /// The counter.
    pub counter: u8,
    /// The function it had when it was taken; `None` when that is not known, because the counter was
    /// set in passing, as the thread was moved to its CPU.
    pub found: Option<u32>,
    /// The function somebody else has set meanwhile, which was left; `None` when the thread could
    /// not get back to the CPU, or the driver refused.
    pub taken_over: Option<u32>,
}

impl fmt::Display for NotRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            counter,
            found,
            taken_over,
        } = self;
        let Some(found) = found else {
            return write!(
                f,
                "counter {counter} of CPU {cpu} was set as the thread was moved there at that moment, and \
                 what it was set to before is not known"
            );
        };
        write!(
            f,
            "counter {counter} of CPU {cpu} was found set to {found:#x} and not put back: "
        )?;
        match taken_over {
            Some(word) => write!(f, "somebody else has set it to {word:#x}"),
            None => f.write_str(
                "the thread that counted did not get back to that CPU, or the driver refused",
            ),
        }
    }
}
