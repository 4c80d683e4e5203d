#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use quipu_hal as hal;
