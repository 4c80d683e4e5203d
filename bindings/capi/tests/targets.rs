//! Other targets than the calling thread: a thread, a process, a control group. Its own process because it counts
//! the page faults of the whole process, and forks.

#![cfg(target_os = "linux")]

mod commands;
#[macro_use]
mod structs;

use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use commands::skip;
use quipu_capi::quipu_status::*;
use quipu_capi::*;

/// The number of times that a count may be disturbed: a thread that is told something may meet a page
/// for the first time.
const TRIES: usize = 10;
const PAGE: usize = 4096;
/// The status of a child that has got to its end: one that panics ends its only thread, and by that exits with 0.
const DONE: c_int = 42;

/// Touches so many pages that nobody has touched before.
fn touch(pages: usize) {
    let length = pages * PAGE;
    // SAFETY: a mapping of its own, written within, and unmapped.
    unsafe {
        let (access, how) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let mapped = libc::mmap(null_mut(), length, access, how, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        libc::madvise(mapped, length, libc::MADV_NOHUGEPAGE);
        for page in 0..pages {
            mapped.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        libc::munmap(mapped, length);
    }
}

/// A thread that touches pages when it is told to.
struct Worker {
    tid: c_int,
    pages: Option<Sender<usize>>,
    done: Receiver<c_int>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start() -> Self {
        let (pages, told) = channel();
        let (tell, done) = channel();
        let thread = thread::spawn(move || {
            // SAFETY: it has no preconditions.
            tell.send(unsafe { libc::gettid() }).expect("a listener");
            for pages in told {
                touch(pages);
                tell.send(0).expect("a listener");
            }
        });
        Self {
            tid: done.recv().expect("a number"),
            pages: Some(pages),
            done,
            thread: Some(thread),
        }
    }

    fn touch(&self, pages: usize) {
        let told = self.pages.as_ref().map(|worker| worker.send(pages));
        assert_eq!(told, Some(Ok(())));
        self.done.recv().expect("an answer");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.pages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An open set of page faults in user mode.
struct PageFaults {
    set: *mut quipu_set,
    parts: usize,
}

impl PageFaults {
    fn open(config: &quipu_config) -> Result<Self, quipu_status> {
        let mut set = null_mut();
        let mut parts = 0;
        // SAFETY: good arguments.
        unsafe {
            assert_eq!(quipu_set_create(config, &mut set), QUIPU_OK);
            assert_eq!(quipu_set_add(set, c"page-faults:u".as_ptr()), QUIPU_OK);
            let opened = quipu_set_open(set);
            if opened != QUIPU_OK {
                quipu_set_close(set);
                return Err(opened);
            }
            assert_eq!(quipu_set_size(set, null_mut(), &mut parts), QUIPU_OK);
        }
        Ok(Self { set, parts })
    }

    /// Returns the counts of each part while `act` runs.
    fn during(&self, act: impl FnOnce()) -> Vec<u64> {
        let mut readings = vec![quipu_reading::default(); self.parts];
        // SAFETY: a handle, and an array as long as the set says.
        unsafe {
            assert_eq!(quipu_set_reset(self.set), QUIPU_OK);
            assert_eq!(quipu_set_start(self.set), QUIPU_OK);
            act();
            assert_eq!(quipu_set_stop(self.set), QUIPU_OK);
            let status = quipu_set_read_parts(self.set, readings.as_mut_ptr(), self.parts);
            assert_eq!(status, QUIPU_OK);
        }
        readings.iter().map(|reading| reading.value).collect()
    }

    fn thread(&self, part: usize) -> c_int {
        let mut info = init!(quipu_part_info);
        // SAFETY: a handle, and a struct with its size set.
        let status = unsafe { quipu_set_part_info(self.set, 0, part, &mut info) };
        assert_eq!(status, QUIPU_OK);
        info.thread
    }
}

impl Drop for PageFaults {
    fn drop(&mut self) {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_set_close(self.set) }, QUIPU_OK);
    }
}

fn target(target: quipu_target, id: c_int) -> quipu_config {
    let mut config = init!(quipu_config);
    config.target = target as u32;
    config.id = id;
    config
}

/// Why the kernel's counters cannot be used here: getrusage(2), which answers for some events then, knows no
/// other targets.
fn no_perf_events(test: &str) -> bool {
    let backends = quipu::Machine::this().backends();
    let linux = backends.iter().find(|backend| backend.name() == "linux");
    let Some(reason) = linux.and_then(|backend| backend.error()) else {
        return false;
    };
    skip(test, &reason.to_string());
    true
}

fn message() -> String {
    let mut error = init!(quipu_error);
    // SAFETY: a struct with its size set, and a text that is there until the next failure.
    unsafe {
        assert_eq!(quipu_last_error(&mut error), QUIPU_OK);
        CStr::from_ptr(error.message).to_string_lossy().into_owned()
    }
}

#[test]
fn a_thread() {
    if no_perf_events("a thread") {
        return;
    }
    let (worker, other) = (Worker::start(), Worker::start());
    let set = PageFaults::open(&target(quipu_target::QUIPU_THREAD, worker.tid))
        .expect("own threads can be counted");
    assert_eq!(set.parts, 1);
    let counted: Vec<_> = (0..TRIES)
        .map(|_| {
            set.during(|| {
                worker.touch(21);
                other.touch(50);
                touch(50);
            })
        })
        .collect();
    assert!(counted.contains(&vec![21]), "{counted:?}");
}

/// A child of fork(2) reads what its parent counts, and is not counted. Neither a lock nor memory of the
/// allocator is taken for that, of which a child of several threads has none to rely on.
#[test]
fn a_forked_child_reads_its_parents_counters() {
    if no_perf_events("a forked child") {
        return;
    }
    let set = PageFaults::open(&init!(quipu_config)).expect("the calling thread can be counted");
    let read = || {
        let mut reading = quipu_reading::default();
        // SAFETY: a handle of a set with one reading.
        let status = unsafe { quipu_set_read_parts(set.set, &mut reading, 1) };
        (status, reading.value)
    };
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_set_start(set.set) }, QUIPU_OK);
    touch(20);
    let (status, before) = read();
    assert_eq!(status, QUIPU_OK);
    // SAFETY: the child maps memory, reads, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        touch(5000);
        let (status, now) = read();
        let right = status == QUIPU_OK && (before..before + 5000).contains(&now);
        // SAFETY: it ends the child, without anything of the parent's being run.
        unsafe { libc::_exit(if right { DONE } else { 1 }) };
    }
    assert!(child > 0, "no process was made");
    let mut status = -1;
    // SAFETY: the status is written to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (child, DONE));
}

/// The rings are not in a forked process: what it would find in their place is its own.
#[test]
fn a_forked_process_may_not_drain_a_sampler() {
    if no_perf_events("a forked process may not drain a sampler") {
        return;
    }
    unsafe extern "C" fn ignore(_: *const quipu_sample, _: *mut std::ffi::c_void) {}
    let mut how = init!(quipu_sampling);
    how.period = 1;
    let mut sampler = null_mut();
    // SAFETY: good arguments.
    let opened = unsafe {
        quipu_sampler_open(
            &init!(quipu_config),
            c"page-faults:u".as_ptr(),
            &how,
            &mut sampler,
        )
    };
    assert_eq!(opened, QUIPU_OK);
    // SAFETY: a handle, and a function that does nothing.
    let drain = || unsafe { quipu_sampler_drain(sampler, Some(ignore), null_mut()) };
    // SAFETY: the child makes two calls, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = drain() == QUIPU_ETHREAD;
        // SAFETY: a handle.
        let closed = unsafe { quipu_sampler_close(sampler) } == QUIPU_OK;
        // SAFETY: it ends the child, without anything of the parent's being run.
        unsafe { libc::_exit(if refused && closed { DONE } else { 1 }) };
    }
    assert!(child > 0, "no process was made");
    let mut status = -1;
    // SAFETY: the status is written to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (child, DONE));
    assert_eq!(drain(), QUIPU_OK, "the parent goes on");
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_sampler_close(sampler) }, QUIPU_OK);
}

#[test]
fn a_process_with_its_threads() {
    if no_perf_events("a process with its threads") {
        return;
    }
    let workers = [Worker::start(), Worker::start()];
    let own = std::process::id().cast_signed();
    let set = PageFaults::open(&target(quipu_target::QUIPU_PROCESS, own))
        .expect("one's own process can be counted");
    let part_of = |worker: &Worker| {
        let part = (0..set.parts).find(|part| set.thread(*part) == worker.tid);
        part.expect("a part for each thread")
    };
    let parts = workers.each_ref().map(part_of);
    let counted: Vec<_> = (0..TRIES)
        .map(|_| {
            let all = set.during(|| {
                workers[0].touch(13);
                workers[1].touch(34);
            });
            parts.map(|part| all[part])
        })
        .collect();
    assert!(counted.contains(&[13, 34]), "{counted:?}");
}

/// The directory of the group of version 2 that this process is in.
fn own_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(format!("{}{group}", mount.split(' ').nth(4)?))
}

/// The tests' own group: it has other tasks too, so a count is what was touched at least.
#[test]
fn a_control_group() {
    let name = "control group";
    let Some(path) = own_group() else {
        return skip(name, "groups of version 2 are not mounted");
    };
    let path = CString::new(path).expect("no NUL in a path");
    let mut config = target(quipu_target::QUIPU_CGROUP, 0);
    config.cgroup = path.as_ptr();
    let set = match PageFaults::open(&config) {
        Ok(set) => set,
        Err(QUIPU_EPERM | QUIPU_ETARGET | QUIPU_EFEATURE) => return skip(name, &message()),
        Err(other) => panic!("{other:?}: {}", message()),
    };
    let counted: u64 = set.during(|| touch(55)).iter().sum();
    assert!(counted >= 55, "{counted}");
}

#[test]
fn what_is_not_there_is_no_target() {
    if no_perf_events("what is not there") {
        return;
    }
    // Larger than any number of a task (`PID_MAX_LIMIT`, include/linux/threads.h).
    let nobody = 1 << 23;
    for kind in [quipu_target::QUIPU_THREAD, quipu_target::QUIPU_PROCESS] {
        let opened = PageFaults::open(&target(kind, nobody));
        assert_eq!(opened.err(), Some(QUIPU_ETARGET), "{}", message());
    }
    let mut config = target(quipu_target::QUIPU_CGROUP, 0);
    config.cgroup = c"/there is no such group".as_ptr();
    assert_eq!(PageFaults::open(&config).err(), Some(QUIPU_ETARGET));
}
