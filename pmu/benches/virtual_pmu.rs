//! Measures the overhead of the virtual PMU over bare registers, and the cost of a rotation.
//!
//! Both sides of a comparison are measured in turns within one run, and the medians compared, so
//! that a noisy machine disturbs both alike.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_hal::{Encoding, Group, GroupSpec, Hardware, Target};
use quipu_pmu::{Clock, ManualClock, MonotonicClock, Pmu, SimModel, SimPmu, VirtualPmu};

const ROUNDS: usize = 201;
const CALLS: u32 = 2_000;
const EVENTS: [Hardware; 4] = [
    Hardware::Cycles,
    Hardware::Instructions,
    Hardware::Branches,
    Hardware::BranchMisses,
];

fn main() {
    println!(
        "| read a group of 4 | bare slots + clock | virtual PMU | ratio | allocations a read |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let manual = ManualClock::new();
    manual.advance(Duration::from_millis(3));
    read("manual clock", &manual);
    read(
        "monotonic clock, background rotator",
        &MonotonicClock::new(),
    );
    println!();
    println!("| groups of 4 waiting for 4 slots | one rotation |");
    println!("| --- | --- |");
    for waiting in [1, 63, 1023] {
        rotate(waiting);
    }
    println!();
    println!("what does not grow, as a ratio of times:");
    let ratio = close(10_000, 100);
    println!("  close of one of 10,000 waiting groups, of one of 100: {ratio:.2} (at most 2)");
    let ratio = last_cpu(256);
    println!("  read on the last of 256 CPUs, on the only one: {ratio:.2} (at most 1.25)");
}

fn read<C: Clock + Clone>(name: &str, clock: &C) {
    let bare = SimPmu::with_model(SimModel::default(), clock.clone());
    let slots = [0, 1, 2, 3];
    let mut raw = [0; 4];
    bare.acquire(0).expect("nobody else has it");
    for slot in slots {
        let event = Encoding::Simulated(slot as u64 + 1);
        bare.program(0, slot, &event).expect("it has four slots");
    }
    bare.start(0, &slots, &mut raw).expect("it is programmed");

    let pmu = SimPmu::with_model(SimModel::default(), clock.clone());
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu, clock.clone(), map).expect("a valid model");
    let mut group = backend
        .open_group(&GroupSpec::new(EVENTS), &Target::Cpu(0))
        .expect("four events on four slots");
    let mut out = group.read_buf();

    let (direct, through) = interleaved(
        || {
            bare.read(0, black_box(&slots), &mut raw).expect("no fault");
            black_box((&raw, clock.now()));
        },
        || {
            group.read(&mut out).expect("no fault");
            black_box(&out);
        },
    );
    let allocations = allocation_counter::measure(|| {
        for _ in 0..CALLS {
            group.read(&mut out).expect("no fault");
        }
    });
    println!(
        "| {name} | {direct:.1} ns | {through:.1} ns | {:.2} | {} |",
        through / direct,
        allocations.count_total as f64 / f64::from(CALLS)
    );
}

fn rotate(waiting: usize) {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock.clone());
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu, clock, map).expect("a valid model");
    let open = |_| backend.open_group(&GroupSpec::new(EVENTS), &Target::Cpu(0));
    let _groups: Vec<_> = (0..=waiting).map(|i| open(i).expect("it waits")).collect();
    let mut tick = || backend.tick().expect("any thread");
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| time(&mut tick)).collect();
    println!("| {waiting} | {:.1} ns |", median(&mut times));
}

/// Returns the time to close the last of `many` waiting groups, as a ratio to that of `few`.
fn close(many: usize, few: usize) -> f64 {
    const CLOSED: usize = 50;
    let time = |waiting: usize| {
        let clock = ManualClock::new();
        let pmu = SimPmu::new(clock.clone());
        let map = Arc::new(pmu.event_map());
        let backend = VirtualPmu::new(pmu, clock, map).expect("a valid model");
        let open = |_| backend.open_group(&GroupSpec::new(EVENTS), &Target::Cpu(0));
        let mut groups: Vec<_> = (0..waiting).map(|i| open(i).expect("it waits")).collect();
        let begin = Instant::now();
        groups.truncate(waiting - CLOSED);
        begin.elapsed().as_secs_f64()
    };
    ratio_of_medians(|| time(many), || time(few))
}

/// Returns the time of a read of bare registers on the last of so many CPUs, as a ratio to that on the only one.
fn last_cpu(cpus: u32) -> f64 {
    let on_last_of = |cpus: u32| {
        let model = SimModel {
            cpus: (0..cpus).collect(),
            ..SimModel::default()
        };
        let pmu = SimPmu::with_model(model, ManualClock::new());
        let (cpu, slots) = (cpus - 1, [0, 1, 2, 3]);
        let mut raw = [0; 4];
        pmu.acquire(cpu).expect("nobody else has it");
        for slot in slots {
            let event = Encoding::Simulated(slot as u64 + 1);
            pmu.program(cpu, slot, &event).expect("it has four slots");
        }
        pmu.start(cpu, &slots, &mut raw).expect("it is programmed");
        move || {
            time(&mut || {
                pmu.read(cpu, black_box(&slots), &mut raw)
                    .expect("no fault");
            })
        }
    };
    ratio_of_medians(on_last_of(cpus), on_last_of(1))
}

/// Returns the ratio of the medians of two times that are taken in turns.
fn ratio_of_medians(mut a: impl FnMut() -> f64, mut b: impl FnMut() -> f64) -> f64 {
    const TURNS: usize = 21;
    let (mut of_a, mut of_b): (Vec<_>, Vec<_>) = (0..TURNS).map(|_| (a(), b())).unzip();
    median(&mut of_a) / median(&mut of_b)
}

/// The medians of both, in nanoseconds a call.
fn interleaved(mut a: impl FnMut(), mut b: impl FnMut()) -> (f64, f64) {
    let mut times = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        times.0.push(time(&mut a));
        times.1.push(time(&mut b));
    }
    (median(&mut times.0), median(&mut times.1))
}

fn time(call: &mut impl FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
