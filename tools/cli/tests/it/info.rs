//! `quipu info`, run as people run it, on whatever machine this is.

use assert_cmd::Command;
use serde_json::Value;

fn stdout(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let assert = command.arg("info").args(args).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn every_backend_is_usable_or_says_why_not() {
    let info: Value = serde_json::from_str(&stdout(&["--json"])).unwrap();
    let backends = info["backends"].as_array().unwrap();
    assert!(!backends.is_empty());
    for backend in backends {
        match backend["usable"].as_bool().unwrap() {
            true => assert!(
                !backend["events"].as_array().unwrap().is_empty(),
                "{backend}"
            ),
            false => assert!(backend["reason"].is_string(), "{backend}"),
        }
    }
}

#[test]
fn the_chain_of_reasons_is_told_for_any_cpu() {
    let info: Value = serde_json::from_str(&stdout(&["--json", "--cpu", "intel-skx"])).unwrap();
    let selection = &info["selection"];
    assert_eq!(selection["cpus"][0]["id"], "intel-skx");
    assert!(selection["cpus"][0]["recognised_by"].is_null());
    let considered = selection["considered"].as_array().unwrap();
    let names: Vec<&str> = considered
        .iter()
        .map(|one| one["backend"].as_str().unwrap())
        .collect();
    if cfg!(target_os = "linux") {
        assert_eq!(selection["cpus"][0]["prefers"][1], "msr");
        assert_eq!(names, ["linux", "msr", "pctr", "hwpmc", "posix"]);
        assert_eq!(considered[0]["reasons"][0], "first choice of intel-skx");
        assert_eq!(considered[0]["chosen"], info["backends"][0]["usable"]);
    }
    let text = stdout(&["--cpu", "intel-p5"]);
    assert!(
        text.contains("\n  CPU entry           intel-p5 (Intel Pentium), as asked for\n"),
        "{text}"
    );
    let unknown = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["info", "--cpu", "intel-p55"])
        .assert()
        .failure();
    let error = String::from_utf8(unknown.get_output().stderr.clone()).unwrap();
    assert!(error.contains("no such CPU"), "{error}");
}

#[test]
fn text_has_its_sections_and_aligned_labels() {
    let text = stdout(&[]);
    assert!(
        text.starts_with("Machine\n  kernel              "),
        "{text}"
    );
    assert!(text.contains("\nBackends (interfaces for counting)\n"));
    assert!(!text.contains('\x1b'));
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn facts_agree_with_the_kernels_files() {
    let info: Value = serde_json::from_str(&stdout(&["--json"])).unwrap();
    let text = stdout(&[]);
    let file = |path: &str| std::fs::read_to_string(path).ok();
    let release = file("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(info["machine"]["kernel"], release.trim_end());
    let paranoid = file("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.and_then(|text| text.trim_end().parse::<i64>().ok());
    assert_eq!(info["privileges"]["perf_event_paranoid"].as_i64(), paranoid);
    for pmu in info["pmus"].as_array().unwrap() {
        let name = pmu["name"].as_str().unwrap();
        let type_ = file(&format!("/sys/bus/event_source/devices/{name}/type")).unwrap();
        assert_eq!(pmu["type"].to_string(), type_.trim_end(), "{name}");
        assert!(text.contains(&format!("\n  {name} ")), "{text}");
    }
    let has_cpu_pmu = info["has_cpu_pmu"].as_bool().unwrap();
    assert_eq!(
        text.contains("None of them belongs to the CPU cores"),
        !has_cpu_pmu
    );
}

/// A test of the counters finds as many as there are, or says why it finds none.
#[cfg(target_os = "linux")]
#[test]
fn counters_are_tested_when_asked_for() {
    let info: Value = serde_json::from_str(&stdout(&["--json", "--test"])).unwrap();
    let counters = &info["counters"];
    let linux = &info["backends"][0];
    let tests = counters["tests"].as_array().unwrap();
    let numbers = tests.iter().map(|test| test["advertised"].as_u64());
    // The backend tells the fewest, too, as long as every PMU could be tested.
    let fewest = numbers
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().min());
    assert_eq!(linux["slots"].as_u64(), fewest.flatten(), "{linux}");
    assert!(!tests.is_empty());
    for test in tests {
        counter_test(test, &info);
    }
}

#[cfg(target_os = "linux")]
fn counter_test(test: &Value, info: &Value) {
    let state = test["state"].as_str().unwrap();
    match test["advertised"].as_u64() {
        Some(advertised) => {
            assert!(test["pmu"].is_string(), "{test}");
            assert!(test["counting"].as_u64().unwrap() <= advertised);
            assert!(
                state.starts_with(&format!("{advertised} counters")),
                "{state}"
            );
        }
        None if info["has_cpu_pmu"] == false => {
            assert_eq!(state, "no hardware counters");
            assert!(
                info["counters"]["no_user_reads"]["reason"].is_string(),
                "{info}"
            );
        }
        None => assert!(state.starts_with("cannot "), "{state}"),
    }
}
