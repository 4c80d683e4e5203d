//! Numbers of processes and threads as texts, of which the format wants each once.

use std::hash::Hash;

use foldhash::HashMap;

/// Numbers, and what has them.
pub(super) struct UniqueNumbers<T> {
    texts: HashMap<(i32, T), String>,
    owners: HashMap<i32, u32>,
}

impl<T> Default for UniqueNumbers<T> {
    fn default() -> Self {
        Self {
            texts: HashMap::default(),
            owners: HashMap::default(),
        }
    }
}

impl<T: Hash + Eq> UniqueNumbers<T> {
    /// Returns the text of a number: a second owner of `7` has `7.1`.
    pub(super) fn of(&mut self, number: i32, owner: T) -> String {
        let owners = &mut self.owners;
        let text = self.texts.entry((number, owner)).or_insert_with(|| {
            let before = owners.entry(number).or_default();
            *before += 1;
            match *before - 1 {
                0 => number.to_string(),
                before => format!("{number}.{before}"),
            }
        });
        text.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_a_text_of_its_own() {
        let mut pids = UniqueNumbers::default();
        assert_eq!(pids.of(7, "sh"), "7");
        assert_eq!(pids.of(7, "ls"), "7.1");
        assert_eq!(pids.of(8, "ls"), "8");
        assert_eq!(pids.of(7, "sh"), "7");
        assert_eq!(pids.of(7, "id"), "7.2");
    }
}
