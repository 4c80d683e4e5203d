//! Reasons why a group is not read.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind};

use super::group_state::GroupState;

pub(super) fn not_scheduled(cpu: u32) -> Error {
    Error::new(
        ErrorKind::CounterInErrorState,
        format!("read a pinned group on CPU {cpu}"),
    )
    .with_reason("it could not be put on the PMU when it was enabled")
    .with_hint("disable other pinned groups, then enable this one again")
}

pub(super) fn not_looked_at(cpu: u32) -> Error {
    let attempted = format!("vouch for a group on CPU {cpu}");
    Error::new(ErrorKind::Interference, attempted).with_reason(
            "its counters were not looked at in time: one that another process zeroed would not have shown, and \
             the count may be too low",
        )
}

pub(super) fn unknown(cpu: u32, state: &GroupState) -> Error {
    let limit = Duration::from_nanos(state.wrap_timeout.load(Ordering::Relaxed));
    Error::new(
        ErrorKind::CounterInErrorState,
        format!("read a group on CPU {cpu}"),
    )
    .with_reason(format!(
        "its counters went unread for more than {limit:?}, in which one can have wrapped unseen"
    ))
    .with_hint("reset the group, and read it more often than that")
}

pub(super) fn wrong_thread(attempted: &str) -> Error {
    Error::new(ErrorKind::WrongThread, attempted)
        .with_reason("these counters can only be driven by the thread that opened the first group")
}
