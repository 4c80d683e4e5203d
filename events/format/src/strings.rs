//! The strings of a layer, each kept once.

use crate::numbers::Numbers;

/// A string among the [`Strings`] of its layer, by number. 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) u32);

impl Text {
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Strings in the form that the binary table has them in: one text, and where each ends.
#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) text: String,
    pub(crate) ends: Vec<u32>,
    numbers: Numbers,
}

impl Strings {
    /// Makes a set with the empty string.
    pub(crate) fn new() -> Self {
        let mut strings = Self {
            text: String::new(),
            ends: Vec::new(),
            numbers: Numbers::new(),
        };
        strings.add("");
        strings
    }

    /// Returns the number of a string, which is added if it is new.
    pub(crate) fn add(&mut self, text: &str) -> Text {
        let (written, ends) = (&self.text, &self.ends);
        let (number, is_new) = self
            .numbers
            .number(text, |number| string(written, ends, number));
        if is_new {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
        }
        Text(number)
    }

    /// Returns a string of this set; the empty one for a number that is not in it.
    pub(crate) fn get(&self, number: Text) -> &str {
        string(&self.text, &self.ends, number.0)
    }
}

/// Returns a string of a text by its number and the ends of all.
fn string<'t>(text: &'t str, ends: &[u32], number: u32) -> &'t str {
    let at = number as usize;
    let end = |at: usize| ends.get(at).map(|end| *end as usize);
    let start = at.checked_sub(1).and_then(end).unwrap_or(0);
    let found = end(at).and_then(|end| text.get(start..end));
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_there_once() {
        let mut strings = Strings::new();
        let names: Vec<String> = (0..1000).map(|number| format!("E{number}")).collect();
        let numbers: Vec<Text> = names.iter().map(|name| strings.add(name)).collect();
        let again: Vec<Text> = names.iter().map(|name| strings.add(name)).collect();
        assert_eq!(numbers, again);
        assert_eq!(strings.ends.len(), 1001);
        for (name, number) in names.iter().zip(numbers) {
            assert_eq!(strings.get(number), name);
        }
        assert!(strings.add("").is_empty());
        assert_eq!(strings.get(Text(5000)), "");
    }
}
