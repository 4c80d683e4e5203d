//! Statistics of paired runs: the ratio of two commands with its interval, and the verdict over all metrics.
//!
//! ```
//! use quipu_compare::stats::{Settings, Verdict, compare, decide};
//!
//! let base = [10.0, 10.2, 9.9, 10.1, 10.0, 10.3, 9.8, 10.1];
//! let other = [12.1, 12.0, 12.2, 11.9, 12.1, 12.4, 11.8, 12.0];
//! let settings = Settings::default();
//! let comparison = compare(&base, &other, settings);
//! let change = comparison.interval().expect("two pairs suffice");
//! assert!(change.low > 0.17 && change.high < 0.23); // 17 to 23 % more
//! assert_eq!(decide(&[comparison], settings)[0].verdict, Verdict::Different);
//! ```

mod holm;
mod ratio;
mod signed_rank;
mod summary;

use serde::Serialize;

pub use holm::holm;
pub use ratio::{Ratio, ratio};
pub use signed_rank::{SignedRank, signed_rank};
pub use summary::{Mean, Summary, mean, summary};

/// The power at which a difference counts as one that would have been seen.
pub const POWER: f64 = 0.8;

/// The levels of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The confidence of intervals, and one less the rate of false alarms; 0.95 by default.
    pub confidence: f64,
    /// The relative difference that matters: no difference is found only where one of this size would have been. 0.03 by
    /// default.
    pub resolution: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            resolution: 0.03,
        }
    }
}

/// An interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Returns the interval with each number converted.
    pub fn map(self, convert: impl Fn(f64) -> f64) -> Self {
        Self {
            value: convert(self.value),
            low: convert(self.low),
            high: convert(self.high),
        }
    }
}

/// The number that an interval is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The relative change: 0.1 is 10 % more.
    Relative,
    /// The difference in the unit of the values: some of them are zero or less, of which there is no ratio.
    Difference,
}

/// The test on which the verdict rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t on the logarithms of the ratios.
    Student,
    /// Wilcoxon's signed ranks, which assumes no distribution.
    SignedRank,
}

/// The values of two commands compared, pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The number of pairs.
    pub pairs: usize,
    /// The mean of the base in these pairs.
    pub base: f64,
    /// The number that both intervals are of.
    pub scale: Scale,
    /// The test of the verdict.
    pub method: Method,
    /// The outcome of Student's t; `None` without ratios, or with fewer than two pairs.
    pub student: Option<Ratio>,
    /// The outcome of Wilcoxon's signed ranks, in the number of `scale`.
    pub signed_rank: SignedRank,
}

/// Compares values that were measured in pairs. Values that are left over in the longer slice are not used.
///
/// The method is Student's, except where a value is not above zero or most of the ratios are equal to another one: counts near
/// zero, or of a few values.
pub fn compare(base: &[f64], other: &[f64], settings: Settings) -> Comparison {
    let pairs: Vec<(f64, f64)> = base.iter().copied().zip(other.iter().copied()).collect();
    let mean_of_base = pairs.iter().map(|(base, _)| base).sum::<f64>() / pairs.len() as f64;
    let has_ratios = pairs
        .iter()
        .all(|(base, other)| *base > 0.0 && *other > 0.0);
    if !has_ratios {
        let differences: Vec<f64> = pairs.iter().map(|(base, other)| other - base).collect();
        return Comparison {
            pairs: pairs.len(),
            base: mean_of_base,
            scale: Scale::Difference,
            method: Method::SignedRank,
            student: None,
            signed_rank: signed_rank(&differences, settings.confidence),
        };
    }
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(base, other)| (other / base).ln())
        .collect();
    let ranks = signed_rank(&logs, settings.confidence);
    Comparison {
        pairs: pairs.len(),
        base: mean_of_base,
        scale: Scale::Relative,
        method: match mostly_ties(&logs) {
            true => Method::SignedRank,
            false => Method::Student,
        },
        student: ratio(&logs, settings.confidence),
        signed_rank: SignedRank {
            estimate: ranks.estimate.exp_m1(),
            interval: ranks.interval.map(|interval| interval.map(f64::exp_m1)),
            ..ranks
        },
    }
}

/// Returns true if more than half of the values are equal to another one.
fn mostly_ties(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b);
    let tied: usize = groups.map(<[f64]>::len).filter(|equal| *equal > 1).sum();
    2 * tied > values.len()
}

impl Comparison {
    /// Returns the change from the base to the other, with its interval, by the method of the verdict.
    pub fn interval(&self) -> Option<Interval> {
        self.interval_by(self.method)
    }

    /// Returns the relative change from the base to the other, if the values have ratios.
    pub fn relative_interval(&self) -> Option<Interval> {
        self.interval().filter(|_| self.scale == Scale::Relative)
    }

    /// Returns the change by one of the methods, if that has an interval for these pairs.
    pub fn interval_by(&self, method: Method) -> Option<Interval> {
        match method {
            Method::Student => self.student.map(|ratio| ratio.change),
            Method::SignedRank => self.signed_rank.interval,
        }
    }

    /// Returns the two-sided probability of such values where there is no difference, by the method of the verdict.
    pub fn p(&self) -> f64 {
        self.p_by(self.method)
    }

    /// Returns the same by one of the methods; 1 where it has none.
    pub fn p_by(&self, method: Method) -> f64 {
        match method {
            Method::Student => self.student.map_or(1.0, |ratio| ratio.p),
            Method::SignedRank => self.signed_rank.p,
        }
    }

    /// Returns the least probability that a method can have for so many pairs.
    fn least_p(&self, method: Method) -> f64 {
        match method {
            Method::Student => 0.0,
            Method::SignedRank => 2.0 * 0.5_f64.powf(self.pairs as f64),
        }
    }

    /// Returns the least difference that would have been seen in four of five comparisons like this one, in the number of
    /// `scale`; infinite if there is no interval.
    pub fn detectable(&self) -> f64 {
        match (self.method, self.student, self.signed_rank.interval) {
            (Method::Student, Some(ratio), _) => ratio.detectable,
            // As for a normal distribution of the estimate: from the half width at 97.5 % to that of the power on top.
            (Method::SignedRank, _, Some(interval)) => {
                (interval.high - interval.low) / 2.0 * (1.0 + ratio::normal_share(POWER))
            }
            _ => f64::INFINITY,
        }
    }
}

/// The answer for a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They differ.
    Different,
    /// They do not differ by as much as matters, which would have been seen.
    NoDifferenceFound,
    /// A difference that matters may be there: the pairs are too few for their spread.
    Inconclusive,
}

/// A verdict with its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// The probability by the method of the verdict, corrected for the number of metrics.
    pub p: f64,
    /// The least difference that would have been seen ([`Comparison::detectable`]); infinite if the pairs are too few to see
    /// any among so many metrics.
    pub detectable: f64,
    /// The verdict by the other method, if that is another one on whether there is a difference.
    pub disagreement: Option<Method>,
}

/// Decides over all comparisons that are shown together, by Holm's correction: the probability that one of them is called
/// different without being so is at most one less the confidence.
pub fn decide(comparisons: &[Comparison], settings: Settings) -> Vec<Decision> {
    let level = 1.0 - settings.confidence;
    let by_verdict: Vec<f64> = comparisons.iter().map(Comparison::p).collect();
    let by_other: Vec<f64> = comparisons
        .iter()
        .map(|one| one.p_by(other(one.method)))
        .collect();
    let corrected = holm(&by_verdict).into_iter().zip(holm(&by_other));
    let decided = comparisons.iter().zip(corrected);
    decided
        .map(|(comparison, (p, p_of_other))| {
            let other = other(comparison.method);
            let is_different = differs(comparison, comparison.method, p <= level);
            let can_tell = |method| comparison.least_p(method) * comparisons.len() as f64 <= level;
            let disagrees = comparison.interval_by(other).is_some()
                && can_tell(other)
                && is_different != differs(comparison, other, p_of_other <= level);
            let detectable = match comparison.detectable() {
                0.0 => 0.0,
                least if can_tell(comparison.method) => least,
                _ => f64::INFINITY,
            };
            // A difference as a share of the base, of which there is none where that is zero.
            let would_be_seen = match comparison.scale {
                Scale::Relative => detectable <= settings.resolution,
                Scale::Difference => detectable <= settings.resolution * comparison.base,
            };
            Decision {
                detectable,
                verdict: match (is_different, would_be_seen || detectable == 0.0) {
                    (true, _) => Verdict::Different,
                    (false, true) => Verdict::NoDifferenceFound,
                    (false, false) => Verdict::Inconclusive,
                },
                p,
                disagreement: disagrees.then_some(other),
            }
        })
        .collect()
}

/// Returns true if a probability is low enough, and the interval leaves out 0. Ranks without the pairs that are equal may be
/// unlikely where the interval, in which all pairs are, has 0 in it.
fn differs(comparison: &Comparison, method: Method, is_unlikely: bool) -> bool {
    let interval = comparison.interval_by(method);
    is_unlikely && interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
}

fn other(method: Method) -> Method {
    match method {
        Method::Student => Method::SignedRank,
        Method::SignedRank => Method::Student,
    }
}

#[cfg(test)]
mod tests;
