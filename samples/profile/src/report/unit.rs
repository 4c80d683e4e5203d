//! The units of events.

use quipu_perf_data::EventAttr;
use quipu_viewers::Unit;

use super::profile::Weight;

/// `PERF_TYPE_SOFTWARE`, and the clocks among software events (`include/uapi/linux/perf_event.h`).
const SOFTWARE: u32 = 1;
const CLOCKS: [u64; 2] = [0, 1];
/// The event of time off the CPU, as it is called by perf and by `quipu record --off-cpu`.
const OFF_CPU: &str = "offcpu-time";

/// Returns the unit of an event.
pub(super) fn unit(attr: &EventAttr, name: &str) -> Unit {
    let is_clock = attr.event_type() == SOFTWARE && CLOCKS.contains(&attr.config());
    match (is_clock, name) {
        (true, _) => Unit::CpuTime,
        (_, OFF_CPU) => Unit::Time,
        _ => Unit::Count,
    }
}

/// Returns a time in nanoseconds as seconds.
pub(crate) fn seconds(time: Weight) -> String {
    format!("{:.3} s", time.period as f64 / 1e9)
}
