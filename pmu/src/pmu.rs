//! The interface of a register driver: [`Pmu`], bare counters without any policy.

use std::fmt;
use std::time::Duration;

use quipu_hal::{Encoding, Error, Result, Simultaneity, SlotClass, SlotSet};

/// The counter registers of a machine's CPUs, all of the same make.
///
/// A driver has no policy: which event goes where, when, and for how long is decided by
/// [`VirtualPmu`](crate::VirtualPmu), which turns any `Pmu` into a [`Backend`](quipu_hal::Backend).
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
/// A driver that finds its registers changed by another process answers
/// [`Interference`](quipu_hal::ErrorKind::Interference) from `read`, `verify` or `stop`; the virtual PMU
/// then drops that span instead of counting it, and programs the slot again. A driver that can only reach
/// the CPU it runs on, and has been moved to another, answers
/// [`WrongThread`](quipu_hal::ErrorKind::WrongThread).
///
/// A driver of one counter that always counts:
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use quipu_hal::{Encoding, Error, Result, Simultaneity, SlotSet};
/// use quipu_pmu::{Access, Pmu, Slot};
///
/// #[derive(Default)]
/// struct Ticks(AtomicU64);
///
/// impl Pmu for Ticks {
///     fn name(&self) -> &'static str {
///         "ticks"
///     }
///     fn slots(&self) -> &[Slot] {
///         const { &[Slot::general(0, 64)] }
///     }
///     fn cpus(&self) -> &[u32] {
///         &[0]
///     }
///     fn current_cpu(&self) -> Result<u32> {
///         Ok(0)
///     }
///     fn access(&self) -> Access {
///         Access::AnyThread
///     }
///     fn simultaneity(&self) -> Simultaneity {
///         Simultaneity::Sequential
///     }
///     fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
///         let other = matches!(encoding, Encoding::Other { scheme: "ticks", .. });
///         Ok(if other { SlotSet::general(1) } else { SlotSet::EMPTY })
///     }
///     fn acquire(&self, _cpu: u32) -> Result<()> {
///         Ok(())
///     }
///     fn program(&self, _cpu: u32, _slot: usize, _encoding: &Encoding) -> Result<()> {
///         Ok(())
///     }
///     fn clear(&self, _cpu: u32, _slot: usize) -> Result<()> {
///         Ok(())
///     }
///     fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
///         self.read(cpu, slots, raw)
///     }
///     fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
///         self.read(cpu, slots, raw)
///     }
///     fn read(&self, _cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
///         raw[..slots.len()].fill(self.0.fetch_add(1, Ordering::Relaxed));
///         Ok(())
///     }
///     fn release(&self, _cpu: u32) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// let (pmu, mut raw) = (Ticks::default(), [0]);
/// pmu.start(0, &[0], &mut raw)?;
/// pmu.stop(0, &[0], &mut raw)?;
/// assert_eq!(raw, [1]);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub trait Pmu: Send + Sync + 'static {
    /// Returns a short name, which the backend takes: `pctr`, `msr`, `sim`.
    fn name(&self) -> &'static str;

    /// Returns the counters of each CPU: at least one, at most 64, each class and number once.
    fn slots(&self) -> &[Slot];

    /// Returns the CPUs whose counters can be reached, each once.
    fn cpus(&self) -> &[u32];

    /// Returns the CPU the calling thread is on, one of [`cpus`](Self::cpus).
    ///
    /// # Errors
    /// When it cannot be found out.
    fn current_cpu(&self) -> Result<u32>;

    /// Returns the threads that may call.
    fn access(&self) -> Access;

    /// Keeps the calling thread on a CPU and returns true, where a call for it from another CPU takes longer than
    /// waking a thread there. The virtual PMU asks once on the thread that turns the CPU's groups, and then
    /// makes all its calls for the CPU on that thread. By default it does nothing and returns false.
    fn pin(&self, cpu: u32) -> bool {
        let _ = cpu;
        false
    }

    /// Returns the simultaneity of the values of one [`read`](Self::read).
    fn simultaneity(&self) -> Simultaneity;

    /// Returns the slots that can be [programmed](Self::program) with these bits, as far as their
    /// registers and the way to them can hold them. The virtual PMU asks once for each event of a
    /// group, and takes of these slots those that the event map has for the event.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](quipu_hal::ErrorKind::UnsupportedEvent) with the reason why no slot can; the
    /// set may also be empty instead, where the driver knows no reason.
    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet>;

    /// Returns the error for an event that no slot can count and some counter could that another process uses,
    /// if it is one of `counters`. By default there is none.
    fn busy(&self, encoding: &Encoding, counters: SlotSet) -> Option<Error> {
        let _ = (encoding, counters);
        None
    }

    /// Returns true if a slot is set on every CPU at once, and its register begins at one value there. The
    /// virtual PMU then has one schedule for all CPUs, and names the first of them in every call but `read`. The
    /// raw values of `start` are those that each CPU begins from. After `stop`, `read` returns where each has
    /// stopped. A CPU that could not be reached is [`WrongThread`](quipu_hal::ErrorKind::WrongThread) from
    /// `read`: its counts stay as they were last known, without time running. By default CPUs are set one by one.
    fn sets_all_cpus(&self) -> bool {
        false
    }

    /// Looks at CPUs which are set together, before these slots are read there one CPU after the other or stopped. By
    /// default it does nothing.
    ///
    /// # Errors
    /// When the system refuses, or [`Interference`](quipu_hal::ErrorKind::Interference) with a slot on any of
    /// them: then nothing is counted of the others either.
    fn look_at(&self, cpus: &[u32], slots: &[usize]) -> Result<()> {
        let _ = (cpus, slots);
        Ok(())
    }

    /// Returns the slots of an acquired CPU that other processes use, as far as is known without looking at
    /// each. The virtual PMU asks before it places groups. By default there are none.
    fn in_use(&self, cpu: u32) -> InUse {
        let _ = cpu;
        InUse::default()
    }

    /// Takes the counters of a CPU and remembers what they hold.
    ///
    /// # Errors
    /// [`Busy`](quipu_hal::ErrorKind::Busy) when another process has them; otherwise when the
    /// system refuses. No counter is taken then.
    fn acquire(&self, cpu: u32) -> Result<()>;

    /// Makes a slot that does not count ready to count an event that it can be
    /// [prepared](Self::prepare) for.
    ///
    /// # Errors
    /// When the system refuses; the slot does not count then.
    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()>;

    /// Sets a slot that does not count to zero, or to another value that leaves most of its width before it; a
    /// counter that cannot be written (a free-running one) is left as it is. From a value that is not zero the
    /// virtual PMU notices that another process zeroes the counter: it has gone back.
    ///
    /// # Errors
    /// When the system refuses.
    fn clear(&self, cpu: u32, slot: usize) -> Result<()>;

    /// Starts programmed slots, simultaneously where the hardware can, and stores the raw value each
    /// starts from. Others that were started go on counting, also where one enable gates all: that is set with the
    /// first and kept up to the last.
    ///
    /// # Errors
    /// When the system refuses; some of the slots may count then, and are stopped.
    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Stops slots and stores the raw value each stopped at; others that were started go on counting.
    ///
    /// # Errors
    /// When the system refuses, or [`Interference`](quipu_hal::ErrorKind::Interference); the raw values
    /// mean nothing then.
    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Reads the raw values of slots into the same places of `raw`. It allocates nothing and does
    /// not block.
    ///
    /// # Errors
    /// When the system refuses, or [`Interference`](quipu_hal::ErrorKind::Interference); the raw values
    /// mean nothing then.
    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()>;

    /// Checks that slots that count still hold what was written to start them. The virtual PMU asks
    /// after it has read them, seldom ([`verify_interval`](Self::verify_interval) and
    /// [`read_verify_interval`](Self::read_verify_interval)), so this may take longer than a read. It must
    /// not block, as reads do not.
    ///
    /// # Errors
    /// [`Interference`](quipu_hal::ErrorKind::Interference), or when the system refuses.
    fn verify(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        let _ = (cpu, slots);
        Ok(())
    }

    /// Returns the longest time between two calls of [`verify`](Self::verify), or `None` for no limit.
    fn verify_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns the longest time between two looks at counters which begin at zero, or `None`, as by default, if no
    /// counter begins there. One that another process zeroes shows by its value only until it has passed that of
    /// the look before. So the virtual PMU reads such counters 20 ms after they were started and then after half
    /// as long again, up to this time, and a count whose counters it came to too late is not exact.
    fn look_interval(&self) -> Option<Duration> {
        None
    }

    /// Reads slots on the CPU that the calling thread is on, of several that are set together, in place of
    /// [`look_at`](Self::look_at) all of them. Returns true if a counter that was zeroed since the last look there
    /// would have shown, as one where the event has not occurred does not. By default it looks at nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn look_here(&self, slots: &[usize], raw: &mut [u64]) -> Result<bool> {
        let _ = (slots, raw);
        Ok(false)
    }

    /// Counts the event of a slot that was just started on another slot too, which no group is on: a witness. A driver
    /// that has it compares the two whenever it reads the first: they can differ only if another process zeroes one of
    /// them. It ends when either of them is started or stopped, or when another process sets it. Returns false, as by
    /// default, if there is no witness.
    fn witness(&self, cpu: u32, slot: usize, by: usize) -> bool {
        let _ = (cpu, slot, by);
        false
    }

    /// Returns the time since slots were started or verified after which a [`read`](Self::read) is followed
    /// by [`verify`](Self::verify): what was read is right if the slots still hold what was written. A
    /// driver that notices everything when it reads, as by default, needs none. Where verifying
    /// takes more than a fifth of it, the next time is put off to five times what it took, so that a program
    /// which reads all the time spends a sixth of its time so at most.
    fn read_verify_interval(&self) -> Option<Duration> {
        None
    }

    /// Puts the counters of a CPU back as [`acquire`](Self::acquire) found them and gives them up.
    /// It may be called again after it failed, and with slots still counting.
    ///
    /// # Errors
    /// When the system refuses.
    fn release(&self, cpu: u32) -> Result<()>;

    /// Returns an error for each register or counter that [`release`](Self::release) could not put back
    /// so far: of kind [`Interference`](quipu_hal::ErrorKind::Interference) if another process has set
    /// it since, and [`Os`](quipu_hal::ErrorKind::Os) otherwise.
    fn restore_failures(&self) -> Vec<Error> {
        Vec::new()
    }
}

/// One physical counter of each CPU.
///
/// Exhaustive: a driver gives all that the scheduler asks of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Its class.
    pub class: SlotClass,
    /// Its number within the class.
    pub number: u8,
    /// Its width in bits, 1 to 64.
    pub width: u8,
}

impl Slot {
    /// Returns a general counter.
    pub const fn general(number: u8, width: u8) -> Self {
        Self {
            class: SlotClass::General,
            number,
            width,
        }
    }

    /// Returns a fixed counter.
    pub const fn fixed(number: u8, width: u8) -> Self {
        Self {
            class: SlotClass::Fixed,
            number,
            width,
        }
    }

    /// Returns a free-running counter.
    pub const fn free_running(number: u8, width: u8) -> Self {
        Self {
            class: SlotClass::FreeRunning,
            number,
            width,
        }
    }

    /// Returns the bits of a raw value that count.
    pub const fn mask(self) -> u64 {
        if self.width >= 64 {
            u64::MAX
        } else {
            (1 << self.width) - 1
        }
    }
}

/// Returns the free-running ones of these slots, a bit each.
pub(crate) fn free_running(slots: &[Slot]) -> u64 {
    let slots = slots.iter().enumerate();
    let free_running = slots.filter(|(_, slot)| slot.class == SlotClass::FreeRunning);
    free_running.fold(0, |set, (i, _)| set | 1 << i)
}

/// Slots that other processes use, a bit each in the order of [`Pmu::slots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InUse {
    /// Those that were in use when the CPU was acquired: a group goes there if it fits nowhere else.
    pub found: u64,
    /// Those that another process has taken since: no group goes there.
    pub taken: u64,
}

impl InUse {
    /// Returns slots in use.
    pub const fn new(found: u64, taken: u64) -> Self {
        Self { found, taken }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            SlotClass::General => write!(f, "counter {}", self.number),
            SlotClass::Fixed => write!(f, "fixed counter {}", self.number),
            SlotClass::FreeRunning => write!(f, "free-running counter {}", self.number),
            other => write!(f, "{other:?} counter {}", self.number),
        }
    }
}

/// The threads that may drive a PMU.
///
/// Exhaustive: a device is tied to a thread, or it is not.
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
        assert_eq!(
            Slot::free_running(0, 64).to_string(),
            "free-running counter 0"
        );
    }
}
