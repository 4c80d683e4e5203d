//! Counts the instructions that each contender executes for a read, in user mode: the same number in
//! every run and under any load, because valgrind counts them.

use std::env;
use std::process::Command;

use crate::contenders::Contender;
use crate::{Figure, TARGETS};

/// Two runs differ by so many reads.
const READS: u32 = 10_000;

/// The argument by which the program counts itself.
pub(crate) const ARGUMENT: &str = "--reads-of";

/// Counts all contenders.
pub(crate) fn compare(contenders: &[Box<dyn Contender>]) {
    let mut figures: Vec<Figure> = Vec::new();
    for contender in contenders {
        match of_a_read(contender.name()) {
            Ok(instructions) => figures.push((contender.name(), instructions)),
            Err(reason) => return println!("SKIP instructions: {reason}"),
        }
    }
    println!("instructions a read, without the kernel's");
    for (name, instructions) in &figures {
        println!("  {instructions:8.1}     {name}");
    }
    for (what, by, _) in TARGETS {
        if let Some(ratio) = crate::ratio(&figures, what, by) {
            println!("  {what} / {by}: {ratio:.3}");
        }
    }
}

/// Returns the instructions for one read: the difference of a run with many reads and a run with one,
/// divided by their number.
fn of_a_read(name: &str) -> Result<f64, String> {
    let [few, many] = [1, READS + 1].map(|reads| collected(name, reads));
    Ok((many? - few?) / f64::from(READS))
}

/// The instructions of this program when it does nothing but read.
fn collected(name: &str, reads: u32) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([ARGUMENT, name, &reads.to_string()])
        .output()
        .map_err(|error| format!("there is no valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    collected
        .filter(|_| output.status.success())
        .and_then(|(_, number)| number.trim().parse().ok())
        .ok_or_else(|| format!("valgrind says: {}", said.lines().last().unwrap_or_default()))
}

/// Does nothing but read, for valgrind.
pub(crate) fn read(contenders: &mut [Box<dyn Contender>], name: &str, reads: u32) -> bool {
    let found = contenders
        .iter_mut()
        .find(|contender| contender.name() == name);
    found.is_some_and(|contender| contender.open().is_ok() && contender.read(reads) > 0.0)
}
