//! The registers of the machine this runs on. Where there are none, or none that count, the tests say
//! so and do nothing else.

use std::arch::asm;
use std::io::Write;
use std::sync::Arc;

use quipu_hal::{CpuModel, ErrorKind, Event, EventSpec, Filter, Group, GroupSpec, Result, Target};
use quipu_msr::sim::{EventNames, Generation};
use quipu_msr::{LinuxMsr, MsrBus, MsrPmu, Options};
use quipu_pmu::{MonotonicClock, VirtualPmu};

use crate::rewritten::Rewritten;

/// The distance from its highest value at which a counter begins.
const BELOW_THE_TOP: u64 = 1000;
/// The time stamp counter: each CPU with registers has it.
const TIME_STAMP: u32 = 0x10;

/// Writes a register; a counter that is to begin at 0 begins at `beginning`.
fn write(bus: &LinuxMsr, beginning: u64, (cpu, address, value): (u32, u32, u64)) -> Result<()> {
    let general = matches!(address, 0xc1..=0xc8 | 0xc001_0004..=0xc001_0007)
        || matches!(address, 0xc001_0201..=0xc001_020b) && address % 2 == 1;
    let begins = general && value == 0;
    bus.write(cpu, address, if begins { beginning } else { value })
}

fn skip(name: &str, why: impl std::fmt::Display) {
    // Not captured, unlike eprintln.
    let _ = writeln!(std::io::stderr(), "SKIP {name}: {why}");
}

/// As much of the model as the driver looks at.
fn model(bus: &impl MsrBus) -> CpuModel {
    const AMD: u32 = u32::from_le_bytes(*b"Auth");
    match bus.cpuid(0, 0) {
        Ok([_, AMD, ..]) => Generation::Amd15h.model(),
        _ => Generation::ALL[5].model(),
    }
}

/// Two instructions for each round, and some before and after.
fn instructions(rounds: u64) {
    // SAFETY: it counts a register down to 0 and touches nothing else.
    unsafe {
        asm!("2:", "sub {rounds}, 1", "jne 2b", rounds = inout(reg) rounds => _, options(nomem, nostack));
    }
}

/// Keeps the calling thread on a CPU.
fn stay_on(cpu: u32) -> std::io::Result<()> {
    // SAFETY: a `cpu_set_t` is an array of integers, for which zero is a value; the call reads it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Instructions in user mode while so many rounds are made; the least of several tries, since others
/// may run on the CPU.
fn counted(group: &mut impl Group, rounds: u64) -> u64 {
    let mut out = group.read_buf();
    let counts = (0..5).map(|_| {
        group.reset().unwrap();
        group.enable().unwrap();
        instructions(rounds);
        group.disable().unwrap();
        group.read(&mut out).unwrap();
        assert_eq!(out[0][0].count().exact(), Some(out[0][0].value.into()));
        out[0][0].value
    });
    counts.min().unwrap_or_default()
}

#[test]
fn foreign_registers_and_cpus_are_refused() {
    let bus = match LinuxMsr::open() {
        Ok(bus) => bus,
        Err(why) => return skip("foreign registers", why),
    };
    let cpu = bus.cpus()[0];
    let elsewhere = bus.read(60_000, TIME_STAMP).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::NoSuchTarget);
    if bus.read(cpu, TIME_STAMP).unwrap() == 0 {
        return skip("foreign registers", "every register reads 0 here");
    }
    let foreign = bus.read(cpu, 0xdead_beef).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::UnsupportedFeature, "{foreign:#}");
    assert_eq!(foreign.errno(), Some(libc::EIO));
}

#[test]
fn a_counter_that_wraps_loses_nothing_and_is_put_back() {
    const NAME: &str = "a counter that wraps";
    for begins_below_the_top in [false, true] {
        let bus = match LinuxMsr::open() {
            Ok(bus) => bus,
            Err(why) => return skip(NAME, why),
        };
        let (cpu, model) = (bus.cpus()[0], model(&bus));
        let width = MsrPmu::new(LinuxMsr::open().unwrap(), &model, Options::default())
            .map(|pmu| quipu_pmu::Pmu::slots(&pmu)[0].mask());
        let top = match width {
            Ok(top) => top,
            Err(why) => return skip(NAME, why),
        };
        let beginning = if begins_below_the_top {
            top - BELOW_THE_TOP
        } else {
            0
        };
        stay_on(cpu).unwrap();
        let map = EventNames::new(model.clone()).any("INSTRUCTIONS", 0xc0);
        let bus = Rewritten {
            bus,
            write: move |bus: &_, cpu, address, value| write(bus, beginning, (cpu, address, value)),
        };
        let pmu = MsrPmu::new(bus, &model, Options::default()).unwrap();
        let backend = VirtualPmu::new(pmu, MonotonicClock::new(), Arc::new(map)).unwrap();
        let event = EventSpec::new(Event::Named("INSTRUCTIONS".into()));
        let spec = GroupSpec::new([event.with_filter(Filter::USER_ONLY)]);
        let mut group = backend.open_group(&spec, &Target::Cpu(cpu)).unwrap();
        let (few, many) = (counted(&mut group, 10_000), counted(&mut group, 110_000));
        let difference = many - few;
        // Starting and stopping take some 16,000 instructions of this program, give or take some hundred.
        assert!(
            (199_000..=201_000).contains(&difference),
            "100000 rounds of 2 instructions: {few}, {many}"
        );
    }
}
