//! Tests of the virtual PMU, the simulated PMU and slot assignment through their public interface.

mod drivers;
mod faults;
mod groups;
mod model;
mod pinned_thread;
mod rotation;
mod simulated_pmu;
mod written;
