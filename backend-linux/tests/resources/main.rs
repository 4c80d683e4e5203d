//! In a process of its own, because it counts what the whole process has open and replaces the allocator:
//! everything that is taken is given back, and reading and resetting allocate nothing.

#![cfg(target_os = "linux")]

mod allocations;
#[path = "../counting_allocator/mod.rs"]
mod counting_allocator;
mod descriptors;
#[path = "../it/machine.rs"]
mod machine;
mod sampling;
mod start_stop;
mod together;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps the tests of this process from running at the same time.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
