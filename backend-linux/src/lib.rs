#![doc = include_str!("../README.md")]

mod kernel_file;
mod nearest;
pub mod privileges;
pub mod sysfs;
pub mod topology;
pub mod tracefs;
