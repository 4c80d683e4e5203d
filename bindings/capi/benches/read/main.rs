//! A read of five software events: through C, in Rust, and by PAPI.
//!
//! `cargo bench -p quipu-capi` prints medians and ratios. The C contenders are compiled here, one shared
//! object each, against the shared library as it is installed. Reads are timed in short batches, the
//! contenders taking turns, and everything is reopened between rounds, because where the kernel happens
//! to put a counter changes its read by ten per cent. Where valgrind is installed, instructions are counted
//! too, which no load disturbs.

#[cfg(target_os = "linux")]
mod contenders;
#[cfg(target_os = "linux")]
mod instructions;
#[cfg(target_os = "linux")]
mod time;

/// A contender's name, and what was measured of it.
#[cfg(target_os = "linux")]
type Figure = (&'static str, f64);

/// Pairs of contenders, and the largest ratio that the first may have to the second.
#[cfg(target_os = "linux")]
const TARGETS: [(&str, &str, f64); 3] = [
    ("C, totals", "Rust, totals", 1.05),
    ("C, parts", "Rust, parts", 1.05),
    ("C, totals", "PAPI_read", 1.0),
];

/// One figure through another, where there are both.
#[cfg(target_os = "linux")]
fn ratio(figures: &[Figure], what: &str, by: &str) -> Option<f64> {
    let of = |name: &str| figures.iter().find(|(known, _)| *known == name);
    Some(of(what)?.1 / of(by)?.1)
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let mut contenders = match contenders::contenders() {
        Ok(contenders) => contenders,
        Err(reason) => {
            println!("SKIP read: {reason}");
            return ExitCode::SUCCESS;
        }
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [instructions::ARGUMENT, name, reads] = arguments[..] {
        let reads = reads.parse().unwrap_or(1);
        return match instructions::read(&mut contenders.all, name, reads) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    time::compare(&mut contenders.all);
    instructions::compare(&contenders.all);
    ExitCode::SUCCESS
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIP read: the events are those of perf_event_open");
}
