//! Ready-made subjects.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod pages;
#[cfg(unix)]
mod posix;
mod sim;
mod turns;

#[cfg(target_os = "linux")]
pub use linux::LinuxSubject;
#[cfg(unix)]
pub use posix::PosixSubject;
pub use sim::{Altered, SimSubject};
pub use turns::Turns;
