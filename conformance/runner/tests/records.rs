//! Records of runs: kept, compared, and made into the page that is committed.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn conform(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("quipu-conform").expect("the command is built");
    command.args(args);
    command
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_page_is_made_of_the_records_beside_it() {
    let records = docs().join("conformance");
    let output = conform(&["page", utf8(&records)])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let committed = fs::read_to_string(docs().join("conformance.md")).expect("a page");
    assert!(
        page == committed,
        "out of date: quipu-conform page docs/conformance >docs/conformance.md"
    );
}

/// What needs no machine of its own is run again.
#[cfg(unix)]
#[test]
fn what_passed_on_simulated_machines_still_does() {
    let now = tempfile::tempdir().expect("a directory");
    let now = utf8(now.path());
    conform(&["simulated", now]).assert().success();
    let compared = conform(&["compare", utf8(&docs().join("conformance")), now]);
    let output = { compared }.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("not on record"), "{text}");
}

#[test]
fn a_pass_that_is_gone_is_said_and_is_a_failure() {
    let [before, now] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let [before_dir, now_dir] = [&before, &now].map(|dir| utf8(dir.path()));
    let file = before.path().join("sim.json");
    let args = ["--backend", "sim", "--format", "record", "--output"];
    conform(&args).arg(&file).assert().success();
    let kept = fs::read_to_string(&file).expect("written");
    let write = |text: String| fs::write(now.path().join("sim.json"), text).expect("written");

    write(kept.clone());
    conform(&["compare", before_dir, now_dir])
        .assert()
        .success()
        .stdout(contains("sim: ").and(contains(" 0 failed, ")));

    write(kept.replace("\"values.exact\",", ""));
    conform(&["compare", before_dir, now_dir])
        .assert()
        .code(1)
        .stdout(contains("FAIL values.exact: it passed, and is not run"));

    let failing = "\"failed\": {\"values.exact\": \"1 instead of 2\"}, \"passed\": [";
    let gone = kept.replace("\"values.exact\",", "");
    write(gone.replace("\"passed\": [", failing));
    conform(&["compare", before_dir, now_dir])
        .assert()
        .code(1)
        .stdout(contains("FAIL values.exact: 1 instead of 2"));

    // A newer kernel is no reason for less.
    write(kept.replace("\"kernel\": \"any\"", "\"kernel\": \"7.2\""));
    conform(&["compare", before_dir, now_dir])
        .assert()
        .success()
        .stdout(contains("sim (on record is kernel any): "));
    write(gone.replace("\"kernel\": \"any\"", "\"kernel\": \"7.2\""));
    conform(&["compare", before_dir, now_dir]).assert().code(1);

    // Another machine may lack something, which is no failure, and is said.
    let elsewhere = gone.replace("\"cpu\": \"any\"", "\"cpu\": \"another\"");
    write(elsewhere);
    conform(&["compare", before_dir, now_dir])
        .assert()
        .success()
        .stdout(contains("another machine or user"));

    conform(&["compare", before_dir, "/no/such/directory"])
        .assert()
        .code(2)
        .stderr(contains("/no/such/directory"));
}

#[test]
fn a_simulated_machine_that_is_gone_is_said_and_is_a_failure() {
    let [before, now] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let args = [
        "--backend",
        "sim",
        "--filter",
        "reset.",
        "--format",
        "record",
        "--output",
    ];
    for file in [
        before.path().join("a.json"),
        before.path().join("b.json"),
        now.path().join("a.json"),
    ] {
        conform(&args).arg(&file).assert().success();
    }
    conform(&["compare", utf8(before.path()), utf8(now.path())])
        .assert()
        .code(1)
        .stdout(contains("b: FAIL: it is on record, and was not run"));
    // Those of real machines are made where these are.
    let file = before.path().join("b.json");
    let text = fs::read_to_string(&file).expect("written");
    let real = text.replace("\"machine\": \"any\"", "\"machine\": \"linux x86_64\"");
    fs::write(&file, real).expect("written");
    conform(&["compare", utf8(before.path()), utf8(now.path())])
        .assert()
        .success();
}

/// The script runs on a BSD, where no test does; here with a system's name that is not true.
#[cfg(target_os = "linux")]
#[test]
fn the_script_for_a_bsd_writes_records_that_the_page_takes() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let programs = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let suite = assert_cmd::cargo::cargo_bin("quipu-conform");
    symlink(suite, programs.path().join("quipu-conform")).expect("a link");
    for (name, text) in [
        ("quipu", "echo \"quipu $*\""),
        ("uname", "echo OpenBSD"),
        ("sysctl", "echo Atom"),
    ] {
        let file = programs.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut script = Command::new("sh");
    script
        .arg(docs().join("../ci/bsd/report"))
        .arg(out.path())
        .env("PROGRAMS", programs.path())
        .env("PATH", format!("{}:{path}", programs.path().display()));
    // There is no pctr(4) here.
    script.assert().code(2).stdout(
        contains("quipu info\n")
            .and(contains("quipu stat -- true\n"))
            .and(contains("== pctr: the suite could not be run"))
            .and(contains("== posix: every check passed or was skipped")),
    );
    conform(&["page", utf8(out.path())])
        .assert()
        .success()
        .stdout(contains("| openbsd-posix | posix | linux "));
}

/// Nothing of the system is needed but the program itself: no shell, no environment, no directory that
/// it could write to.
#[cfg(target_os = "linux")]
#[test]
fn a_report_goes_to_a_device_without_any_environment() {
    conform(&[
        "--backend",
        "sim",
        "--filter",
        "reset.",
        "--output",
        "/dev/stdout",
    ])
    .env_clear()
    .current_dir("/proc")
    .assert()
    .success()
    .stdout(contains("pass  reset.clears-value"));
}
