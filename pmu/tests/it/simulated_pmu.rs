//! The simulated PMU by itself: what its registers show, and what it refuses.

use std::time::Duration;

use quipu_hal::{Encoding, ErrorKind, Event, EventMap, Filter, Hardware, PerfConfig, RawEvent};
use quipu_pmu::{ManualClock, MonotonicClock, Pmu, SimModel, SimPmu, SimRegister, SimSelect, Slot};

fn micros(clock: &ManualClock, n: u64) {
    clock.advance(Duration::from_micros(n));
}

fn program(pmu: &SimPmu, slots: &[(usize, u64)]) {
    pmu.acquire(0).unwrap();
    for &(slot, select) in slots {
        pmu.program(0, slot, &Encoding::Simulated(select)).unwrap();
    }
}

#[test]
fn a_counter_counts_between_start_and_stop_and_keeps_its_value() {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock.clone());
    program(&pmu, &[(0, 1), (3, 3)]);
    let mut raw = [7; 2];
    micros(&clock, 5);
    pmu.start(0, &[0, 3], &mut raw).unwrap();
    assert_eq!(raw, [0, 0]);
    micros(&clock, 10);
    pmu.read(0, &[3, 0], &mut raw).unwrap();
    assert_eq!(raw, [10_300, 30_000]);
    pmu.stop(0, &[0], &mut raw).unwrap();
    micros(&clock, 10);
    pmu.read(0, &[0, 3], &mut raw).unwrap();
    assert_eq!(raw, [30_000, 20_600]);
    pmu.start(0, &[0], &mut raw).unwrap();
    assert_eq!(raw[0], 30_000);
    pmu.stop(0, &[0], &mut raw).unwrap();
    pmu.clear(0, 0).unwrap();
    assert_eq!(pmu.register(0, 0).unwrap().raw, 0);
}

#[test]
fn registers_are_as_narrow_as_the_model_says() {
    let clock = ManualClock::new();
    let model = SimModel {
        slots: vec![Slot::general(0, 8)],
        ..SimModel::default()
    };
    let pmu = SimPmu::with_model(model, clock.clone());
    program(&pmu, &[(0, 1)]);
    let mut raw = [0];
    pmu.start(0, &[0], &mut raw).unwrap();
    micros(&clock, 1);
    pmu.read(0, &[0], &mut raw).unwrap();
    assert_eq!(raw[0], 3000 & 0xff);
}

#[test]
fn the_truth_is_told_by_cpu_filter_and_time() {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock.clone());
    micros(&clock, 3);
    assert_eq!((pmu.truth(1, 0), pmu.truth(1, 1)), (9_000, 3 * 1504));
    assert_eq!(pmu.truth_at(1, 0, Filter::USER, 1_000), 2_000);
    assert_eq!(pmu.truth_at(1, 0, Filter::KERNEL, 1_000), 1_000);
    assert_eq!(pmu.truth(12, 0), 45);
    assert_eq!(pmu.truth(99, 0), 0);
}

#[test]
fn it_runs_by_itself_on_a_real_clock() {
    let pmu = SimPmu::with_model(SimModel::default(), MonotonicClock::new());
    let begin = pmu.truth(1, 0);
    while pmu.truth(1, 0) == begin {
        std::thread::yield_now();
    }
}

#[test]
fn what_somebody_else_writes_is_noticed() {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock);
    program(&pmu, &[(1, 2)]);
    let mut raw = [0];
    pmu.start(0, &[1], &mut raw).unwrap();
    for theirs in [
        SimRegister {
            select: 2,
            counting: false,
            raw: 0,
        },
        SimRegister {
            select: 3,
            counting: true,
            raw: 0,
        },
    ] {
        pmu.overwrite(0, 1, theirs);
        let e = pmu.read(0, &[1], &mut raw).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Interference);
        assert_eq!(pmu.register(0, 1), Some(theirs));
        let e = pmu.stop(0, &[1], &mut raw).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Interference);
        program_again(&pmu);
    }
}

fn program_again(pmu: &SimPmu) {
    pmu.program(0, 1, &Encoding::Simulated(2)).unwrap();
    pmu.start(0, &[1], &mut [0]).unwrap();
}

#[test]
fn what_does_not_exist_is_refused() {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock);
    let mut raw = [0];
    let kinds = [
        pmu.acquire(7).unwrap_err().kind(),
        pmu.read(0, &[4], &mut raw).unwrap_err().kind(),
        pmu.clear(0, 4).unwrap_err().kind(),
        pmu.program(0, 0, &Encoding::Perf(PerfConfig::default()))
            .unwrap_err()
            .kind(),
    ];
    assert_eq!(
        kinds,
        [
            ErrorKind::NoSuchTarget,
            ErrorKind::InvalidConfiguration,
            ErrorKind::InvalidConfiguration,
            ErrorKind::UnsupportedEvent
        ]
    );
    assert!(pmu.prepare(&Encoding::Simulated(99)).unwrap().is_empty());
    assert_eq!(pmu.register(0, 4), None);
    pmu.overwrite(7, 0, SimRegister::default());
    pmu.overwrite(0, 4, SimRegister::default());
}

#[test]
fn the_map_finds_events_by_name_number_and_kind() {
    let map = SimPmu::new(ManualClock::new()).event_map();
    let resolve = |event: Event, filter| map.resolve(&event, filter);
    let everywhere = Filter::all();
    let by_name = resolve(Event::Named("CYCLES".into()), everywhere).unwrap();
    assert_eq!(by_name.encoding, Encoding::Simulated(1));
    assert_eq!(
        resolve(RawEvent::new(1).into(), everywhere),
        Ok(by_name.clone())
    );
    assert_eq!(resolve(Hardware::Cycles.into(), everywhere), Ok(by_name));
    let user = resolve(
        Hardware::Cycles.into(),
        Filter::USER_ONLY | Filter::HYPERVISOR,
    )
    .unwrap();
    let select = SimSelect::new(1).filtered(Filter::USER);
    assert_eq!(user.encoding, Encoding::Simulated(select.bits()));
    let guest = resolve(Hardware::Cycles.into(), everywhere - Filter::GUEST).unwrap_err();
    assert_eq!(guest.kind(), ErrorKind::UnsupportedFeature);
    let absent = resolve(Hardware::BusCycles.into(), everywhere).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::UnsupportedEvent);
    let banks = &map.cpu().counters;
    assert_eq!((banks.len(), banks[0].number, banks[0].width), (1, 4, 48));
}
