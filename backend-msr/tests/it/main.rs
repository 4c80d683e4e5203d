//! Tests of the counters on model-specific registers.

mod conformance;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod device;
#[cfg(unix)]
mod forks;
mod others;
mod places;
mod refusals;
mod registers;
mod rewritten;
mod safety;
#[path = "../../../conformance/runner/src/fixtures/simulated_msr.rs"]
mod simulated_msr;
mod simulation;
mod support;
