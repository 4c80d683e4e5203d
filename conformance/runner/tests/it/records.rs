//! Records of runs: put into the committed table, and compared with it.

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
fn the_table_has_a_row_for_each_check_and_machines_that_are_real() {
    let table = fs::read_to_string(docs().join("conformance.tsv")).expect("a table");
    let rows: Vec<_> = table
        .lines()
        .filter_map(|row| row.split('\t').next())
        .collect();
    let facts = [
        "check", "backend", "machine", "kernel", "cpu", "pmu", "user",
    ];
    let checks = quipu_conformance::all().map(|check| check.id);
    assert_eq!(rows, facts.into_iter().chain(checks).collect::<Vec<_>>());
    assert!(!table.contains("\tfail"), "{table}");
    assert!(!table.contains("\tsim"), "{table}");
}

#[test]
fn the_page_of_the_table_is_up_to_date() {
    let page = conform(&["page", utf8(&docs().join("conformance.tsv"))]);
    let page = { page }.output().expect("it runs").stdout;
    let kept = fs::read(docs().join("conformance-results.md")).expect("a page");
    assert!(
        page == kept,
        "write it: quipu-conform page docs/conformance.tsv >docs/conformance-results.md"
    );
}

#[test]
fn a_page_beside_the_table_is_kept_up() {
    let kept = Kept::new(&["--filter", "reset."]);
    assert!(!Path::new(&kept.path("table-results.md")).exists());
    fs::write(kept.path("table-results.md"), "old").expect("written");
    kept.compare(&kept.record)
        .code(1)
        .stdout(contains("table-results.md: it is not the page of"));
    conform(&["record", &kept.path("table.tsv"), &kept.path("now")])
        .assert()
        .success();
    let page = fs::read_to_string(kept.path("table-results.md")).expect("written");
    assert!(page.contains("| sim | sim | any |"), "{page}");
    kept.compare(&kept.record).success();
}

/// Simulated machines are everywhere. After a change that is meant to move what passes on them:
/// `quipu-conform simulated DIR && quipu-conform record conformance/runner/tests/it/simulated.tsv DIR`.
#[cfg(unix)]
#[test]
fn what_passed_on_simulated_machines_still_does() {
    let now = tempfile::tempdir().expect("a directory");
    let now = utf8(now.path());
    conform(&["simulated", now]).assert().success();
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/simulated.tsv");
    let compared = conform(&["compare", utf8(&table), now]);
    let output = { compared }.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("not on record"), "{text}");
}

/// A record of the simulated PMU, in a directory of its own, and a table made of it.
struct Kept {
    directory: tempfile::TempDir,
    record: String,
}

impl Kept {
    fn new(filter: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = Self {
            record: String::new(),
            directory,
        };
        let args = ["--backend", "sim", "--format", "record", "--output"];
        conform(&args)
            .arg(kept.path("now/sim.json"))
            .args(filter)
            .assert()
            .success();
        let record = fs::read_to_string(kept.path("now/sim.json")).expect("written");
        conform(&["record", &kept.path("table.tsv"), &kept.path("now")])
            .assert()
            .success();
        Self { record, ..kept }
    }

    fn path(&self, name: &str) -> String {
        fs::create_dir_all(self.directory.path().join("now")).expect("a directory");
        utf8(&self.directory.path().join(name)).to_owned()
    }

    /// Compares another record, in the place of the one of now.
    fn compare(&self, record: &str) -> assert_cmd::assert::Assert {
        fs::write(self.path("now/sim.json"), record).expect("written");
        conform(&["compare", &self.path("table.tsv"), &self.path("now")]).assert()
    }
}

#[test]
fn a_pass_that_is_gone_is_said_and_is_a_failure() {
    let kept = Kept::new(&[]);
    let record = &kept.record;
    kept.compare(record)
        .success()
        .stdout(contains("sim: ").and(contains(" 0 failed, ")));

    let gone = record.replace("\"values.exact\",", "");
    kept.compare(&gone)
        .code(1)
        .stdout(contains("FAIL values.exact: it passed, and is not run"));

    let failing = "\"failed\": {\"values.exact\": \"1 instead of 2\"}, \"passed\": [";
    kept.compare(&gone.replace("\"passed\": [", failing))
        .code(1)
        .stdout(contains("FAIL values.exact: 1 instead of 2"));

    // A machine that is slower today may skip, and says so.
    let slow =
        "\"skipped\": {\"it wants 250 turns, and one takes 293 ms here\": [\"values.exact\"],";
    kept.compare(&gone.replace("\"skipped\": {", slow))
        .success()
        .stdout(contains("SKIP values.exact: it wants 250 turns"));
    let lazy = slow.replace("and one takes 293 ms here", "and there is no time");
    kept.compare(&gone.replace("\"skipped\": {", &lazy))
        .code(1)
        .stdout(contains("FAIL values.exact: it passed, and is skipped"));

    // A newer kernel is no reason for less.
    kept.compare(&record.replace("\"kernel\": \"any\"", "\"kernel\": \"7.2\""))
        .success()
        .stdout(contains("sim (on record is kernel any): "));
    kept.compare(&gone.replace("\"kernel\": \"any\"", "\"kernel\": \"7.2\""))
        .code(1);

    // Another machine may lack something, which is no failure, and is said.
    kept.compare(&gone.replace("\"cpu\": \"any\"", "\"cpu\": \"another\""))
        .success()
        .stdout(contains("another machine or user"));

    conform(&["compare", &kept.path("table.tsv"), "/no/such/directory"])
        .assert()
        .code(2)
        .stderr(contains("/no/such/directory"));
}

#[test]
fn a_simulated_machine_that_is_gone_is_said_and_is_a_failure() {
    let kept = Kept::new(&["--filter", "reset."]);
    let record = |text: &str| {
        fs::write(kept.path("now/other.json"), text).expect("written");
        conform(&["record", &kept.path("table.tsv"), &kept.path("now")])
            .assert()
            .success();
        fs::remove_file(kept.path("now/other.json")).expect("there");
    };
    record(&kept.record);
    kept.compare(&kept.record)
        .code(1)
        .stdout(contains("other: FAIL: it is on record, and was not run"));
    // Those of real machines are made where these are.
    let real = "\"machine\": \"linux x86_64\"";
    record(&kept.record.replace("\"machine\": \"any\"", real));
    kept.compare(&kept.record).success();
}

/// The script runs on a BSD, where no test does; here with a system's name that is not true.
#[cfg(target_os = "linux")]
#[test]
fn the_script_for_a_bsd_writes_records_that_the_table_takes() {
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
    let table = out.path().join("table.tsv");
    conform(&["record", utf8(&table), utf8(out.path())])
        .assert()
        .success();
    let table = fs::read_to_string(table).expect("written");
    assert!(
        table.starts_with("check\topenbsd-posix\nbackend\tposix\nmachine\tlinux "),
        "{table}"
    );
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
