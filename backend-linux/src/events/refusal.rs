//! The refusals of events that cannot be resolved.

use quipu_hal::{Error, ErrorKind, Event, EventSpec};

/// Returns the refusal of a condition on what is no tracepoint.
pub(super) fn takes_no_condition(spec: &EventSpec) -> Error {
    Error::new(ErrorKind::UnsupportedFeature, format!("open {spec}"))
        .with_reason("only tracepoints support a condition")
}

/// Returns the error for a plain name that no event has, with the generalized events that it may be meant for.
pub(super) fn no_such_name(event: &Event, name: &str) -> Error {
    let error = unsupported(event).with_reason("there is no event of this name");
    match quipu_text::nearest(name, []).as_slice() {
        [] => error,
        near => error.with_hint(format!("did you mean {}?", near.join(", "))),
    }
}

pub(super) fn unsupported(event: &Event) -> Error {
    Error::new(ErrorKind::UnsupportedEvent, format!("open {event}"))
}
