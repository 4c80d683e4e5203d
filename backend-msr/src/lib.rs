#![doc = include_str!("../README.md")]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod address;
mod allow_list;
mod bus;
mod guard;
mod journal;
mod layout;
mod pmu;
pub mod sim;
mod sys;

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub use bus::Cpuctl;
pub use bus::{LikelyOwner, LinuxMsr, MsrBus, NoMsr, SystemMsr};
pub use journal::{Repair, restore, runtime_directory};
pub use pmu::{MsrPmu, Options};
