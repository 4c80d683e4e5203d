//! The costs of calls: this library beside PAPI's own, both loaded into one process and called in turns.
//!
//! `cargo bench -p quipu-papi` prints medians of ratios, and the instructions of a call where valgrind is installed. Where
//! there are no counters of the CPU, events are those of software, and PAPI counts none.

#[cfg(target_os = "linux")]
mod instructions;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod operations;
#[cfg(target_os = "linux")]
mod time;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    use library::Papi;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [instructions::ARGUMENT, whose, operation, calls] = arguments[..] {
        return match instructions::call(whose, operation, calls) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    // By its soname, which both have, only before the other is loaded.
    let theirs = Papi::of_papi();
    let ours = match Papi::of_quipu() {
        Ok(ours) => ours,
        Err(reason) => {
            println!("SKIP calls: {reason}");
            return ExitCode::SUCCESS;
        }
    };
    match &theirs {
        Ok(theirs) => time::compare(&ours, theirs),
        Err(reason) => println!("SKIP time of calls: {reason}"),
    }
    instructions::compare(theirs.is_ok());
    ExitCode::SUCCESS
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIP calls: PAPI counts by perf_event_open");
}
