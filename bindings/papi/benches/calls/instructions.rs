//! The instructions of a call in user mode, which valgrind counts: the same in every run and under any load.

use std::env;
use std::process::Command;

use crate::library::Papi;
use crate::operations::{OPERATIONS, Ready};

/// The argument by which the program counts itself.
pub(crate) const ARGUMENT: &str = "--calls-of";

/// Two runs differ by so many calls.
const CALLS: u32 = 50;

/// Counts all operations, and those of PAPI beside them where it is installed.
pub(crate) fn compare(with_papi: bool) {
    println!("user instructions of calls: the kernel's are not counted");
    for operation in &OPERATIONS {
        let ours = match of_a_call("quipu", operation.name) {
            Ok(ours) => ours,
            Err(reason) => {
                println!("SKIP instructions of {}: {reason}", operation.name);
                continue;
            }
        };
        let theirs = with_papi
            .then(|| of_a_call("papi", operation.name).ok())
            .flatten();
        let theirs = theirs.map_or("not counted".to_owned(), |theirs| format!("{theirs:.0}"));
        let missed = if ours > operation.most_instructions {
            "MISSED "
        } else {
            ""
        };
        let (name, most) = (operation.name, operation.most_instructions);
        println!("  {missed}{name}: {ours:.0} (at most {most}), PAPI's {theirs}");
    }
}

/// Returns the instructions of one call: the difference of a run with many and one with few, divided by their number.
fn of_a_call(whose: &str, operation: &str) -> Result<f64, String> {
    let [few, many] = [1, 1 + CALLS].map(|calls| collected(whose, operation, calls));
    Ok((many? - few?) / f64::from(CALLS))
}

fn collected(whose: &str, operation: &str, calls: u32) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([ARGUMENT, whose, operation, &calls.to_string()])
        .output()
        .map_err(|error| format!("there is no valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    collected
        .filter(|_| output.status.success())
        .and_then(|(_, number)| number.trim().parse().ok())
        .ok_or_else(|| format!("valgrind says: {}", said.lines().last().unwrap_or_default()))
}

/// Does nothing but call, for valgrind.
pub(crate) fn call(whose: &str, operation: &str, calls: &str) -> Result<(), String> {
    let papi = match whose {
        "papi" => Papi::of_papi()?,
        _ => Papi::of_quipu()?,
    };
    let known = OPERATIONS.iter().find(|known| known.name == operation);
    let ready = Ready::new(&papi, known.ok_or("no such operation")?, papi.events())?;
    match ready.call(calls.parse().unwrap_or(1)) {
        true => Ok(()),
        false => Err("a call failed".into()),
    }
}
