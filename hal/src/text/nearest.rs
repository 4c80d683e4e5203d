//! The known names nearest to a mistyped one.

use std::borrow::Cow;
use std::iter::once;

use strsim::damerau_levenshtein;

use super::names::generalized;

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
    let known = generalized().flat_map(|known| {
        let aliases = known.aliases.iter().copied().map(Cow::Borrowed);
        once(Cow::Owned(known.name)).chain(aliases)
    });
    let extra = extra.into_iter().map(Cow::Borrowed);
    let near = nearest_of(name, known.chain(extra));
    near.into_iter().map(Cow::into_owned).collect()
}

/// Returns the candidates nearest to a name, at most three, the nearest first.
///
/// A candidate is near when at most a third of the letters, and four at most, are wrong, missing,
/// too many or swapped (Damerau-Levenshtein distance), or when it begins with the name. Letter case
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
    let wanted = folded(name);
    let stem = name.rsplit_once(':').map(|(stem, _)| folded(stem));
    let mut found: Vec<(usize, S)> = Vec::new();
    for candidate in candidates {
        let folded = folded(candidate.as_ref());
        let whole = distance(&wanted, &folded);
        let stem = stem.as_deref().and_then(|stem| distance(stem, &folded));
        let Some(far) = whole.into_iter().chain(stem.map(|far| far + 1)).min() else {
            continue;
        };
        let place = found.partition_point(|(other, _)| *other <= far);
        let found_already = found.iter().any(|(_, other)| *other == candidate);
        if place < MOST && !found_already {
            found.insert(place, (far, candidate));
            found.truncate(MOST);
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

/// The name with what people do not remember exactly taken out.
fn folded(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '_' | '.' | ':' => '-',
            c => c.to_ascii_lowercase(),
        })
        .collect()
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
    let far = damerau_levenshtein(wanted, candidate);
    (far <= tolerated).then_some(far)
}
