//! Student's t on the logarithms of ratios.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::{Interval, POWER};

/// The ratio of two commands, by Student's t on the logarithms of the ratios of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The change of the geometric mean, with its interval: 0.1 is 10 % more.
    pub change: Interval,
    /// The two-sided probability of such ratios where there is no difference.
    pub p: f64,
    /// The least change that would have been seen with the power [`POWER`].
    pub detectable: f64,
}

/// Returns the ratio for the logarithms of ratios; `None` for fewer than two.
pub fn ratio(logs: &[f64], confidence: f64) -> Option<Ratio> {
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let distribution = student(n - 1.0);
    let p = match (error, mean) {
        (0.0, 0.0) => 1.0,
        (0.0, _) => 0.0,
        _ => 2.0 * distribution.cdf(-(mean / error).abs()),
    };
    let width = quantile(&distribution, 0.5 + confidence / 2.0);
    let power = quantile(&distribution, POWER);
    let change = Interval {
        value: mean,
        low: mean - width * error,
        high: mean + width * error,
    };
    Some(Ratio {
        change: change.map(f64::exp_m1),
        p: p.min(1.0),
        detectable: ((width + power) * error).exp_m1(),
    })
}

/// Returns half the width of an interval of a mean in units of its standard error, for so many values.
pub(super) fn half_width(values: usize, confidence: f64) -> f64 {
    quantile(&student(values as f64 - 1.0), 0.5 + confidence / 2.0)
}

/// Returns the quantile of a power of the normal distribution as a share of that of an interval of 95 %.
pub(super) fn normal_share(power: f64) -> f64 {
    normal_quantile(power) / normal_quantile(0.975)
}

/// Returns a quantile of the standard normal distribution.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// Returns the share of the standard normal distribution up to a value.
pub(super) fn normal_share_below(value: f64) -> f64 {
    Normal::standard().cdf(value)
}

fn student(degrees: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees)
        .unwrap_or_else(|_| unreachable!("there is a degree of freedom"))
}

/// Returns a quantile of Student's distribution. That of the library has some 8 digits where the freedom is low; a step of
/// Newton's method or two on its distribution function gives the others.
fn quantile(distribution: &StudentsT, probability: f64) -> f64 {
    use statrs::distribution::Continuous;

    let mut at = distribution.inverse_cdf(probability);
    for _ in 0..3 {
        at -= (distribution.cdf(at) - probability) / distribution.pdf(at);
    }
    at
}
