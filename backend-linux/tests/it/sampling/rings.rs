//! Rings that are read late, overwritten, shared and paused.

use quipu_hal::Target;
use quipu_linux::sampling::{
    CounterValue, Rate, Record, SampleType, Sampler, SamplerSpec, Wakeup, WhenFull,
};

use super::breakpoints::executions_of;
use super::calls::{self, call};
use super::{each_record, open, samples};
use crate::machine::{self, page_size, skip};

/// Samples of nothing but 16 bytes: the instruction pointer and the position in time.
fn small(mut spec: SamplerSpec) -> SamplerSpec {
    spec.sample_type = SampleType::IP | SampleType::READ;
    spec.ring_bytes = page_size();
    spec
}

/// The counts at which samples were taken.
fn counts(sampler: &mut Sampler) -> Vec<u64> {
    samples(sampler, |sample| {
        let values = sample.values().expect("asked for");
        let CounterValue { value, .. } = values.get(0).expect("one counter");
        value
    })
}

/// Returns the number of samples of [`small`] that a page holds.
fn samples_in_a_page(sampler: &mut Sampler) -> u64 {
    let mut size = 0;
    call(1);
    for record in &mut sampler.rings_mut()[0].records() {
        size = record.expect("a record").bytes().len();
    }
    (page_size() / size) as u64
}

/// The losses are those that the ring and the counter itself tell.
#[test]
fn a_slow_reader_loses_exactly_what_is_said() {
    let name = "a_slow_reader_loses_exactly_what_is_said";
    let _alone = machine::debug_registers();
    let spec = small(executions_of(calls::leaf()));
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    assert_eq!(sampler.rings()[0].capacity(), page_size());
    let room = samples_in_a_page(&mut sampler);
    let mut seen = 1;
    for round in 1..=20 {
        call(1000);
        let mut got = 0;
        each_record(&mut sampler, |record, _| match record {
            Record::Sample(_) => got += 1,
            Record::Lost(_) => {}
            other => panic!("{other:?}"),
        });
        // The record that says what was lost takes some room as well.
        assert!((room - 2..=room).contains(&got), "{got} of {room}");
        seen += got;
        // What was lost is said as soon as there is room: in the next round.
        let called = 1 + 1000 * round;
        let (reading, lost) = sampler.counters()[0].read().expect("read");
        assert_eq!(reading.value, called);
        if let Some(lost) = lost {
            assert_eq!(seen + lost, called);
        }
    }
    call(1);
    let last = counts(&mut sampler).len() as u64;
    assert_eq!(last, 1);
    each_record(&mut sampler, |record, _| panic!("{record:?}"));
    assert_eq!(seen + sampler.rings()[0].losses().records, 20_001);
}

/// Records of a length that does not divide the ring, read a few at a time, so that one after the
/// other lies across its end.
#[test]
fn records_across_the_end_are_whole() {
    let name = "records_across_the_end_are_whole";
    let _alone = machine::debug_registers();
    let mut spec = small(executions_of(calls::leaf()));
    spec.sample_type |= SampleType::TIME | SampleType::CALLCHAIN;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let mut expected = 0;
    for round in 0..2000 {
        let few = 1 + round % 7;
        call(few);
        let values = counts(&mut sampler);
        let all: Vec<u64> = (1..=few as u64).map(|i| expected + i).collect();
        assert_eq!(values, all);
        expected += few as u64;
    }
    assert_eq!(sampler.rings()[0].losses(), Default::default());
}

/// Records that have not been looked at are still there.
#[test]
fn a_batch_that_is_left_early_goes_on_later() {
    let name = "a_batch_that_is_left_early_goes_on_later";
    let _alone = machine::debug_registers();
    let spec = small(executions_of(calls::leaf()));
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(10);
    let layout = *sampler.layout();
    let mut values = Vec::new();
    for _ in 0..10 {
        let mut batch = sampler.rings_mut()[0].records();
        let first = batch.iter().next().expect("one more").expect("a record");
        if let Record::Sample(sample) = first.decode(&layout).expect("a sample") {
            values.extend(sample.values().and_then(|v| v.get(0)).map(|c| c.value));
        }
    }
    assert_eq!(values, (1..=10).collect::<Vec<_>>());
    assert_eq!(sampler.rings_mut()[0].records().remaining(), 0);
}

#[test]
fn a_ring_that_overwrites_keeps_the_last_ones() {
    let name = "a_ring_that_overwrites_keeps_the_last_ones";
    let _alone = machine::debug_registers();
    let mut spec = small(executions_of(calls::leaf()));
    spec.when_full = WhenFull::Overwrite;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(5);
    assert_eq!(counts(&mut sampler), [5, 4, 3, 2, 1]);
    // They are still there.
    assert_eq!(counts(&mut sampler), [5, 4, 3, 2, 1]);
    let room = samples_in_a_page(&mut sampler);
    call(994);
    sampler.rings()[0].pause(true).expect("pause");
    call(10);
    let newest: Vec<u64> = (0..room).map(|i| 1000 - i).collect();
    assert_eq!(counts(&mut sampler), newest);
    sampler.rings()[0].pause(false).expect("resume");
    call(1);
    assert_eq!(counts(&mut sampler)[..2], [1011, 1000]);
}

#[test]
fn what_comes_while_a_ring_is_paused_is_lost_and_said_to_be() {
    let name = "what_comes_while_a_ring_is_paused_is_lost_and_said_to_be";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.sample_type |= SampleType::READ;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(3);
    sampler.rings()[0].pause(true).expect("pause");
    call(4);
    sampler.rings()[0].pause(false).expect("resume");
    call(5);
    let mut order = Vec::new();
    each_record(&mut sampler, |record, _| match record {
        Record::Sample(sample) => order.push(sample.values().unwrap().get(0).unwrap().value),
        Record::Lost(lost) => order.push(lost.records * 100),
        other => panic!("{other:?}"),
    });
    assert_eq!(order, [1, 2, 3, 400, 8, 9, 10, 11, 12]);
    assert_eq!(sampler.rings()[0].losses().records, 4);
}

/// Counters that were opened apart, one without a ring of its own.
#[test]
fn two_counters_merge_into_one_ring() {
    let name = "two_counters_merge_into_one_ring";
    if calls::leaf() == calls::leaf_body() {
        return skip(name, "the frames are not known on this architecture");
    }
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    let at_body = executions_of(calls::leaf_body());
    spec.events.extend(at_body.events);
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(1);
    // Its ring is the other one's, from where it can be taken, and given back.
    let second = sampler.counters()[1].clone();
    let first = sampler.counters()[0].clone();
    second.set_output(None).expect("nowhere");
    call(1);
    second.set_output(Some(&first)).expect("back");
    call(1);
    let ips = samples(&mut sampler, |sample| sample.ip().expect("asked for"));
    let (leaf, body) = (calls::leaf(), calls::leaf_body());
    assert_eq!(ips, [leaf, body, leaf, leaf, body]);
    // The owner of a ring cannot be sent elsewhere.
    let refused = first.set_output(Some(&second)).expect_err("it has a ring");
    assert_eq!(refused.kind(), quipu_hal::ErrorKind::InvalidConfiguration);
}

#[test]
fn a_frequency_is_reached_by_changing_the_period() {
    let name = "a_frequency_is_reached_by_changing_the_period";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    // The kernel lowers the highest frequency by itself on a loaded machine.
    let highest = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let highest = highest.ok().and_then(|text| text.trim().parse().ok());
    spec.events[0].rate = Rate::Frequency(highest.map_or(100, |highest: u64| highest.min(100)));
    spec.wakeup = Wakeup::Samples(1);
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(20_000);
    let periods = samples(&mut sampler, |sample| sample.period().expect("asked for"));
    let counted = sampler.counters()[0].read().expect("read").0.value;
    assert_eq!(counted, 20_000);
    // The first ones come one by one, until the kernel has seen how fast they come.
    assert!(periods.len() < 20_000, "{}", periods.len());
    assert!(periods.iter().any(|period| *period > 1), "{periods:?}");
}
