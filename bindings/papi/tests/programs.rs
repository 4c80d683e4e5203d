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

/// Returns each component of a folder's library that counts, with `enabled` or why it is disabled.
fn components(library: &Library, folder: &Path) -> BTreeMap<String, String> {
    let program = library.build(&root().join("tests/programs/components.c"));
    returned(&program, folder)
}

/// Returns the folder of PAPI's own library, or why it is none to compare with: it counts nothing, not even software
/// events, on a CPU that its libpfm4 does not know.
fn papi(library: &Library) -> Result<PathBuf, String> {
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folder = PathBuf::from(folder);
    if !folder.join("libpapi.so.7.0").exists() {
        return Err("PAPI is not installed to compare with".to_owned());
    }
    match &*components(library, &folder)["perf_event"] {
        "enabled" => Ok(folder),
        disabled => Err(format!(
            "PAPI counts nothing on this machine: perf_event is {disabled}"
        )),
    }
}

/// Returns true if PAPI has other components than this library. It knows the events of some CPUs also where the kernel has
/// no PMU for them, gives them codes and lists them, though nothing counts them.
fn papi_lists_more(library: &Library, papi: &Path) -> bool {
    let path = library.path();
    let folder = path.parent().expect("its folder");
    let [ours, theirs] = [folder, papi].map(|folder| components(library, folder));
    assert!(theirs.contains_key("perf_event_uncore"), "{theirs:?}");
    let enabled = |state: &String| state == "enabled";
    theirs
        .iter()
        .any(|(component, state)| ours.get(component).map(enabled) != Some(enabled(state)))
}

/// Calls that are not compared where [`papi_lists_more`], and how what PAPI says of them begins.
const OF_LISTED: [(&str, &str); 7] = [
    (" in perf_event_uncore", ""),
    (" in any component", ""),
    ("from the first native by", "0, native"),
    ("preset by", "0, a preset"),
    ("PAPI_enum_event(numbers, WILD)", ""),
    ("PAPI_epc(WILD,", ""),
    ("PAPI_get_event_component(0)", ""),
];

/// Compares what each call of a program returned with what it returns with PAPI's library, but where it may be something
/// else.
fn compare(
    test: &str,
    (library, program): &(Library, PathBuf),
    ours: &BTreeMap<String, String>,
    may_differ: impl Fn(&str, &str) -> bool,
) {
    let papi = match papi(library) {
        Ok(papi) => papi,
        Err(reason) => return skip(test, &reason),
    };
    let lists_more = papi_lists_more(library, &papi);
    let theirs = returned(program, &papi);
    assert!(!theirs.is_empty(), "{test} with PAPI");
    let mut left_out = 0;
    for (call, theirs) in &theirs {
        let is_of_listed =
            |(of, said): &(&str, &str)| call.contains(of) && theirs.starts_with(said);
        if lists_more && OF_LISTED.iter().any(is_of_listed) {
            left_out += 1;
        } else if !may_differ(call, theirs) {
            assert_eq!(ours.get(call), Some(theirs), "{call}");
        }
    }
    if left_out > 0 {
        skip(
            test,
            &format!("{left_out} calls: PAPI lists events here for which there is no PMU"),
        );
    }
}

/// Calls that return something else than with PAPI 7.0, and why.
const OTHERWISE: [(&str, &str); 7] = [
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
        "PAPI_strerror(code) != NULL",
        "PAPI has no texts before it is initialized",
    ),
    (
        "PAPI_profil(NULL, 0, NULL, 0, number, 0, 0, 0)",
        "of several wrong arguments another is told",
    ),
];

#[test]
fn no_function_crashes_and_codes_are_those_of_papi() {
    let test = "no_function_crashes_and_codes_are_those_of_papi";
    let Some(built) = program("every_function.c") else {
        return;
    };
    let (library, program) = &built;
    let ours = returned(program, library.path().parent().expect("its folder"));
    let exported = match is_there("nm") {
        true => c_programs::printed(Command::new("nm").arg("-D").arg(library.path())),
        false => {
            skip(test, "whether all are called: there is no nm");
            String::new()
        }
    };
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
    compare(test, &built, &ours, |call, theirs| {
        // Some numbers are of the machine, and not of the arguments.
        let is_code = theirs.starts_with('-') || theirs == "0";
        !is_code || OTHERWISE.iter().any(|(known, _)| call.contains(known))
    });
}

/// Options of which PAPI 7.0 tells something else, with the beginning of that, and why.
const OPTIONS_OTHERWISE: [(&str, &str, &str); 4] = [
    ("", "ended by signal", "PAPI crashes"),
    (
        "",
        "-7;",
        "PAPI opens a counter of the CPU to see what is permitted, and finds none",
    ),
    (
        "PAPI_GRANUL thread of a running set",
        "0;",
        "it would hold when the set is started next; it is refused as other options are",
    ),
    ("PAPI_GRANUL CPU of a running set", "0;", "as above"),
];

/// Compares what a program prints of its calls with what it does with PAPI, except for what is otherwise: a part of the
/// call, and how what PAPI says of it begins.
fn compared(name: &str, otherwise: &[(&str, &str, &str)]) {
    let Some(built) = program(name) else {
        return;
    };
    let (library, program) = &built;
    let ours = returned(program, library.path().parent().expect("its folder"));
    let crashed = ours.values().filter(|said| said.contains("ended by"));
    assert_eq!(crashed.count(), 0, "{ours:?}");
    compare(name, &built, &ours, |call, theirs| {
        let mut otherwise = otherwise.iter();
        otherwise.any(|(of, said, _)| call.contains(of) && theirs.starts_with(said))
    });
}

#[test]
fn options_have_the_codes_and_values_of_papi() {
    compared("options.c", &OPTIONS_OTHERWISE);
}

#[test]
fn enumeration_has_the_codes_of_papi() {
    let kinds = "PAPI takes kinds of presets for bits, and gives presets of any kind";
    let of_kinds: Vec<String> = (3..=14)
        .map(|kind| format!("preset by {kind} in"))
        .collect();
    let kinds = of_kinds.iter().map(|of| (&**of, "0, a preset", kinds));
    let first = (
        "from the first native by 1 in any",
        "-17",
        "the first may be asked for before any event has a code",
    );
    let otherwise: Vec<_> = kinds.chain([first]).collect();
    compared("enumeration.c", &otherwise);
}

#[test]
fn children_have_the_codes_of_papi() {
    let otherwise = [(
        "not initialized again, in the parent then",
        "",
        "the set of the parent counts on, whatever a child does with its copy",
    )];
    compared("children.c", &otherwise);
}

/// Names of libpfm4 for PMUs, of which one is that of this CPU.
const PMUS: &str = include_str!("../../../events/tests/it/data/libpfm4/pmus.tsv");

#[test]
fn events_of_a_file_of_the_user_are_told_and_counted_as_by_papi() {
    let test = "events_of_a_file_of_the_user_are_told_and_counted_as_by_papi";
    let Some((library, program)) = program("user_events.c") else {
        return;
    };
    let rows = PMUS.lines().filter(|line| !line.starts_with('#'));
    let names = rows.filter_map(|row| row.split('\t').next());
    let cpus: String = names.map(|name| format!("CPU,{name}\n")).collect();
    assert!(cpus.lines().count() > 60, "{cpus}");
    let text = format!(
        "# Events of the user's own.
{cpus}EVENT,OWN_FAULTS,NOT_DERIVED,perf::PAGE-FAULTS,LDESC,\"faults of pages\",NOTE,'a note'
EVENT,OWN_SUM,DERIVED_ADD,perf::MINOR-FAULTS,perf::MAJOR-FAULTS,SDESC,\"sum\"
EVENT,OWN_TWICE,DERIVED_POSTFIX,N0|N1|-|2|*|,perf::PAGE-FAULTS,perf::MINOR-FAULTS
EVENT,OWN_INFIX,DERIVED_INFIX,N0*4-N0*2,perf::PAGE-FAULTS
EVENT,OWN_RATE,DERIVED_PS,perf::PAGE-FAULTS,perf::MINOR-FAULTS
EVENT,OWN_RATES,DERIVED_ADD_PS,perf::PAGE-FAULTS,perf::MINOR-FAULTS,perf::PAGE-FAULTS
CPU,nobody
EVENT,OWN_OTHERS,NOT_DERIVED,perf::CPU-CLOCK
{cpus}EVENT,OWN_MISSING,NOT_DERIVED,perf::NOTHING-LIKE-IT
"
    );
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("events.csv");
    std::fs::write(&file, text).expect("a file");
    let told = |folder: &Path| {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", folder);
        let output = command.env("PAPI_USER_EVENTS_FILE", &file).output();
        let output = output.expect("it starts");
        let said = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code(),
            said(output.stdout),
            said(output.stderr),
        )
    };
    let (status, ours, reported) = told(library.path().parent().expect("its folder"));
    if status == Some(77) {
        return skip(test, "libpfm4 has no name for the PMU of this CPU");
    }
    assert_eq!(status, Some(0), "{ours}{reported}");
    let line = format!(
        "{}, line {}: ",
        file.display(),
        2 * cpus.lines().count() + 10
    );
    assert!(reported.contains(&line), "{reported}");
    let papi = match papi(&library) {
        Ok(papi) => papi,
        Err(reason) => return skip(test, &reason),
    };
    let (status, theirs, _) = told(&papi);
    assert_eq!((Some(0), ours), (status, theirs));
}

#[test]
fn perror_says_what_was_in_the_way_of_the_last_failure() {
    let Some((_library, program)) = program("perror.c") else {
        return;
    };
    let output = run(&mut Command::new(program));
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let of = |what: &str| {
        let mut lines = said.lines().filter_map(|line| line.strip_prefix(what));
        lines.next().map(|line| line.trim_start_matches(": "))
    };
    assert_eq!(of("at first"), Some("no error"), "{said}");
    let attach = of("attach").unwrap_or_default();
    assert!(
        attach.ends_with(')') && attach.contains("thread 1073741824"),
        "{said}"
    );
    assert_eq!(of("start"), Some("there is no such event set"), "{said}");
    assert_eq!(of("no failure"), of("start"), "{said}");
    if let Some(preset) = of("preset") {
        assert!(preset.starts_with("there is no such event ("), "{said}");
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
fn names_say_on_which_cpu_a_thread_is_counted() {
    let name = "on_cpus.c";
    if let Some((_library, program)) = program(name) {
        let said = c_programs::printed(&mut Command::new(program));
        if let Some(reason) = said.strip_prefix("SKIP events on one CPU: ") {
            skip(name, reason.trim_end());
        }
    }
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

/// As `quipu stat --regions` asks for them, whatever PAPI's report is to count.
#[test]
fn regions_are_those_of_quipu_too() {
    let Some((_library, program)) = program("regions.c") else {
        return;
    };
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("regions.csv");
    run(Command::new(program)
        .env("PAPI_OUTPUT_DIRECTORY", place.path())
        .env("PAPI_EVENTS", "perf::TASK-CLOCK")
        .env("QUIPU_REGIONS", &file)
        .env("QUIPU_REGION_EVENTS", "page-faults:u"));
    let regions = std::fs::read_to_string(&file).expect("a report");
    let fields = |region: &str| {
        let row = regions.lines().find(|line| line.contains(region));
        let row = row.unwrap_or_else(|| panic!("no {region} in {regions}"));
        row.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let inner = fields("\"outer \"\"x\"\"/inner\"");
    assert_eq!((&*inner[3], &*inner[4]), ("2", "0"), "{regions}");
    assert_eq!((&*inner[8], &*inner[10]), ("128", "exact"), "{regions}");
    assert_eq!(fields(",read,")[3], "2", "{regions}");
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
