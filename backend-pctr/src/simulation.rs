//! A simulated machine with a pctr(4) driver, for tests on machines that have none.
//!
//! [`SimMachine`] is the machine: CPUs with registers, on which events [occur](SimMachine::occur),
//! and threads that can be [moved](SimMachine::move_to). [`SimDevice`] is its `/dev/pctr`, opened.
//! It speaks the ioctl words and structures of the real driver, checks in the same order, gives the
//! same errno, shows the same bits of a counter, and zeroes counters when the real one does, for each
//! [`Era`] of the driver and each [`Processor`] it knew.

mod cpu;
mod device;
mod era;
mod machine;

pub use device::SimDevice;
pub use era::{Era, Processor, parse_machine};
pub use machine::{Level, SimMachine};
