//! The system calls of starting and stopping a group, in a process that never stopped counters one by one.

use quipu_hal::{Event, EventSpec, Filter, Group as _, GroupSpec, Software, Target};
use quipu_linux::LinuxBackend;

#[test]
fn starting_and_stopping_a_group_is_one_system_call_each() {
    let name = "starting_and_stopping_a_group_is_one_system_call_each";
    let _alone = crate::alone();
    let entries = Event::Tracepoint {
        system: "raw_syscalls".into(),
        name: "sys_enter".into(),
    };
    let Ok(backend) = LinuxBackend::new() else {
        return eprintln!("SKIP {name}: this process may not count");
    };
    let mut calls = match backend.open_group(&GroupSpec::single(entries), &Target::CurrentThread) {
        Ok(calls) => calls,
        Err(e) => return eprintln!("SKIP {name}: {e}"),
    };
    let events = [
        Software::PageFaults,
        Software::TaskClock,
        Software::CpuMigrations,
    ];
    let spec = GroupSpec::new(events.map(|e| EventSpec::new(e).with_filter(Filter::USER_ONLY)));
    let mut group = backend
        .open_group(&spec, &Target::CurrentThread)
        .expect("software events");
    let [mut before, mut after] = [calls.read_buf(), calls.read_buf()];
    calls.enable().expect("enable");
    calls.read(&mut before).expect("read");
    group.enable().expect("enable");
    group.disable().expect("disable");
    calls.read(&mut after).expect("read");
    // The third is that of the second reading.
    assert_eq!(after[0][0].value - before[0][0].value, 3);
}
