//! The most that events can count in a time, which maps find by looking at all of their events.

use std::sync::{Mutex, PoisonError};

use quipu_hal::MaxRate;

use super::bits::EventBits;
use super::source::EventSource;

/// The rates of the events of core PMUs that were opened, each looked up once.
#[derive(Default)]
pub(crate) struct Rates(Mutex<Vec<(EventBits, MaxRate)>>);

impl Rates {
    /// Returns the most that an event can count in a time ([`EventSource::max_rate`]).
    pub(crate) fn of(&self, bits: &EventBits, events: &EventSource) -> MaxRate {
        // Without maps there is nothing to look at.
        if !events.has_map_of(bits) {
            return events.max_rate(bits);
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rate)) = known.iter().find(|(known, _)| known == bits) {
            return *rate;
        }
        let rate = events.max_rate(bits);
        known.push((*bits, rate));
        rate
    }
}
