//! Tests of the counters behind pctr(4), on simulated devices.
#![cfg(unix)]

mod conformance;
mod driver;
mod events_of_pctr4;
mod free_running;
mod measuring;
mod several_cpus;
mod sharing;
#[path = "../../../conformance/runner/src/fixtures/simulated_pctr.rs"]
mod simulated_pctr;
mod support;
mod user_mode;
mod witnesses;
mod zeroed;
