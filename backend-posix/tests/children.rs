//! Own process: RUSAGE_CHILDREN adds up all children of a process, so no other test may wait for one.
//! A child's counts, against the rusage of wait4(2).
#![cfg(unix)]

use std::process::{Child, Command};

use quipu_hal::{Attributes, Count, ErrorKind, Group, GroupSpec, Reading, Target};
use quipu_posix::{PosixBackend, PosixGroup, Quantity};

const EVENTS: [Quantity; 6] = [
    Quantity::UserTime,
    Quantity::SystemTime,
    Quantity::MinorFaults,
    Quantity::VoluntarySwitches,
    Quantity::InvoluntarySwitches,
    Quantity::PeakMemory,
];

fn spec(attributes: Attributes) -> GroupSpec {
    GroupSpec::new(EVENTS.map(Quantity::event)).with_attributes(attributes)
}

fn sh(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

fn spawn(script: &str) -> (Child, PosixGroup) {
    let child = sh(script);
    let attributes = Attributes::default()
        .with_inherit(true)
        .with_enable_on_exec(true)
        .with_disabled(true);
    let target = Target::Thread(i32::try_from(child.id()).unwrap());
    let group = PosixBackend::new()
        .open_group(&spec(attributes), &target)
        .unwrap();
    (child, group)
}

fn scaled(group: &mut PosixGroup) -> Vec<Count> {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0].iter().map(Reading::count).collect()
}

fn exact(value: u64) -> Count {
    Count::Exact(value.into())
}

/// Waits with wait4(2) and gives the numbers of `EVENTS`.
#[expect(clippy::needless_pass_by_value, reason = "waiting ends the child")]
fn wait4(child: Child) -> [u64; 6] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: the usage is writable and as large as wait4(2) wants; all zeros is a valid one.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(pid, std::ptr::null_mut(), 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    assert_eq!(waited, pid);
    numbers(&usage)
}

/// The numbers of `EVENTS`.
fn numbers(usage: &libc::rusage) -> [u64; 6] {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    [
        ns(usage.ru_utime),
        ns(usage.ru_stime),
        usage.ru_minflt as u64,
        usage.ru_nvcsw as u64,
        usage.ru_nivcsw as u64,
        usage.ru_maxrss as u64
            * if cfg!(target_vendor = "apple") {
                1
            } else {
                1024
            },
    ]
}

#[test]
fn a_child_has_the_numbers_of_wait4_once_it_was_waited_for() {
    // The first child is large and has children of its own: everything is known.
    let (child, mut group) = spawn("x=$(head -c 9000000 /dev/zero | tr '\\0' x)");
    assert_eq!(scaled(&mut group), [Count::NotCounted; 6]);
    assert_eq!(
        group.disable().unwrap_err().kind(),
        ErrorKind::UnsupportedFeature
    );
    assert_eq!(
        group.reset().unwrap_err().kind(),
        ErrorKind::UnsupportedFeature
    );
    let told = wait4(child);
    assert_eq!(scaled(&mut group), told.map(exact));
    assert!(told[2] > 0 && told[5] > 0);

    // A second one: its peak is no higher than the first one's, which is all that is known of it.
    let (child, mut second) = spawn("exit 0");
    let told_of_second = wait4(child);
    let values = scaled(&mut second);
    assert_eq!(values[2..5], told_of_second.map(exact)[2..5]);
    assert_eq!(values[5], Count::NotCounted);
    // The system adds up nanoseconds and reports microseconds, so a difference may be one off.
    for i in 0..2 {
        let time = values[i].exact().unwrap();
        assert!(
            time.abs_diff(told_of_second[i].into()) <= 1_000,
            "{values:?}"
        );
    }

    // What came later does not change the first, and an ended child can be reset.
    assert_eq!(scaled(&mut group), told.map(exact));
    group.reset().unwrap();
    group.disable().unwrap();
    assert_eq!(scaled(&mut group), [Count::Exact(0); 6]);

    // Without inherit a child alone has no usage; waited for, it is gone.
    let mut child = sh("exit 0");
    let target = Target::Process(i32::try_from(child.id()).unwrap());
    let backend = PosixBackend::new();
    let refused = backend
        .open_group(&spec(Attributes::default()), &target)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    child.wait().unwrap();
    let inherit = Attributes::default().with_inherit(true);
    let refused = backend.open_group(&spec(inherit), &target).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSuchTarget);

    // With inherit this process counts the children it has waited for.
    let me = Target::Process(i32::try_from(std::process::id()).unwrap());
    let faults = GroupSpec::single(Quantity::MinorFaults.event()).with_attributes(inherit);
    let mut with_children = backend.open_group(&faults, &me).unwrap();
    let told = wait4(sh("exit 0"));
    let mut buf = with_children.read_buf();
    with_children.read(&mut buf).unwrap();
    assert!(buf[0][0].value >= told[2]);
}
