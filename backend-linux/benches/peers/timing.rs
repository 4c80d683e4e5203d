//! Timing in turns, and the tables.

use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::contenders::{ATTACHERS, Contenders, OPENERS, Reader, opener};
use crate::counting_allocator;

/// The rounds; each opens everything again.
const ROUNDS: usize = 25;
/// The batches that each contender reads in a round.
const BATCHES: usize = 30;
/// The reads in a batch: some 0.2 ms.
const READS: u32 = 300;
/// The processes that open and close, for each contender.
const PROCESSES: usize = 5;
/// The openings in each of those processes.
const OPENS: usize = 200;
/// The threads that counters are opened on, and how often.
const THREADS: usize = 200;
const ATTACHMENTS: usize = 100;

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The nanoseconds that something takes.
fn nanoseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// Times reads by all contenders in turns. `targets` says what Quipu may take at most of another's
/// time; the result is whether it does, and allocates nothing.
pub(crate) fn reads(title: &str, contenders: &Contenders, targets: &[(&str, f64)]) -> bool {
    const COUNT: usize = 5;
    let names = contenders.map(|(name, _)| name);
    let mut times = [const { Vec::new() }; COUNT];
    let mut allocated = [0; COUNT];
    for round in 0..ROUNDS {
        // In another order each time: the first ones opened lie elsewhere in the kernel.
        let mut order: Vec<usize> = (0..COUNT).collect();
        order.rotate_left(round % COUNT);
        let mut open: Vec<(usize, Reader)> =
            order.into_iter().map(|i| (i, contenders[i].1())).collect();
        for (i, read) in &mut open {
            read(READS);
            let before = counting_allocator::count();
            read(READS);
            allocated[*i] = counting_allocator::count() - before;
        }
        for batch in 0..BATCHES {
            for turn in 0..COUNT {
                let (i, read) = &mut open[(batch + turn) % COUNT];
                let time = nanoseconds(|| read(READS));
                times[*i].push(time / f64::from(READS));
            }
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let position = |wanted| {
        names
            .iter()
            .position(|name| *name == wanted)
            .expect("it is there")
    };
    let (raw, quipu) = (position("raw"), position("quipu"));
    println!("\n{title}: ns, allocations, share that raw and quipu take of it");
    let mut met = allocated[quipu] == 0;
    for (i, name) in names.iter().enumerate() {
        let share = medians[quipu] / medians[i];
        let target = targets.iter().find(|(other, _)| other == name);
        let each = allocated[i] as f64 / f64::from(READS);
        let figures = format!(
            "{:8.1} {each:6.1} {:8.3}",
            medians[i],
            medians[raw] / medians[i]
        );
        met &= row(name, &figures, share, target.map(|t| t.1));
    }
    met
}

/// One line of a table; whether the target is met.
fn row(name: &str, figures: &str, share: f64, target: Option<f64>) -> bool {
    let met = target.is_none_or(|target| share <= target);
    let verdict = match target {
        None => String::new(),
        Some(target) if met => format!("  (at most {target:.3}: met)"),
        Some(target) => format!("  (at most {target:.3}: MISSED)"),
    };
    println!("  {name:20} {figures} {share:8.3}{verdict}");
    met
}

/// Times opening and closing, each contender in processes of its own; whether the targets are met.
pub(crate) fn opens() -> bool {
    let this = std::env::current_exe().expect("this program has a path");
    let mut times = vec![Vec::new(); OPENERS.len()];
    for _ in 0..PROCESSES {
        for (i, name) in OPENERS.iter().enumerate() {
            let output = Command::new(&this)
                .args(["--open", name])
                .output()
                .expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout);
            times[i].push(text.trim().parse::<f64>().expect("a number"));
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let [raw, quipu, anchored, peers @ ..] = medians.as_slice() else {
        panic!("three contenders at least");
    };
    println!("\nopen and close of a group of five: us, share of raw");
    let mut met = true;
    for (name, time) in OPENERS.iter().zip(&medians) {
        let target = (time == quipu).then_some(1.05);
        met &= row(name, &format!("{:8.1}", time / 1000.0), time / raw, target);
    }
    for (name, time) in OPENERS[3..].iter().zip(peers) {
        let name = format!("anchors / {name}");
        met &= row(&name, &format!("{:8}", ""), anchored / time, Some(0.2));
    }
    met
}

/// Times opening and closing a counter on each of many threads; whether the target is met.
pub(crate) fn attachments() -> bool {
    for _ in 0..THREADS {
        // Until the end of this process.
        thread::spawn(|| {
            loop {
                thread::park();
            }
        });
    }
    let mut times = ATTACHERS.map(|_| Vec::new());
    for _ in 0..ATTACHMENTS {
        for ((_, attach), times) in ATTACHERS.iter().zip(&mut times) {
            times.push(nanoseconds(attach));
        }
    }
    let [raw, quipu] = times.map(|mut times| median(&mut times));
    println!("\nopen and close on {THREADS} threads: us, share of raw");
    let figures = |time: f64| format!("{:8.1}", time / 1000.0);
    row("raw", &figures(raw), 1.0, None);
    row("quipu", &figures(quipu), quipu / raw, Some(1.5))
}

/// Prints the median nanoseconds of opening and closing, in a process of its own.
pub(crate) fn print_open(contender: &str) {
    let mut open_and_close = opener(contender);
    let mut times: Vec<f64> = (0..OPENS)
        .map(|_| nanoseconds(&mut open_and_close))
        .collect();
    println!("{}", median(&mut times));
}
