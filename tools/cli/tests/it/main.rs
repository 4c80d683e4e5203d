//! The command `quipu`, run as people run it.

#[cfg(unix)]
mod amplifiers;
#[cfg(unix)]
mod compare;
#[cfg(unix)]
mod completions;
#[cfg(unix)]
mod crafted;
mod events;
#[cfg(all(feature = "export", target_os = "linux"))]
mod export;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod forbidden;
mod help;
mod info;
#[cfg(unix)]
mod interrupted;
mod list;
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
mod only_linux;
mod others;
#[cfg(unix)]
mod pctr;
#[cfg(target_os = "linux")]
mod perf;
mod printed;
#[cfg(target_os = "linux")]
mod record;
mod report;
mod report_of_chains;
mod report_of_kernel;
#[cfg(unix)]
mod stalled;
#[cfg(target_os = "linux")]
mod stat;
#[cfg(unix)]
mod stat_on_cpus;
#[cfg(target_os = "linux")]
mod surroundings;
#[cfg(target_os = "linux")]
mod tmux;

use std::fmt::Display;
use std::io::Write as _;

/// Makes a named pipe.
#[cfg(unix)]
fn make_pipe(path: &std::path::Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("a folder of ours");
}

/// Says that a test, or a part of one, cannot be run here. It goes past the harness, which keeps what a test that passes prints.
fn skip(test: &str, reason: impl Display) {
    let _ = writeln!(std::io::stderr(), "SKIP {test}: {reason}");
}
