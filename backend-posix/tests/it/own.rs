//! This thread and this process, against what the system says of them elsewhere.

use std::thread;
#[cfg(target_os = "linux")]
use std::time::Duration;

use quipu_hal::{
    Attributes, Count, ErrorKind, Event, EventSpec, Filter, Group, GroupSpec, Hardware, Precision,
    ReadBuf, Simultaneity, Software, Target, ValueKind,
};
use quipu_posix::{PosixBackend, PosixGroup, Quantity};

fn me() -> Target {
    Target::Process(i32::try_from(std::process::id()).unwrap())
}

fn disabled() -> Attributes {
    Attributes::default().with_disabled(true)
}

fn open(events: &[Quantity], target: &Target, attributes: Attributes) -> PosixGroup {
    let spec = GroupSpec::new(events.iter().map(|q| q.event())).with_attributes(attributes);
    PosixBackend::new().open_group(&spec, target).unwrap()
}

fn values(group: &mut PosixGroup) -> Vec<u64> {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0].iter().map(|r| r.value).collect()
}

/// Maps fresh pages, touches each once, and unmaps them.
fn touch_fresh_pages(pages: usize) {
    // SAFETY: an anonymous mapping at an address of the kernel's choice, used only within its bounds
    // and unmapped in the end.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let length = pages * page;
        let start = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        #[cfg(target_os = "linux")]
        libc::madvise(start, length, libc::MADV_NOHUGEPAGE);
        for i in 0..pages {
            start.cast::<u8>().add(i * page).write_volatile(1);
        }
        libc::munmap(start, length);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn each_fresh_page_is_one_minor_fault_of_this_thread() {
    let events = [
        Quantity::MinorFaults,
        Quantity::PageFaults,
        Quantity::MajorFaults,
    ];
    let mut group = open(&events, &Target::CurrentThread, disabled());
    touch_fresh_pages(512);
    for pages in [512, 1] {
        group.reset().unwrap();
        group.enable().unwrap();
        touch_fresh_pages(pages);
        group.disable().unwrap();
        touch_fresh_pages(7);
        let pages = pages as u64;
        assert_eq!(values(&mut group), [pages, pages, 0]);
    }
    assert_eq!(group.simultaneity(), Simultaneity::Atomic);

    group.enable().unwrap();
    touch_fresh_pages(10);
    group.enable().unwrap();
    touch_fresh_pages(20);
    group.disable().unwrap();
    assert_eq!(values(&mut group), [31, 31, 0], "spans add up");
}

#[cfg(target_os = "linux")]
#[test]
fn switches_grow_as_the_kernel_says_elsewhere() {
    /// Voluntary and involuntary switches of this thread.
    fn from_proc() -> [u64; 2] {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|key| {
            let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap();
            line.trim().parse().unwrap()
        })
    }
    let events = [
        Quantity::VoluntarySwitches,
        Quantity::InvoluntarySwitches,
        Quantity::ContextSwitches,
    ];
    let mut group = open(&events, &Target::CurrentThread, disabled());
    let outer = from_proc();
    group.enable().unwrap();
    let inner = from_proc();
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(1));
    }
    let inner_end = from_proc();
    group.disable().unwrap();
    let outer_end = from_proc();
    let values = values(&mut group);
    for i in 0..2 {
        assert!(inner_end[i] - inner[i] <= values[i], "{values:?}");
        assert!(values[i] <= outer_end[i] - outer[i], "{values:?}");
    }
    assert!(values[0] >= 20, "{values:?}");
    assert_eq!(values[2], values[0] + values[1]);
}

/// A clock, in nanoseconds.
#[cfg(target_os = "linux")]
fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is writable and as large as clock_gettime(2) wants.
    assert_eq!(unsafe { libc::clock_gettime(id, &raw mut now) }, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Another thread works while this one sleeps: each clock lies between two spans of its own.
#[cfg(target_os = "linux")]
#[test]
fn clocks_are_those_of_this_thread_this_process_and_the_wall() {
    const WORK: u64 = 5_000_000;
    let cases = [
        (
            Quantity::TaskClock,
            Target::CurrentThread,
            libc::CLOCK_THREAD_CPUTIME_ID,
        ),
        (Quantity::TaskClock, me(), libc::CLOCK_PROCESS_CPUTIME_ID),
        (Quantity::WallTime, me(), libc::CLOCK_MONOTONIC),
    ];
    for (quantity, target, id) in cases {
        let mut group = open(&[quantity], &target, disabled());
        let outer = clock(id);
        group.enable().unwrap();
        let inner = clock(id);
        let worker = thread::spawn(|| while clock(libc::CLOCK_THREAD_CPUTIME_ID) < WORK {});
        worker.join().unwrap();
        let inner = clock(id) - inner;
        group.disable().unwrap();
        let outer = clock(id) - outer;
        let value = values(&mut group)[0];
        assert!(
            inner <= value && value <= outer,
            "{quantity:?} {target}: {inner} {value} {outer}"
        );
    }
}

#[test]
fn both_times_are_the_task_clock_and_go_on_over_a_reset() {
    let mut group = open(&[Quantity::TaskClock], &me(), Attributes::default());
    let mut buf = group.read_buf();
    let spin = |group: &mut PosixGroup, buf: &mut ReadBuf| {
        let from = buf[0][0].value;
        while buf[0][0].value < from + 1_000_000 {
            group.read(buf).unwrap();
        }
        buf[0][0]
    };
    let first = spin(&mut group, &mut buf);
    assert_eq!(
        (first.time_enabled, first.time_running),
        (first.value, first.value)
    );
    assert_eq!(first.raw_time_enabled, first.value);
    group.disable().unwrap();
    group.read(&mut buf).unwrap();
    let stopped = buf[0][0];
    assert!(stopped.value >= first.value);
    group.read(&mut buf).unwrap();
    assert_eq!(buf[0][0], stopped);
    group.reset().unwrap();
    group.read(&mut buf).unwrap();
    let reset = buf[0][0];
    assert_eq!((reset.value, reset.time_enabled), (0, 0));
    assert_eq!(reset.raw_time_running, stopped.raw_time_running);
    group.enable().unwrap();
    let again = spin(&mut group, &mut buf);
    assert_eq!(
        again.raw_time_enabled,
        stopped.raw_time_enabled + again.time_enabled
    );
    assert_eq!(again.count(), Count::Exact(again.value.into()));
}

#[test]
fn a_group_that_was_never_enabled_has_counted_exactly_nothing() {
    let mut group = open(&[Quantity::WallTime, Quantity::UserTime], &me(), disabled());
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    assert_eq!(buf[0][0].count(), Count::Exact(0));
    assert_eq!(group.simultaneity(), Simultaneity::Sequential);
}

#[test]
fn memory_peaks_where_it_is_used() {
    let mut group = open(&[Quantity::PeakMemory], &me(), Attributes::default());
    let info = &group.members()[0];
    assert_eq!((info.kind, &*info.unit), (ValueKind::Gauge, "bytes"));
    let before = values(&mut group)[0];
    touch_fresh_pages(usize::try_from(before).unwrap() / 2048);
    let after = values(&mut group)[0];
    assert!(after > before, "{before} {after}");
}

#[test]
fn a_thread_cannot_be_metered_from_another() {
    let group = open(
        &[Quantity::TaskClock],
        &Target::CurrentThread,
        Attributes::default(),
    );
    let mut group = thread::spawn(move || {
        let mut group = group;
        let mut buf = group.read_buf();
        let wrong = [
            group.read(&mut buf),
            group.enable(),
            group.disable(),
            group.reset(),
        ];
        for refused in wrong {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::WrongThread);
        }
        group
    })
    .join()
    .unwrap();
    assert_eq!(values(&mut group).len(), 1);
}

#[test]
fn a_buffer_of_another_group_is_refused() {
    let mut one = open(&[Quantity::TaskClock], &me(), disabled());
    let two = open(
        &[Quantity::TaskClock, Quantity::UserTime],
        &me(),
        disabled(),
    );
    let refused = one.read(&mut two.read_buf()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
}

/// Refused requests: a request, the kind, and the position of the member that the error names.
#[test]
fn what_cannot_be_told_is_refused() {
    use ErrorKind::{InvalidConfiguration, NoSuchTarget, UnsupportedEvent, UnsupportedFeature};
    let faults = || EventSpec::new(Software::PageFaults);
    let user = |event: Event| EventSpec::new(event).with_filter(Filter::USER_ONLY);
    let plain = Attributes::default();
    let inherit = plain.with_inherit(true);
    let at_exec = plain.with_enable_on_exec(true);
    let alone = plain.with_exclusive(true);
    let precise = faults().with_precision(Precision::Constant);
    type Case = (Vec<EventSpec>, Attributes, Target, ErrorKind, Option<usize>);
    let cases: [Case; 14] = [
        (vec![], plain, me(), InvalidConfiguration, None),
        (
            vec![faults(), Hardware::BranchMisses.into()],
            plain,
            me(),
            UnsupportedEvent,
            Some(1),
        ),
        (
            vec![Software::CpuMigrations.into()],
            plain,
            me(),
            UnsupportedEvent,
            Some(0),
        ),
        (
            vec![user(Software::PageFaults.into())],
            plain,
            me(),
            UnsupportedFeature,
            Some(0),
        ),
        (
            vec![user(Software::ContextSwitches.into())],
            plain,
            me(),
            UnsupportedFeature,
            Some(0),
        ),
        (
            vec![user(Quantity::SystemTime.event())],
            plain,
            me(),
            UnsupportedFeature,
            Some(0),
        ),
        (vec![precise], plain, me(), UnsupportedFeature, Some(0)),
        (
            vec![faults()],
            inherit,
            Target::CurrentThread,
            UnsupportedFeature,
            Some(0),
        ),
        (vec![faults()], at_exec, me(), UnsupportedFeature, Some(0)),
        (vec![faults()], alone, me(), UnsupportedFeature, Some(0)),
        (
            vec![faults()],
            plain,
            Target::AllCpus,
            UnsupportedFeature,
            Some(0),
        ),
        (
            vec![faults()],
            inherit,
            Target::Process(1),
            UnsupportedFeature,
            Some(0),
        ),
        (
            vec![faults()],
            inherit,
            Target::Process(i32::MAX),
            NoSuchTarget,
            Some(0),
        ),
        (
            vec![Quantity::PeakMemory.event().into()],
            plain,
            Target::CurrentThread,
            UnsupportedFeature,
            Some(0),
        ),
    ];
    for (members, attributes, target, kind, member) in cases {
        let spec = GroupSpec::new(members).with_attributes(attributes);
        let refused = PosixBackend::new().open_group(&spec, &target).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.member()),
            (kind, member),
            "{refused}"
        );
    }
    for taken in [
        user(Software::TaskClock.into()),
        user(Quantity::UserTime.event()),
    ] {
        PosixBackend::new()
            .open_group(&taken.into(), &me())
            .unwrap();
    }
}
