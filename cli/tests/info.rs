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
fn text_has_its_sections_and_aligned_labels() {
    let text = stdout(&[]);
    assert!(
        text.starts_with("Machine\n  kernel              "),
        "{text}"
    );
    assert!(text.contains("\nBackends (ways to count)\n"));
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
    assert_eq!(text.contains("None of them is of CPU cores"), !has_cpu_pmu);
}
