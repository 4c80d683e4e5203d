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
                let mut all = Self::ALL.iter().copied();
                all.find(|event| event.name() == name || event.aliases().contains(&name))
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

impl Event {
    /// Returns the generalized event of a name or alias: hardware, then software, then cache. None of them is what
    /// another letter case makes of a hardware event (`BRANCHES`), though the cache of branches is called so in any.
    ///
    /// ```
    /// use quipu_hal::{Event, Hardware};
    ///
    /// assert_eq!(Event::generalized("cpu-cycles"), Some(Hardware::Cycles.into()));
    /// assert_eq!(Event::generalized("INST_RETIRED.ANY"), None);
    /// assert_eq!(Event::generalized("BRANCHES"), None);
    /// ```
    pub fn generalized(name: &str) -> Option<Self> {
        Hardware::from_name(name)
            .map(Self::from)
            .or_else(|| Software::from_name(name).map(Self::from))
            .or_else(|| {
                let mut all = Hardware::ALL.iter();
                let is_hardware = all.any(|event| {
                    let mut names = spellings(&[event.name()], event.aliases());
                    names.any(|known| known.eq_ignore_ascii_case(name))
                });
                let cache = CacheEvent::from_name(name).filter(|_| !is_hardware);
                cache.map(Self::from)
            })
    }
}
