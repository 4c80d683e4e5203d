//! Finding things that are kept once each, by a hash table of their numbers.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// The numbers of things that are kept elsewhere: a hash table with open addressing.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// Numbers plus one, 0 where there is none. Its length is a power of two.
    slots: Vec<u32>,
    count: u32,
}

impl Numbers {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![0; 16],
            count: 0,
        }
    }

    /// Returns the number of a thing, and true if it is the next number, because the thing is new. `get` returns the
    /// thing of a number.
    pub(crate) fn number<'g, T: Hash + Eq + ?Sized + 'g>(
        &mut self,
        thing: &T,
        get: impl Fn(u32) -> &'g T,
    ) -> (u32, bool) {
        if self.count as usize * 2 >= self.slots.len() {
            self.slots = vec![0; self.slots.len() * 2];
            for number in 0..self.count {
                let slot = self.slot(get(number), &get);
                self.slots[slot] = number + 1;
            }
        }
        let slot = self.slot(thing, &get);
        let is_new = self.slots[slot] == 0;
        if is_new {
            self.count += 1;
            self.slots[slot] = self.count;
        }
        (self.slots[slot] - 1, is_new)
    }

    /// Returns the slot that has a thing's number, or the free one that it belongs in.
    fn slot<'g, T: Hash + Eq + ?Sized + 'g>(&self, thing: &T, get: impl Fn(u32) -> &'g T) -> usize {
        let last = self.slots.len() - 1;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(thing);
        let mut slot = hash as usize & last;
        while self.slots[slot] != 0 && get(self.slots[slot] - 1) != thing {
            slot = (slot + 1) & last;
        }
        slot
    }
}
