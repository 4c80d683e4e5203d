//! The workload of a simulated CPU.

/// The privilege level at which a stretch executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Ring 3.
    User,
    /// Ring 0.
    Kernel,
}

/// A number of identical cycles.
///
/// An event is named by the bits of a select register that say what is counted: event and unit mask,
/// on AMD with bits 32 to 35, on Intel's version 6 with bits 40 to 47. On the Pentium it is the
/// number of its function, bits 0 to 5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub(super) level: Level,
    pub(super) cycles: u64,
    events: Vec<(u64, u64)>,
}

impl Stretch {
    /// Returns cycles at a level, in which no event occurs.
    pub const fn new(level: Level, cycles: u64) -> Self {
        Self {
            level,
            cycles,
            events: Vec::new(),
        }
    }

    /// Adds an event that occurs so often in each cycle.
    #[must_use]
    pub fn occurring(mut self, event: u64, times_a_cycle: u64) -> Self {
        self.events.push((event, times_a_cycle));
        self
    }

    /// Returns the number of times that an event occurs in each cycle.
    pub(super) fn rate(&self, event: u64) -> u64 {
        let of_event = self.events.iter().filter(|(e, _)| *e == event);
        of_event.map(|(_, times)| times).sum()
    }
}
