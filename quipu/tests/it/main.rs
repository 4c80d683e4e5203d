//! The facade over scripted, simulated and real backends.

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
#[cfg(unix)]
mod msr;
mod presets;
mod readers;
#[cfg(feature = "sampling")]
mod sampler;
#[cfg(all(unix, feature = "event-files", feature = "msr"))]
mod selection;
mod table;
mod totals;
