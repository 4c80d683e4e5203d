//! Every descriptor that holding a command takes is given back. One test, because it counts what the
//! whole process has open.
#![cfg(unix)]

use std::time::Duration;

use quipu_posix::HeldCommand;

fn open_descriptors() -> usize {
    // SAFETY: the call takes integers and changes nothing.
    let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    (0..1024).filter(is_open).count()
}

#[test]
fn holding_releasing_and_failing_leave_nothing_open() {
    let before = open_descriptors();
    for _ in 0..100 {
        drop(HeldCommand::spawn("true", [""; 0]).expect("a process"));
        let missing = HeldCommand::spawn("/nowhere/at/all", [""; 0]).expect("a process");
        assert!(missing.release().is_err());
        let held = HeldCommand::spawn("true", [""; 0]).expect("a process");
        let mut running = held.release().expect("it executes");
        let waited = running.wait_timeout(Duration::from_secs(60));
        assert!(waited.is_ok() && running.wait().is_ok());
    }
    assert_eq!(open_descriptors(), before);
}
