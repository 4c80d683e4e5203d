//! Own process: commands that many threads make at the same time do not wait for each other.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use quipu_command::SuspendedCommand;

/// The time after which [`SuspendedCommand::resume`] no longer waits.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_command_executes_while_those_made_with_it_are_suspended() {
    const THREADS: usize = 16;
    for _ in 0..40 {
        let barrier = Barrier::new(THREADS);
        let commands: Vec<SuspendedCommand> = thread::scope(|scope| {
            let make = || {
                barrier.wait();
                SuspendedCommand::of(Command::new("true")).expect("a process")
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(make)).collect();
            let made = threads.into_iter().map(ScopedJoinHandle::join);
            made.map(|made| made.expect("no panic")).collect()
        });
        for command in commands {
            let resumed = Instant::now();
            let mut running = command.resume().expect("it executes");
            assert!(resumed.elapsed() < PATIENCE, "it was not seen to execute");
            assert!(running.wait().expect("it ends").status.success());
        }
    }
}
