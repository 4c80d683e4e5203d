//! Files that are gone or changed are read from the caches of perf and of debuginfod's clients, by their build ids.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Bench, quipu, skip, stderr, stdout};
use crate::perf::perf;

/// Functions with the numbers of their samples.
type Functions = Vec<(String, u64)>;

/// Returns the functions of a report made with a home directory, with the numbers of their samples, and what it warns of the program.
fn functions(bench: &Bench, home: &str) -> (Functions, String) {
    let output = quipu()
        .current_dir(bench.directory.path())
        .env("HOME", bench.path(home))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("DEBUGINFOD_CACHE_PATH")
        .args(["report", "--json", "--sort", "sym"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let functions = lines.filter_map(|line| {
        let line = line.expect("JSON");
        let name = line["symbol"].as_str()?.to_owned();
        Some((name, line["samples"].as_u64()?))
    });
    let known = functions.filter(|(name, _)| ["hot", "warm"].contains(&name.as_str()));
    // Libraries may be stripped.
    let warnings = stderr(&output);
    let of_program = warnings
        .lines()
        .filter(|line| line.contains(&bench.program()));
    (known.collect(), of_program.collect())
}

/// Returns a bench with a recording of its program, the functions of that, and its build id in hexadecimal.
fn recorded(test: &str) -> Option<(Bench, Functions, String)> {
    let bench = Bench::new(test)?;
    let Some(id) = quipu_symbols::build_id_of(&bench.path("program")) else {
        skip(test, "the compiler writes no build id");
        return None;
    };
    bench.record_faults(&["-e", "page-faults:u", "-c", "1", "--names", "none"]);
    let (all, _) = functions(&bench, "nowhere");
    assert_eq!(all.len(), 2, "{all:?}");
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((bench, all, id))
}

#[test]
fn a_program_that_is_gone_or_changed_is_found_in_the_cache_of_perf() {
    const TEST: &str = "a_program_that_is_gone_or_changed_is_found_in_the_cache_of_perf";
    let Some((bench, all, _)) = recorded(TEST) else {
        return;
    };
    let Some(mut perf) = perf() else {
        return skip(TEST, "perf does not start here");
    };
    let perf = perf.env("HOME", bench.path("home"));
    let cached = perf
        .args(["buildid-cache", "-a", &bench.program()])
        .output();
    let is_cached = |output: &std::process::Output| output.status.success();
    if !cached.as_ref().is_ok_and(is_cached) || !bench.path("home/.debug").is_dir() {
        return skip(TEST, format!("perf buildid-cache: {cached:?}"));
    }
    fs::remove_file(bench.path("program")).expect("removed");
    assert_eq!(functions(&bench, "nowhere").0, []);
    assert_eq!(functions(&bench, "home"), (all.clone(), String::new()));

    let other = "void hot(void) {} int main(void) { hot(); return 0; }";
    bench.compile("program", other).expect("compiled before");
    let (names, warning) = functions(&bench, "nowhere");
    assert_eq!(names, []);
    assert!(
        warning.contains("not the file that was recorded"),
        "{warning}"
    );
    assert_eq!(functions(&bench, "home"), (all, String::new()));
}

#[test]
fn debug_information_is_found_in_the_cache_of_debuginfods_clients() {
    const TEST: &str = "debug_information_is_found_in_the_cache_of_debuginfods_clients";
    let Some((bench, all, id)) = recorded(TEST) else {
        return;
    };
    let cache = bench.path("home/.cache/debuginfod_client").join(id);
    fs::create_dir_all(&cache).expect("created");
    let program = bench.path("program");
    fs::copy(&program, cache.join("debuginfo")).expect("copied");
    let stripped = Command::new("strip").arg(&program).status();
    if !stripped
        .as_ref()
        .is_ok_and(std::process::ExitStatus::success)
    {
        return skip(TEST, format!("strip: {stripped:?}"));
    }
    assert_eq!(functions(&bench, "nowhere").0, []);
    assert_eq!(functions(&bench, "home").0, all);

    // The program itself as a server of debug information gives it.
    fs::rename(&program, cache.join("executable")).expect("renamed");
    assert_eq!(functions(&bench, "nowhere").0, []);
    assert_eq!(functions(&bench, "home").0, all);

    // A copy with another build id is not of the program that was recorded.
    let other = "void hot(void) {} int main(void) { hot(); return 1; }";
    bench.compile("other", other).expect("compiled before");
    fs::copy(bench.path("other"), cache.join("executable")).expect("copied");
    assert_eq!(functions(&bench, "home").0, []);
}
