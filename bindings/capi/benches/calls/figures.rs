//! Counts the instructions and system calls of a step, in a process of its own.

use std::collections::HashMap;
use std::env;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use quipu::EventSet;

use crate::contenders::{Contender, Kind, Outcome, Step, named};

/// Two runs differ by so many steps.
const STEPS: u32 = 1000;

/// The contender that does nothing.
const IDLE: &str = "idle";

/// The argument by which the program counts itself.
pub(crate) const ARGUMENT: &str = "--steps-of";

/// Returns the user instructions of a step: the difference of a run with many and a run with one, divided by
/// their number, without what calling a contender takes.
pub(crate) fn instructions(by: &str, step: Step, events: usize) -> Result<f64, String> {
    type Known = Mutex<HashMap<(String, String, usize), f64>>;
    static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);
    let key = (by.to_owned(), format!("{step:?}"), events);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(figure) = known.get(&key) {
        return Ok(*figure);
    }
    let [few, many] = [1, STEPS + 1].map(|steps| collected(by, step, events, steps));
    let mut figure = (many? - few?) / f64::from(STEPS);
    if by != IDLE {
        // Lets go of the lock.
        drop(known);
        figure -= instructions(IDLE, step, events)?;
        known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    }
    known.insert(key, figure);
    Ok(figure)
}

/// Returns the user instructions of a process that makes a step once, without those of a process that
/// makes none.
pub(crate) fn beyond_nothing(by: &str, step: Step) -> Result<f64, String> {
    Ok(collected(by, step, 1, 1)? - collected(by, Step::Nothing, 1, 1)?)
}

/// Returns the system calls of a step.
pub(crate) fn calls(by: &str, step: Step, events: usize) -> Result<f64, String> {
    const TIMES: u32 = 10;
    let mut contender = named(by)?;
    let mut counter = EventSet::builder();
    let builder = counter.events("raw_syscalls:sys_enter");
    let mut set = builder.and_then(|b| b.open()).map_err(|e| e.to_string())?;
    if let Some(error) = set.events()[0].error() {
        return Err(error.to_string());
    }
    let mut counts = set.counts();
    set.enable().map_err(|error| error.to_string())?;
    prepare(&mut *contender, Kind::Software, step, events)?;
    let mut count = |times| -> Result<u128, String> {
        let mut read = || {
            set.read(&mut counts).map_err(|error| error.to_string())?;
            let total = counts.get(0).ok_or("there is no event")?.total();
            let exact = total.map_err(|error| error.to_string())?.exact();
            exact.ok_or_else(|| "it is not exact".to_owned())
        };
        let before = read()?;
        for _ in 0..times {
            make(&mut *contender, Kind::Software, step, events)?;
        }
        // One of the calls is that of the second reading.
        Ok(read()? - before - 1)
    };
    // What is found out once is no part of a step.
    count(1)?;
    let calls = count(TIMES)?;
    contender.close();
    Ok(calls as f64 / f64::from(TIMES))
}

/// Makes so many steps, for valgrind.
pub(crate) fn run(by: &str, step: &str, events: usize, times: u32) -> Outcome {
    let step = Step::named(step).ok_or("there is no such step")?;
    let mut contender = named(by)?;
    prepare(&mut *contender, Kind::Software, step, events)?;
    (0..times).try_for_each(|_| make(&mut *contender, Kind::Software, step, events))
}

/// Opens and starts what a step is made on.
pub(crate) fn prepare(
    contender: &mut dyn Contender,
    kind: Kind,
    step: Step,
    events: usize,
) -> Outcome {
    match step {
        Step::StartStop
        | Step::Read
        | Step::Total
        | Step::TotalTwice
        | Step::Exact
        | Step::Accumulate => {
            contender.open(kind, events)?;
            contender.make_buffers();
            contender.start()
        }
        Step::Nothing | Step::FirstCount | Step::OpenClose => Ok(()),
    }
}

/// Makes a step.
pub(crate) fn make(
    contender: &mut dyn Contender,
    kind: Kind,
    step: Step,
    events: usize,
) -> Outcome {
    match step {
        Step::Nothing => Ok(()),
        Step::FirstCount => {
            contender.open(kind, events)?;
            contender.make_buffers();
            contender.start()?;
            contender.totals()
        }
        Step::OpenClose => {
            contender.open(kind, events)?;
            contender.close();
            Ok(())
        }
        Step::StartStop => {
            contender.start()?;
            contender.stop()
        }
        Step::Read => contender.read(),
        Step::Total => contender.totals(),
        Step::TotalTwice => contender.totals_twice(),
        Step::Exact => contender.exact(),
        Step::Accumulate => contender.accumulate(),
    }
}

/// The user instructions of this program when it makes so many steps.
fn collected(by: &str, step: Step, events: usize, steps: u32) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([ARGUMENT, by, &format!("{step:?}")])
        .args([events.to_string(), steps.to_string()])
        .output()
        .map_err(|error| format!("there is no valgrind: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        return Err(said.trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    collected
        .and_then(|(_, number)| number.trim().parse().ok())
        .ok_or_else(|| format!("valgrind says: {}", said.lines().last().unwrap_or_default()))
}
