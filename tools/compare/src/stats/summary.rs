//! One command's values by themselves.

use serde::Serialize;

use super::{Interval, ratio};

/// The distance from the median, in robust standard deviations, beyond which a value is far out.
const FAR_OUT: f64 = 5.0;
/// The standard deviation of a normal distribution in units of its median absolute deviation.
const DEVIATION: f64 = 1.4826;

/// A description of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The number of values.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 of a single value.
    pub deviation: f64,
    /// The median.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// The number of values that are further from the median than five robust standard deviations. They are in all numbers.
    pub far_out: usize,
}

/// Describes values; `None` if there is none.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&least, &most) = (sorted.first()?, sorted.last()?);
    let Mean { mean, deviation } = mean(values)?;
    let median = median(&sorted);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let limit = FAR_OUT * DEVIATION * self::median(&distances);
    Some(Summary {
        count: values.len(),
        mean,
        deviation,
        median,
        least,
        most,
        // Where most values are equal, any other is far from them, which says nothing.
        far_out: match limit > 0.0 {
            true => distances
                .iter()
                .filter(|distance| **distance > limit)
                .count(),
            false => 0,
        },
    })
}

/// The mean and the standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 of a single value.
    pub deviation: f64,
}

/// Returns the mean of values with their standard deviation; `None` if there is none.
pub fn mean(values: &[f64]) -> Option<Mean> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Mean {
        mean,
        deviation: (squares / (n - 1.0).max(1.0)).sqrt(),
    })
}

impl Summary {
    /// Returns the mean with its interval by Student's t; the mean alone if it is of a single value.
    pub fn interval(&self, confidence: f64) -> Interval {
        let half = match self.count {
            0 | 1 => 0.0,
            count => ratio::half_width(count, confidence) * self.deviation / (count as f64).sqrt(),
        };
        Interval {
            value: self.mean,
            low: self.mean - half,
            high: self.mean + half,
        }
    }
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}
