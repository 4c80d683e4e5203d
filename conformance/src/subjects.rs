//! Ready-made subjects.

#[cfg(target_os = "linux")]
mod linux;
mod sim;

#[cfg(target_os = "linux")]
pub use linux::LinuxSubject;
pub use sim::{Altered, SimSubject};
