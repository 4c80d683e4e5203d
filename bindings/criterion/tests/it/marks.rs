//! Counts that are no facts, from a scripted backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::Throughput;
use criterion::measurement::Measurement as _;
use quipu::{Backend, Error, ErrorKind, EventSet, Hardware, ReadBuf, Reading, Result};
use quipu_criterion::{Counter, Counting};
use quipu_scripted::{Scripted, ScriptedGroup};

/// Opens a counter whose n-th reading a function gives.
fn scripted(reading: impl Fn(u64) -> Result<Reading> + Send + Sync + 'static) -> Counter {
    let reading = Arc::new(reading);
    let backend = Scripted::new("scripted", move |spec, _| {
        let reading = Arc::clone(&reading);
        let turn = AtomicU64::new(0);
        let read = move |out: &mut ReadBuf| {
            out[0].fill(reading(turn.fetch_add(1, Ordering::Relaxed))?);
            Ok(())
        };
        Ok(ScriptedGroup::of(spec).reading(read))
    });
    let mut set = EventSet::builder();
    set.events(Hardware::Instructions)
        .expect("an event")
        .backends([Arc::new(backend) as Arc<dyn Backend>]);
    Counting::of_set(set).counter().expect("it opens")
}

fn measured(counter: &Counter) -> f64 {
    counter.to_f64(&counter.end(counter.start()))
}

#[test]
fn values_have_prefixes_and_units() {
    let counter = scripted(|turn| Ok(Reading::new(turn * 1_234_500, turn * 10, turn * 10)));
    assert_eq!(measured(&counter), 1_234_500.0);
    let formatter = counter.formatter();
    assert_eq!(formatter.format_value(512.0), "512.00 instructions");
    assert_eq!(formatter.format_value(1_234_500.0), "1.2345 M instructions");
    assert_eq!(formatter.format_value(0.25), "0.2500 instructions");
    assert_eq!(formatter.format_value(0.0), "0.0000 instructions");
    assert_eq!(
        formatter.format_throughput(&Throughput::Bytes(1000), 512_000.0),
        "512.00 instructions/byte"
    );
    assert_eq!(
        formatter.format_throughput(&Throughput::Elements(2), 9e9),
        "4.5000 G instructions/element"
    );
    let mut values = [5.0, 7.0];
    assert_eq!(
        (formatter.scale_for_machines(&mut values), values),
        ("instructions", [5.0, 7.0])
    );
}

#[test]
fn an_estimate_is_marked() {
    // It ran half of the time from the fourth reading on; two are made when it is opened.
    let counter = scripted(|turn| {
        Ok(Reading::new(
            turn * 100,
            turn * 10,
            turn.min(3) * 10 + turn.saturating_sub(3) * 5,
        ))
    });
    assert_eq!(measured(&counter), 100.0);
    assert_eq!(
        counter.formatter().format_value(100.0),
        "100.00 instructions"
    );
    assert_eq!(measured(&counter), 200.0);
    assert_eq!(
        counter.formatter().format_value(200.0),
        "~200.00 instructions"
    );
}

#[test]
fn what_was_not_counted_has_no_value() {
    // Criterion leaves out a benchmark with a sample of 0.
    let never_running = scripted(|turn| Ok(Reading::new(0, turn * 10, 0)));
    assert_eq!(measured(&never_running), 0.0);
    let failing = scripted(|turn| match turn {
        4 => Err(Error::new(ErrorKind::CounterInErrorState, "read it")),
        turn => Ok(Reading::new(turn * 100, turn, turn)),
    });
    assert_eq!(measured(&failing), 100.0);
    let failed = failing.end(failing.start());
    assert_eq!(failing.to_f64(&failed), 0.0);
    // Nor has the sum of batches of which one was not counted.
    let next = failing.end(failing.start());
    assert_eq!(failing.to_f64(&next), 100.0);
    assert_eq!(failing.to_f64(&failing.add(&next, &failed)), 0.0);
}

/// An allocation of a measurement would be in its counts.
#[test]
fn measuring_allocates_nothing() {
    let counter = scripted(|turn| Ok(Reading::new(turn * 100, turn, turn)));
    let allocated = allocation_counter::measure(|| {
        for _ in 0..10 {
            assert_eq!(measured(&counter), 100.0);
        }
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn wall_time_is_criterions() {
    let counter = Counter::wall_time();
    assert_eq!(counter.event(), None);
    assert!(measured(&counter) > 0.0);
    assert_eq!(counter.formatter().format_value(1500.0), "1.5000 µs");
}
