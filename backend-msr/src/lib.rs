#![doc = include_str!("../README.md")]

mod address;
mod allow_list;
mod bus;
mod guard;
mod journal;
mod layout;
mod pmu;
pub mod sim;

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub use bus::Cpuctl;
pub use bus::{LikelyOwner, LinuxMsr, MsrBus, NoMsr, SystemMsr};
pub use journal::{Repair, restore, runtime_directory};
pub use pmu::{MsrPmu, Options};
