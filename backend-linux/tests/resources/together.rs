//! Switching all counters of this thread at once, which takes that there are no others.

use quipu_hal::{Attributes, Group as _, GroupSpec, Software, Target};
use quipu_linux::{LinuxGroup, switch_if_alone};

use crate::alone;
use crate::machine::{backend, read, user};

const NAME: &str = "counters_are_switched_at_once_only_if_there_are_no_others";

#[test]
fn counters_are_switched_at_once_only_if_there_are_no_others() {
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
    assert_eq!(switch_if_alone(3, true), Ok(false));
    for group in [&mut pair, &mut single, &mut other] {
        assert_eq!(enabled(group), Some(0), "nothing was started");
    }
    drop(other);
    assert_eq!(switch_if_alone(2, true), Ok(false));
    assert_eq!(switch_if_alone(3, true), Ok(true));
    for group in [&mut pair, &mut single] {
        let (first, second) = (enabled(group), enabled(group));
        assert!(Some(0) < first && first < second, "all members go on");
    }
    assert_eq!(switch_if_alone(3, false), Ok(true));
    for group in [&mut pair, &mut single] {
        assert_eq!(enabled(group), enabled(group), "all are stopped");
    }
    single.enable().expect("started by itself");
    assert!(enabled(&mut single) < enabled(&mut single));
}
