//! Wilcoxon's signed-rank test, with the interval of Hodges and Lehmann.

use super::Interval;
use super::ratio::{normal_quantile, normal_share_below};

/// The most pairs for which the distribution of the sum of ranks is computed; beyond, it is as good as normal.
const EXACT: usize = 200;

/// The outcome of the signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The median of the means of any two differences (Hodges and Lehmann 1963).
    pub estimate: f64,
    /// The estimate with the interval of those differences that the test does not refuse; `None` for fewer than 6 pairs at
    /// 95 %: no test of so few can refuse any.
    pub interval: Option<Interval>,
    /// The two-sided probability of such differences where the sign of each is a coin's. It is exact for up to 200 pairs,
    /// with ties too. Differences of zero say nothing, and are left out.
    pub p: f64,
}

/// Tests the differences of pairs.
pub fn signed_rank(differences: &[f64], confidence: f64) -> SignedRank {
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let walsh = Walsh(&sorted);
    let estimate = walsh.median();
    let interval = ends(differences.len(), confidence).map(|below| Interval {
        value: estimate,
        low: walsh.smallest(below),
        high: walsh.smallest(walsh.len() + 1 - below),
    });
    SignedRank {
        estimate,
        interval,
        p: probability(differences),
    }
}

/// Returns the two-sided probability of the sum of the ranks of what is above zero.
fn probability(differences: &[f64]) -> f64 {
    let mut ordered: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    ordered.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut doubled_ranks, mut positive, mut before) = (Vec::new(), 0, 0);
    for equal in ordered.chunk_by(|a, b| a.abs() == b.abs()) {
        // Twice the mean of the ranks before + 1 to before + len.
        let rank = 2 * before + equal.len() + 1;
        doubled_ranks.extend(equal.iter().map(|_| rank));
        positive += rank * equal.iter().filter(|d| **d > 0.0).count();
        before += equal.len();
    }
    let total: usize = doubled_ranks.iter().sum();
    if total == 0 {
        return 1.0;
    }
    // Both tails are alike.
    let tail = positive.min(total - positive);
    let below = match ordered.len() <= EXACT {
        true => distribution(&doubled_ranks)[..=tail].iter().sum(),
        false => {
            let variance: f64 = doubled_ranks
                .iter()
                .map(|rank| (*rank as f64 / 2.0).powi(2))
                .sum::<f64>()
                / 4.0;
            normal_share_below((tail as f64 - total as f64 / 2.0) / 2.0 / variance.sqrt())
        }
    };
    (2.0 * below).min(1.0)
}

/// Returns the probability of each sum of some of these numbers, where each is in it or not by a coin.
fn distribution(numbers: &[usize]) -> Vec<f64> {
    let mut shares = vec![0.0; numbers.iter().sum::<usize>() + 1];
    shares[0] = 1.0;
    let mut most = 0;
    for number in numbers {
        most += number;
        for sum in (0..=most).rev() {
            let with = if sum >= *number {
                shares[sum - number]
            } else {
                0.0
            };
            shares[sum] = (shares[sum] + with) / 2.0;
        }
    }
    shares
}

/// Returns how many means of two are below the interval and one more: the least sum of ranks whose probability up to it is
/// at least that of a tail. `None` where even the sum 0 is likelier than that.
pub(super) fn ends(pairs: usize, confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0;
    if pairs > EXACT {
        let n = pairs as f64;
        let (mean, variance) = (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        let at = mean + normal_quantile(tail) * variance.sqrt();
        return Some(at.floor().max(1.0) as usize);
    }
    let ranks: Vec<usize> = (1..=pairs).collect();
    let mut below = 0.0;
    let shares = distribution(&ranks);
    let at = shares.iter().position(|share| {
        below += share;
        below > tail
    });
    at.filter(|at| *at > 0)
}

/// The means of any two of some sorted numbers, each with itself too (Walsh averages); they are never all in memory.
struct Walsh<'a>(&'a [f64]);

impl Walsh<'_> {
    fn len(&self) -> usize {
        self.0.len() * (self.0.len() + 1) / 2
    }

    fn median(&self) -> f64 {
        match self.len() {
            0 => f64::NAN,
            len if len % 2 == 1 => self.smallest(len / 2 + 1),
            len => f64::midpoint(self.smallest(len / 2), self.smallest(len / 2 + 1)),
        }
    }

    /// Returns the mean that is the nth of all in their order, by bisection over the numbers that a float can be.
    fn smallest(&self, nth: usize) -> f64 {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return f64::NAN;
        };
        let (mut low, mut high) = (ordered(*first), ordered(*last));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.up_to(unordered(middle)) >= nth {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        unordered(low)
    }

    /// Returns how many means are at most a value.
    fn up_to(&self, value: f64) -> usize {
        let mut partners = self.0.len();
        let mut count = 0;
        for (at, number) in self.0.iter().enumerate() {
            while partners > at && f64::midpoint(*number, self.0[partners - 1]) > value {
                partners -= 1;
            }
            if partners <= at {
                break;
            }
            count += partners - at;
        }
        count
    }
}

/// Returns an integer that is in the order of floats (IEEE 754, totalOrder).
fn ordered(float: f64) -> i128 {
    let bits = float.to_bits() as i64;
    i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64)
}

fn unordered(integer: i128) -> f64 {
    let bits = integer as i64;
    f64::from_bits((bits ^ (((bits >> 63) as u64) >> 1) as i64) as u64)
}
