//! Counters attached to a suspended command.
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use quipu::command::SuspendedCommand;
use quipu::{Attributes, Count, EventSet, EventSpec, Filter, GroupSpec, Reading, Software, Target};
use quipu_hal::Backend;
use quipu_linux::LinuxBackend;
use quipu_posix::PosixBackend;

/// Counting starts with the program, covers its children, and nothing of the wait before.
#[test]
fn counters_start_with_the_program() {
    let mut command = Command::new("sh");
    command.args(["-c", "true & wait; /bin/true"]);
    let suspended = SuspendedCommand::of(command).expect("a process");
    let in_user_mode = |event| EventSpec::new(event).with_filter(Filter::USER_ONLY);
    let spec = GroupSpec::new([
        in_user_mode(Software::TaskClock),
        in_user_mode(Software::PageFaults),
    ])
    .with_attributes(
        Attributes::default()
            .with_inherit(true)
            .with_enable_on_exec(true)
            .with_disabled(true),
    );
    let target = Target::Thread(suspended.pid());
    let mut group = match LinuxBackend::new().and_then(|b| b.open(&spec, &target)) {
        Ok(group) => group,
        Err(e) => {
            let _ = writeln!(
                std::io::stderr(),
                "SKIP counters_start_with_the_program: {e}"
            );
            return;
        }
    };
    let mut buf = group.read_buf();
    group.read(&mut buf).expect("an open group can be read");
    assert_eq!(buf[0][0], Reading::default());
    let exit = suspended
        .resume()
        .and_then(|mut r| r.wait())
        .expect("it ends");
    assert!(exit.status.success());
    group.read(&mut buf).expect("an open group can be read");
    let (clock, faults) = (buf[0][0], buf[0][1]);
    assert!(clock.value > 0 && faults.value > 0);
    assert!(clock.time_enabled >= clock.value);
    assert_eq!(clock.time_enabled, clock.time_running);
    group.disable().expect("disable");
}

/// Without a counter driver, and with one: the command's page faults, and none of this process.
#[test]
fn a_set_of_a_command_counts_it_on_every_backend() {
    let mut backends: Vec<Arc<dyn Backend>> = vec![Arc::new(PosixBackend::new())];
    backends.extend(LinuxBackend::new().ok().map(|linux| Arc::new(linux) as _));
    for backend in backends {
        let mut command = Command::new("sh");
        command.args(["-c", "/bin/true & wait"]);
        let suspended = SuspendedCommand::of(command).expect("a process");
        let set = EventSet::builder().events("page-faults").and_then(|set| {
            set.of_command(&suspended)
                .backends([Arc::clone(&backend)])
                .open()
        });
        let mut set = set.expect("a set");
        if let Some(why) = set.events()[0].error() {
            let name = backend.name();
            let _ = writeln!(
                std::io::stderr(),
                "SKIP a_set_of_a_command ({name}): {why:#}"
            );
            continue;
        }
        let mut counts = set.counts();
        std::hint::black_box(vec![1_u8; 64 << 20]);
        let exit = suspended.resume().and_then(|mut running| running.wait());
        assert!(exit.expect("it ends").status.success());
        set.read(&mut counts).expect("it can be read");
        let total = counts.get(0).expect("an event").total().expect("a total");
        let Count::Exact(faults) = total else {
            panic!("{}: {total:?}", backend.name());
        };
        // Two processes of a shell and a small program; the vector alone is 16384 pages.
        assert!((50..5000).contains(&faults), "{}: {faults}", backend.name());
    }
}
