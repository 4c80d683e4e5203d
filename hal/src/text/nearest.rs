//! The known names nearest to a mistyped one.

use std::borrow::Cow;
use std::mem::swap;

use crate::{Cache, CacheEvent, CacheOp, CacheResult, Hardware, Software};

/// Number of names that are offered.
const MOST: usize = 3;

/// The longest name that is compared; comparing takes time by the product of the lengths.
const LONGEST: usize = 128;

/// Returns the names nearest to one that is not known, at most three, the nearest first.
///
/// The candidates are all generalized names with their aliases, and `extra`: a database's native
/// names, say. [`nearest_of`] defines near.
///
/// ```
/// use quipu_hal::text::nearest;
///
/// assert_eq!(nearest("cylces", []), ["cycles"]);
/// assert_eq!(nearest("INST_RETIRED_ANY", ["INST_RETIRED.ANY"]), ["INST_RETIRED.ANY"]);
/// assert!(nearest("xyzzy", []).is_empty());
/// ```
pub fn nearest<'a>(name: &str, extra: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut known = generalized_names();
    known.extend(extra.into_iter().map(Cow::Borrowed));
    nearest_known(name, known)
}

fn nearest_known(name: &str, known: Vec<Cow<'_, str>>) -> Vec<String> {
    let mut near = Vec::with_capacity(MOST);
    for name in nearest_of(name, known) {
        near.push(name.into_owned());
    }
    near
}

/// Returns the generalized names with their aliases.
fn generalized_names<'a>() -> Vec<Cow<'a, str>> {
    let mut names = Vec::new();
    let mut add = |name, aliases: &[&'static str]| {
        names.push(Cow::Borrowed(name));
        for alias in aliases {
            names.push(Cow::Borrowed(*alias));
        }
    };
    for event in Hardware::ALL {
        add(event.name(), event.aliases());
    }
    for event in Software::ALL {
        add(event.name(), event.aliases());
    }
    for &cache in Cache::ALL {
        for &op in CacheOp::ALL {
            for &result in CacheResult::ALL {
                let event = CacheEvent::new(cache, op, result);
                names.push(Cow::Owned(format!("{event}")));
            }
        }
    }
    names
}

/// Returns the candidates nearest to a name, at most three, the nearest first.
///
/// A candidate is near when at most a third of the letters, and four at most, are wrong, missing,
/// too many or swapped (optimal string alignment), or when it begins with the name. Letter case
/// does not count, nor whether `-`, `_`, `.` or `:` joins the parts, and a last segment after `:`
/// may be a mistyped modifier.
///
/// ```
/// use quipu_hal::text::nearest_of;
///
/// assert_eq!(nearest_of("umsk", ["event", "umask", "cmask"]), ["umask"]);
/// ```
pub fn nearest_of<S>(name: &str, candidates: impl IntoIterator<Item = S>) -> Vec<S>
where
    S: AsRef<str> + PartialEq,
{
    if name.is_empty() || name.len() > LONGEST {
        return Vec::new();
    }
    let wanted = Wanted {
        name: folded(name),
        stem: name.rsplit_once(':').map(|(stem, _)| folded(stem)),
    };
    let mut found: Vec<(usize, S)> = Vec::new();
    for candidate in candidates {
        let Some(far) = wanted.distance(candidate.as_ref()) else {
            continue;
        };
        let place = found.partition_point(|(other, _)| *other <= far);
        let found_already = found.iter().any(|(_, other)| *other == candidate);
        if place < MOST && !found_already {
            found.insert(place, (far, candidate));
            found.truncate(MOST);
        }
    }
    let mut near = Vec::with_capacity(found.len());
    for (_, name) in found {
        near.push(name);
    }
    near
}

/// A name that is looked for.
struct Wanted {
    name: String,
    /// The name without its last segment after `:`, which may be a modifier.
    stem: Option<String>,
}

impl Wanted {
    /// Returns the distance of a candidate, if it is near.
    fn distance(&self, candidate: &str) -> Option<usize> {
        let candidate = folded(candidate);
        let whole = distance(&self.name, &candidate);
        let stem = self.stem.as_deref();
        let stem = stem.and_then(|stem| distance(stem, &candidate));
        whole.into_iter().chain(stem.map(|far| far + 1)).min()
    }
}

/// The name with what people do not remember exactly taken out.
fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for c in name.chars() {
        folded.push(match c {
            '_' | '.' | ':' => '-',
            c => c.to_ascii_lowercase(),
        });
    }
    folded
}

/// Returns the distance of a candidate from the text, if it is near.
fn distance(wanted: &str, candidate: &str) -> Option<usize> {
    if candidate.len() > LONGEST {
        return None;
    }
    let letters = wanted.chars().count();
    let tolerated = (letters / 3).min(4);
    let difference = candidate.chars().count().abs_diff(letters);
    if letters >= 3 && candidate.starts_with(wanted) {
        return Some(difference.min(tolerated));
    }
    if difference > tolerated {
        return None;
    }
    let far = alignment(wanted, candidate);
    (far <= tolerated).then_some(far)
}

/// Returns how many letters are to be changed, inserted, taken out, or swapped with the next, to make one text of the
/// other (optimal string alignment).
fn alignment(one: &str, other: &str) -> usize {
    let mut letters = Vec::with_capacity(other.len());
    for letter in other.chars() {
        letters.push(letter);
    }
    // The distances of the letters of `one` so far, of those but the last, and with the next, to each start of `other`.
    let mut above = Vec::with_capacity(letters.len() + 1);
    for distance in 0..=letters.len() {
        above.push(distance);
    }
    let mut before = above.clone();
    let mut row = above.clone();
    let mut last = None;
    for (i, letter) in one.chars().enumerate() {
        row[0] = i + 1;
        for (j, &wanted) in letters.iter().enumerate() {
            let changed = above[j] + usize::from(letter != wanted);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if j > 0 && last == Some(wanted) && letter == letters[j - 1] {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        last = Some(letter);
        swap(&mut before, &mut above);
        swap(&mut above, &mut row);
    }
    above[letters.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn distances_are_those_of_optimal_string_alignment(one in "[abcé]{0,9}", other in "[abcé]{0,9}") {
            prop_assert_eq!(alignment(&one, &other), strsim::osa_distance(&one, &other));
        }
    }
}
