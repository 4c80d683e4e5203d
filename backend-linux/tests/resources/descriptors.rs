//! Descriptors: every one is given back, and none leaks into an executed program.

use std::panic::AssertUnwindSafe;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::alone;
use crate::machine::{backend, open_descriptors, skip, user};
use quipu_hal::{Attributes, Backend, GroupSpec, PmuEvent, Software, Target};
use quipu_linux::Anchors;

const NAME: &str = "descriptors";

/// Returns true if every perf_event descriptor of this process is close-on-exec, and how many there are.
fn counters_close_on_exec() -> (bool, usize) {
    let mut count = 0;
    let mut all = true;
    for entry in std::fs::read_dir("/proc/self/fd").expect("proc is mounted") {
        let path = entry.expect("an entry").path();
        let Ok(target) = std::fs::read_link(&path) else {
            continue;
        };
        if !target.to_string_lossy().contains("perf_event") {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let fd = name.and_then(|name| name.parse().ok()).expect("a number");
        // SAFETY: the call takes integers; the descriptor was open a moment ago.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        all &= flags & libc::FD_CLOEXEC != 0;
        count += 1;
    }
    (all, count)
}

#[test]
fn every_descriptor_is_given_back_and_none_leaks_into_programs() {
    let _alone = alone();
    let Some(backend) = backend(NAME) else { return };
    let kinds = [Software::PageFaults, Software::ContextSwitches];
    let anchors = match Anchors::hold(&kinds) {
        Ok(anchors) => anchors,
        Err(e) => return skip(NAME, e),
    };
    assert_eq!(counters_close_on_exec(), (true, kinds.len()));
    anchors.release();
    assert_eq!(counters_close_on_exec(), (true, 0));
    backend.capabilities();
    let before = open_descriptors();

    let good = GroupSpec::new([user(Software::TaskClock), user(Software::Dummy)])
        .with_attributes(Attributes::default().with_disabled(true));
    let bad = GroupSpec::new([
        user(Software::TaskClock),
        user(PmuEvent::new("software").with_value("config", 9999)),
    ]);
    let group = backend
        .open_group(&good, &Target::CurrentThread)
        .expect("opens");
    assert_eq!(counters_close_on_exec(), (true, 2));
    drop(group);
    for i in 0..10_000 {
        let group = backend
            .open_group(&good, &Target::CurrentThread)
            .expect("opens");
        drop(group);
        if i % 100 == 0 {
            assert!(backend.open_group(&bad, &Target::CurrentThread).is_err());
        }
    }
    assert_eq!(open_descriptors(), before);

    // Dropped while a panic passes through.
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _group = backend
            .open_group(&good, &Target::CurrentThread)
            .expect("opens");
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    assert_eq!(open_descriptors(), before);
}

/// The number of the limit is in the hint, though there is no descriptor left to read it by.
#[test]
fn a_process_without_descriptors_learns_its_limit() {
    const TEST: &str = "a_process_without_descriptors_learns_its_limit";
    let _alone = alone();
    let Some(backend) = backend(TEST) else { return };
    let spec = GroupSpec::single(user(Software::Dummy));
    let open = || backend.open_group(&spec, &Target::CurrentThread);
    let first = match open() {
        Ok(group) => group,
        Err(e) => return skip(TEST, e),
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits");
    setrlimit(Resource::RLIMIT_NOFILE, 777, hard).expect("a lower limit");
    let mut groups = vec![first];
    let refused = loop {
        match open() {
            Ok(group) => groups.push(group),
            Err(e) => break e,
        }
    };
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("as before");
    assert_eq!(refused.errno(), Some(libc::EMFILE), "{refused:#}");
    let hint = refused.hint().expect("what to do");
    assert!(hint.starts_with("the limit is 777;"), "{hint}");
}
