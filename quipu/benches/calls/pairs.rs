//! Times two ways of doing the same in turns, and prints the ratio.

use std::time::Instant;

/// The pairs of batches that a ratio is the median of.
const PAIRS: usize = 400;
/// The pairs between two openings: where the kernel happens to put a counter changes its reads by ten per cent.
const PAIRS_AN_OPENING: usize = 20;

/// Work that is timed; its argument is how often it is done.
pub(crate) type Work = Box<dyn FnMut(u32)>;

/// Prints a row for `ci/bench`: the name, the median of the ratios of paired batches, the quartiles of these ratios,
/// and the median nanoseconds of both sides.
///
/// `times` is how often a batch does the work: enough for some 0.1 ms.
pub(crate) fn row(name: &str, times: u32, ours: fn() -> Work, theirs: fn() -> Work) {
    let mut ratios = Vec::with_capacity(PAIRS);
    let mut each = [Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS)];
    for opening in 0..PAIRS / PAIRS_AN_OPENING {
        // The one that is opened first lies elsewhere in the kernel.
        let (mut ours, mut theirs) = if opening % 2 == 0 {
            let ours = ours();
            (ours, theirs())
        } else {
            let theirs = theirs();
            (ours(), theirs)
        };
        ours(times);
        theirs(times);
        for pair in 0..PAIRS_AN_OPENING {
            let [own, other] = if pair % 2 == 0 {
                let own = nanoseconds(&mut ours, times);
                [own, nanoseconds(&mut theirs, times)]
            } else {
                let other = nanoseconds(&mut theirs, times);
                [nanoseconds(&mut ours, times), other]
            };
            ratios.push(own / other);
            each[0].push(own);
            each[1].push(other);
        }
    }
    let [own, other] = each.map(|mut each| quantile(&mut each, 2));
    let [low, middle, high] = [1, 2, 3].map(|quarter| quantile(&mut ratios, quarter));
    println!("{name}\t{middle:.3}\t{low:.3}\t{high:.3}\t{own:.0} and {other:.0} ns");
}

/// Prints why a row was not measured.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("SKIP\t{name}\t{reason}");
}

fn nanoseconds(work: &mut Work, times: u32) -> f64 {
    let start = Instant::now();
    work(times);
    start.elapsed().as_nanos() as f64 / f64::from(times)
}

fn quantile(values: &mut [f64], quarter: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() * quarter / 4]
}
