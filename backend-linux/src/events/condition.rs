//! Conditions on tracepoints: which occurrences count (`PERF_EVENT_IOC_SET_FILTER`).

use std::ffi::CString;

use quipu_hal::{Error, ErrorKind, Event, EventSpec, Result};

use super::refusal::takes_no_condition;
use crate::machine::hint::did_you_mean;
use crate::machine::tracefs::Tracefs;
use crate::sys::CounterFd;

/// The words that a condition may use and that no tracepoint has as a field
/// (`trace_define_generic_fields`, `kernel/trace/trace_events.c`).
const EVERYWHERE: [&str; 5] = ["CPU", "cpu", "COMM", "comm", "stacktrace"];

/// Sets the condition of an event, if it has one, on an open counter of it.
///
/// # Errors
/// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when it is not a tracepoint's;
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the kernel does not understand it,
/// with the field that does not exist where that is why.
pub(crate) fn set(counter: &CounterFd, spec: &EventSpec) -> Result<()> {
    let Some(condition) = &spec.condition else {
        return Ok(());
    };
    let error = |kind| Error::new(kind, format!("open {spec}"));
    let Some((system, name)) = tracepoint(&spec.event) else {
        return Err(takes_no_condition(spec));
    };
    let text = CString::new(condition.as_str()).map_err(|_| {
        error(ErrorKind::InvalidConfiguration).with_reason("the condition contains a zero byte")
    })?;
    counter.set_filter(&text).map_err(|errno| {
        match errno {
            libc::EINVAL => explain(
                condition,
                system,
                name,
                error(ErrorKind::InvalidConfiguration),
            ),
            _ => error(ErrorKind::Os),
        }
        .with_errno(errno)
    })
}

fn tracepoint(event: &Event) -> Option<(&str, &str)> {
    match event {
        Event::Tracepoint { system, name } => Some((system, name)),
        Event::Named(name) => name.split_once(':'),
        _ => None,
    }
}

/// The kernel says EINVAL for every mistake, and writes down which for its own filters only.
fn explain(condition: &str, system: &str, name: &str, error: Error) -> Error {
    let fields = Tracefs::find().and_then(|tracefs| tracefs.field_names(system, name));
    let Ok(fields) = fields else {
        return error.with_reason("the kernel does not understand the condition");
    };
    let known = |word: &str| EVERYWHERE.contains(&word) || fields.iter().any(|f| f == word);
    match names(condition).find(|word| !known(word)) {
        Some(word) => error
            .with_reason(format!("{system}:{name} has no field {word}"))
            .with_hint(did_you_mean(word, &fields, "its fields are")),
        None => error.with_reason("the kernel does not understand the condition"),
    }
}

/// The words of a condition that stand where a field does: at the start, and after `(`, `!`, `&&`
/// and `||`, outside of quotes.
fn names(condition: &str) -> impl Iterator<Item = &str> {
    let mut in_quotes = false;
    let outside = condition.split('"').filter(move |_| {
        in_quotes = !in_quotes;
        in_quotes
    });
    // A comparison's left side comes before its operator; what follows that is a value.
    outside
        .flat_map(|piece| piece.split(['&', '|', '(', ')', '!']))
        .filter_map(|term| {
            let term = term.trim_start();
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = term.find(|c| !is_word(c)).unwrap_or(term.len());
            let word = &term[..end];
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            is_name.then_some(word)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_condition_are_found() {
        let found = |text| names(text).collect::<Vec<_>>();
        assert_eq!(found("fd == 1 && count > 0x10"), ["fd", "count"]);
        assert_eq!(
            found("!(prev_pid==0)||comm ~ \"a*(b\""),
            ["prev_pid", "comm"]
        );
        assert_eq!(found("flags & 4"), ["flags"]);
        assert_eq!(found("== 3"), [""; 0]);
        assert_eq!(found("\"x && y\" == z"), [""; 0]);
        assert_eq!(found("é(ü"), [""; 0]);
    }
}
