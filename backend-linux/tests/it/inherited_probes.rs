//! Probes on a program that executes, forks and makes threads: it does not notice, and all of its calls are counted.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::machine::{backend, call, skip, unless_lacking};
use quipu_hal::{Attributes, Count, Group as _, GroupSpec, Probe, Target};
#[cfg(feature = "sampling")]
use quipu_linux::sampling::{Rate, Record, SamplerSpec};

/// The variable by which a process of this test is made the program that is counted.
const ROLE: &str = "QUIPU_TEST_FORKS";

/// The calls of the program: 10 itself, 3 in each of 20 processes, 2 in each of 20 threads.
const CALLS: u128 = 10 + 20 * 3 + 20 * 2;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn quipu_linux_inherited(n: u64) -> u64 {
    if n == u64::MAX {
        return black_box(n);
    }
    black_box(n).wrapping_mul(5)
}

/// Not a test, but the program, where it has its role.
#[test]
fn program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    call(quipu_linux_inherited, 10);
    for _ in 0..20 {
        // SAFETY: the child only computes and ends.
        match unsafe { libc::fork() } {
            0 => {
                call(quipu_linux_inherited, 3);
                // SAFETY: it ends the child, and runs nothing else.
                unsafe { libc::_exit(0) };
            }
            child => {
                assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
                let mut status = 0;
                // SAFETY: the status is ours.
                let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!((ended, status), (child, 0), "the process that was forked");
            }
        }
    }
    for _ in 0..20 {
        let thread = thread::Builder::new().spawn(|| call(quipu_linux_inherited, 2));
        thread.expect("a thread").join().expect("no panic");
    }
}

/// The program before it executes: a shell that waits.
struct Held(Child);

impl Held {
    fn start() -> Self {
        let own = std::env::current_exe().expect("Linux tells");
        let mut child = Command::new("sh")
            .args([
                "-c",
                "echo held; read go; exec \"$0\" --exact inherited_probes::program",
            ])
            .arg(own)
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("every Linux has a shell");
        let mut held = [0; "held\n".len()];
        let stdout = child.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut held).expect("the shell runs");
        Self(child)
    }

    fn target(&self) -> Target {
        Target::Process(self.0.id().cast_signed())
    }

    /// Lets it run to its end, which has to be a good one.
    fn run(mut self) {
        let mut stdin = self.0.stdin.take().expect("a pipe");
        stdin.write_all(b"go\n").expect("the shell reads");
        let output = self.0.wait_with_output().expect("it ends");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

fn probes() -> [Probe; 2] {
    let own = std::env::current_exe().expect("Linux tells");
    let probe = Probe::user(own, "quipu_linux_inherited");
    [probe.clone(), probe.returning()]
}

fn inherited() -> Attributes {
    Attributes::default().with_inherit(true)
}

/// Held by each test of inherited probes: they look for those that are left of this process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Mounts tracefs in a mount namespace of the calling thread, which no other thread sees.
fn mount_tracefs(test: &str) -> bool {
    if std::path::Path::new("/sys/kernel/tracing/events").exists() {
        return true;
    }
    let nothing = std::ptr::null();
    let mount = |fs: &std::ffi::CStr, on: &std::ffi::CStr, flags| {
        // SAFETY: the texts end with a zero and live, and no data is needed.
        unsafe { libc::mount(fs.as_ptr(), on.as_ptr(), fs.as_ptr(), flags, nothing) == 0 }
    };
    // SAFETY: a mount namespace of its own changes no memory of the thread.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNS) == 0 }
        && mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)
        && mount(c"tracefs", c"/sys/kernel/tracing", 0);
    if !done {
        skip(
            test,
            format_args!("tracefs: {}", std::io::Error::last_os_error()),
        );
    }
    done
}

/// Asserts that no probe of this process is left in tracefs.
#[track_caller]
fn none_is_left() {
    let probes = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").expect("readable");
    let own = format!("quipu_{}/", std::process::id());
    assert!(!probes.contains(&own), "{probes}");
}

#[test]
fn a_counted_program_forks_and_all_its_calls_are_counted() {
    let test = "a_counted_program_forks_and_all_its_calls_are_counted";
    let _alone = ONE_AT_A_TIME.lock();
    let Some(backend) = backend(test) else { return };
    if !mount_tracefs(test) {
        return;
    }
    for spec in [
        GroupSpec::single(probes()[0].clone()),
        GroupSpec::single(probes()[1].clone()),
        GroupSpec::new(probes()),
    ] {
        let spec = spec.with_attributes(inherited());
        let held = Held::start();
        let opened = backend.open_group(&spec, &held.target());
        let Some(mut group) = unless_lacking(test, opened) else {
            return;
        };
        held.run();
        let mut buf = group.read_buf();
        group.read(&mut buf).expect("an open group");
        for member in 0..spec.members.len() {
            assert_eq!(buf.total(member), Count::Exact(CALLS), "{spec:?}");
        }
        drop(group);
        none_is_left();
    }
}

#[cfg(feature = "sampling")]
#[test]
fn a_sampled_program_forks_and_all_its_calls_are_sampled() {
    let test = "a_sampled_program_forks_and_all_its_calls_are_sampled";
    let _alone = ONE_AT_A_TIME.lock();
    let Some(backend) = backend(test) else { return };
    if !mount_tracefs(test) {
        return;
    }
    let mut spec = SamplerSpec::new(probes().map(|probe| (probe, Rate::Period(1))));
    spec.attributes = inherited();
    let held = Held::start();
    let opened = backend.open_sampler(&spec, &held.target());
    let Some(mut sampler) = unless_lacking(test, opened) else {
        return;
    };
    held.run();
    let layout = *sampler.layout();
    let mut seen = Vec::new();
    for ring in sampler.rings_mut() {
        for record in &mut ring.records() {
            let record = record.expect("whole").decode(&layout).expect("as laid out");
            if let Record::Sample(sample) = record {
                seen.push(sample.id().expect("several events"));
            }
        }
    }
    for event in 0..2 {
        let of_event = |id: &&u64| sampler.event_of(**id) == Some(event);
        let samples = seen.iter().filter(of_event).count();
        assert_eq!(samples as u128, CALLS, "samples of event {event}");
    }
    drop(sampler);
    none_is_left();
}

/// Counters of CPUs are inherited by no one.
#[test]
fn probes_of_a_cpu_need_no_tracefs() {
    let test = "probes_of_a_cpu_need_no_tracefs";
    let Some(backend) = backend(test) else { return };
    let spec = GroupSpec::single(probes()[0].clone()).with_attributes(inherited());
    let Some(mut group) = unless_lacking(test, backend.open_group(&spec, &Target::AllCpus)) else {
        return;
    };
    Held::start().run();
    let mut buf = group.read_buf();
    group.read(&mut buf).expect("an open group");
    // The tests of this file may run beside it.
    let total = buf.total(0).exact().expect("a live count");
    assert!(total >= CALLS, "{total}");
}
