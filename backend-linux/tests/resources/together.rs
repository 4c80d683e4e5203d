//! Starting all counters of this thread at once, which takes that there are no others.

use quipu_hal::{Attributes, Group as _, GroupSpec, Hardware, Software, Target};
use quipu_linux::{LinuxGroup, start_if_alone};

use crate::alone;
use crate::counting_allocator::count;
use crate::machine::{backend, read, skip, user};

const NAME: &str = "counters_are_started_at_once_only_if_there_are_no_others";

#[test]
fn counters_are_started_at_once_only_if_there_are_no_others() {
    let _alone = alone();
    let Some(backend) = backend(NAME) else { return };
    let open = |events: &[Software]| {
        let spec = GroupSpec::new(events.iter().map(|event| user(*event)))
            .with_attributes(Attributes::default().with_disabled(true));
        let group = backend.open_group(&spec, &Target::CurrentThread);
        group.expect("software events open")
    };
    let enabled = |group: &mut LinuxGroup| {
        let readings = read(group)[0].to_vec();
        readings.iter().map(|reading| reading.time_enabled).min()
    };
    let mut pair = open(&[Software::TaskClock, Software::PageFaults]);
    let mut single = open(&[Software::TaskClock]);
    let mut other = open(&[Software::Dummy]);
    assert_eq!(start_if_alone(3), Ok(false));
    for group in [&mut pair, &mut single, &mut other] {
        assert_eq!(enabled(group), Some(0), "nothing was started");
    }
    drop(other);
    assert_eq!(start_if_alone(2), Ok(false));
    assert_eq!(start_if_alone(3), Ok(true));
    for group in [&mut pair, &mut single] {
        let (first, second) = (enabled(group), enabled(group));
        assert!(Some(0) < first && first < second, "all members go on");
    }
    for group in [&mut pair, &mut single] {
        group.disable().expect("stopped by itself");
        assert_eq!(enabled(group), enabled(group));
    }
    // Looking at them allocates nothing, however many descriptors there are.
    let files: Vec<_> = (0..300)
        .map(|_| std::fs::File::open("/dev/null").expect("there"))
        .collect();
    let before = count();
    assert_eq!(start_if_alone(3), Ok(true));
    assert_eq!(count(), before);
    drop(files);
}

/// Groups of one event each: started one by one, the first counts the calls for the others, and stopped so the
/// last does.
#[test]
fn what_is_started_at_once_counts_no_call_that_starts_the_others() {
    const NAME: &str = "what_is_started_at_once_counts_no_call_that_starts_the_others";
    let _alone = alone();
    let Some(backend) = backend(NAME) else { return };
    let open = || {
        let attributes = Attributes::default().with_disabled(true);
        let spec = GroupSpec::single(user(Hardware::Instructions)).with_attributes(attributes);
        backend.open_group(&spec, &Target::CurrentThread)
    };
    let mut groups = match (0..3).map(|_| open()).collect::<Result<Vec<_>, _>>() {
        Ok(groups) => groups,
        Err(error) => return skip(NAME, format!("{error:#}")),
    };
    let mut count = |at_once: bool| {
        for group in &mut groups {
            group.reset().expect("own");
        }
        if at_once {
            assert_eq!(start_if_alone(3), Ok(true));
        } else {
            groups
                .iter_mut()
                .for_each(|group| group.enable().expect("own"));
        }
        groups
            .iter_mut()
            .for_each(|group| group.disable().expect("own"));
        groups
            .iter_mut()
            .map(|group| read(group)[0][0].value)
            .collect::<Vec<u64>>()
    };
    // The first round meets cold pages.
    let [_, at_once, one_by_one] = [true, true, false].map(&mut count);
    println!("started at once {at_once:?}, one by one {one_by_one:?}");
    let steps: Vec<_> = at_once
        .windows(2)
        .map(|two| two[1].wrapping_sub(two[0]))
        .collect();
    let call = steps[0];
    assert_eq!(
        steps, [call; 2],
        "each counts one call that stops another more"
    );
    // One by one, the first counts two calls more; returning from the one that starts all takes less than one.
    assert!((1..1000).contains(&call) && at_once[0] + call < one_by_one[0]);
}
