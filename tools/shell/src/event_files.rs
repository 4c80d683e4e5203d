//! Event files that could not be used.

use quipu::Error;

use crate::terminal;

/// Warns of the event files that are ignored.
pub fn warn_of_files_left_out(left_out: &[Error]) {
    for error in left_out {
        terminal::warn(format_args!("an event file is ignored: {error:#}"));
    }
}
