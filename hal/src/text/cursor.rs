//! A place in the text being read, and what is wrong there.

use super::quoted::is_word;
use crate::{Error, ErrorKind};

/// Number of characters of the text that an error shows on either side of the fault.
const SHOWN: usize = 40;

/// A place in the text being read.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    /// The text from here on.
    rest: &'t str,
    /// Length of the whole text.
    len: usize,
    /// Returns true if the last part of a name is a unit mask.
    ends_in_mask: &'t dyn Fn(&str) -> bool,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self::with_masks(text, &|_| false)
    }

    pub(super) fn with_masks(text: &'t str, ends_in_mask: &'t dyn Fn(&str) -> bool) -> Self {
        Self {
            rest: text,
            len: text.len(),
            ends_in_mask,
        }
    }

    /// Returns true if a name has several parts, of which the last is known to be a unit mask.
    pub(super) fn ends_in_mask(&self, name: &str) -> bool {
        name.contains(':') && (self.ends_in_mask)(name)
    }

    /// The place, in bytes; always between two characters.
    pub(super) fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next()?;
        self.rest = characters.as_str();
        Some(next)
    }

    /// Goes past `wanted` if it comes next.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Goes past `wanted` if the rest starts with it.
    pub(super) fn eat_prefix(&mut self, wanted: &str) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns the place so many bytes later, which are ASCII.
    pub(super) fn past(mut self, bytes: usize) -> Self {
        self.rest = &self.rest[bytes..];
        self
    }

    /// Goes past all characters that are `wanted`, and returns them.
    pub(super) fn take_while(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Goes past all characters of a word, which are ASCII, and returns them.
    pub(super) fn take_word(&mut self) -> &'t str {
        let end = self.rest.bytes().position(|byte| !is_word(byte.into()));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    pub(super) fn skip_space(&mut self) {
        // Most often there is none, and no character to decode.
        if !matches!(self.rest.as_bytes(), [b'!'..=b'~', ..]) {
            self.rest = self.rest.trim_start();
        }
    }

    /// The fault of finding something else than `what` here.
    pub(super) fn expected(&self, what: &str) -> Fault {
        let found = match self.peek() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        Fault::new(self.at(), format!("expected {what}, found {found}"))
    }
}

/// An error in the text, with its position. A pointer wide, as results are passed on in many places.
#[derive(Debug)]
pub(super) struct Fault(Box<Details>);

#[derive(Debug)]
struct Details {
    at: usize,
    reason: String,
    hint: Option<String>,
}

impl Fault {
    /// A fault `at` this many bytes into the text.
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self(Box::new(Details {
            at,
            reason: reason.into(),
            hint: None,
        }))
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The error of reading `text` as `what`. Long text is shown around the fault only.
    pub(super) fn into_error(self, text: &str, what: &str) -> Error {
        let Details { at, reason, hint } = *self.0;
        let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
        let first = before.char_indices().rev().nth(SHOWN - 1);
        let first = first.map_or(0, |(at, _)| at);
        let last = after.char_indices().nth(SHOWN);
        let last = last.map_or(text.len(), |(at, _)| before.len() + at);
        let shown = &text[first..last];
        let (open, close) = (dots(first > 0), dots(last < text.len()));
        let error = Error::new(
            ErrorKind::InvalidConfiguration,
            format!("read {open}{shown:?}{close} as {what}"),
        )
        .with_reason(format!(
            "at character {}: {reason}",
            before.chars().count() + 1
        ));
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

fn dots(cut: bool) -> &'static str {
    if cut { "..." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_characters_and_shows_long_text_around_the_fault() {
        let text = "é".repeat(100) + "!" + &"ü".repeat(100);
        let error = Fault::new(200, "bad").into_error(&text, "an event");
        assert_eq!(error.reason(), Some("at character 101: bad"));
        let shown = format!("{}!{}", "é".repeat(40), "ü".repeat(39));
        assert_eq!(
            error.attempted(),
            format!("read ...\"{shown}\"... as an event")
        );
    }

    #[test]
    fn short_text_is_shown_whole() {
        let error = Fault::new(2, "bad").into_error("a\n", "an event");
        assert_eq!(error.attempted(), "read \"a\\n\" as an event");
        assert_eq!(error.reason(), Some("at character 3: bad"));
    }
}
