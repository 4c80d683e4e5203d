//! Reading, keeping what was read, and resetting allocate nothing.

use crate::machine::{open, skip, user};
use crate::{alone, counting_allocator};
use quipu_hal::{Group, GroupSpec, Software, Target};

#[test]
fn the_allocator_counts() {
    let _alone = alone();
    let before = counting_allocator::count();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(counting_allocator::count(), before + 1);
}

#[test]
fn reading_and_resetting_allocate_nothing() {
    let _alone = alone();
    let name = "reading_and_resetting_allocate_nothing";
    let five = [
        Software::TaskClock,
        Software::PageFaults,
        Software::MinorFaults,
        Software::MajorFaults,
        Software::CpuClock,
    ];
    let process = i32::try_from(std::process::id()).expect("a pid");
    let cases = [
        (
            GroupSpec::single(user(Software::TaskClock)),
            Target::CurrentThread,
        ),
        (GroupSpec::new(five.map(user)), Target::CurrentThread),
        (GroupSpec::new(five.map(user)), Target::Process(process)),
        (GroupSpec::new(five), Target::AllCpus),
    ];
    for (spec, target) in cases {
        let Some(mut group) = open(name, &spec, &target) else {
            skip(name, target);
            continue;
        };
        let [mut buf, mut kept] = [group.read_buf(), group.read_buf()];
        let before = counting_allocator::count();
        for _ in 0..1000 {
            group.read(&mut buf).expect("read");
            kept.clone_from(&buf);
            group.reset().expect("reset");
        }
        assert_eq!(counting_allocator::count(), before, "{target}");
        assert_eq!(kept, buf);
        let reader = group.reader().expect("it has no signals");
        let made = counting_allocator::count();
        for _ in 0..1000 {
            reader.read(&mut buf).expect("read");
        }
        assert_eq!(counting_allocator::count(), made, "{target}, by a reader");
    }
}
