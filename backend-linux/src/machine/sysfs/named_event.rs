//! The events of a PMU that have a name.
//!
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-events`: a file per event, holding
//! terms (`event=0x3c,umask=0x0`), with companions `NAME.unit`, `NAME.scale`, `NAME.per-pkg` and
//! `NAME.snapshot`.

use quipu_hal::{Error, ErrorKind, Result};

/// The endings of the names of an event's companion files.
pub(super) const COMPANIONS: [&str; 4] = [".unit", ".scale", ".per-pkg", ".snapshot"];

/// An event of a PMU that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedEvent {
    /// Its name: `cache-misses`, `energy-pkg`.
    pub name: String,
    /// The text of its file: `event=0x3c,umask=0x0`, `domain=0x1,core=?`.
    pub definition: String,
    /// The unit of its scaled values (`Joules`), empty when it has none.
    pub unit: String,
    /// The factor from a value to that unit, as the kernel writes it; `None` for 1.
    pub scale: Option<String>,
}

/// Joins the files of an `events` directory, sorted by name, to events.
pub(super) fn collect(files: impl Iterator<Item = (String, String)>) -> Vec<NamedEvent> {
    let (companions, events): (Vec<_>, Vec<_>) = files.partition(|(name, _)| is_companion(name));
    let find = |name: &str, suffix: &str| {
        let wanted = format!("{name}{suffix}");
        let found = companions.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| text.clone())
    };
    events
        .into_iter()
        .map(|(name, definition)| NamedEvent {
            unit: find(&name, ".unit").unwrap_or_default(),
            scale: find(&name, ".scale"),
            name,
            definition,
        })
        .collect()
}

/// Returns true if a file in `events` belongs to an event rather than being one.
pub(super) fn is_companion(file: &str) -> bool {
    COMPANIONS.iter().any(|suffix| file.ends_with(suffix))
}

/// A term of an event's definition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DefinedTerm<'a> {
    pub(super) name: &'a str,
    pub(super) value: DefinedValue,
}

/// The value of a term in a definition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DefinedValue {
    /// A number; 1 where only the name is written.
    Number(u64),
    /// `?`: the request has to say it.
    Parameter,
}

/// Reads a definition.
///
/// # Errors
/// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when a value is not a number.
pub(super) fn parse(definition: &str) -> Result<Vec<DefinedTerm<'_>>> {
    definition
        .split(',')
        .map(|term| {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = match value.trim() {
                "?" => Some(DefinedValue::Parameter),
                value => number(value).map(DefinedValue::Number),
            };
            let name = name.trim();
            match value {
                Some(value) if !name.is_empty() => Ok(DefinedTerm { name, value }),
                _ => Err(Error::new(
                    ErrorKind::UnsupportedFeature,
                    format!("understand `{}`", definition.escape_debug()),
                )
                .with_reason(format!("`{}` is no term", term.escape_debug()))),
            }
        })
        .collect()
}

/// A number as strtoull(3) reads it with base 0: hexadecimal, octal or decimal.
fn number(text: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        // from_str_radix takes a sign.
        let plain = !text.starts_with('+');
        plain
            .then(|| u64::from_str_radix(text, radix).ok())
            .flatten()
    };
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        digits(hex, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        digits(&text[1..], 8)
    } else {
        digits(text, 10)
    }
}
