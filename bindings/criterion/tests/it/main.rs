//! Counts of known work, by the measurement itself and by whole programs.

#[cfg(target_os = "linux")]
mod counter;
mod marks;
#[cfg(target_os = "linux")]
mod programs;
