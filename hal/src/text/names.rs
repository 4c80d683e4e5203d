//! The names of generalized events.

use std::fmt;

use crate::{Cache, CacheEvent, CacheOp, CacheResult, Event, Hardware, Software};

macro_rules! plain_names {
    ($($kind:ident),*) => {$(
        impl $kind {
            /// The event of this name or alias; letter case counts, as it does for `perf`.
            ///
            #[doc = concat!("```\nuse quipu_hal::", stringify!($kind), ";\n")]
            #[doc = concat!("for &event in ", stringify!($kind), "::ALL {")]
            #[doc = concat!("    assert_eq!(", stringify!($kind), "::from_name(event.name()), Some(event));\n}\n```")]
            pub fn from_name(name: &str) -> Option<Self> {
                const NAMES: [(&str, $kind); $kind::number_of_names()] = $kind::names();
                let found = NAMES.iter().find(|(known, _)| *known == name);
                found.map(|(_, event)| *event)
            }

            /// Returns the number of all names and aliases.
            const fn number_of_names() -> usize {
                let (mut number, mut i) = (Self::ALL.len(), 0);
                while i < Self::ALL.len() {
                    number += Self::ALL[i].aliases().len();
                    i += 1;
                }
                number
            }

            /// Returns all names and aliases, each with its event.
            const fn names<const N: usize>() -> [(&'static str, Self); N] {
                let mut names = [("", Self::ALL[0]); N];
                let (mut n, mut i) = (0, 0);
                while i < Self::ALL.len() {
                    let event = Self::ALL[i];
                    names[n] = (event.name(), event);
                    n += 1;
                    let mut alias = 0;
                    while alias < event.aliases().len() {
                        names[n] = (event.aliases()[alias], event);
                        n += 1;
                        alias += 1;
                    }
                    i += 1;
                }
                names
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )*};
}

plain_names!(Hardware, Software);

impl CacheEvent {
    /// The event of a name made of a cache, an operation and a result, joined by `-`; in any letter
    /// case, in the spellings of [`Cache::aliases`], [`CacheOp::aliases`] and
    /// [`CacheResult::aliases`].
    ///
    /// As for `perf`, operation and result may change places; without an operation reads are
    /// meant, without a result every access. `branches` and `branch-misses` are read too, although
    /// an [`Event`] of that name is [`Hardware`]'s.
    ///
    /// ```
    /// use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult};
    ///
    /// let event = CacheEvent::new(Cache::Dtlb, CacheOp::Write, CacheResult::Miss);
    /// assert_eq!(event.to_string(), "dTLB-store-misses");
    /// assert_eq!(CacheEvent::from_name("Data-TLB-write-miss"), Some(event));
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let (cache, mut rest) = take_one(name, Cache::ALL, |cache| {
            spellings(&[cache.name()], cache.aliases())
        })?;
        let (mut op, mut result) = (None, None);
        while let Some(part) = rest {
            let as_op = take_one(part, CacheOp::ALL, |op| {
                spellings(&[op.name(), op.plural()], op.aliases())
            });
            rest = match as_op {
                Some((found, rest)) if op.is_none() => {
                    op = Some(found);
                    rest
                }
                _ if result.is_none() => {
                    let (found, rest) = take_one(part, CacheResult::ALL, |result| {
                        spellings(&[result.name()], result.aliases())
                    })?;
                    result = Some(found);
                    rest
                }
                _ => return None,
            };
        }
        Some(Self {
            cache,
            op: op.unwrap_or(CacheOp::Read),
            result: result.unwrap_or(CacheResult::Access),
        })
    }
}

fn spellings<const N: usize>(
    names: &[&'static str; N],
    aliases: &'static [&'static str],
) -> impl Iterator<Item = &'static str> + use<N> {
    (*names).into_iter().chain(aliases.iter().copied())
}

/// The one of `all` whose spelling starts `text` and ends at its end or at a `-`, with what
/// follows that `-`.
fn take_one<'a, T: Copy, I: Iterator<Item = &'static str>>(
    text: &'a str,
    all: &[T],
    spellings: impl Fn(T) -> I,
) -> Option<(T, Option<&'a str>)> {
    for &one in all {
        for spelling in spellings(one) {
            if let Some(rest) = after(text, spelling) {
                return Some((one, rest));
            }
        }
    }
    None
}

/// Returns what follows a spelling that starts a text: nothing, or what is behind a `-`.
fn after<'a>(text: &'a str, spelling: &str) -> Option<Option<&'a str>> {
    let (start, rest) = text.split_at_checked(spelling.len())?;
    if !start.eq_ignore_ascii_case(spelling) {
        return None;
    }
    match rest.strip_prefix('-') {
        None if rest.is_empty() => Some(None),
        None => None,
        more => Some(more),
    }
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = self.cache.name();
        match self.result {
            CacheResult::Access => write!(f, "{cache}-{}", self.op.plural()),
            miss => write!(f, "{cache}-{}-{}", self.op.name(), miss.name()),
        }
    }
}

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
/// let mut all = quipu_hal::text::generalized();
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

/// The generalized event of a name or alias: hardware, then software, then cache.
pub(super) fn generalized_from_name(name: &str) -> Option<Event> {
    Hardware::from_name(name)
        .map(Event::from)
        .or_else(|| Software::from_name(name).map(Event::from))
        .or_else(|| CacheEvent::from_name(name).map(Event::from))
}
