//! Everything a sampler takes is given back, and taking records out of it takes nothing.

use std::time::Duration;

use crate::machine::{FreshPages, backend, open_descriptors, skip, user};
use crate::{alone, counting_allocator};
use quipu_hal::{Software, Target};
use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec, WhenFull};

/// Counts the rings that this process has mapped.
fn mapped_rings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc is mounted");
    maps.matches("anon_inode:[perf_event]").count()
}

fn faults() -> SamplerSpec {
    let mut spec = SamplerSpec::new([
        (user(Software::PageFaults), Rate::Period(1)),
        (user(Software::Dummy), Rate::Never),
    ]);
    spec.sample_type |= SampleType::CALLCHAIN;
    spec
}

#[test]
fn what_a_sampler_takes_is_given_back() {
    let _alone = alone();
    let name = "what_a_sampler_takes_is_given_back";
    let Some(backend) = backend(name) else { return };
    let here = Target::CurrentThread;
    drop(backend.open_sampler(&faults(), &here));
    let before = (open_descriptors(), mapped_rings());
    for when_full in [WhenFull::Lose, WhenFull::Overwrite] {
        for inherit in [false, true] {
            let mut spec = faults();
            spec.when_full = when_full;
            spec.attributes.inherit = inherit;
            match backend.open_sampler(&spec, &here) {
                Ok(sampler) => {
                    assert_eq!(mapped_rings(), before.1 + sampler.rings().len());
                    let kept = sampler.into_rings();
                    assert_eq!(mapped_rings(), before.1 + kept.len());
                }
                Err(e) => skip(name, e),
            }
            assert_eq!((open_descriptors(), mapped_rings()), before);
        }
    }
    // Refused at the second event, and at the ring.
    let mut refused = faults();
    refused.events[1].rate = Rate::Frequency(1 << 40);
    let mut large = faults();
    large.ring_bytes = 1 << 50;
    for spec in [refused, large] {
        backend.open_sampler(&spec, &here).expect_err("refused");
        assert_eq!((open_descriptors(), mapped_rings()), before);
    }

    let Ok(mut sampler) = backend.open_sampler(&faults(), &here) else {
        return;
    };
    let layout = *sampler.layout();
    FreshPages::map(20).touch();
    let allocations = counting_allocator::count();
    let (mut seen, mut frames) = (0, 0);
    sampler.wait(Some(Duration::ZERO)).expect("wait");
    for ring in sampler.rings_mut() {
        for record in &mut ring.records() {
            let record = record.expect("a record");
            if let Record::Sample(sample) = record.decode(&layout).expect("of the layout") {
                seen += 1;
                frames += sample.callchain().map_or(0, |chain| chain.frames().count());
            }
        }
    }
    assert_eq!(counting_allocator::count(), allocations);
    assert!(seen >= 20 && frames >= seen, "{seen} {frames}");
}
