//! Tests of the event database through its public interface.

mod check;
mod formula;
mod fuzz;
mod identify;
mod import;
mod increments;
mod layers;
mod masks;
mod names;
mod pctr;
mod tables;
mod targets;
