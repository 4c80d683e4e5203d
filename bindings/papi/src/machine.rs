//! The machine that the process runs on, and the process.

pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod executable;
pub(crate) mod hardware;
pub(crate) mod memory;
