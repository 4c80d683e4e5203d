//! The program `quipu-import`.

use assert_cmd::Command;

#[test]
fn imports_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.json");
    std::fs::write(
        &file,
        r#"[{ "EventName": "a.b", "EventCode": "0x29", "UMask": "0x01" }]"#,
    )
    .unwrap();
    let run = Command::cargo_bin("quipu-import")
        .unwrap()
        .args(["events", "--from", "linux-pmu-events"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(
        out.ends_with("[cpu.events.a]\ncode = 0x29\ncombine = true\nmasks.b = 0x01\n"),
        "{out}"
    );
    let missing = folder.path().join("missing.json");
    let run = Command::cargo_bin("quipu-import")
        .unwrap()
        .args(["events", "--from", "linux-pmu-events"])
        .arg(&missing)
        .output()
        .unwrap();
    let error = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(
        error.contains("cannot read") && error.contains("missing.json"),
        "{error}"
    );
}
