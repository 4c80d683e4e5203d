//! Counters attached to a suspended command.
use std::io::Write as _;

use quipu::command::SuspendedCommand;
use quipu::{Attributes, EventSpec, Filter, GroupSpec, Reading, Software, Target};
use quipu_hal::Backend;
use quipu_linux::LinuxBackend;

/// Counting starts with the program, covers its children, and nothing of the wait before.
#[test]
fn counters_start_with_the_program() {
    let suspended =
        SuspendedCommand::spawn("sh", ["-c", "true & wait; /bin/true"]).expect("a process");
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
    let used = exit.user_time + exit.system_time;
    assert!(used <= exit.elapsed * 8, "{used:?} in {:?}", exit.elapsed);
    group.disable().expect("disable");
}
