//! The facade over scripted, simulated and real backends.

mod builder;
#[cfg(unix)]
mod calibration;
mod children;
#[cfg(all(feature = "command", target_os = "linux"))]
mod commands;
mod cpu_fallback;
mod differences;
#[cfg(feature = "event-files")]
mod encode;
mod event_set;
mod extending;
mod groups;
#[cfg(unix)]
mod msr;
mod presets;
mod printed;
mod readers;
#[cfg(feature = "sampling")]
mod sampler;
#[cfg(all(unix, feature = "event-files", feature = "msr"))]
mod selection;
mod table;
mod totals;
