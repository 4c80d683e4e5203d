//! The list of the generalized events.

use std::fmt;

use quipu_hal::{CacheEvent, Event, Hardware, Software};

/// A generalized event with its names; see [`generalized`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generalized {
    /// The event: hardware, software or cache.
    pub event: Event,
    /// Its canonical name, the event's own text.
    pub name: String,
    /// Its other names. Empty for cache events, whose parts have them; see [`CacheEvent::from_name`].
    pub aliases: &'static [&'static str],
}

/// Every generalized event with its names: hardware, software, then cache events.
///
/// ```
/// let mut all = quipu_text::generalized();
/// let cycles = all.next().unwrap();
/// assert_eq!((cycles.name.as_str(), cycles.aliases), ("cycles", &["cpu-cycles"][..]));
/// assert_eq!(all.last().unwrap().name, "node-prefetch-misses");
/// ```
pub fn generalized() -> impl Iterator<Item = Generalized> {
    let hardware = Hardware::ALL
        .iter()
        .map(|&event| with_names(event, event.aliases()));
    let software = Software::ALL
        .iter()
        .map(|&event| with_names(event, event.aliases()));
    let cache = CacheEvent::all().map(|event| with_names(event, &[]));
    hardware.chain(software).chain(cache)
}

fn with_names(
    event: impl Into<Event> + fmt::Display,
    aliases: &'static [&'static str],
) -> Generalized {
    Generalized {
        name: format!("{event}"),
        event: event.into(),
        aliases,
    }
}
