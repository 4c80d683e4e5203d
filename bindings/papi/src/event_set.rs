//! Event sets.

pub(crate) mod builder;
mod counters;
mod counting;
mod events;
pub(crate) mod functions;
pub(crate) mod set;
pub(crate) mod sets;
