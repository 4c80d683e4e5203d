//! C programs that assert what the library does, each built against its header and run.
#![cfg(target_os = "linux")]

mod c_programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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

/// The program counts with the modifiers, of which values of software events tell nothing.
#[test]
fn pinned_and_exclusive_events_are_so_for_the_kernel() {
    let test = "pinned_and_exclusive_events_are_so_for_the_kernel";
    let Some((_library, program)) = program("event_sets.c") else {
        return;
    };
    if !is_there("strace") {
        return skip(test, "there is no strace");
    }
    let place = tempfile::tempdir().expect("a directory");
    let calls = place.path().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-v", "-e", "trace=perf_event_open", "-o"]);
    let traced = strace.arg(&calls).arg(program).output().expect("it starts");
    let calls = std::fs::read_to_string(calls).unwrap_or_default();
    if !calls.contains("perf_event_open(") {
        let why = String::from_utf8_lossy(&traced.stderr);
        return skip(test, &format!("strace may not trace: {why}"));
    }
    let faults = |call: &&str| call.contains("PERF_COUNT_SW_PAGE_FAULTS");
    for [is, is_not] in [["pinned=1", "exclusive=1"], ["exclusive=1", "pinned=1"]] {
        let mut calls = calls.lines().filter(faults);
        assert!(
            calls.any(|call| call.contains(is) && !call.contains(is_not)),
            "{is}"
        );
    }
}

#[test]
fn bad_input_has_the_codes_of_papi() {
    passes("misuse.c");
}

/// Returns what each call of a program returned with the library of a folder; calls have their state before them.
fn returned(program: &Path, folder: &Path) -> BTreeMap<String, String> {
    let output = run(Command::new(program).env("LD_LIBRARY_PATH", folder));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let (call, returned) = line.rsplit_once('\t').expect("what it returned");
        (call.to_owned(), returned.to_owned())
    };
    said.lines().map(line).collect()
}

/// Calls that return something else than with PAPI 7.0, and why.
const OTHERWISE: [(&str, &str); 9] = [
    (
        "_named_event(number, \"",
        "PAPI returns what the last of its components says, which has no names",
    ),
    ("PAPI_query_named_event(", "as above"),
    ("PAPI_event_name_to_code(\"\"", "as above"),
    (
        "PAPI_hl_",
        "PAPI's high level has no events without counters of the CPU",
    ),
    (
        "PAPI_set_multiplex(",
        "the kernel multiplexes events of software too",
    ),
    (
        "PAPI_epc(WILD",
        "where PAPI has presets that nothing counts, it finds them before it looks for the event",
    ),
    ("PAPI_get_event_component(0)", "0 is no code of an event"),
    ("PAPI_enum_event(numbers, WILD)", "0 is no code of an event"),
    (
        "PAPI_profil(NULL, 0, NULL, 0, number, 0, 0, 0)",
        "of several wrong arguments another is told",
    ),
];

#[test]
fn no_function_crashes_and_codes_are_those_of_papi() {
    let test = "no_function_crashes_and_codes_are_those_of_papi";
    let Some((library, program)) = program("every_function.c") else {
        return;
    };
    let ours = returned(&program, library.path().parent().expect("its folder"));
    let exported = c_programs::printed(Command::new("nm").arg("-D").arg(library.path()));
    let names = exported.lines().filter_map(|line| line.split(" T ").nth(1));
    for name in names.filter(|name| name.starts_with("PAPI_")) {
        let call = format!("{name}(");
        assert!(
            ours.keys().any(|key| key.contains(&call)),
            "{name} is not called"
        );
    }
    let crashed = ours
        .iter()
        .filter(|(_, returned)| returned.contains("ended by"));
    assert_eq!(crashed.count(), 0, "{ours:?}");
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folder = Path::new(&folder);
    if !folder.join("libpapi.so.7.0").exists() {
        return skip(test, "PAPI is not installed to compare with");
    }
    for (call, theirs) in returned(&program, folder) {
        // Some numbers are of the machine, and not of the arguments.
        let is_code = theirs.starts_with('-') || theirs == "0";
        let is_otherwise = OTHERWISE.iter().any(|(known, _)| call.contains(known));
        if is_code && !is_otherwise {
            assert_eq!(ours.get(&call), Some(&theirs), "{call}");
        }
    }
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
fn the_process_is_counted_and_components_say_why_they_are_disabled() {
    passes("elsewhere.c");
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
