//! Tests of the backend over getrusage(2) and clocks.

#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "openbsd"))]
mod conformance;
#[cfg(unix)]
mod own;
