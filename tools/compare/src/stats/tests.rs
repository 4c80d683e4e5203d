//! Known answers of the statistics, from tables and other programs.

use super::*;

/// Student's own example (1908): the additional hours of sleep by two drugs, t = 4.0621 with 9 degrees of freedom.
const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn students_sleep_has_students_interval() {
    let sleep = ratio(&SLEEP, 0.95).expect("10 values");
    // scipy.stats.ttest_1samp; R's t.test says 0.7001142 and 2.4598858.
    close(sleep.p, 0.002_832_890_197_384_264);
    close(sleep.change.value.ln_1p(), 1.58);
    close(sleep.change.low.ln_1p(), 0.700_114_236_723_017_4);
    close(sleep.change.high.ln_1p(), 2.459_885_763_276_982_4);
}

#[test]
fn signed_ranks_of_few_are_counted_by_hand() {
    // All of one sign: 2 / 2^n.
    let p = |values: &[f64]| signed_rank(values, 0.95).p;
    close(p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2.0 / 64.0);
    close(p(&[3.0, 3.0, 3.0]), 2.0 / 8.0);
    // Sums of ranks up to 1 of four: {}, {1}.
    close(p(&[-1.0, 2.0, 3.0, 4.0]), 4.0 / 16.0);
    // Equal ones share their ranks, 2 2 2 4 5 6: the sums up to 4 are {}, three of 2, three of 2 + 2, and 4.
    close(p(&[1.0, 1.0, 1.0, -2.0, 3.0, 4.0]), 16.0 / 64.0);
    // Zeros say nothing.
    close(p(&[0.0, 0.0, -1.0, 2.0, 3.0, 4.0]), 4.0 / 16.0);
    close(p(&[0.0, 0.0]), 1.0);
    close(p(&[]), 1.0);
}

#[test]
fn the_interval_of_hodges_and_lehmann_is_among_the_means_of_two() {
    let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let tested = signed_rank(&values, 0.95);
    let interval = tested.interval.expect("6 pairs suffice");
    assert_eq!((interval.low, interval.high), (1.0, 32.0));
    // The 11th of 21 means: 1 1.5 2 2.5 3 4 4.5 5 6 8 8.5 ...
    close(tested.estimate, 8.5);
    assert_eq!(signed_rank(&values[..5], 0.95).interval, None);
    // Table of Wilcoxon: 5 % two-sided of 20 pairs is a sum of 52, so that the 53rd mean is the end.
    assert_eq!(signed_rank::ends(20, 0.95), Some(53));
}

#[test]
fn many_pairs_take_no_memory_for_their_means() {
    let values: Vec<f64> = (0..10_000).map(|at| f64::from(at) - 4_999.5).collect();
    let tested = signed_rank(&values, 0.95);
    close(tested.estimate, 0.0);
    close(tested.p, 1.0);
    let interval = tested.interval.expect("there are enough");
    close(interval.low, -interval.high);
    assert!((50.0..65.0).contains(&interval.high), "{interval:?}");
}

#[test]
fn zeros_have_differences_and_ties_have_ranks() {
    let settings = Settings::default();
    let switches = compare(&[0.0, 1.0, 0.0, 2.0, 0.0, 1.0], &[0.0; 6], settings);
    assert_eq!(
        (switches.scale, switches.method),
        (Scale::Difference, Method::SignedRank)
    );
    let faults = compare(
        &[80.0; 8],
        &[80.0, 81.0, 80.0, 80.0, 80.0, 80.0, 80.0, 80.0],
        settings,
    );
    assert_eq!(
        (faults.scale, faults.method),
        (Scale::Relative, Method::SignedRank)
    );
    let times = compare(&[1.0, 1.1, 1.3, 1.2], &[1.0, 1.2, 1.1, 1.4], settings);
    assert_eq!(times.method, Method::Student);
}

#[test]
fn verdicts_are_three() {
    let settings = Settings::default();
    let base: Vec<f64> = (0..20)
        .map(|at| 100.0 + f64::from(at * 7 % 20) / 10.0)
        .collect();
    let scaled = |factor: f64| {
        base.iter()
            .rev()
            .map(|value| value * factor)
            .collect::<Vec<_>>()
    };
    let noisy: Vec<f64> = (0..20)
        .map(|at| 100.0 + f64::from(at * 7 % 20) * 5.0)
        .collect();
    let of = |a: &[f64], b: &[f64]| decide(&[compare(a, b, settings)], settings)[0].verdict;
    assert_eq!(of(&base, &scaled(1.1)), Verdict::Different);
    assert_eq!(of(&base, &scaled(1.0)), Verdict::NoDifferenceFound);
    let mixed: Vec<f64> = noisy.iter().rev().copied().collect();
    assert_eq!(of(&noisy, &mixed), Verdict::Inconclusive);
    // The six that are not equal are unlikely by themselves, and most are equal.
    let mostly: Vec<f64> = (0..20)
        .map(|at| if at < 6 { 80.0 + f64::from(at) } else { 79.0 })
        .collect();
    assert!(compare(&[79.0; 20], &mostly, settings).p() < 0.05);
    assert_ne!(of(&[79.0; 20], &mostly), Verdict::Different);
    // Equal in every run.
    assert_eq!(of(&[5.0; 8], &[5.0; 8]), Verdict::NoDifferenceFound);
    assert_eq!(of(&[0.0; 8], &[0.0; 8]), Verdict::NoDifferenceFound);
    // One zero among values that would show a thousandth.
    let [mut a, mut b] = [base.clone(), scaled(1.0)];
    (a[0], b[0]) = (0.0, 0.0);
    assert_eq!(compare(&a, &b, settings).scale, Scale::Difference);
    assert_eq!(of(&a, &b), Verdict::NoDifferenceFound);
    // Six pairs of ranks are unlikely enough for one metric, and never for two.
    let [six, more] = [
        [79.0, 79.0, 80.0, 80.0, 79.0, 80.0],
        [89.0, 89.0, 90.0, 90.0, 89.0, 90.0],
    ];
    assert_eq!(of(&six, &more), Verdict::Different);
    let two = [
        compare(&six, &more, settings),
        compare(&six, &six, settings),
    ];
    let first = decide(&two, settings)[0];
    assert_eq!(
        (first.verdict, first.detectable),
        (Verdict::Inconclusive, f64::INFINITY)
    );
    // Too few to say anything.
    assert_eq!(of(&[1.0], &[2.0]), Verdict::Inconclusive);
}

#[test]
fn what_is_far_out_is_counted_and_kept() {
    let mut values: Vec<f64> = (0..20).map(|at| 10.0 + f64::from(at) / 10.0).collect();
    values.push(100.0);
    let described = summary(&values).expect("there are values");
    assert_eq!(
        (described.far_out, described.most, described.count),
        (1, 100.0, 21)
    );
    assert_eq!(summary(&[]), None);
}

/// Exchanged at random, the halves of each pair are alike: of 4000 such comparisons some 200 are false alarms at 5 %.
#[test]
fn pairs_of_one_command_are_seldom_called_different() {
    let settings = Settings::default();
    let mut random = fastrand::Rng::with_seed(1);
    let mut alarms = [0; 2];
    for _ in 0..4000 {
        // Skewed as times are.
        let mut run = || 1.0 - random.f64().ln() * 0.3;
        let base: Vec<f64> = (0..20).map(|_| run()).collect();
        let other: Vec<f64> = (0..20).map(|_| run()).collect();
        let compared = compare(&base, &other, settings);
        alarms[0] += usize::from(compared.p_by(Method::Student) <= 0.05);
        alarms[1] += usize::from(compared.p_by(Method::SignedRank) <= 0.05);
    }
    assert!(
        alarms.iter().all(|alarms| (140..=260).contains(alarms)),
        "{alarms:?}"
    );
}
