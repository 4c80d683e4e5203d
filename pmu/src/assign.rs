//! Assignment of events to counters, for every backend that has to place events on a PMU itself.
//!
//! A maximum bipartite matching by augmenting paths (Kuhn's algorithm): an assignment is found whenever one
//! exists, also if events that were placed before have to move. [`VirtualPmu`](crate::VirtualPmu) uses it for
//! bare registers; a backend of virtualised counters without a scheduler of their own calls it itself.
//!
//! ```
//! use quipu_pmu::assign::Matching;
//!
//! // Four counters. Cycles count on all of them, divisions on counter 0 only.
//! let (cycles, divisions) = (0b1111, 0b0001);
//! let mut matching = Matching::new();
//! matching.add_all([(cycles, None), (divisions, None)]).expect("there are four counters");
//! assert_eq!([matching.slot_of(0), matching.slot_of(1)], [1, 0]);
//!
//! // A second group is added as a whole or not at all.
//! let shortage = matching.add_all([(cycles, None), (divisions, None)]).unwrap_err();
//! assert_eq!(shortage.events().collect::<Vec<_>>(), [1, 3]);
//! assert_eq!(shortage.slots(), 0b0001);
//! assert_eq!(matching.events(), 2);
//! ```

use std::error::Error;
use std::fmt;

/// The most slots that a PMU can have; sets of slots are the bits of a `u64`.
pub const MAX_SLOTS: usize = 64;

const FREE: u8 = u8::MAX;

/// A matching of events, numbered in the order they were added, with slots.
#[derive(Debug, Clone, Copy)]
pub struct Matching {
    last_choice: u64,
    shared: u64,
    events: usize,
    allowed: [u64; MAX_SLOTS],
    slot_of: [u8; MAX_SLOTS],
    event_on: [u8; MAX_SLOTS],
}

/// Events that together have fewer slots than they are: why a matching does not exist (Hall's
/// theorem).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The event that found no slot, which is the last, and those that hold the slots it could
    /// have; a bit each, of which there can be one more than slots.
    events: u128,
    slots: u64,
}

impl Shortage {
    /// Returns all slots that any of the events can use; one fewer than the events.
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the events, in order.
    pub fn events(&self) -> impl Iterator<Item = usize> {
        let events = self.events;
        (0..=MAX_SLOTS).filter(move |&event| events >> event & 1 == 1)
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, slots) = (self.events.count_ones(), self.slots.count_ones());
        write!(f, "{events} events can only use {slots} counters")
    }
}

impl Error for Shortage {}

impl Default for Matching {
    fn default() -> Self {
        Self::new()
    }
}

impl Matching {
    /// Returns a matching without events.
    pub const fn new() -> Self {
        Self {
            last_choice: 0,
            shared: 0,
            events: 0,
            allowed: [0; MAX_SLOTS],
            slot_of: [FREE; MAX_SLOTS],
            event_on: [FREE; MAX_SLOTS],
        }
    }

    /// Sets slots that are used only where an assignment needs them: of all assignments one that uses the fewest
    /// of these is found.
    #[must_use]
    pub const fn with_last_choice(mut self, slots: u64) -> Self {
        self.last_choice = slots;
        self
    }

    /// Sets slots that any number of events can be on. An event that can use one is put there.
    #[must_use]
    pub const fn with_shared(mut self, slots: u64) -> Self {
        self.shared = slots;
        self
    }

    /// Returns the number of events that were added.
    pub const fn events(&self) -> usize {
        self.events
    }

    /// Returns the slot of an event that was added.
    ///
    /// # Panics
    /// If `event` is [`MAX_SLOTS`] or more.
    pub fn slot_of(&self, event: usize) -> usize {
        usize::from(self.slot_of[event])
    }

    /// Adds events (the slots each can use, and the one it prefers), or none of them. The events
    /// that were added before keep a slot, though it may be another one.
    ///
    /// # Errors
    /// When there is no assignment of all events.
    pub fn add_all(
        &mut self,
        events: impl IntoIterator<Item = (u64, Option<usize>)>,
    ) -> Result<(), Shortage> {
        let before = *self;
        for (allowed, preferred) in events {
            if let Err(shortage) = self.add(allowed, preferred) {
                *self = before;
                return Err(shortage);
            }
        }
        Ok(())
    }

    /// Adds one event; those that were added before keep a slot, though it may be another one.
    fn add(&mut self, allowed: u64, preferred: Option<usize>) -> Result<(), Shortage> {
        let event = self.events;
        if event == MAX_SLOTS {
            return Err(Shortage {
                events: u128::MAX >> (127 - MAX_SLOTS),
                slots: u64::MAX,
            });
        }
        self.allowed[event] = allowed;
        if let Some(slot) = bits(allowed & self.shared).next() {
            self.slot_of[event] = slot as u8;
            self.events += 1;
            return Ok(());
        }
        // A slot that has an event keeps one, so the last choices that are used are the fewest if each event that
        // is added uses another only where it has to.
        let preferred = preferred.map_or(0, |slot| allowed & bit(slot));
        let first_choice = !self.last_choice;
        let mut visited = 0;
        let added = self.put_on_free(event, preferred & first_choice)
            || self.augment(event, first_choice, &mut 0)
            || self.put_on_free(event, preferred)
            || self.augment(event, u64::MAX, &mut visited);
        if !added {
            let holders = bits(visited).map(|slot| self.event_on[slot]);
            return Err(Shortage {
                events: holders.fold(1 << event, |all, holder| all | 1 << holder),
                slots: visited,
            });
        }
        self.events += 1;
        Ok(())
    }

    /// Finds a slot for an event, such that the last of the events that move for it gets a free slot of `wanted`.
    fn augment(&mut self, event: usize, wanted: u64, visited: &mut u64) -> bool {
        let allowed = self.allowed[event];
        if self.put_on_free(event, allowed & wanted) {
            return true;
        }
        for slot in bits(allowed) {
            if self.event_on[slot] == FREE || *visited >> slot & 1 == 1 {
                continue;
            }
            *visited |= 1 << slot;
            if self.augment(usize::from(self.event_on[slot]), wanted, visited) {
                self.put(event, slot);
                return true;
            }
        }
        false
    }

    /// Puts an event on the first of these slots that is free; returns false if none is.
    fn put_on_free(&mut self, event: usize, slots: u64) -> bool {
        let free = bits(slots).find(|&slot| self.event_on[slot] == FREE);
        if let Some(slot) = free {
            self.put(event, slot);
        }
        free.is_some()
    }

    fn put(&mut self, event: usize, slot: usize) {
        // Both fit: there are at most 64 of each.
        self.slot_of[event] = slot as u8;
        self.event_on[slot] = event as u8;
    }
}

/// The bit of a slot; none from [`MAX_SLOTS`] on.
fn bit(slot: usize) -> u64 {
    u32::try_from(slot)
        .ok()
        .and_then(|slot| 1u64.checked_shl(slot))
        .unwrap_or(0)
}

/// The positions of the bits that are set, from the lowest.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            slot
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matching(events: &[u64]) -> Result<Matching, Shortage> {
        let mut matching = Matching::new();
        matching.add_all(events.iter().map(|&allowed| (allowed, None)))?;
        Ok(matching)
    }

    /// Tries every assignment.
    fn exists(events: &[u64], taken: u64) -> bool {
        let Some((&first, rest)) = events.split_first() else {
            return true;
        };
        bits(first & !taken).any(|slot| exists(rest, taken | 1 << slot))
    }

    proptest! {
        #[test]
        fn an_assignment_is_found_exactly_when_one_exists(
            events in prop::collection::vec(0..1u64 << 6, 0..8),
            wishes in prop::collection::vec(prop::option::of(0..6usize), 8),
        ) {
            let mut got = Matching::new();
            let found = got.add_all(events.iter().copied().zip(wishes));
            prop_assert_eq!(found.is_ok(), exists(&events, 0));
            if let Err(shortage) = found {
                let union = shortage.events().fold(0, |all, e| all | events[e]);
                prop_assert_eq!(union, shortage.slots());
                let (short, have) = (shortage.events().count(), shortage.slots().count_ones());
                prop_assert_eq!(short, have as usize + 1);
                prop_assert_eq!(got.events(), 0);
            } else {
                let mut taken = 0u64;
                for (event, allowed) in events.iter().enumerate() {
                    let bit = 1 << got.slot_of(event);
                    prop_assert!(allowed & bit != 0 && taken & bit == 0);
                    taken |= bit;
                }
            }
        }

        #[test]
        fn the_fewest_last_choices_are_used(
            events in prop::collection::vec((1..1u64 << 5, prop::option::of(0..5usize)), 0..6),
            last_choice in 0..1u64 << 5,
        ) {
            let allowed: Vec<u64> = events.iter().map(|event| event.0).collect();
            let mut got = Matching::new().with_last_choice(last_choice);
            let found = got.add_all(events).is_ok();
            prop_assert_eq!(found, exists(&allowed, 0));
            if found {
                let used = (0..allowed.len()).fold(0, |all, event| all | 1 << got.slot_of(event));
                let possible = (0..1u64 << 5).filter(|slots| exists(&allowed, !slots));
                let fewest = possible.map(|slots| (slots & last_choice).count_ones()).min();
                prop_assert_eq!(Some((used & last_choice).count_ones()), fewest);
            }
        }

        #[test]
        fn what_was_added_stays_whatever_is_refused_later(
            groups in prop::collection::vec(prop::collection::vec(1..1u64 << 4, 1..4), 1..6),
        ) {
            let mut got = Matching::new();
            let mut held: Vec<u64> = Vec::new();
            for group in groups {
                let all: Vec<u64> = held.iter().chain(&group).copied().collect();
                let added = got.add_all(group.iter().map(|&a| (a, None))).is_ok();
                prop_assert_eq!(added, exists(&all, 0));
                if added {
                    held = all;
                }
                prop_assert_eq!(got.events(), held.len());
                for (event, allowed) in held.iter().enumerate() {
                    prop_assert!(allowed >> got.slot_of(event) & 1 == 1);
                }
            }
        }
    }

    #[test]
    fn the_shortage_leaves_out_who_has_no_part_in_it() {
        let refused = matching(&[0b1100, 0b0001, 0b0001]).unwrap_err();
        assert_eq!(refused.events().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(refused.slots(), 0b0001);
    }

    #[test]
    fn sixty_four_slots_hold_sixty_four_events_and_no_more() {
        assert!(matching(&[u64::MAX; 64]).is_ok());
        assert_eq!(matching(&[u64::MAX; 65]).unwrap_err().events().count(), 65);
    }

    #[test]
    fn a_preference_is_granted_where_it_can_be() {
        let slots = |last_choice, events: [(u64, Option<usize>); 2]| {
            let mut got = Matching::new().with_last_choice(last_choice);
            got.add_all(events).unwrap();
            [got.slot_of(0), got.slot_of(1)]
        };
        assert_eq!(slots(0, [(0b11, Some(1)), (0b11, Some(1))]), [1, 0]);
        assert_eq!(slots(0b10, [(0b1, None), (0b110, Some(1))]), [0, 2]);
        assert_eq!(slots(0b110, [(0b1, None), (0b110, Some(2))]), [0, 2]);
        assert_eq!(slots(0, [(0b1, None), (0b11, Some(64))]), [0, 1]);
    }

    #[test]
    fn an_event_moves_to_a_last_choice_for_one_that_can_go_nowhere_else() {
        let mut got = Matching::new().with_last_choice(0b10);
        got.add_all([(0b11, Some(0))]).unwrap();
        assert_eq!(got.slot_of(0), 0);
        got.add_all([(0b01, None)]).unwrap();
        assert_eq!([got.slot_of(0), got.slot_of(1)], [1, 0]);
    }

    #[test]
    fn a_shared_slot_holds_any_number_of_events() {
        let mut got = Matching::new().with_shared(0b100);
        got.add_all([
            (0b100, None),
            (0b001, None),
            (0b110, Some(1)),
            (0b100, None),
        ])
        .unwrap();
        assert_eq!([0, 1, 2, 3].map(|event| got.slot_of(event)), [2, 0, 2, 2]);
        assert!(got.add_all([(0b001, None)]).is_err());
    }
}
