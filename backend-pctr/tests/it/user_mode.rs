//! Reading by `rdpmc`: only where the kernel allows it, and again when the thread was interrupted.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Events, two_events, with_counters};
use quipu_hal::{Encoding, ErrorKind, Event, Group, GroupSpec, Target, X86Select};
use quipu_pctr::simulation::{Era, Level, Processor, SimDevice, SimMachine};
use quipu_pctr::{PctrEvents, PctrPmu};
use quipu_pmu::{Pmu, VirtualGroup, VirtualPmu};

type SimGroup = VirtualGroup<PctrPmu<SimDevice>>;

/// A driver that reads in user mode where it may.
fn pmu(machine: &SimMachine) -> PctrPmu<SimDevice> {
    let model = machine.cpu_model().unwrap();
    PctrPmu::new(machine.open(), Some(&model))
        .unwrap()
        .reading_in_user_mode()
}

fn open(machine: &SimMachine, names: &[&str]) -> SimGroup {
    let pmu = pmu(machine);
    let map = Arc::new(PctrEvents::new(&pmu, Events::of(machine)));
    let backend = VirtualPmu::new(pmu, machine.clock(), map).unwrap();
    let events = names.iter().map(|name| Event::Named((*name).to_owned()));
    backend
        .open_group(&GroupSpec::new(events), &Target::CurrentCpu)
        .unwrap()
}

fn values(group: &mut SimGroup) -> Vec<u64> {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0].iter().map(|reading| reading.value).collect()
}

#[test]
fn counters_are_read_in_user_mode_only_where_that_is_known_to_be_allowed() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        machine.pass(Duration::from_nanos(1));
        let [(name, code), _] = two_events(processor);
        let mut group = open(&machine, &[name, "tsc"]);
        machine.occur(code, 0, Level::User, 10);
        machine.pass(Duration::from_nanos(5));
        let (calls, user_reads) = (machine.calls(), machine.user_reads());
        assert_eq!(values(&mut group), [10, 10]);
        let allowed = era == Era::Amd64Of2019;
        assert_eq!(
            machine.calls() == calls,
            allowed,
            "{era:?} {processor:?}: the system call"
        );
        assert_eq!(
            machine.user_reads() > user_reads,
            allowed,
            "{era:?} {processor:?}: rdpmc"
        );
        assert!(!machine.was_killed());
    }
}

/// Before the first word that is not 0, `rdpmc` kills the process; after the counters were stopped it
/// is of no use.
#[test]
fn a_counter_that_is_set_to_nothing_is_read_by_the_driver() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let pmu = pmu(&machine);
    let mut raw = [0; 2];
    pmu.acquire(0).unwrap();
    let word = Encoding::X86(X86Select::new(0xc0, 0).with_flags(X86Select::USER));
    pmu.program(0, 0, &word).unwrap();
    let by_driver = |raw: &mut [u64; 2]| {
        let calls = machine.calls();
        pmu.read(0, &[0, 1], raw).unwrap();
        machine.calls() - calls
    };
    assert_eq!((by_driver(&mut raw), machine.user_reads()), (1, 0));
    pmu.start(0, &[0], &mut raw[..1]).unwrap();
    assert_eq!(machine.user_reads(), 1, "where it started from");
    assert_eq!((by_driver(&mut raw), machine.user_reads()), (1, 1));
    let calls = machine.calls();
    pmu.read(0, &[0], &mut raw[..1]).unwrap();
    assert_eq!((machine.calls(), machine.user_reads()), (calls, 2));
    pmu.stop(0, &[0], &mut raw[..1]).unwrap();
    assert_eq!((by_driver(&mut raw), machine.user_reads()), (1, 2));
    assert!(!machine.was_killed());
    pmu.release(0).unwrap();
}

/// One event on both counters: a read that was interrupted between them would return two values.
#[test]
fn a_read_that_was_interrupted_is_made_again() {
    const LONG: u64 = 20_000;
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let mut group = open(&machine, &["INST_RETIRED", "INST_RETIRED"]);
    machine.occur(0xc0, 0, Level::User, 10);
    let reads = machine.user_reads();
    let calls = machine.calls();
    machine.interrupt_reads(1, LONG);
    assert_eq!(values(&mut group), [10 + LONG, 10 + LONG]);
    assert_eq!(machine.user_reads() - reads, 4, "two, and two again");
    assert_eq!(machine.calls(), calls);
}

#[test]
fn a_thread_that_is_always_interrupted_asks_the_driver() {
    const LONG: u64 = 20_000;
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let mut group = open(&machine, &["INST_RETIRED", "INST_RETIRED"]);
    machine.interrupt_reads(usize::from(u8::MAX), LONG);
    let calls = machine.calls();
    let told = values(&mut group);
    assert_eq!(told[0], told[1]);
    assert_eq!(machine.calls() - calls, 1);
}

/// An interruption shorter than the bracket allows for is taken for none: then the values may be some
/// thousand cycles apart, as those of two system calls are.
#[test]
fn a_short_delay_is_no_interruption() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let mut group = open(&machine, &["INST_RETIRED", "INST_RETIRED"]);
    let reads = machine.user_reads();
    machine.interrupt_reads(1, 9_000);
    assert_eq!(values(&mut group), [0, 9_000]);
    assert_eq!(machine.user_reads() - reads, 2);
}

/// The driver is asked now and then for changes that reading in user mode cannot see.
#[test]
fn another_function_is_noticed_in_time() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Zen, 1);
    let mut group = open(&machine, &["RETIRED_INSTRUCTIONS"]);
    machine.pass(Duration::from_micros(99));
    machine.occur(0xc0, 0, Level::User, 10);
    let calls = machine.calls();
    assert_eq!((values(&mut group), machine.calls()), (vec![10], calls));
    machine.overwrite(0, 0, 0x0041_0076);
    machine.occur(0x76, 0, Level::User, 1_000);
    machine.pass(Duration::from_micros(1));
    let mut buf = group.read_buf();
    let told = group.read(&mut buf).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Interference);
    assert_eq!(values(&mut group), [10]);
    assert_eq!(machine.functions(0)[0], 0x0041_0076);
}
