//! The known names nearest to a mistyped one.

use crate::generalized;

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
/// use quipu_text::nearest;
///
/// assert_eq!(nearest("cylces", []), ["cycles"]);
/// assert_eq!(nearest("INST_RETIRED_ANY", ["INST_RETIRED.ANY"]), ["INST_RETIRED.ANY"]);
/// assert!(nearest("xyzzy", []).is_empty());
/// ```
pub fn nearest<'a>(name: &str, extra: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut near = Near::new(name);
    for known in generalized() {
        near.offer(&known.name);
        for alias in known.aliases {
            near.offer(alias);
        }
    }
    for name in extra {
        near.offer(name);
    }
    near.found
}

/// Returns the candidates nearest to a name, at most three, the nearest first.
///
/// A candidate is near when at most a third of the letters, and four at most, are wrong, missing,
/// too many or swapped (optimal string alignment), or when it begins with the name. Letter case
/// does not count, nor whether `-`, `_`, `.` or `:` joins the parts, and a last segment after `:`
/// may be a mistyped modifier.
///
/// ```
/// use quipu_text::nearest_of;
///
/// assert_eq!(nearest_of("umsk", ["event", "umask", "cmask"]), ["umask"]);
/// ```
pub fn nearest_of<S>(name: &str, candidates: impl IntoIterator<Item = S>) -> Vec<S>
where
    S: AsRef<str> + PartialEq,
{
    let mut near = Near::new(name);
    let mut found = Vec::new();
    for candidate in candidates {
        if let Some(place) = near.offer(candidate.as_ref()) {
            found.insert(place, candidate);
            found.truncate(MOST);
        }
    }
    found
}

/// The nearest of the names that were offered so far, the nearest first.
struct Near {
    /// `None` if no name is near.
    wanted: Option<Wanted>,
    found: Vec<String>,
    /// The distance of each that was found.
    distances: Vec<usize>,
}

impl Near {
    fn new(name: &str) -> Self {
        let wanted = || Wanted {
            name: folded(name),
            stem: name.rsplit_once(':').map(|(stem, _)| folded(stem)),
        };
        Self {
            wanted: (!name.is_empty() && name.len() <= LONGEST).then(wanted),
            found: Vec::new(),
            distances: Vec::new(),
        }
    }

    /// Returns the place among those that were found that a candidate takes, if it is near.
    fn offer(&mut self, candidate: &str) -> Option<usize> {
        let far = self.wanted.as_ref()?.distance(candidate)?;
        let mut place = 0;
        for (name, other) in self.found.iter().zip(&self.distances) {
            if name == candidate {
                return None;
            }
            place += usize::from(*other <= far);
        }
        if place == MOST {
            return None;
        }
        self.found.truncate(MOST - 1);
        self.found.insert(place, candidate.to_owned());
        self.distances.truncate(MOST - 1);
        self.distances.insert(place, far);
        Some(place)
    }
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
        if candidate.len() > LONGEST {
            return None;
        }
        let candidate = folded(candidate);
        let whole = distance(&self.name, &candidate);
        let stem = self.stem.as_deref();
        let stem = stem.and_then(|stem| distance(stem, &candidate));
        whole.into_iter().chain(stem.map(|far| far + 1)).min()
    }
}

/// Returns the letters of a name, without what people do not remember exactly.
fn folded(name: &str) -> String {
    let is_joint = |c| matches!(c, '_' | '.' | ':');
    name.to_ascii_lowercase().replace(is_joint, "-")
}

/// Returns the distance of a candidate from the text, if it is near.
fn distance(wanted: &str, candidate: &str) -> Option<usize> {
    let letters = wanted.chars().count();
    let tolerated = (letters / 3).min(4);
    let difference = candidate.chars().count().abs_diff(letters);
    if letters >= 3 && candidate.starts_with(wanted) {
        return Some(difference.min(tolerated));
    }
    if difference > tolerated {
        return None;
    }
    let far = strsim::osa_distance(wanted, candidate);
    (far <= tolerated).then_some(far)
}
