//! Holm's correction for several tests.

/// Returns the probabilities corrected by Holm's step-down procedure (Holm 1979), in their order: calling those at most
/// `alpha` significant is wrong for any of them with probability `alpha` at most, however the tests depend on each other.
///
/// ```
/// assert_eq!(quipu_compare::stats::holm(&[0.25, 0.0625, 0.5]), [0.5, 0.1875, 0.5]);
/// ```
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut corrected = vec![0.0; probabilities.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let tests = (probabilities.len() - rank) as f64;
        least = least.max((probabilities[index] * tests).min(1.0));
        corrected[index] = least;
    }
    corrected
}
