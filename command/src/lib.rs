#![doc = include_str!("../README.md")]
#![cfg(unix)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod asleep;
mod running;
mod start;
mod suspended;
mod sys;
mod wait;

use std::io;

use nix::sys::resource::{Resource, getrlimit};
use quipu_hal::{Error, ErrorKind};

pub use running::{Exit, Running, Streams};
pub use start::standard_error_was_closed;
pub use suspended::SuspendedCommand;

/// Returns the error of a failed attempt.
fn os_error(attempted: &str, e: &io::Error) -> Error {
    let kind = match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NoSuchTarget,
        io::ErrorKind::PermissionDenied => ErrorKind::NoPermission,
        _ => ErrorKind::Os,
    };
    let error = Error::new(kind, attempted).with_io_error(e);
    match e.raw_os_error() {
        Some(libc::EMFILE) => error
            .with_reason("this process has reached its limit of open files")
            .with_hint(match getrlimit(Resource::RLIMIT_NOFILE) {
                Ok((limit, _)) => format!("the limit is {limit}; raise it with `ulimit -n`"),
                Err(_) => "raise the limit with `ulimit -n`".into(),
            }),
        _ => error,
    }
}
