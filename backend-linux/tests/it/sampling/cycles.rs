//! Sampling of a counter of the CPU: where a sample has to be is known, whatever the code.

use std::hint::black_box;

use quipu_hal::{Hardware, Target};
use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec};

use super::{each_record, open};
use crate::machine::{skip, user};

const PERIOD: u64 = 1_000_000;

/// Each period ends in one sample, taken before the next one ends.
#[test]
fn every_period_of_cycles_is_one_sample() {
    let name = "every_period_of_cycles_is_one_sample";
    let mut spec = SamplerSpec::new([(user(Hardware::Cycles), Rate::Period(PERIOD))]);
    spec.sample_type |= SampleType::READ;
    // Nothing is read before all of it is there.
    spec.ring_bytes = 1 << 20;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    for i in 0..30_000_000 {
        black_box(i);
    }
    let counter = sampler.counters()[0].clone();
    counter.disable().expect("stopped");
    let (counted, _) = counter.read().expect("read");
    if counted.count().exact().is_none() {
        return skip(name, format!("others use the PMU too: {counted:?}"));
    }
    let mut at = Vec::new();
    let mut throttled = false;
    each_record(&mut sampler, |record, _| match record {
        Record::Sample(sample) => {
            let values = sample.values().expect("asked for");
            at.push(values.get(0).expect("one counter").value);
        }
        Record::Throttle(_) | Record::Unthrottle(_) => throttled = true,
        other => panic!("{other:?}"),
    });
    if throttled {
        return skip(name, "the kernel takes fewer samples than that");
    }
    if counted.value == 0 && at.is_empty() {
        return skip(
            name,
            "the counter does not count, as under some hypervisors",
        );
    }
    assert!(counted.value > 10 * PERIOD, "{counted:?}");
    let periods: Vec<_> = at.iter().map(|value| value / PERIOD).collect();
    let all: Vec<_> = (1..=counted.value / PERIOD).collect();
    assert_eq!(periods, all, "{at:?}");
}
