//! Why an event has no count, in words.

use quipu::{Error, Event, Filter};
use quipu_hal::ErrorKind;

/// Returns true if an event that failed with this error is not supported here, false if it is and could
/// not be counted.
pub fn is_unsupported(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnsupportedEvent
            | ErrorKind::UnsupportedFeature
            | ErrorKind::NoSuchDevice
            | ErrorKind::TooManyEvents
            | ErrorKind::InvalidConfiguration
    )
}

/// Returns true if an error is a mistake in the request rather than a limit of this machine. A name that
/// the system refused was known.
pub fn is_mistake(event: &Event, error: &Error) -> bool {
    let is_name = matches!(
        event,
        Event::Named(_) | Event::Pmu(_) | Event::Probe(_) | Event::Tracepoint { .. }
    );
    match error.kind() {
        ErrorKind::InvalidConfiguration | ErrorKind::NoSuchTarget => true,
        ErrorKind::UnsupportedEvent | ErrorKind::NoSuchDevice => is_name && error.errno().is_none(),
        _ => false,
    }
}

/// Returns the reason why an event could not be opened, worded to fit other events with the same reason.
pub fn why(event: &Event, error: &Error) -> String {
    let in_kernel_only = !event.levels().contains(Filter::USER);
    if error.kind() == ErrorKind::CounterInErrorState {
        return "pinned (:D), but the counters that it needs are in use; count fewer events, or leave \
                out D to let it take turns"
            .to_owned();
    }
    let mut text = if in_kernel_only && error.kind() == ErrorKind::NoPermission {
        "happens in the kernel only, where counting is not permitted; in user mode it would read 0"
            .to_owned()
    } else if let (ErrorKind::TooManyEvents, Some(member)) = (error.kind(), error.member()) {
        format!(
            "there are not enough counters for the whole group: its event {} opens by itself, but \
             not together with those before it; use smaller groups",
            member + 1
        )
    } else {
        error
            .reason()
            .map_or_else(|| error.kind().to_string(), str::to_owned)
    };
    if let Some(hint) = error.hint() {
        text.push_str("; ");
        text.push_str(hint);
    }
    text
}
