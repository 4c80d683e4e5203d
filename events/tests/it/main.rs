//! Tests of the event database through its public interface.

mod check;
mod cpus_page;
mod descriptions;
mod driver;
#[cfg(target_os = "linux")]
mod environment;
mod fields;
#[cfg(unix)]
mod files;
mod formula;
mod identify;
mod increments;
mod layers;
mod libpfm4;
mod masks;
mod metrics;
mod names;
mod papi;
mod pctr;
mod raw_bits;
mod refused;
mod tables;
mod uncore;
