//! perf(1) reads what `quipu record` wrote, and `quipu report` what perf wrote.

use std::process::Output;

use super::{Bench, samples_of, samples_told, skip, stderr, stdout};

/// Has perf record a program into `p.data`; the reason why not.
pub(super) fn recorded_by_perf(
    bench: &Bench,
    program: &str,
    options: &[&str],
) -> Result<(), String> {
    let arguments = [&["record", "-q", "-o", "p.data"], options, &["--", program]].concat();
    match perf(bench, &arguments) {
        Some(output) if output.status.success() => Ok(()),
        Some(output) => Err(stderr(&output).trim().to_owned()),
        None => Err("perf does not start here".to_owned()),
    }
}

/// Runs perf in the directory of the bench, where it starts.
pub(super) fn perf(bench: &Bench, arguments: &[&str]) -> Option<Output> {
    let mut perf = crate::perf::perf()?;
    perf.current_dir(bench.directory.path()).args(arguments);
    Some(perf.output().expect("it started before"))
}

#[test]
fn perf_reads_what_was_recorded_and_counts_the_same() {
    const TEST: &str = "perf_reads_what_was_recorded_and_counts_the_same";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for options in [
        &["-e", "page-faults:u", "-c", "1"][..],
        &["-e", "page-faults:u", "-c", "1", "-g", "-d"],
        &["-e", "page-faults:u,minor-faults:u", "-c", "1"],
    ] {
        let recorded = bench.record(options, &bench.program());
        let Some(script) = perf(&bench, &["script", "-G", "-F", "event,ip,sym"]) else {
            return skip(TEST, "perf does not start here");
        };
        assert_eq!(stderr(&script), "", "{options:?}");
        let text = stdout(&script);
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert_eq!(lines as u64, samples_told(&recorded), "{options:?}\n{text}");
        assert!(text.contains(" hot"), "{text}");

        let report = perf(&bench, &["report", "--stdio", "--header"]).expect("it was there before");
        assert_eq!(stderr(&report), "", "{options:?}");
        let text = stdout(&report);
        for fact in [
            "# os release : ",
            "# nrcpus online : ",
            "hot",
            "quipu record",
        ] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
}

#[test]
fn samples_of_functions_without_names_are_left_out_as_by_perf() {
    const TEST: &str = "samples_of_functions_without_names_are_left_out_as_by_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = ["-e", "page-faults:u", "-c", "1", "--names", "none"];
    bench.record(&options, &bench.program());
    let sum = |rows: &[serde_json::Value]| {
        let samples = rows.iter().map(|row| row["samples"].as_u64());
        samples.sum::<Option<u64>>().expect("numbers")
    };
    let named = bench.rows(&["-U"]);
    assert!(samples_of(&named, "hot") > 0);
    assert!(named.iter().all(|row| row.get("symbol").is_some()));
    std::fs::remove_file(bench.path("program")).expect("it is there");
    let (all, named) = (bench.rows(&[]), bench.rows(&["-U"]));
    assert_eq!(samples_of(&named, "hot"), 0);
    let (without, with): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|row| row.get("symbol").is_none());
    assert!(sum(&without) > 0);
    assert_eq!(sum(&named), sum(&with));
    let Some(perf) = perf(&bench, &["report", "--stdio", "-U", "-n", "-t", ";"]) else {
        return skip(TEST, "perf does not start here");
    };
    // Both leave the whole file out; of some functions in assembler only one of the two knows the name.
    let text = stdout(&perf);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let objects: Vec<_> = rows.filter_map(|row| row.split(';').nth(3)).collect();
    assert!(!objects.is_empty() && objects.iter().all(|object| object.trim() != "program"));
    let object = |row: &serde_json::Value| row["object"].as_str().unwrap_or_default().to_owned();
    assert!(named.iter().all(|row| !object(row).ends_with("/program")));
}

#[test]
fn build_ids_and_names_are_those_that_perf_would_write() {
    const TEST: &str = "build_ids_and_names_are_those_that_perf_would_write";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(&["-e", "page-faults:u", "-c", "1"], &bench.program());
    let Some(names) = perf(&bench, &["evlist"]) else {
        return skip(TEST, "perf does not start here");
    };
    assert_eq!(stdout(&names).trim(), "page-faults:u");
    let ids = stdout(&perf(&bench, &["buildid-list"]).expect("it was there before"));
    let own = ids.lines().find(|line| line.ends_with(&bench.program()));
    match quipu_symbols::build_id_of(&bench.path("program")) {
        Some(id) => {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(own.is_some_and(|line| line.starts_with(&hex)), "{ids}");
        }
        None => assert_eq!(own, None),
    }
}

#[test]
fn perf_prints_the_fields_of_tracepoints() {
    const TEST: &str = "perf_prints_the_fields_of_tracepoints";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let recorded = bench.record(&["-e", "sched:sched_process_exec"], "true");
    if recorded.status.code() == Some(125) {
        return skip(TEST, stderr(&recorded).trim());
    }
    let Some(script) = perf(&bench, &["script"]) else {
        return skip(TEST, "perf does not start here");
    };
    assert_eq!(stderr(&script), "");
    let text = stdout(&script);
    assert_eq!(
        text.lines().count() as u64,
        samples_told(&recorded),
        "{text}"
    );
    assert!(
        text.contains("sched:sched_process_exec: filename="),
        "{text}"
    );
}

#[test]
fn what_perf_recorded_is_reported() {
    const TEST: &str = "what_perf_recorded_is_reported";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for chains in [&[][..], &["-g"]] {
        let mut seen = (0, 0);
        // The machine may take a page away and so add a fault.
        for _ in 0..3 {
            let mut arguments = vec![
                "record",
                "-q",
                "-e",
                "page-faults:u",
                "-c",
                "1",
                "-o",
                "p.data",
            ];
            arguments.extend(chains);
            let program = bench.program();
            arguments.extend(["--", &program]);
            match perf(&bench, &arguments) {
                Some(output) if output.status.code() == Some(7) => {}
                Some(output) => return skip(TEST, stderr(&output).trim()),
                None => return skip(TEST, "perf does not start here"),
            }
            let rows = bench.rows(&["-i", "p.data"]);
            seen = (samples_of(&rows, "hot"), samples_of(&rows, "warm"));
            if seen == (300, 100) {
                break;
            }
        }
        assert_eq!(seen, (300, 100));
    }
}
