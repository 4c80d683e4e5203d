//! Tracepoints by pattern: `sched:*`.

use quipu::{Event, Result};
use quipu_text::EventNames;

/// The names of a CPU, with the tracepoints of this system.
#[derive(Clone, Copy)]
pub struct WithTracepoints<'n>(pub &'n dyn EventNames);

impl EventNames for WithTracepoints<'_> {
    fn ends_in_mask(&self, name: &str) -> bool {
        self.0.ends_in_mask(name)
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        self.0.generalized(name)
    }

    fn tracepoints(&self, pattern: &str) -> Result<Vec<String>> {
        tracepoints(pattern)
    }
}

#[cfg(target_os = "linux")]
fn tracepoints(pattern: &str) -> Result<Vec<String>> {
    use quipu::{Error, ErrorKind};
    use quipu_linux::tracefs::Tracefs;

    let tracefs = Tracefs::find();
    let tracefs = tracefs.as_ref().map_err(Clone::clone)?;
    let names = tracefs
        .tracepoints()?
        .map(|(system, name)| format!("{system}:{name}"));
    let mut found: Vec<String> = names
        .filter(|name| matches(name.as_bytes(), pattern.as_bytes()))
        .collect();
    found.sort();
    match found.is_empty() {
        true => Err(Error::new(
            ErrorKind::UnsupportedEvent,
            format!("find the tracepoints {pattern}"),
        )
        .with_reason(format!("no tracepoint is called {pattern}"))
        .with_hint("`quipu list tracepoint` shows them")),
        false => Ok(found),
    }
}

#[cfg(not(target_os = "linux"))]
fn tracepoints(pattern: &str) -> Result<Vec<String>> {
    use quipu::{Error, ErrorKind};

    let attempted = format!("find the tracepoints {pattern}");
    Err(Error::new(ErrorKind::UnsupportedEvent, attempted)
        .with_reason("only Linux has tracepoints"))
}

/// Returns true if a name is one that a pattern stands for: `*` is any text, `?` any byte.
#[cfg(any(target_os = "linux", test))]
fn matches(name: &[u8], pattern: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) if matches(name, rest) => true,
        (Some((b'*', _)), Some((_, name))) => matches(name, pattern),
        (Some((b'?', rest)), Some((_, name))) => matches(name, rest),
        (Some((wanted, rest)), Some((c, name))) => wanted == c && matches(name, rest),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_as_in_a_shell() {
        for (pattern, fits, does_not) in [
            ("sched:*", "sched:sched_switch", "irq:sched:x"),
            (
                "*:sys_enter_?ead",
                "syscalls:sys_enter_read",
                "syscalls:sys_enter_pread",
            ),
            ("a*b*c", "a-b-b-c", "a-c-b"),
            ("?", "x", ""),
        ] {
            assert!(matches(fits.as_bytes(), pattern.as_bytes()), "{pattern}");
            assert!(
                !matches(does_not.as_bytes(), pattern.as_bytes()),
                "{pattern}"
            );
        }
    }
}
