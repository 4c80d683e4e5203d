//! The protocol of reading in user space, over recorded pages and scripted registers.

use std::iter::empty;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use quipu_hal::{Group as _, GroupSpec, Software, Target};
use quipu_linux::LinuxBackend;
use quipu_linux::user_read::{PageCapabilities, PageFields, Registers, Times, UserPage};

/// Registers that always read the same.
struct Fixed {
    counter: u64,
    cycles: u64,
}

impl Registers for Fixed {
    fn counter(&self, _number: u32) -> Option<u64> {
        Some(self.counter)
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }
}

/// A counter on the PMU, in register 3, with a clock of one cycle a nanosecond.
fn counting() -> PageFields {
    PageFields {
        index: 4,
        offset: 1_000,
        time_enabled: 70,
        time_running: 50,
        capabilities: PageCapabilities::READABLE,
        pmc_width: 48,
        time_shift: 0,
        time_mult: 1,
        time_offset: 0,
        time_zero: 0,
        time_cycles: 0,
        time_mask: 0,
    }
}

fn read(fields: &PageFields, registers: &impl Registers) -> Option<(u64, Times)> {
    let page = UserPage::recorded(fields);
    let mut seen = None;
    page.read_group(&empty(), registers, |i, value, times| {
        assert_eq!(i, 0);
        seen = Some((value, times));
    })?;
    seen
}

fn value(fields: &PageFields, counter: u64) -> Option<u64> {
    let registers = Fixed { counter, cycles: 0 };
    read(fields, &registers).map(|(value, _)| value)
}

#[test]
fn a_register_is_signed_by_its_width() {
    for (pmc_width, counter, offset, expected) in [
        (48, 5, 1_000, 1_005),
        // As the kernel starts it: minus the period, which the offset holds.
        (48, (1 << 48) - 7, 1_000, 993),
        (48, (1 << 47) - 1, 0, (1 << 47) - 1),
        (48, 1 << 47, 1 << 47, 0),
        (40, (1 << 40) - 1, 1, 0),
        (32, 0xffff_ff00, 0x1_0000_0100, 0x1_0000_0000),
        (64, u64::MAX, 1, 0),
        (1, 1, 1, 0),
        // What lies above the width is not the counter's.
        (32, 0xdead_0000_0005, 0, 5),
    ] {
        let fields = PageFields {
            pmc_width,
            offset,
            ..counting()
        };
        assert_eq!(value(&fields, counter), Some(expected), "{fields:?}");
    }
}

#[test]
fn what_the_page_does_not_allow_is_left_to_the_kernel() {
    use PageCapabilities as C;
    assert_eq!(value(&counting(), 0), Some(1_000));
    let off_the_pmu = PageFields {
        index: 0,
        ..counting()
    };
    assert_eq!(value(&off_the_pmu, 0), None);
    for capabilities in [
        C::empty(),
        // Linux 3.4 to 3.11 set the first bit for either ability.
        C::BIT0,
        C::READABLE - C::BIT0_IS_DEPRECATED,
        C::READABLE - C::USER_RDPMC,
        C::READABLE - C::USER_TIME,
    ] {
        let fields = PageFields {
            capabilities,
            ..counting()
        };
        assert_eq!(value(&fields, 0), None, "{capabilities:?}");
    }
    for pmc_width in [0, 65, u16::MAX] {
        let fields = PageFields {
            pmc_width,
            ..counting()
        };
        assert_eq!(value(&fields, 0), None, "{pmc_width} bits");
    }
}

#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn the_register_of_topdown_metrics_is_no_counter() {
    let fields = PageFields {
        index: (1 << 29) + 1,
        ..counting()
    };
    assert_eq!(value(&fields, 0), None);
    let fixed = PageFields {
        index: (1 << 30) + 1,
        ..counting()
    };
    assert_eq!(value(&fixed, 0), Some(1_000));
}

/// The registers are asked for the number that the page means.
#[test]
fn the_index_is_one_more_than_the_register() {
    struct Named;
    impl Registers for Named {
        fn counter(&self, number: u32) -> Option<u64> {
            (number < 4).then_some(number.into())
        }
        fn cycles(&self) -> u64 {
            0
        }
    }
    assert_eq!(read(&counting(), &Named).map(|(v, _)| v), Some(1_003));
    let beyond = PageFields {
        index: 5,
        ..counting()
    };
    assert_eq!(read(&beyond, &Named), None);
}

#[test]
fn times_go_on_from_the_page() {
    let fields = PageFields {
        time_shift: 10,
        time_mult: 500,
        time_offset: 0u64.wrapping_sub(1_000_000),
        ..counting()
    };
    // A multiplication that would overflow 64 bits, were it done in one.
    let cycles = 1u64 << 60;
    let since = u64::try_from((u128::from(cycles) * 500) >> 10).unwrap() - 1_000_000;
    let (_, times) = read(&fields, &Fixed { counter: 0, cycles }).unwrap();
    let expected = Times {
        enabled: 70 + since,
        running: 50 + since,
    };
    assert_eq!(times, expected);
}

/// A cycle counter of 56 bits that has started over since the kernel looked at it.
#[test]
fn a_short_cycle_counter_wraps() {
    let mask = (1 << 56) - 1;
    let last = 0x1234_5600_0000_0000 | (mask - 10);
    let fields = PageFields {
        capabilities: PageCapabilities::READABLE | PageCapabilities::USER_TIME_SHORT,
        time_cycles: last,
        time_mask: mask,
        time_offset: 0u64.wrapping_sub(last),
        ..counting()
    };
    let registers = Fixed {
        counter: 0,
        cycles: 29,
    };
    let (_, times) = read(&fields, &registers).unwrap();
    assert_eq!((times.enabled, times.running), (70 + 40, 50 + 40));
    let not_short = PageFields {
        capabilities: PageCapabilities::READABLE,
        ..fields
    };
    let (_, times) = read(&not_short, &registers).unwrap();
    assert_ne!(times.enabled, 70 + 40);
}

#[test]
fn the_clock_is_that_of_samples() {
    let fields = PageFields {
        capabilities: PageCapabilities::READABLE | PageCapabilities::USER_TIME_ZERO,
        time_zero: 1_000_000,
        // The clock is told whether or not the counter is on the PMU.
        index: 0,
        ..counting()
    };
    let registers = Fixed {
        counter: 0,
        cycles: 77,
    };
    let clock = |fields| UserPage::recorded(fields).clock(&registers);
    assert_eq!(clock(&fields), Some(1_000_077));
    assert_eq!(clock(&counting()), None);
}

/// A page is rewritten by whoever reads a register, as an interrupt would do it there.
struct Interrupted<'a> {
    page: &'a UserPage,
    next: &'a [PageFields],
    done: std::cell::Cell<usize>,
}

impl Registers for Interrupted<'_> {
    fn counter(&self, _number: u32) -> Option<u64> {
        let done = self.done.get();
        if let Some(next) = self.next.get(done) {
            self.page.publish(next);
            self.done.set(done + 1);
        }
        Some(done as u64)
    }

    fn cycles(&self) -> u64 {
        0
    }
}

#[test]
fn an_interrupt_within_a_read_repeats_it() {
    let states: Vec<_> = (1..=3i64)
        .map(|n| PageFields {
            offset: n * 1_000,
            ..counting()
        })
        .collect();
    let page = UserPage::recorded(&states[0]);
    let registers = Interrupted {
        page: &page,
        next: &states[1..],
        done: 0.into(),
    };
    let mut seen = Vec::new();
    let read = page.read_group(&empty(), &registers, |_, value, _| {
        seen.push(value);
    });
    assert_eq!(read, Some(()));
    // Each interrupt comes between the register and the offset; the third try has none.
    assert_eq!(seen, [2_000, 3_001, 3_002]);
}

#[test]
fn a_page_that_never_rests_is_given_up() {
    let page = UserPage::recorded(&counting());
    let states = [counting(); 10_000];
    let registers = Interrupted {
        page: &page,
        next: &states,
        done: 0.into(),
    };
    let read = page.read_group(&empty(), &registers, |_, _, _| {});
    assert_eq!(read, None);
    assert!(registers.done.get() < 1_000, "it took many tries");
}

/// Another thread takes a group of two off the PMU and puts it back all the time: what is read is
/// always of one such period.
#[test]
fn a_group_is_read_within_one_period() {
    let state = |n: u64, index| PageFields {
        index,
        offset: n.cast_signed(),
        time_enabled: n,
        time_running: n,
        ..counting()
    };
    let pages = [0, 1].map(|_| UserPage::recorded(&state(0, 4)));
    let over = AtomicBool::new(false);
    /// Ends the other thread, also when an assertion fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let registers = Fixed {
        counter: 0,
        cycles: 0,
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                pages[0].publish(&state(n, 0));
                n += 1;
                pages[1].publish(&state(n, 4));
                pages[0].publish(&state(n, 4));
            }
        });
        let _stop = Stop(&over);
        let (mut whole, mut most) = (0, 0);
        for _ in 0..2_000_000 {
            let mut seen = [None; 2];
            let read = pages[0].read_group(&pages[1..].iter(), &registers, |i, value, times| {
                seen[i] = Some((value, times.enabled, times.running));
            });
            if read.is_some() {
                let (first, _, _) = seen[0].expect("the leader was read");
                assert_eq!(seen, [Some((first, first, first)); 2]);
                assert!(first >= most, "{first} came after {most}");
                (whole, most) = (whole + 1, first);
            }
        }
        assert!(whole > 0, "no read succeeded");
    });
}

fn fields() -> impl Strategy<Value = PageFields> {
    let first = (
        prop_oneof![Just(0u32), 1..40u32, any::<u32>()],
        any::<i64>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        prop_oneof![0..70u16, any::<u16>()],
    );
    let times = (
        any::<u16>(),
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    );
    (first, times).prop_map(|(a, b)| PageFields {
        index: a.0,
        offset: a.1,
        time_enabled: a.2,
        time_running: a.3,
        capabilities: PageCapabilities::from_bits_retain(a.4),
        pmc_width: a.5,
        time_shift: b.0,
        time_mult: b.1,
        time_offset: b.2,
        time_zero: b.3,
        time_cycles: b.4,
        time_mask: b.5,
    })
}

proptest! {
    /// Whatever a page holds, reading it ends and does not panic.
    #[test]
    fn any_page_is_read(fields in fields(), counter in any::<u64>(), cycles in any::<u64>()) {
        let registers = Fixed { counter, cycles };
        let readable = fields.capabilities.contains(PageCapabilities::READABLE)
            && fields.index != 0
            && (1..=64).contains(&fields.pmc_width);
        if !readable {
            prop_assert_eq!(read(&fields, &registers), None);
        }
        let _ = UserPage::recorded(&fields).clock(&registers);
    }
}

/// Each group says why its reads are system calls.
#[test]
fn a_group_that_is_never_read_in_user_space_says_why() {
    let test = "a_group_that_is_never_read_in_user_space_says_why";
    let Some(backend) = crate::machine::backend(test) else {
        return;
    };
    let clock = GroupSpec::single(crate::machine::user(Software::TaskClock));
    let reason = |backend: &LinuxBackend, spec: &GroupSpec, target: &Target| {
        let mut group = backend.open_group(spec, target).expect("a clock opens");
        let obstacle = group.user_reads().and_then(|reads| reads.obstacle());
        let reason = obstacle.expect("there is one").reason().map(str::to_owned);
        reason.expect("it says why")
    };
    let own = Target::CurrentThread;
    assert!(reason(&backend, &clock, &own).contains("not in a register"));
    let process = Target::Process(std::process::id().cast_signed());
    assert!(reason(&backend, &clock, &process).contains("calling thread alone"));
    let mut inherited = clock.clone();
    inherited.attributes.inherit = true;
    assert!(reason(&backend, &inherited, &own).contains("calling thread alone"));
    let calls = backend.without_user_reads();
    assert!(reason(&calls, &clock, &own).contains("asked not to"));
}
