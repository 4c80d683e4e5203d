//! Times of this library through those of PAPI.

use std::ffi::CStr;
use std::time::Instant;

use crate::library::Papi;
use crate::operations::{OPERATIONS, Operation, Ready};

const ROUNDS: usize = 41;

/// Times all operations, the libraries taking turns.
pub(crate) fn compare(ours: &Papi, theirs: &Papi) {
    let events = ours.events();
    println!(
        "time of calls, Quipu / PAPI: medians of {ROUNDS} rounds, of {} and the like",
        events[0].to_string_lossy()
    );
    for operation in &OPERATIONS {
        match ratio(ours, theirs, operation, events) {
            Ok(ratio) => {
                let missed = if ratio > operation.most_time {
                    "MISSED "
                } else {
                    ""
                };
                println!(
                    "  {missed}{}: {ratio:.3} (at most {})",
                    operation.name, operation.most_time
                );
            }
            Err(reason) => println!("SKIP time of {}: {reason}", operation.name),
        }
    }
}

/// Returns the median of the ratios. Sets are opened anew for each, because where the kernel happens to put a counter
/// changes its read.
fn ratio(
    ours: &Papi,
    theirs: &Papi,
    operation: &Operation,
    events: &'static [&'static CStr; 5],
) -> Result<f64, String> {
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let of = |whose: &str, papi| {
            Ready::new(papi, operation, events)
                .map_err(|reason| format!("{whose} counts no such events here: {reason}"))
        };
        let both = [of("Quipu", ours)?, of("PAPI", theirs)?];
        let mut times = [0.0; 2];
        // Forwards and backwards, and in every other round the other way about.
        for turn in [0, 1, 1, 0].map(|turn| (turn + round) % 2) {
            let start = Instant::now();
            if !both[turn].call(operation.times) {
                return Err("a call failed".into());
            }
            times[turn] += start.elapsed().as_secs_f64();
        }
        ratios.push(times[0] / times[1]);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[ROUNDS / 2])
}
