//! Events other than a PMU's: probes, tracepoints with a condition, breakpoints. Each is counted
//! exactly.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{has_perf_events, json_rows, run, skip, stderr};

/// Calls a function 1000 times, each of which writes a variable, and asks for the session of two
/// processes that cannot be.
const PROGRAM: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
volatile int calls;
void called(void) { calls++; }
int main(void) {
    for (int i = 0; i < 1000; i++) called();
    for (int i = 0; i < 11; i++) syscall(SYS_getsid, 1000000001);
    for (int i = 0; i < 5; i++) syscall(SYS_getsid, 1000000002);
    return 7;
}
";

/// Returns the compiled program, in a directory that goes when this is dropped.
fn program(test: &str) -> Option<(TempDir, String)> {
    let directory = TempDir::new().expect("a directory");
    let [source, program] = ["program.c", "program"].map(|name| directory.path().join(name));
    std::fs::write(&source, PROGRAM).expect("written");
    let compiled = Command::new("cc")
        .args(["-O0", "-no-pie", "-o"])
        .args([&program, &source])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        skip(test, "no C compiler that makes programs at fixed addresses");
        return None;
    }
    let program = program.to_str().expect("text").to_owned();
    Some((directory, program))
}

/// Returns the address of a symbol, in hexadecimal.
fn address_of(program: &str, symbol: &str) -> Option<String> {
    let output = Command::new("nm").arg(program).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next_back() == Some(symbol))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the rows of these events and of one that counts everywhere, the program run to its end.
fn rows_of(test: &str, events: &[&str], program: &str) -> Option<Vec<Value>> {
    let mut arguments = vec!["-j", "--json-extra", "-e", "task-clock:u"];
    arguments.extend(events.iter().flat_map(|event| ["-e", event]));
    arguments.extend(["--", program]);
    let output = run(&arguments);
    let report = stderr(&output);
    if output.status.code() == Some(125) && report.contains("permission") {
        skip(test, report.trim());
        return None;
    }
    assert_eq!(output.status.code(), Some(7), "{report}");
    let mut rows = json_rows(&report);
    rows.retain(|row| row["backend"].is_string() || row["reason"].is_string());
    assert_eq!(rows.len(), 1 + events.len(), "{report}");
    rows.remove(0);
    Some(rows)
}

#[test]
fn every_source_is_counted_exactly() {
    const TEST: &str = "every_source_is_counted_exactly";
    let Some((_directory, program)) = program(TEST) else {
        return;
    };
    let mut expected = vec![
        (format!("uprobe:{program}:called"), 1000.0),
        (format!("uretprobe:{program}:called"), 1000.0),
        (format!("uprobe:{program}:main"), 1.0),
    ];
    let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if tracefs.map(|at| Path::new(at).join("events").exists()) == [false; 2] {
        skip(TEST, "tracepoints: tracefs is not mounted");
    } else {
        let calls = "syscalls:sys_enter_getsid";
        expected.push((calls.to_owned(), 16.0));
        expected.push((format!("{calls}/filter='pid == 1000000001'/"), 11.0));
    }
    match ["called", "calls"].map(|symbol| address_of(&program, symbol)) {
        [Some(function), Some(variable)] => {
            expected.push((format!("mem:0x{function}:x:u"), 1000.0));
            expected.push((format!("mem:0x{variable}/4:w:u"), 1000.0));
        }
        _ => skip(TEST, "breakpoints: nm(1) does not tell the addresses"),
    }
    let events: Vec<&str> = expected.iter().map(|(event, _)| event.as_str()).collect();
    let Some(rows) = rows_of(TEST, &events, &program) else {
        return;
    };
    for ((event, count), row) in expected.iter().zip(&rows) {
        let value = row["counter-value"].as_str().expect("text");
        match value.parse::<f64>() {
            Ok(value) => assert_eq!(value, *count, "{event}: {row}"),
            Err(_) => skip(TEST, format_args!("{event}: {row}")),
        }
    }
}

/// As any event that this system cannot count, and not as a mistake.
#[test]
fn probes_of_a_kernel_without_them_are_not_supported() {
    const TEST: &str = "probes_of_a_kernel_without_them_are_not_supported";
    if Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        return skip(TEST, "this kernel has a kprobe PMU");
    }
    if !has_perf_events(TEST) {
        return;
    }
    let Some((_directory, program)) = program(TEST) else {
        return;
    };
    let Some(rows) = rows_of(TEST, &["kprobe:vfs_read"], &program) else {
        return;
    };
    assert_eq!(rows[0]["counter-value"], "<not supported>");
    let reason = rows[0]["reason"].as_str().expect("text");
    assert!(reason.contains("no kprobe PMU"), "{reason}");
}

#[test]
fn a_probe_of_a_misspelt_function_is_a_mistake() {
    const TEST: &str = "a_probe_of_a_misspelt_function_is_a_mistake";
    if !Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        return skip(TEST, "this kernel has no uprobe PMU");
    }
    if !has_perf_events(TEST) {
        return;
    }
    let Some((_directory, program)) = program(TEST) else {
        return;
    };
    let event = format!("uprobe:{program}:caled");
    let output = run(&["-e", "task-clock:u", "-e", &event, "--", &program]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("called"), "{message}");
}
