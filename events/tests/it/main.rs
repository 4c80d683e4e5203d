//! Tests of the event database through its public interface.

mod check;
mod cpus_page;
mod formula;
mod fuzz;
mod identify;
mod import;
mod increments;
mod layers;
mod libpfm4;
mod masks;
mod names;
mod pctr;
mod tables;
mod targets;
