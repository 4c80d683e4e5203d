//! Room for counters: one file for each event on each CPU or thread soon exceeds the usual limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as this process may (getrlimit(2), `RLIMIT_NOFILE`). Where
/// that is refused, an event that finds no room says so.
pub(crate) fn allow_as_many_as_possible() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
}
