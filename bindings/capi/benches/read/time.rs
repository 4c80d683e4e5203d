//! Measures the time that each contender takes.

use crate::contenders::Contender;
use crate::{Figure, TARGETS};

const ROUNDS: usize = 200;
const BATCHES: usize = 12;
const READS: u32 = 500;

/// Times all contenders, and says which target was met.
pub(crate) fn compare(contenders: &mut [Box<dyn Contender>]) {
    let medians = medians(contenders);
    println!("read of five software events, medians");
    for (name, median) in &medians {
        println!("  {median:8.1} ns  {name}");
    }
    let mut all_met = true;
    for (what, by, most) in TARGETS {
        if let Some(ratio) = crate::ratio(&medians, what, by) {
            println!("  {what} / {by}: {ratio:.3} (at most {most})");
            all_met &= ratio <= most;
        }
    }
    if !all_met {
        println!("\nnot every target was met in this run");
    }
}

/// The median time of a read for each, the contenders taking turns in changing order, forwards and backwards.
fn medians(contenders: &mut [Box<dyn Contender>]) -> Vec<Figure> {
    let number = contenders.len();
    let mut times = vec![Vec::new(); number];
    for round in 0..ROUNDS {
        let turn_of = |turn: usize, batch: usize| match round % 2 {
            0 => (turn + batch + round) % number,
            _ => (2 * number - 1 - turn + batch + round) % number,
        };
        for turn in 0..number {
            let at = turn_of(turn, 0);
            if let Err(reason) = contenders[at].open() {
                println!("SKIP {} in round {round}: {reason}", contenders[at].name());
            }
        }
        for batch in 0..BATCHES {
            for turn in 0..number {
                let at = turn_of(turn, batch);
                times[at].push(contenders[at].read(READS));
            }
        }
        contenders
            .iter_mut()
            .for_each(|contender| contender.close());
    }
    let names = contenders.iter().map(|contender| contender.name());
    let figures = names.zip(times).filter_map(|(name, mut times)| {
        if times.iter().any(|time| !time.is_finite() || *time <= 0.0) {
            println!("SKIP {name}: a read failed");
            return None;
        }
        times.sort_by(f64::total_cmp);
        Some((name, times[times.len() / 2]))
    });
    figures.collect()
}
