//! A place in the text being read, and what is wrong there.

use quipu_hal::words::is_word;
use quipu_hal::{Error, ErrorKind, Event};

use crate::EventNames;

/// Number of characters of the text that an error shows on either side of the fault.
const SHOWN: usize = 40;

/// A place in the text being read.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'t, 'n> {
    /// The text from here on.
    rest: &'t str,
    /// Length of the whole text.
    len: usize,
    names: &'n dyn EventNames,
    /// False where there is no place for the settings of an event.
    pub(crate) takes_settings: bool,
}

impl<'t, 'n> Cursor<'t, 'n> {
    pub(crate) fn new(text: &'t str, names: &'n dyn EventNames) -> Self {
        Self {
            rest: text,
            len: text.len(),
            names,
            takes_settings: false,
        }
    }

    /// Returns true if a name has several parts, of which the last is known to be a unit mask.
    pub(crate) fn ends_in_mask(&self, name: &str) -> bool {
        name.contains(':') && self.names.ends_in_mask(name)
    }

    /// Returns the generalized event that a name stands for on this machine.
    pub(crate) fn generalized(&self, name: &str) -> Option<Event> {
        Event::generalized(name).or_else(|| self.names.generalized(name))
    }

    /// Returns the text from an earlier place to this one.
    pub(crate) fn since(&self, earlier: &Self) -> &'t str {
        &earlier.rest[..self.at() - earlier.at()]
    }

    /// The place, in bytes; always between two characters.
    pub(crate) fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next()?;
        self.rest = characters.as_str();
        Some(next)
    }

    /// Goes past `wanted` if it comes next.
    pub(crate) fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Goes past `wanted` if the rest starts with it.
    pub(crate) fn eat_prefix(&mut self, wanted: &str) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns the place so many bytes later, which are ASCII.
    pub(crate) fn past(mut self, bytes: usize) -> Self {
        self.rest = &self.rest[bytes..];
        self
    }

    /// Goes past all characters that are `wanted`, and returns them.
    pub(crate) fn take_while(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Goes past all characters of a word, and returns them.
    pub(crate) fn take_word(&mut self) -> &'t str {
        self.take_while(is_word)
    }

    pub(crate) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// The fault of finding something else than `what` here.
    pub(crate) fn expected(&self, what: &str) -> Fault {
        let found = match self.peek() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        Fault::new(self.at(), format!("expected {what}, found {found}"))
    }
}

/// An error in the text, with its position. A pointer wide, as results are passed on in many places.
#[derive(Debug)]
pub(crate) struct Fault(Box<Details>);

#[derive(Debug)]
struct Details {
    at: usize,
    reason: String,
    hint: Option<String>,
}

impl Fault {
    /// A fault `at` this many bytes into the text.
    pub(crate) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self(Box::new(Details {
            at,
            reason: reason.into(),
            hint: None,
        }))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The error of reading `text` as `what`. Long text is shown around the fault only.
    pub(crate) fn into_error(self, text: &str, what: &str) -> Error {
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
