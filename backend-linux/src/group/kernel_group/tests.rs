//! Tests of reading a kernel group, through a pipe in place of its counters.

use super::*;
use quipu_hal::Count;
use std::io::Write;
use std::os::fd::OwnedFd;

/// A kernel group of `ids` that reads what is written into the pipe.
pub(crate) fn from_pipe(plan: ReadPlan, ids: &[u64]) -> (std::io::PipeWriter, KernelGroup) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let fd = CounterFd::new(OwnedFd::from(reader));
    let again = |_: &u64| fd.duplicate().expect("a free descriptor");
    let siblings = ids.iter().skip(1).map(again).collect();
    let source = Source::with_ids(plan, Fds::new(fd, siblings), ids);
    let group = KernelGroup::new(source, false);
    (writer, group)
}

pub(crate) fn write(pipe: &mut std::io::PipeWriter, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    pipe.write_all(&bytes).expect("room in the pipe");
}

fn read(group: &mut KernelGroup) -> Result<Vec<Reading>, ReadFailure> {
    let mut out = vec![Reading::default(); group.counters.len()];
    group.read(&mut out)?;
    Ok(out)
}

#[test]
fn members_are_matched_by_id_in_any_order() {
    let (mut pipe, mut group) = from_pipe(ReadPlan::Snapshot, &[10, 11, 12]);
    let expected: Vec<_> = [5, 6, 7].map(|v| Reading::new(v, 100, 90)).into();
    write(&mut pipe, &[3, 100, 90, 5, 10, 6, 11, 7, 12]);
    assert_eq!(read(&mut group).as_ref(), Ok(&expected));
    write(&mut pipe, &[3, 100, 90, 7, 12, 5, 10, 6, 11]);
    assert_eq!(read(&mut group).as_ref(), Ok(&expected));
}

/// One system call: what a second one would find stays in the pipe.
#[test]
fn one_syscall_per_read() {
    for (plan, ids, words) in [
        (ReadPlan::Single, &[1][..], &[5, 100, 90][..]),
        (ReadPlan::Snapshot, &[1, 2], &[2, 100, 90, 5, 1, 6, 2]),
    ] {
        let (mut pipe, mut group) = from_pipe(plan, ids);
        // A pipe gives what it holds, so a read that asked again would block or find this.
        write(&mut pipe, words);
        write(&mut pipe, words);
        assert_eq!(read(&mut group).map(|r| r[0].value), Ok(5));
        assert_eq!(read(&mut group).map(|r| r[0].value), Ok(5));
        drop(pipe);
        assert_eq!(read(&mut group), Err(ReadFailure::ErrorState));
    }
}

#[test]
fn what_the_kernel_should_not_write_is_an_error() {
    use ReadPlan::{OneByOne, Single, Snapshot};
    for (plan, ids, words, failure) in [
        // Too short.
        (Single, &[1][..], &[2, 100][..], ReadFailure::Malformed),
        (Snapshot, &[1, 2], &[2, 100], ReadFailure::Malformed),
        // Members of another group: too many, and one that is not this group's.
        (
            Snapshot,
            &[1, 2],
            &[3, 100, 90, 5, 1, 6, 2],
            ReadFailure::Malformed,
        ),
        (
            Snapshot,
            &[1, 2],
            &[2, 100, 90, 5, 1, 6, 9],
            ReadFailure::Malformed,
        ),
        (Single, &[1], &[], ReadFailure::ErrorState),
        (Snapshot, &[1], &[], ReadFailure::ErrorState),
        (OneByOne, &[1], &[], ReadFailure::ErrorState),
    ] {
        let (mut pipe, mut group) = from_pipe(plan, ids);
        write(&mut pipe, words);
        drop(pipe);
        assert_eq!(read(&mut group), Err(failure), "{plan:?} {words:?}");
    }
}

#[test]
fn running_longer_than_enabled_never_panics() {
    let (mut pipe, mut group) = from_pipe(ReadPlan::Single, &[1]);
    write(&mut pipe, &[5, 90, 100]);
    assert_eq!(read(&mut group), Ok(vec![Reading::new(5, 90, 100)]));
    write(&mut pipe, &[5, 90, 100]);
    assert_eq!(group.reset(|_| false), Ok(()));
    // Everything runs backwards.
    write(&mut pipe, &[4, 80, 99]);
    let after = read(&mut group).expect("a reading")[0];
    assert_eq!(
        (after.value, after.time_enabled, after.time_running),
        (0, 0, 0)
    );
    assert_eq!((after.raw_time_enabled, after.raw_time_running), (80, 99));
}

#[test]
fn resets_add_up_and_gauges_keep_their_value() {
    let (mut pipe, mut group) = from_pipe(ReadPlan::Snapshot, &[1, 2]);
    for round in 1..=2 {
        write(
            &mut pipe,
            &[2, round * 100, round * 50, round * 10, 1, 40, 2],
        );
        let reset = group.reset(|member| member == 1);
        assert_eq!(reset, Ok(()));
    }
    write(&mut pipe, &[2, 230, 110, 27, 1, 40, 2]);
    let after = read(&mut group).expect("a reading");
    assert_eq!((after[0].value, after[1].value), (7, 40));
    assert_eq!((after[0].time_enabled, after[0].time_running), (30, 10));
    assert_eq!(after[0].raw_time_enabled, 230);
}

/// A jump is found by the time running, member by member, and in intervals, whatever the counter was before.
#[test]
fn a_counter_that_jumped_has_no_count() {
    let (mut pipe, mut group) = from_pipe(ReadPlan::Snapshot, &[1, 2]);
    group.set_max_rate(0, MaxRate::EVENTS);
    group.set_max_rate(1, MaxRate::EVENTS);
    write(
        &mut pipe,
        &[2, 100, 100, 1_600_004 + (10 << 47), 1, 71_173_696, 2],
    );
    let jumped = read(&mut group).expect("a reading");
    assert_eq!(
        [jumped[0].count(), jumped[1].count()],
        [Count::Jumped, Count::Exact(71_173_696)]
    );
    write(
        &mut pipe,
        &[2, 200, 200, 1_600_008 + (10 << 47), 1, 71_173_700, 2],
    );
    let later = read(&mut group).expect("a reading");
    assert_eq!(later[0].since(&jumped[0]).count(), Count::Exact(4));
    write(
        &mut pipe,
        &[2, 300, 300, 1_600_009 + (10 << 47), 1, 71_173_701, 2],
    );
    assert_eq!(group.reset(|_| false), Ok(()));
    write(
        &mut pipe,
        &[2, 400, 400, 1_600_012 + (10 << 47), 1, 71_173_702, 2],
    );
    let since_reset = read(&mut group).expect("a reading");
    assert_eq!(since_reset[0].count(), Count::Exact(3));
}
