//! Things by their numbers.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Things, each once, and each by its number.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    all: Vec<T>,
    known: HashTable<u32>,
    hasher: RandomState,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            known: HashTable::new(),
            hasher: RandomState::default(),
        }
    }
}

impl<T: Eq + Hash> Numbered<T> {
    /// Returns the number of a thing, which gets the next one if it is new.
    pub(super) fn number(&mut self, thing: T) -> u32 {
        let Self { all, known, hasher } = self;
        let hash = hasher.hash_one(&thing);
        if let Some(number) = known.find(hash, |number| all[*number as usize] == thing) {
            return *number;
        }
        let number = all.len() as u32;
        let rehash = |number: &u32| hasher.hash_one(&all[*number as usize]);
        known.insert_unique(hash, number, rehash);
        all.push(thing);
        number
    }

    /// Returns the thing that has a number.
    pub(super) fn get(&self, number: u32) -> &T {
        &self.all[number as usize]
    }

    /// Returns all in the order of their numbers.
    pub(super) fn all(&self) -> &[T] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_things_have_one_number() {
        let mut numbered = Numbered::default();
        let numbers = ["a", "b", "a"].map(|text| numbered.number(text.to_owned()));
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(numbered.get(1), "b");
        let more = (0..1000).map(|n| numbered.number(n.to_string()));
        assert_eq!(more.last(), Some(1001));
        assert_eq!(numbered.number("500".to_owned()), 502);
        assert_eq!(numbered.all().len(), 1002);
    }
}
