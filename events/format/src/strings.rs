//! The strings of a layer, each kept once.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

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
    /// A hash table with open addressing: numbers plus one, 0 where there is none. Its length is a power of two.
    slots: Vec<u32>,
}

impl Strings {
    /// Makes a set with the empty string.
    pub(crate) fn new() -> Self {
        let mut strings = Self {
            text: String::new(),
            ends: Vec::new(),
            slots: vec![0; 16],
        };
        strings.add("");
        strings
    }

    /// Returns the number of a string, which is added if it is new.
    pub(crate) fn add(&mut self, text: &str) -> Text {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(text);
        if self.slots[slot] == 0 {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
            self.slots[slot] = self.ends.len() as u32;
        }
        Text(self.slots[slot] - 1)
    }

    /// Returns a string of this set; the empty one for a number that is not in it.
    pub(crate) fn get(&self, number: Text) -> &str {
        let at = number.0 as usize;
        let end = |at: usize| self.ends.get(at).map(|end| *end as usize);
        let start = at.checked_sub(1).and_then(end).unwrap_or(0);
        let text = end(at).and_then(|end| self.text.get(start..end));
        text.unwrap_or_default()
    }

    /// Returns the slot that has a string, or the free one that it belongs in.
    fn slot(&self, text: &str) -> usize {
        let last = self.slots.len() - 1;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        let mut slot = hash as usize & last;
        while self.slots[slot] != 0 && self.get(Text(self.slots[slot] - 1)) != text {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for number in 0..self.ends.len() as u32 {
            let slot = self.slot(self.get(Text(number)));
            self.slots[slot] = number + 1;
        }
    }
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
