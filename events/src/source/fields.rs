//! Reads typed values out of a TOML table, noting everything that does not fit.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use super::diagnostics::{Findings, Source};
use super::model::Place;

/// A value and where it stands.
pub(crate) type At<T> = (T, Range<usize>);

/// One file being read: its text, its position in the set of files, and what was found in it.
pub(crate) struct Reading<'a, 'f> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) file: u32,
    pub(crate) findings: &'f mut Findings,
}

impl Reading<'_, '_> {
    pub(crate) fn place(&self, at: &Range<usize>) -> Place {
        Place {
            file: self.file,
            start: at.start,
            line: self.source.line(at.start),
        }
    }

    pub(crate) fn note(&mut self, at: &Range<usize>, message: impl Into<String>) {
        self.findings.add(self.source, at, message.into());
    }

    /// Takes a string.
    pub(crate) fn text<'v>(
        &mut self,
        what: &str,
        value: &'v Spanned<DeValue<'_>>,
    ) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            other => {
                self.wrong_type(&value.span(), what, "a string", other);
                None
            }
        }
    }

    /// Takes a non-negative integer in a range.
    pub(crate) fn integer(
        &mut self,
        what: &str,
        range: RangeInclusive<u64>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<u64> {
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong_type(&value.span(), what, "a number", value.get_ref());
            return None;
        };
        match to_u64(integer) {
            Some(number) if range.contains(&number) => Some(number),
            _ => {
                self.note(
                    &value.span(),
                    format!(
                        "`{what}` is {}, which is not between {:#x} and {:#x}",
                        shortened(&integer.to_string()),
                        range.start(),
                        range.end()
                    ),
                );
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(truth) => Some(*truth),
            other => {
                self.wrong_type(&value.span(), what, "true or false", other);
                None
            }
        }
    }

    pub(crate) fn table<'v, 'd>(
        &mut self,
        what: &str,
        value: &'v Spanned<DeValue<'d>>,
    ) -> Option<&'v DeTable<'d>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                self.wrong_type(&value.span(), what, "a table", other);
                None
            }
        }
    }

    pub(crate) fn array<'v, 'd>(
        &mut self,
        what: &str,
        value: &'v Spanned<DeValue<'d>>,
    ) -> Option<&'v DeArray<'d>> {
        match value.get_ref() {
            DeValue::Array(array) => Some(array),
            other => {
                self.wrong_type(&value.span(), what, "an array", other);
                None
            }
        }
    }

    /// Takes an array of strings.
    pub(crate) fn texts(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let Some(array) = self.array(what, value) else {
            return Vec::new();
        };
        array
            .iter()
            .filter_map(|item| self.text(what, item).map(str::to_owned))
            .collect()
    }

    /// Takes an array of counter numbers, as a mask.
    pub(crate) fn counters(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> u32 {
        let Some(array) = self.array(what, value) else {
            return 0;
        };
        if array.is_empty() {
            self.note(
                &value.span(),
                format!("`{what}` lists no counter; leave it out to allow all"),
            );
        }
        array
            .iter()
            .filter_map(|item| self.integer(what, 0..=31, item))
            .fold(0, |mask, number| mask | 1 << number)
    }

    pub(crate) fn wrong_type(
        &mut self,
        at: &Range<usize>,
        what: &str,
        wanted: &str,
        found: &DeValue<'_>,
    ) {
        let found = match found {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.note(at, format!("`{what}` wants {wanted}, not {found}"));
    }

    /// Notes a key that a table does not have, with the nearest that it has.
    pub(crate) fn unknown_key(&mut self, at: &Range<usize>, key: &str, known: &[&str]) {
        let mut message = format!("unknown key `{}`", shortened(key));
        if let Some(nearest) = nearest(key, known.iter().copied()) {
            message += &format!("; did you mean `{nearest}`?");
        } else {
            message += &format!("; known here are {}", known.join(", "));
        }
        self.note(at, message);
    }
}

/// A table whose keys are taken one by one; what is left over is unknown.
pub(crate) struct Fields<'v, 'd> {
    table: &'v DeTable<'d>,
    known: &'static [&'static str],
    at: Range<usize>,
}

impl<'v, 'd> Fields<'v, 'd> {
    /// Starts on a table that may have these keys, and notes every other key in it.
    pub(crate) fn new(
        reading: &mut Reading<'_, '_>,
        table: &'v DeTable<'d>,
        at: Range<usize>,
        known: &'static [&'static str],
    ) -> Self {
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                reading.unknown_key(&key.span(), key.get_ref(), known);
            }
        }
        Self { table, known, at }
    }

    pub(crate) fn get(&self, key: &'static str) -> Option<&'v Spanned<DeValue<'d>>> {
        debug_assert!(self.known.contains(&key), "{key}");
        self.table.get(key)
    }

    /// Where the table stands.
    pub(crate) fn at(&self) -> &Range<usize> {
        &self.at
    }

    pub(crate) fn text(
        &self,
        reading: &mut Reading<'_, '_>,
        key: &'static str,
    ) -> Option<At<String>> {
        let value = self.get(key)?;
        let text = reading.text(key, value)?;
        Some((text.to_owned(), value.span()))
    }

    pub(crate) fn integer(
        &self,
        reading: &mut Reading<'_, '_>,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        reading.integer(key, range, self.get(key)?)
    }

    pub(crate) fn truth(&self, reading: &mut Reading<'_, '_>, key: &'static str) -> Option<bool> {
        reading.boolean(key, self.get(key)?)
    }
}

fn to_u64(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()).ok()
}

/// A piece of a file short enough for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        text.to_owned()
    } else {
        text.chars().take(LONGEST).chain(['…']).collect()
    }
}

/// The candidate that is most like `word`, if any is like it at all.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > 200 {
        return None;
    }
    candidates
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
