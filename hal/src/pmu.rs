//! What a register driver offers: [`Pmu`], bare counters without any policy.

use std::fmt;
use std::time::Duration;

use crate::{Encoding, Result, Simultaneity, SlotClass};

/// The counter registers of a machine's CPUs, all of the same make.
///
/// A driver only does as it is told: which event goes where, when, and for how long is decided by
/// [`VirtualPmu`](crate::VirtualPmu), which turns any `Pmu` into a [`Backend`](crate::Backend).
///
/// # The caller's side
///
/// A slot is named by its position in [`slots`](Self::slots). On each CPU the caller first
/// [acquires](Self::acquire) the counters, and [releases](Self::release) them in the end. In
/// between, a slot is programmed while it does not count, cleared, started, read any number of
/// times, and stopped. `program`, `clear`, `start`, `stop`, `acquire` and `release` of one CPU come
/// one at a time; `read` may come from any thread at any time between `start` and the next `program`
/// of the slot, also while other slots change. With [`Access::MeasuringThread`] every call for a CPU
/// comes from the thread that is measured.
///
/// # The driver's side
///
/// A raw value is the register as it stands: the low [`width`](Slot::width) bits count, what is
/// above them is ignored. While a slot counts it only goes up, modulo its width. Nothing relies on a counter being zero after anything: `start` says where
/// it begins, `stop` where it ended, so interfaces that zero a counter when it is set, or do not,
/// serve alike.
///
/// A driver that finds its registers changed by somebody else answers
/// [`Interference`](crate::ErrorKind::Interference) from `read`, `verify` or `stop`; the virtual PMU
/// then drops that span instead of counting it, and programs the slot anew. A driver that can only reach
/// the CPU it runs on, and has been moved to another, answers
/// [`WrongThread`](crate::ErrorKind::WrongThread).
pub trait Pmu: Send + Sync + 'static {
    /// A short name, which the backend takes: `pctr`, `msr`, `sim`.
    fn name(&self) -> &'static str;

    /// The counters of each CPU: at least one, at most 64, each class and number once.
    fn slots(&self) -> &[Slot];

    /// The CPUs whose counters can be reached, each once.
    fn cpus(&self) -> &[u32];

    /// The CPU the calling thread is on, one of [`cpus`](Self::cpus).
    ///
    /// # Errors
    /// When it cannot be found out.
    fn current_cpu(&self) -> Result<u32>;

    /// Whether each slot has an enable of its own.
    fn gating(&self) -> Gating;

    /// Which threads may call.
    fn access(&self) -> Access;

    /// How simultaneous the values of one [`read`](Self::read) are.
    fn simultaneity(&self) -> Simultaneity;

    /// Whether a slot can be programmed with these bits. The events' own constraints are the event
    /// map's to know; this is about what the register and the way to it can hold.
    fn accepts(&self, slot: usize, encoding: &Encoding) -> bool;

    /// Takes the counters of a CPU and remembers what they hold.
    ///
    /// # Errors
    /// [`Busy`](crate::ErrorKind::Busy) when somebody else has them, or else when the system
    /// refuses; nothing is taken then.
    fn acquire(&self, cpu: u32) -> Result<()>;

    /// Makes a slot that does not count ready to count an event.
    ///
    /// # Errors
    /// When the system refuses; the slot does not count then.
    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()>;

    /// Sets a slot that does not count to zero, so that it has all its width before it; a counter
    /// that cannot be written (a time stamp counter) is left as it is.
    ///
    /// # Errors
    /// When the system refuses.
    fn clear(&self, cpu: u32, slot: usize) -> Result<()>;

    /// Starts programmed slots, all at once where the hardware can, and says the raw value each
    /// starts from. With [`Gating::Shared`] `slots` is everything that is to count on the CPU, and
    /// what else was started here must not count; a slot that was never programmed is left to others.
    ///
    /// # Errors
    /// When the system refuses; some of the slots may count then, and are stopped.
    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Stops slots and says the raw value each stopped at. With [`Gating::Shared`] `slots` is
    /// everything that counts on the CPU.
    ///
    /// # Errors
    /// When the system refuses, or [`Interference`](crate::ErrorKind::Interference); the raw values
    /// mean nothing then.
    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Reads the raw values of slots into the same places of `raw`. It allocates nothing and does
    /// not block.
    ///
    /// # Errors
    /// When the system refuses, or [`Interference`](crate::ErrorKind::Interference); the raw values
    /// mean nothing then.
    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Looks whether slots that count still hold what was written to start them. The virtual PMU asks
    /// after it has read them in the background, which is seldom, so this may take longer than a read.
    ///
    /// # Errors
    /// [`Interference`](crate::ErrorKind::Interference), or when the system refuses.
    fn verify(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        let _ = (cpu, slots);
        Ok(())
    }

    /// How long slots may count at most before they are [verified](Self::verify); nothing where the
    /// driver has no wish.
    fn vigilance(&self) -> Option<Duration> {
        None
    }

    /// Puts the counters of a CPU back as [`acquire`](Self::acquire) found them and gives them up.
    /// It may be called again after it failed, and with slots still counting.
    ///
    /// # Errors
    /// When the system refuses.
    fn release(&self, cpu: u32) -> Result<()>;

    /// What [`release`](Self::release) could not put back so far, a sentence each.
    fn not_restored(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One physical counter of each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// What it can count.
    pub class: SlotClass,
    /// Its number within the class.
    pub number: u8,
    /// Its width in bits, 1 to 64.
    pub width: u8,
}

impl Slot {
    /// A general counter.
    pub const fn general(number: u8, width: u8) -> Self {
        Self {
            class: SlotClass::General,
            number,
            width,
        }
    }

    /// A fixed counter.
    pub const fn fixed(number: u8, width: u8) -> Self {
        Self {
            class: SlotClass::Fixed,
            number,
            width,
        }
    }

    /// The bits of a raw value that count.
    pub const fn mask(self) -> u64 {
        if self.width >= 64 {
            u64::MAX
        } else {
            (1 << self.width) - 1
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            SlotClass::General => write!(f, "counter {}", self.number),
            SlotClass::Fixed => write!(f, "fixed counter {}", self.number),
            SlotClass::TimeStamp => f.write_str("the time stamp counter"),
        }
    }
}

/// Whether slots start and stop one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gating {
    /// Each slot has its own enable.
    PerSlot,
    /// One enable gates all slots of a CPU, as that of counter 0 does on the P6 (pctr(4)). To
    /// change one slot the virtual PMU stops all and starts all again.
    Shared,
}

/// Which threads may drive a PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Any thread reaches the counters of every CPU.
    AnyThread,
    /// Only the counters of the CPU that the calling thread is on can be reached, so the thread
    /// that is measured has to make the calls.
    MeasuringThread,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_as_many_bits_as_the_slot_is_wide() {
        for width in 1..=64u8 {
            assert_eq!(Slot::general(0, width).mask().count_ones(), width.into());
        }
    }

    #[test]
    fn slots_are_called_what_manuals_call_them() {
        assert_eq!(Slot::general(0, 48).to_string(), "counter 0");
        assert_eq!(Slot::fixed(2, 48).to_string(), "fixed counter 2");
    }
}
