//! Conditions of metrics that deserve attention.

/// A condition of values that deserve attention: comparisons of metrics with numbers, joined by `&` and `|`, of which
/// `&` binds tighter.
///
/// ```
/// use quipu_events_format::Threshold;
///
/// let threshold = Threshold::parse("part > 10 & whole > 15 | other < 2").unwrap();
/// let values = |name: &str| match name {
///     "part" => Some(11.0),
///     "whole" => Some(14.0),
///     _ => None,
/// };
/// // `other` is not known, and may be below 2.
/// assert_eq!(threshold.holds(values), None);
/// assert_eq!(threshold.holds(|name| Some(values(name).unwrap_or(3.0))), Some(false));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// Any of them, each all of its comparisons.
    any: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Comparison {
    metric: String,
    is_above: bool,
    limit: f64,
}

impl Threshold {
    /// Parses a condition; `None` where the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let all = |text: &str| text.split('&').map(Comparison::parse).collect();
        let any: Option<_> = text.split('|').map(all).collect();
        any.map(|any| Self { any })
    }

    /// Returns true if the condition holds for these values of metrics, `None` where it depends on one that is missing.
    pub fn holds(&self, value: impl Fn(&str) -> Option<f64>) -> Option<bool> {
        let all = |all: &Vec<Comparison>| {
            let each = || all.iter().map(|one| one.holds(&value));
            either(each(), false)
        };
        either(self.any.iter().map(all), true)
    }
}

impl Comparison {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [metric, operator @ (">" | "<"), limit] = words[..] else {
            return None;
        };
        Some(Self {
            metric: metric.to_owned(),
            is_above: operator == ">",
            limit: limit.parse().ok()?,
        })
    }

    fn holds(&self, value: impl Fn(&str) -> Option<f64>) -> Option<bool> {
        let value = value(&self.metric)?;
        Some(match self.is_above {
            true => value > self.limit,
            false => value < self.limit,
        })
    }
}

/// Returns `deciding` if one of them is that, its opposite if all are, and `None` if it depends on an unknown one.
fn either(each: impl Iterator<Item = Option<bool>>, deciding: bool) -> Option<bool> {
    let mut unknown = false;
    for one in each {
        match one {
            Some(value) if value == deciding => return Some(deciding),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!deciding)
}
