//! Presets of several events, and event files, over what every machine can count.

use std::io::Write as _;
use std::path::Path;

use quipu_events::Database;
use serde_json::Value;
use tempfile::TempDir;

use crate::printed::unwrapped;

use super::{can_count, has_perf_events, json_rows, run, stderr};

/// Returns an event file with presets over software events, for the CPU this is; nothing, said as a
/// skip, where the database does not know it.
fn presets(test: &str) -> Option<(TempDir, String)> {
    let cpu = match Database::embedded().this_machine() {
        Ok(tables) => tables.first()?.id().to_owned(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIP {test}: {error}");
            return None;
        }
    };
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("events.toml");
    let text = format!(
        "[[cpu]]\nid = \"{cpu}\"\n[cpu.presets]\n\
         ALL_FAULTS = \"minor-faults + major-faults\"\n\
         NEGATIVE = \"major-faults - 3 * minor-faults\"\n\
         MINOR_SHARE = \"minor-faults / (minor-faults + major-faults)\"\n\
         NO_FAULTS = \"0 * page-faults\"\n\
         PER_FAULT = \"task-clock / page-faults\"\n\
         HALF = \"minor-faults / emulation-faults\"\n"
    );
    std::fs::write(&file, text).expect("it is ours");
    let file = file.to_str().expect("plain").to_owned();
    has_perf_events(test).then_some((folder, file))
}

/// Returns the rows of `true` counted with the presets, by event.
fn rows(file: &str, more: &[&str]) -> Vec<Value> {
    let arguments = [
        &["--events", file, "-j", "--json-extra"],
        more,
        &["--", "true"],
    ]
    .concat();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    counted(&output)
}

/// Returns the rows of events, without those of each run and of the run's own times.
fn counted(output: &std::process::Output) -> Vec<Value> {
    let mut rows = json_rows(&stderr(output));
    rows.retain(|row| {
        row["run"].is_null() && (row["backend"].is_string() || row["reason"].is_string())
    });
    rows
}

fn value(row: &Value) -> f64 {
    let text = row["counter-value"].as_str().expect("a value as text");
    text.parse().unwrap_or_else(|_| panic!("{row}"))
}

fn term(row: &Value, index: usize) -> f64 {
    value(&row["terms"][index])
}

#[test]
fn a_preset_has_the_value_of_its_formula() {
    let Some((_folder, file)) = presets("a_preset_has_the_value_of_its_formula") else {
        return;
    };
    let rows = rows(
        &file,
        &["-e", "ALL_FAULTS:u,{MINOR_SHARE,page-faults}:u,NO_FAULTS:u"],
    );
    let [all, share, faults, none] = &rows[..] else {
        panic!("four rows: {rows:?}");
    };
    assert_eq!(all["event"], "ALL_FAULTS:u");
    assert_eq!(all["formula"], "minor-faults + major-faults");
    assert_eq!(all["in-one-group"], true);
    assert_eq!(all["terms"][0]["event"], "minor-faults");
    assert!(term(all, 0) > 0.0, "{all}");
    assert_eq!(value(all), term(all, 0) + term(all, 1));
    assert!(all.get("estimate").is_none(), "{all}");
    assert_eq!(all["pcnt-running"], 100.0);
    // In one group they count the same faults.
    assert_eq!(value(faults), term(share, 0) + term(share, 1));
    let exact = term(share, 0) / value(faults);
    assert_eq!(value(share), (exact * 1e6).round() / 1e6);
    assert_eq!(value(none), 0.0);
}

#[test]
fn what_has_no_value_says_why() {
    let Some((_folder, file)) = presets("what_has_no_value_says_why") else {
        return;
    };
    let rows = rows(&file, &["-e", "NEGATIVE:u,HALF:u,page-faults:u"]);
    for (row, reason) in rows
        .iter()
        .zip(["which no count can be", "divides by zero"])
    {
        assert_eq!(row["counter-value"], "<not counted>", "{row}");
        assert!(
            row["reason"].as_str().expect("why").contains(reason),
            "{row}"
        );
    }
    assert_eq!(value(&rows[0]["terms"][1]).fract(), 0.0);
}

#[test]
fn repeats_intervals_and_places_have_presets_too() {
    let Some((_folder, file)) = presets("repeats_intervals_and_places_have_presets_too") else {
        return;
    };
    let repeated = rows(&file, &["-r", "3", "-e", "ALL_FAULTS:u"]);
    let (sum, mean) = (
        term(&repeated[0], 0) + term(&repeated[0], 1),
        value(&repeated[0]),
    );
    // Each term's mean is rounded by itself.
    assert!((sum - mean).abs() <= 1.0, "{repeated:?}");
    assert!(repeated[0]["variance"].is_number(), "{repeated:?}");

    let events = ["-I", "20", "-e", "ALL_FAULTS:u,PER_FAULT:u", "--summary"];
    let arguments = [
        &["--events", &file, "-j", "--json-extra"],
        &events[..],
        &["--", "sleep", "0.1"],
    ]
    .concat();
    let rows = counted(&run(&arguments));
    let faults = || rows.iter().filter(|row| row["event"] == "ALL_FAULTS:u");
    for row in faults() {
        assert_eq!(value(row), term(row, 0) + term(row, 1), "{row}");
    }
    let (total, intervals): (Vec<_>, Vec<_>) = faults().partition(|row| row["interval"].is_null());
    let in_intervals: f64 = intervals.iter().map(|row| value(row)).sum();
    assert_eq!(in_intervals, value(total[0]));

    let on_cpus = ["-A", "-a", "-e", "ALL_FAULTS"];
    if can_count("presets on CPUs", &["-a", "-e", "page-faults"]) {
        let arguments = [
            &["--events", &file, "-j", "--json-extra"],
            &on_cpus[..],
            &["--", "true"],
        ]
        .concat();
        let rows = counted(&run(&arguments));
        assert!(!rows.is_empty());
        for row in &rows {
            assert!(row["cpu"].is_string(), "{row}");
            assert_eq!(value(row), term(row, 0) + term(row, 1), "{row}");
        }
    }
}

#[test]
fn people_and_spreadsheets_see_presets_as_events() {
    let Some((_folder, file)) = presets("people_and_spreadsheets_see_presets_as_events") else {
        return;
    };
    let events = ["--events", &file, "-e", "ALL_FAULTS:u"];
    let report = stderr(&run(&[&events[..], &["-v", "--", "true"]].concat()));
    assert!(
        report.contains(
            "ALL_FAULTS:u: counted by linux as minor-faults + major-faults, in one group"
        ),
        "{report}"
    );
    let terms = report
        .lines()
        .find(|line| line.contains("ALL_FAULTS:u: minor-faults "));
    assert!(
        terms.expect("terms").contains(", major-faults "),
        "{report}"
    );
    let both = ["--events", &file, "-e", "ALL_FAULTS:u,MINOR_SHARE:u"];
    let csv = stderr(&run(&[&both[..], &["--csv", "--", "true"]].concat()));
    let fields: Vec<&str> = csv.lines().flat_map(|line| line.split(',')).collect();
    assert_eq!((fields[2], fields[9]), ("ALL_FAULTS:u", "MINOR_SHARE:u"));
    assert_eq!(
        fields[7]
            .split_once('.')
            .map(|(_, decimals)| decimals.len()),
        Some(6),
        "{csv}"
    );
    assert!(
        fields[0].parse::<u64>().is_ok_and(|faults| faults > 0),
        "{csv}"
    );
}

#[test]
fn event_files_and_cpus_that_cannot_be_used_are_refused_before_anything_runs() {
    let folder = TempDir::new().expect("a folder");
    let ran = folder.path().join("ran");
    let command = ["--", "touch", ran.to_str().expect("plain")];
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let output = run(&[arguments, &command].concat());
        let message = unwrapped(&stderr(&output));
        assert_eq!(output.status.code(), Some(status), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(!Path::new(&ran).exists(), "{arguments:?}");
    };
    let broken = folder.path().join("broken.toml");
    std::fs::write(&broken, "[[cpu]]\nnmae = 1\n").expect("it is ours");
    let broken = broken.to_str().expect("plain");
    refused(&["--events", broken], 125, "quipu events check");
    refused(&["--events", "cycles"], 2, "to name events, use -e");
    refused(&["--cpu", "0-3"], 2, "use -C 0-3");
    refused(&["--cpu", "intel-slk"], 125, "did you mean intel-skl?");
    // No CPU takes the events of both.
    let output = ["intel-p5", "arm-neoverse-n1"]
        .map(|cpu| run(&[&["--cpu", cpu, "-e", "page-faults:u"], &command[..]].concat()));
    assert!(
        output
            .iter()
            .any(|output| stderr(output).contains("they are encoded as "))
    );
}
