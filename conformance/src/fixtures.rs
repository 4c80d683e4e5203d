//! Ready-made fixtures.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod pages;
#[cfg(unix)]
mod posix;
mod rounds;
mod sim;
mod turns;

use std::hint::black_box;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
pub use linux::LinuxFixture;
#[cfg(unix)]
pub use pages::page_faults;
#[cfg(unix)]
pub use posix::PosixFixture;
pub use rounds::RoundsBackend;
pub use sim::{Altered, SimFixture};
pub use turns::Turns;

/// Keeps the calling thread busy until so many nanoseconds have gone by.
pub fn spin(nanoseconds: u64) {
    let (start, long) = (Instant::now(), Duration::from_nanos(nanoseconds));
    while start.elapsed() < long {
        black_box(0);
    }
}
