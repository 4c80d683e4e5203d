//! Counts, with how sure they are.

use std::fmt::{self, Write as _};

use crate::{Error, ErrorKind, Result};

/// A count over the whole time it was enabled, and how sure it is.
///
/// ```
/// use quipu_hal::{Count, scale};
///
/// assert_eq!(scale(1000, 10, 10), Count::Exact(1000));
/// assert_eq!(scale(1000, 10, 4), Count::Estimated(2500));
/// assert_eq!(scale(0, 10, 0), Count::NotCounted);
///
/// let count = Count::of_parts(3500, true, 1, 4);
/// assert_eq!(count.value(), Some(3500));
/// assert_eq!(count.exact(), None);
/// assert!(count.is_estimate() && !count.is_complete());
///
/// // For people: with the mark of what it is.
/// assert_eq!(scale(1000, 10, 10).to_string(), "1,000");
/// assert_eq!(scale(1000, 10, 4).to_string(), "~2,500");
/// assert_eq!(count.to_string(), "~3,500 (1 of 4 parts missing)");
/// assert_eq!(scale(0, 10, 0).to_string(), "<not counted>");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Count {
    /// Counted all the time in every part, or never enabled: a fact.
    Exact(u128),
    /// Counted in every part, but in at least one for a part of the time, and scaled up there.
    Estimated(u128),
    /// A lower bound: counted, but for stretches that the system does not count. hwpmc(4) does not count the first turn of
    /// a new thread or process.
    AtLeast(u128),
    /// Counted in some parts of the target only.
    Partial {
        /// The sum over the parts that were counted.
        value: u128,
        /// True if the value of any part is an estimate.
        estimated: bool,
        /// The number of parts that were enabled and have no count.
        missing: usize,
        /// The number of all parts.
        parts: usize,
    },
    /// Enabled, but never counted in any part: there is no value.
    NotCounted,
    /// The counter moved further than the event can have occurred in the time ([`MaxRate`](crate::MaxRate)), and in
    /// no part there is a value.
    Jumped,
}

impl Count {
    /// Returns the count of a target of several parts, of which `missing` were never counted;
    /// `value` is the sum over the others.
    #[inline]
    #[must_use]
    pub const fn of_parts(value: u128, estimated: bool, missing: usize, parts: usize) -> Self {
        match (missing, estimated) {
            (0, false) => Self::Exact(value),
            (0, true) => Self::Estimated(value),
            _ if missing >= parts => Self::NotCounted,
            _ => Self::Partial {
                value,
                estimated,
                missing,
                parts,
            },
        }
    }

    /// Returns the value of what was counted, or `None` if no part was.
    #[inline]
    #[must_use]
    pub const fn value(self) -> Option<u128> {
        match self {
            Self::Exact(value)
            | Self::Estimated(value)
            | Self::AtLeast(value)
            | Self::Partial { value, .. } => Some(value),
            Self::NotCounted | Self::Jumped => None,
        }
    }

    /// Returns the count, or an error if the counter jumped.
    ///
    /// # Errors
    /// [`CounterJumped`](ErrorKind::CounterJumped), about the event of this name.
    #[inline]
    pub fn checked(self, event: &str) -> Result<Self> {
        match self {
            Self::Jumped => Err(jumped(event)),
            count => Ok(count),
        }
    }

    /// Returns the value if it is a fact about the whole target.
    #[inline]
    #[must_use]
    pub const fn exact(self) -> Option<u128> {
        match self {
            Self::Exact(value) => Some(value),
            _ => None,
        }
    }

    /// Returns true if the value contains an estimate.
    #[inline]
    #[must_use]
    pub const fn is_estimate(self) -> bool {
        matches!(
            self,
            Self::Estimated(_)
                | Self::Partial {
                    estimated: true,
                    ..
                }
        )
    }

    /// Returns an exact count as a lower bound, if it is one; others are no facts already.
    #[inline]
    #[must_use]
    pub const fn bounded(self, is_lower_bound: bool) -> Self {
        match self {
            Self::Exact(value) if is_lower_bound => Self::AtLeast(value),
            other => other,
        }
    }

    /// Returns true if the value is a lower bound.
    #[inline]
    #[must_use]
    pub const fn is_lower_bound(self) -> bool {
        matches!(self, Self::AtLeast(_))
    }

    /// Returns true if there is a value, and it covers every part of the target.
    #[inline]
    #[must_use]
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Exact(_) | Self::Estimated(_) | Self::AtLeast(_))
    }

    /// Returns the number of parts that have no count, if others have.
    #[inline]
    #[must_use]
    pub const fn missing(self) -> usize {
        match self {
            Self::Partial { missing, .. } => missing,
            _ => 0,
        }
    }
}

/// Writes the value for people, as `quipu stat` does: digits in groups of three, `~` before an estimate, `(at least)`
/// behind a lower bound, the parts that are missing in parentheses, and `<not counted>` where there is no value.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = self.value() else {
            return f.pad("<not counted>");
        };
        let mut text = String::new();
        if self.is_estimate() {
            text.push('~');
        }
        let digits = value.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        match self {
            Self::Partial { missing, parts, .. } => {
                write!(text, " ({missing} of {parts} parts missing)")?;
            }
            Self::AtLeast(_) => text.push_str(" (at least)"),
            _ => {}
        }
        f.pad(&text)
    }
}

fn jumped(event: &str) -> Error {
    Error::new(ErrorKind::CounterJumped, format!("count {event}"))
        .with_reason("the counter jumped: it moved further than the event can have occurred in the time it ran")
        .with_hint(
            "count fewer events at a time, and measure again; in a virtual machine the hypervisor may not keep \
             counters that take turns",
        )
}
