//! The first page of a mapped counter: `struct perf_event_mmap_page`
//! (`include/uapi/linux/perf_event.h`; perf_event_open(2), MMAP layout).

use std::mem::offset_of;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

use bitflags::bitflags;

pub(crate) mod registers;

use self::registers::Registers;

/// The most reads of a page that changes while it is read. The kernel changes the pages of
/// the running thread when it is scheduled and when a counter overflows, so twice is rare.
const TRIES: u32 = 64;

/// On x86 this bit of an index names the register of the topdown metrics, which holds several
/// counts in one (`INTEL_PMC_FIXED_RDPMC_METRICS`, `arch/x86/include/asm/perf_event.h`).
const METRICS: u32 = 1 << 29;

bitflags! {
    /// The abilities of a counter's page in user space.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PageCapabilities: u64 {
        /// `cap_bit0`: what 3.4 to 3.11 meant by both of the next, never set since.
        const BIT0 = 1;
        /// `cap_bit0_is_deprecated`: the bits below are there (since 3.12).
        const BIT0_IS_DEPRECATED = 1 << 1;
        /// `cap_user_rdpmc`: the counter may be read in user space.
        const USER_RDPMC = 1 << 2;
        /// `cap_user_time`: the fields `time_*` turn the CPU's cycle counter into times.
        const USER_TIME = 1 << 3;
        /// `cap_user_time_zero`: `time_zero` is there.
        const USER_TIME_ZERO = 1 << 4;
        /// `cap_user_time_short`: the cycle counter wraps; `time_cycles` and `time_mask` are there.
        const USER_TIME_SHORT = 1 << 5;
    }
}

impl PageCapabilities {
    /// The abilities that reading a value takes.
    pub const VALUE: Self = Self::BIT0_IS_DEPRECATED.union(Self::USER_RDPMC);

    /// The abilities that the time of perf_event's clock takes.
    const CLOCK: Self = Self::BIT0_IS_DEPRECATED.union(Self::USER_TIME_ZERO);

    /// The abilities that reading a value and its times takes.
    pub const READABLE: Self = Self::BIT0_IS_DEPRECATED
        .union(Self::USER_RDPMC)
        .union(Self::USER_TIME);
}

/// The fields of a page, as a recording or a test has them; the names are the kernel's.
///
/// Exhaustive: a recording has every field that reading depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of perf_event_open(2)")]
pub struct PageFields {
    pub index: u32,
    pub offset: i64,
    pub time_enabled: u64,
    pub time_running: u64,
    pub capabilities: PageCapabilities,
    pub pmc_width: u16,
    pub time_shift: u16,
    pub time_mult: u32,
    pub time_offset: u64,
    pub time_zero: u64,
    pub time_cycles: u64,
    pub time_mask: u64,
}

/// A field of 64 bits. Memory that is mapped read-only may be read atomically in words of the
/// machine only; what tears, the sequence lock catches.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct Word {
    #[cfg(target_pointer_width = "64")]
    whole: std::sync::atomic::AtomicU64,
    #[cfg(not(target_pointer_width = "64"))]
    halves: [AtomicU32; 2],
}

impl Word {
    #[cfg(target_pointer_width = "64")]
    fn load(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
    }

    #[cfg(target_pointer_width = "64")]
    fn store(&self, value: u64) {
        self.whole.store(value, Ordering::Relaxed);
    }

    #[cfg(not(target_pointer_width = "64"))]
    fn load(&self) -> u64 {
        let [first, second] = &self.halves;
        let (first, second) = (
            first.load(Ordering::Relaxed),
            second.load(Ordering::Relaxed),
        );
        let [a, b, c, d] = first.to_ne_bytes();
        let [e, f, g, h] = second.to_ne_bytes();
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    #[cfg(not(target_pointer_width = "64"))]
    fn store(&self, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_ne_bytes();
        self.halves[0].store(u32::from_ne_bytes([a, b, c, d]), Ordering::Relaxed);
        self.halves[1].store(u32::from_ne_bytes([e, f, g, h]), Ordering::Relaxed);
    }
}

/// The part of a counter's page that says how it is read, in the kernel's layout.
///
/// The kernel writes it while it is read, under the sequence lock in `lock`: odd while it writes,
/// another number afterwards. A page made by [`recorded`](Self::recorded) and rewritten by
/// [`publish`](Self::publish) is read in the same way, so that what reads it can be tested without
/// hardware.
#[derive(Debug)]
#[repr(C)]
pub struct UserPage {
    version: AtomicU32,
    compat_version: AtomicU32,
    lock: AtomicU32,
    index: AtomicU32,
    offset: Word,
    time_enabled: Word,
    time_running: Word,
    capabilities: Word,
    pmc_width: AtomicU16,
    time_shift: AtomicU16,
    time_mult: AtomicU32,
    time_offset: Word,
    time_zero: Word,
    size: AtomicU32,
    reserved: AtomicU32,
    time_cycles: Word,
    time_mask: Word,
}

const _: () = assert!(offset_of!(UserPage, lock) == 8);
const _: () = assert!(offset_of!(UserPage, offset) == 16);
const _: () = assert!(offset_of!(UserPage, capabilities) == 40);
const _: () = assert!(offset_of!(UserPage, pmc_width) == 48);
const _: () = assert!(offset_of!(UserPage, time_mult) == 52);
const _: () = assert!(offset_of!(UserPage, time_zero) == 64);
const _: () = assert!(offset_of!(UserPage, time_mask) == 88);
const _: () = assert!(size_of::<UserPage>() == 96);

/// The times of a counter, in ns.
///
/// Exhaustive: the kernel keeps these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The time it was enabled.
    pub enabled: u64,
    /// The time it was counting.
    pub running: u64,
}

impl UserPage {
    /// A page in memory of our own, with these fields.
    pub fn recorded(fields: &PageFields) -> Self {
        let page = Self {
            version: AtomicU32::new(0),
            compat_version: AtomicU32::new(0),
            lock: AtomicU32::new(0),
            index: AtomicU32::new(0),
            offset: Word::default(),
            time_enabled: Word::default(),
            time_running: Word::default(),
            capabilities: Word::default(),
            pmc_width: AtomicU16::new(0),
            time_shift: AtomicU16::new(0),
            time_mult: AtomicU32::new(0),
            time_offset: Word::default(),
            time_zero: Word::default(),
            size: AtomicU32::new(size_of::<Self>() as u32),
            reserved: AtomicU32::new(0),
            time_cycles: Word::default(),
            time_mask: Word::default(),
        };
        page.publish(fields);
        page
    }

    /// Replaces the fields as the kernel does (`perf_event_update_userpage`,
    /// `kernel/events/core.c`). One thread at a time may.
    pub fn publish(&self, fields: &PageFields) {
        let lock = self.lock.load(Ordering::Relaxed);
        self.lock.store(lock.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.index.store(fields.index, Ordering::Relaxed);
        self.offset.store(fields.offset.cast_unsigned());
        self.time_enabled.store(fields.time_enabled);
        self.time_running.store(fields.time_running);
        self.capabilities.store(fields.capabilities.bits());
        self.pmc_width.store(fields.pmc_width, Ordering::Relaxed);
        self.time_shift.store(fields.time_shift, Ordering::Relaxed);
        self.time_mult.store(fields.time_mult, Ordering::Relaxed);
        self.time_offset.store(fields.time_offset);
        self.time_zero.store(fields.time_zero);
        self.time_cycles.store(fields.time_cycles);
        self.time_mask.store(fields.time_mask);
        self.lock.store(lock.wrapping_add(2), Ordering::Release);
    }

    /// Returns the abilities of the page at this moment.
    pub fn capabilities(&self) -> PageCapabilities {
        PageCapabilities::from_bits_retain(self.capabilities.load())
    }

    /// Returns a number that changes whenever the kernel changes the page; odd while it does.
    pub(crate) fn state(&self) -> u32 {
        self.lock.load(Ordering::Acquire)
    }

    /// Reads a group of counters by their pages, this one the leader's: its times, and the value of
    /// each by position through `found`.
    ///
    /// All are read in one period on the PMU: if the leader was taken off it or a page changed meanwhile,
    /// they are read again. Within it they go on counting, so they are read one after the other.
    ///
    /// `None` when one of them is not on the PMU, its page does not allow it, or the pages do not
    /// come to rest; what was passed to `found` does not count then. Such a group has to be read with
    /// read(2).
    pub fn read_group<'a>(
        &self,
        others: &(impl Iterator<Item = &'a Self> + Clone),
        registers: &impl Registers,
        found: impl FnMut(usize, u64, Times),
    ) -> Option<()> {
        let times = || self.times(registers);
        self.read_group_at(others, registers, times, found)?;
        Some(())
    }

    /// Reads as [`read_group`](Self::read_group) does, with times from elsewhere, and returns them.
    pub(crate) fn read_group_at<'a>(
        &self,
        others: &(impl Iterator<Item = &'a Self> + Clone),
        registers: &impl Registers,
        times: impl Fn() -> Option<Times>,
        mut found: impl FnMut(usize, u64, Times),
    ) -> Option<Times> {
        self.settled(|| {
            let times = times()?;
            found(0, self.count(registers)?, times);
            for (member, page) in (1..).zip(others.clone()) {
                found(member, page.settled(|| page.count(registers))?, times);
            }
            Some(times)
        })
    }

    /// The time of perf_event's clock, which is that of samples: ns since some moment before the
    /// machine was up. `None` where the page does not say (`cap_user_time_zero`).
    pub fn clock(&self, registers: &impl Registers) -> Option<u64> {
        self.settled(|| {
            let capabilities = self.capabilities();
            if !capabilities.contains(PageCapabilities::CLOCK) {
                return None;
            }
            let now = self.nanoseconds(capabilities, registers);
            Some(self.time_zero.load().wrapping_add(now))
        })
    }

    /// Returns the CPU's cycle counter (the time stamp counter of x86) at a time of perf_event's clock, such as that of a
    /// sample: the first cycle that [`clock`](Self::clock) takes to be not before it. `None` where the page does not say,
    /// and for times before the counter started.
    pub fn cycles_at(&self, time: u64) -> Option<u64> {
        self.settled(|| {
            if !self.capabilities().contains(PageCapabilities::CLOCK) {
                return None;
            }
            let since = u128::from(time.checked_sub(self.time_zero.load())?);
            let shift = self.time_shift.load(Ordering::Relaxed) & 63;
            let mult = u128::from(self.time_mult.load(Ordering::Relaxed));
            let cycles = (since << shift).checked_add(mult)?.checked_sub(1)?;
            u64::try_from(cycles.checked_div(mult)?).ok()
        })
    }

    /// Returns the result of a `read` during which the page did not change: under the sequence lock, and
    /// again after a change. `None` if `read` returns it, or the page does not come to rest.
    fn settled<T>(&self, mut read: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..TRIES {
            let before = self.state();
            let found = read()?;
            fence(Ordering::Acquire);
            // Odd while it is written: then it equals no even number.
            if self.lock.load(Ordering::Relaxed) == before & !1 {
                return Some(found);
            }
        }
        None
    }

    /// The value: what the kernel has of it, and what the register counted since.
    fn count(&self, registers: &impl Registers) -> Option<u64> {
        // 0 is no register: less one, it has all bits.
        let register = self.index.load(Ordering::Relaxed).wrapping_sub(1);
        let none = match cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
            true => METRICS,
            false => 1 << 31,
        };
        if register & none != 0 {
            return None;
        }
        let bits = registers.counter(register)?;
        // The kernel starts a register at minus what is left of its period: the bits it has are
        // signed, and `offset` makes up for it.
        let unused = 64u16.wrapping_sub(self.pmc_width.load(Ordering::Relaxed));
        if unused >= 64 {
            return None;
        }
        let unused = unused.into();
        let counted = bits.wrapping_shl(unused).cast_signed().wrapping_shr(unused);
        Some(self.offset.load().wrapping_add(counted.cast_unsigned()))
    }

    /// The times up to now, which the kernel has as of the last change of the page.
    fn times(&self, registers: &impl Registers) -> Option<Times> {
        let capabilities = self.capabilities();
        if !capabilities.contains(PageCapabilities::READABLE) {
            return None;
        }
        let now = self.nanoseconds(capabilities, registers);
        let since = self.time_offset.load().wrapping_add(now);
        Some(Times {
            enabled: self.time_enabled.load().wrapping_add(since),
            running: self.time_running.load().wrapping_add(since),
        })
    }

    /// The CPU's cycle counter in ns, from a start that the offsets make up for.
    fn nanoseconds(&self, capabilities: PageCapabilities, registers: &impl Registers) -> u64 {
        let mut cycles = registers.cycles();
        if capabilities.contains(PageCapabilities::USER_TIME_SHORT) {
            let last = self.time_cycles.load();
            cycles = last.wrapping_add(cycles.wrapping_sub(last) & self.time_mask.load());
        }
        let shift = self.time_shift.load(Ordering::Relaxed) & 63;
        let mult = self.time_mult.load(Ordering::Relaxed);
        ((u128::from(cycles) * u128::from(mult)) >> shift) as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Registers that count 7, and let the kernel change a page meanwhile.
    struct Changing<F>(F);

    impl<F: Fn()> Registers for Changing<F> {
        fn counter(&self, _: u32) -> Option<u64> {
            (self.0)();
            Some(7)
        }

        fn cycles(&self) -> u64 {
            unreachable!("values alone take no clock")
        }
    }

    /// Returns the page of a counter in this register, which has no times up to now.
    pub(crate) fn fields(index: u32, offset: i64) -> PageFields {
        PageFields {
            index,
            offset,
            time_enabled: 90,
            time_running: 80,
            capabilities: PageCapabilities::VALUE,
            pmc_width: 48,
            time_shift: 0,
            time_mult: 0,
            time_offset: 0,
            time_zero: 0,
            time_cycles: 0,
            time_mask: 0,
        }
    }

    /// The values of two pages, while something happens whenever a register is read; `None` if there are none.
    fn values(pages: &[UserPage; 2], meanwhile: impl Fn()) -> Option<[u64; 2]> {
        let mut values = [0; 2];
        let [leader, other] = pages;
        let times = || {
            Some(Times {
                enabled: 90,
                running: 80,
            })
        };
        let others = std::iter::once(other);
        let found = |member: usize, value, _| values[member] = value;
        leader.read_group_at(&others, &Changing(meanwhile), times, found)?;
        Some(values)
    }

    /// A cycle counter that stands still.
    struct At(u64);

    impl Registers for At {
        fn counter(&self, _: u32) -> Option<u64> {
            unreachable!("the clock takes no counter")
        }

        fn cycles(&self) -> u64 {
            self.0
        }
    }

    /// By one cycle in two nanoseconds, and as a time stamp counter of 2.7 GHz.
    #[test]
    fn a_time_is_that_of_the_first_cycle_not_before_it() {
        let mut fields = PageFields {
            capabilities: PageCapabilities::CLOCK,
            time_mult: 2,
            time_zero: 1000,
            ..fields(0, 0)
        };
        let page = UserPage::recorded(&fields);
        let times = [1000, 1001, 1002, 1003];
        assert_eq!(
            times.map(|time| page.cycles_at(time)),
            [0, 1, 1, 2].map(Some)
        );
        assert_eq!(page.cycles_at(999), None, "before the counter started");
        (fields.time_mult, fields.time_shift) = (397_682_157, 30);
        let page = UserPage::recorded(&fields);
        for time in [1001, 123_456_789, 98_765_432_109_876] {
            let cycles = page.cycles_at(time).expect("a time since the start");
            assert!(page.clock(&At(cycles)) >= Some(time), "{time}: {cycles}");
            assert!(page.clock(&At(cycles - 1)) < Some(time), "{time}: {cycles}");
        }
        assert_eq!(page.cycles_at(u64::MAX), None, "beyond 64 bits");
        fields.time_mult = 0;
        assert_eq!(UserPage::recorded(&fields).cycles_at(1001), None);
        (fields.time_mult, fields.capabilities) = (2, PageCapabilities::READABLE);
        assert_eq!(UserPage::recorded(&fields).cycles_at(1001), None);
    }

    #[test]
    fn values_are_of_one_stay_on_the_pmu() {
        let pages = [fields(1, 100), fields(2, 200)].map(|fields| UserPage::recorded(&fields));
        assert_eq!(values(&pages, || ()), Some([107, 207]));
        for (changed, expected) in [(0, [307, 207]), (1, [107, 307])] {
            let pages = [fields(1, 100), fields(2, 200)].map(|fields| UserPage::recorded(&fields));
            let page = &pages[changed];
            let changes = std::cell::Cell::new(2_u32);
            let meanwhile = || {
                if changes.replace(changes.get().saturating_sub(1)) > 0 {
                    page.publish(&fields(1, 300));
                }
            };
            assert_eq!(values(&pages, meanwhile), Some(expected), "read again");
            let always = || page.publish(&fields(1, 300));
            assert_eq!(values(&pages, always), None, "it does not come to rest");
            page.publish(&fields(0, 300));
            assert_eq!(values(&pages, || ()), None, "it is on no register");
        }
    }
}
