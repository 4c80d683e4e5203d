//! Files of settings in TOML, read and reported like event files: every finding with its place, not only the first.

use std::cell::RefCell;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Diagnostic, Findings, Source};
use crate::fields::Reading;
use crate::printable::shortened;
use crate::strings::Strings;

pub use crate::fields::Checked;

/// A number from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i128")]
pub struct UpTo<const LAST: u64>(pub u64);

impl<const LAST: u64> TryFrom<i128> for UpTo<LAST> {
    type Error = String;

    fn try_from(number: i128) -> Result<Self, String> {
        let fits = u64::try_from(number)
            .ok()
            .filter(|n| (1..=LAST).contains(n));
        fits.map(Self)
            .ok_or_else(|| format!("not from 1 to {LAST}"))
    }
}

/// The most bytes of a file: as a tree of values it takes up to a hundred times as much.
pub const LARGEST: usize = 256 << 10;

/// Findings about a file that is being read.
pub struct Notes<'a>(&'a Reading<'a>);

impl Notes<'_> {
    /// Adds a finding about a place in the file.
    pub fn add(&self, at: &Range<usize>, message: impl Into<String>) {
        self.0.note(at, message);
    }
}

/// Reads a file as a structure `K` whose fields are [`Checked`], and makes of it what `check` returns.
///
/// ```
/// use quipu_events_format::settings::{self, Checked, UpTo};
///
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default, expecting = "a table")]
/// struct Keys {
///     interval: Checked<UpTo<60>>,
/// }
///
/// let read = |text| settings::read("my.toml", text, |keys: Keys, _| keys.interval.value());
/// assert_eq!(read("interval = 5"), Ok(Some(UpTo(5))));
/// let findings = read("intervall = 5").unwrap_err();
/// assert_eq!(findings[0].to_string(), "my.toml:1:1: unknown key `intervall`; did you mean `interval`?");
/// ```
///
/// # Errors
/// All findings, if there are any.
pub fn read<K: DeserializeOwned + Default, T>(
    file: &str,
    text: &str,
    check: impl FnOnce(K, &Notes<'_>) -> T,
) -> Result<T, Vec<Diagnostic>> {
    let source = Source::new(file, text);
    let reading = Reading {
        source: &source,
        file: 0,
        findings: RefCell::new(Findings::default()),
        strings: RefCell::new(Strings::new()),
    };
    let mut made = None;
    if text.len() > LARGEST {
        let message = format!("the file has more than {} KiB", LARGEST >> 10);
        reading.note(&(0..0), message);
    } else {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let message = shortened(&error.message().replace('\n', ", "));
            let at = error.span().unwrap_or(0..0);
            reading.note(&at, format!("not valid TOML: {message}"));
        }
        let span = table.span();
        let value = Spanned::new(span, DeValue::Table(table.into_inner()));
        let keys = reading.read(("file", &value)).unwrap_or_default();
        made = Some(check(keys, &Notes(&reading)));
    }
    let findings = reading.findings.into_inner();
    match made.filter(|_| findings.is_empty()) {
        Some(made) => Ok(made),
        None => Err(findings.into_sorted()),
    }
}
