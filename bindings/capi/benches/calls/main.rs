//! User instructions and system calls of what programs call: opening, starting and stopping, reading, totals, and
//! the way from the start of a process to its first count; through `EventSet`, through C and by the Linux backend
//! alone, beside the bare system calls.
//!
//! `cargo bench -p quipu-capi --bench calls` counts instructions with valgrind, so that no load disturbs them, and
//! system calls with the tracepoint `raw_syscalls:sys_enter`. The events are software events, which every
//! machine counts; where the CPU counts, its own events are read in user space too, and instructions are counted by its
//! counters (`-- hardware` for these alone).

#[cfg(target_os = "linux")]
mod contenders;
#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod hardware;

#[cfg(target_os = "linux")]
use contenders::Step;

/// A row of the table: what is called, by whom, on how many events, and what it may take.
#[cfg(target_os = "linux")]
struct Row {
    what: &'static str,
    step: Step,
    events: usize,
    /// The contender whose figure is held against the limits.
    by: &'static str,
    limit: Limit,
}

/// The most that a row may take.
#[cfg(target_os = "linux")]
enum Limit {
    /// User instructions.
    Instructions(f64),
    /// User instructions beyond those of reading alone, for each event.
    BeyondReading(f64),
    /// User instructions of a second total of the same event, by what several events take more than one: that one has what
    /// is done once.
    Again(f64),
    /// User instructions beyond those of a process that does nothing.
    BeyondNothing(f64),
    /// System calls, as a ratio to the bare ones.
    Calls(f64),
}

#[cfg(target_os = "linux")]
const ROWS: [Row; 17] = {
    const fn row(
        what: &'static str,
        by: &'static str,
        (step, events): (Step, usize),
        limit: Limit,
    ) -> Row {
        Row {
            what,
            step,
            events,
            by,
            limit,
        }
    }
    use Limit::{Again, BeyondNothing, BeyondReading, Calls, Instructions};
    use Step::{Accumulate, FirstCount, OpenClose, Read, StartStop, Total, TotalTwice};
    [
        row(
            "first count of a process",
            "EventSet",
            (FirstCount, 1),
            BeyondNothing(60_000.0),
        ),
        row("open and close", "linux", (OpenClose, 1), Calls(1.1)),
        row("open and close", "EventSet", (OpenClose, 1), Calls(1.2)),
        row("open and close", "EventSet", (OpenClose, 5), Calls(1.2)),
        row("start and stop", "EventSet", (StartStop, 1), Calls(1.0)),
        row("start and stop", "EventSet", (StartStop, 5), Calls(1.0)),
        row("start and stop", "C", (StartStop, 5), Calls(1.0)),
        row("read", "EventSet", (Read, 1), Calls(1.0)),
        row("read", "EventSet", (Read, 5), Calls(1.0)),
        row("total", "EventSet", (TotalTwice, 5), Again(10.0)),
        row(
            "event and its total",
            "EventSet",
            (Total, 1),
            BeyondReading(10.0),
        ),
        row(
            "event and its total",
            "EventSet",
            (Total, 5),
            BeyondReading(10.0),
        ),
        row("read with totals", "C", (Total, 1), Instructions(120.0)),
        row("read with totals", "C", (Total, 5), Instructions(200.0)),
        row("read with totals", "C", (Total, 5), Calls(1.0)),
        row("accumulate", "C", (Accumulate, 5), Instructions(1000.0)),
        row("accumulate", "C", (Accumulate, 5), Calls(1.0)),
    ]
};

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [figures::ARGUMENT, by, step, events, times] = arguments[..] {
        let number = |text: &str| text.parse().unwrap_or(0_u32);
        return match figures::run(by, step, number(events) as usize, number(times)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                println!("{reason}");
                ExitCode::FAILURE
            }
        };
    }
    if let ["hardware"] = arguments[..] {
        hardware::rows();
        return ExitCode::SUCCESS;
    }
    println!("user instructions and system calls, on software events");
    for row in &ROWS {
        println!(
            "{}",
            line(row).unwrap_or_else(|reason| {
                format!(
                    "SKIP {} of {} by {}: {reason}",
                    row.what, row.events, row.by
                )
            })
        );
    }
    hardware::rows();
    ExitCode::SUCCESS
}

/// The line of a row: its figure, that of the bare calls where there are such, and the limit.
#[cfg(target_os = "linux")]
fn line(row: &Row) -> Result<String, String> {
    let (step, events) = (row.step, row.events);
    let instructions = |by| figures::instructions(by, step, events);
    let name = format!("{} of {events}, {}", row.what, row.by);
    Ok(match row.limit {
        Limit::Instructions(most) => {
            let own = instructions(row.by)?;
            format!("  {name}, instructions: {own:.1} (at most {most})")
        }
        Limit::BeyondReading(most) => {
            let reading = figures::instructions(row.by, Step::Read, events)?;
            let own = (instructions(row.by)? - reading) / events as f64;
            format!("  {name}, instructions an event: {own:.1} (at most {most})")
        }
        Limit::Again(most) => {
            let again = |events| -> Result<f64, String> {
                let once = figures::instructions(row.by, Step::Total, events)?;
                Ok(figures::instructions(row.by, step, events)? - once)
            };
            let own = (again(events)? - again(1)?) / (events - 1) as f64;
            format!("  {name}, instructions: {own:.1} (at most {most})")
        }
        Limit::BeyondNothing(most) => {
            let own = figures::beyond_nothing(row.by, step)?;
            format!("  {name}, instructions: {own:.0} (at most {most})")
        }
        Limit::Calls(most) => {
            let [own, raw] = [row.by, "raw"].map(|by| figures::calls(by, step, events));
            let (own, raw) = (own?, raw?);
            let user = [row.by, "raw"].map(|by| instructions(by).unwrap_or(f64::NAN));
            format!(
                "  {name}, system calls / raw: {:.2} (at most {most}; {own} and {raw}, user instructions {:.0} and {:.0})",
                own / raw,
                user[0],
                user[1]
            )
        }
    })
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIP calls: the bare calls are those of perf_event_open(2), which only Linux has");
}
