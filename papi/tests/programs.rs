//! C programs that assert what the library does, each built against its header and run.
#![cfg(target_os = "linux")]

mod c_programs;

use std::path::PathBuf;
use std::process::Command;

use c_programs::{Library, is_there, root, run, skip};

/// Builds a program and returns it with its library, unless there is no compiler.
fn program(name: &str) -> Option<(Library, PathBuf)> {
    if !is_there("cc") {
        skip(name, "there is no C compiler");
        return None;
    }
    let library = Library::lay_out();
    let program = library.build(&root().join("tests/programs").join(name));
    Some((library, program))
}

fn passes(name: &str) {
    if let Some((_library, program)) = program(name) {
        run(&mut Command::new(program));
    }
}

#[test]
fn event_sets_keep_their_states_and_values() {
    passes("event_sets.c");
}

#[test]
fn bad_input_has_the_codes_of_papi() {
    passes("misuse.c");
}

#[test]
fn handlers_and_profiles_see_overflows() {
    passes("overflow.c");
}

#[test]
fn the_kernel_tells_of_each_overflow() {
    passes("signals.c");
}

#[test]
fn overflows_are_handled_where_no_signal_can_be_queued() {
    passes("full_queue.c");
}

#[test]
fn a_handler_keeps_up_with_cycles() {
    let Some((_library, program)) = program("cycles.c") else {
        return;
    };
    let output = run(&mut Command::new(program));
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = said.strip_prefix("SKIP overflows of cycles: ") {
        skip("a_handler_keeps_up_with_cycles", reason.trim_end());
    }
}

#[test]
fn handlers_of_overflows_may_leave_by_a_jump() {
    passes("leaving.c");
}

#[test]
fn threads_and_children_count_for_themselves() {
    passes("threads.c");
}

#[test]
fn regions_are_reported_in_json() {
    let Some((_library, program)) = program("regions.c") else {
        return;
    };
    let place = tempfile::tempdir().expect("a directory");
    run(Command::new(program)
        .env("PAPI_OUTPUT_DIRECTORY", place.path())
        .env(
            "PAPI_EVENTS",
            "perf::PAGE-FAULTS,no-such-event,perf::TASK-CLOCK",
        ));
    let directory = place.path().join("papi_hl_output");
    let report = std::fs::read_dir(&directory)
        .expect("the directory")
        .next()
        .expect("a report");
    let report = std::fs::read_to_string(report.expect("an entry").path()).expect("the report");
    for wanted in [
        "\"perf::PAGE-FAULTS\": {\n      \"component\": \"perf_event\",\n      \"type\": \"delta\"",
        "\"name\": \"outer \\\"x\\\"\",\n          \"parent_region_id\": \"-1\"",
        "\"name\": \"inner\",\n          \"parent_region_id\": \"0\"",
        "\"perf::PAGE-FAULTS\": \"64\"",
        "\"read_1\": \"64\"",
        "\"max_cpu_rate_mhz\"",
    ] {
        assert!(report.contains(wanted), "no {wanted} in {report}");
    }
    assert!(!report.contains("no-such-event"), "{report}");
}

#[test]
fn a_program_in_fortran_counts_page_faults() {
    if !is_there("gfortran") {
        return skip("faults.F", "there is no gfortran");
    }
    let library = Library::lay_out();
    let source = root().join("tests/programs/faults.F");
    let program = library.build_with(&["gfortran", "-ffixed-line-length-132"], &source);
    run(&mut Command::new(program));
}

#[test]
fn the_example_counts_page_faults() {
    if !is_there("cc") {
        return skip("example", "there is no C compiler");
    }
    let library = Library::lay_out();
    let program = library.build(&root().join("examples/page_faults.c"));
    let output = run(&mut Command::new(program));
    let said = String::from_utf8_lossy(&output.stdout);
    let number = said
        .strip_suffix(" page faults\n")
        .and_then(|number| number.parse::<u64>().ok());
    assert!(number.is_some_and(|number| number > 0), "{said}");
}
