//! Regions of C programs, in an executable of their own because it compiles them: threads, forks, signals, libraries that are
//! closed, and what the marks of the header cost where regions are off.
#![cfg(target_os = "linux")]

mod c_build;
mod commands;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_build::{Language, Library};
use commands::{is_there, printed, root, run, skip};
use tempfile::TempDir;

/// The program, and a folder for its report.
struct Scene {
    program: PathBuf,
    library: Library,
    folder: TempDir,
}

/// A line of a report: a region of a thread, with an event.
#[derive(Debug, PartialEq)]
struct Row {
    region: String,
    calls: u64,
    not_left: u64,
    count: String,
    kind: String,
}

impl Scene {
    fn new() -> Self {
        let library = Library::lay_out();
        let source = root().join("tests/programs/regions.c");
        Self {
            program: library.build(&source, Language::C11),
            library,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// Returns a command that writes a report of page faults at its end.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env("QUIPU_REGIONS", self.report())
            .env("QUIPU_REGION_EVENTS", "page-faults");
        command
    }

    fn report(&self) -> PathBuf {
        self.folder.path().join("report.csv")
    }

    /// Returns the rows of a run, or `None` if nothing can be counted here.
    fn rows(&self, what: &str) -> Option<Vec<Row>> {
        run(self.command(&self.program).arg(what));
        rows(&self.report())
    }
}

fn rows(report: &Path) -> Option<Vec<Row>> {
    let text = std::fs::read_to_string(report).expect("a report");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse().expect("a number");
        Row {
            region: fields[2].to_owned(),
            calls: number(3),
            not_left: number(4),
            count: fields[8].to_owned(),
            kind: fields[10].to_owned(),
        }
    };
    let rows: Vec<Row> = text.lines().skip(1).map(row).collect();
    match rows.iter().any(|row| row.kind == "not counted") {
        true => {
            skip("regions in C", "page faults cannot be counted");
            None
        }
        false => Some(rows),
    }
}

/// Returns what there is of a region: calls, calls that were not left, and the count, which is exact.
fn of(rows: &[Row], region: &str) -> Vec<(u64, u64, String)> {
    let rows = rows.iter().filter(|row| row.region == region);
    rows.map(|row| {
        assert_eq!(row.kind, "exact", "{row:?}");
        (row.calls, row.not_left, row.count.clone())
    })
    .collect()
}

#[test]
fn each_thread_has_the_faults_of_its_own() {
    let Some(rows) = Scene::new().rows("threads") else {
        return;
    };
    for thread in 0..4 {
        let region = format!("fill {thread}");
        assert_eq!(of(&rows, &region), [(2, 0, "512".to_owned())], "{rows:?}");
    }
    // A thread that ended inside of it has no whole call.
    assert_eq!(of(&rows, "stays"), [(1, 1, "0".to_owned())], "{rows:?}");
}

#[test]
fn a_child_counts_from_0_and_its_parent_goes_on() {
    let Some(rows) = Scene::new().rows("forks") else {
        return;
    };
    assert_eq!(of(&rows, "own"), [(2, 0, "10".to_owned())]);
    let [(1, 0, around)] = &of(&rows, "around")[..] else {
        panic!("{rows:?}");
    };
    let [(1, 0, inner)] = &of(&rows, "around/fork")[..] else {
        panic!("{rows:?}");
    };
    // What the parent wrote to after fork(2) is copied on write.
    let [around, inner] = [around, inner].map(|count| count.parse::<u64>().expect("a number"));
    assert!(
        (512..1024).contains(&inner) && inner <= around && around < 1024,
        "{rows:?}"
    );
}

#[test]
fn a_child_of_a_busy_program_waits_for_no_lock() {
    Scene::new().rows("forks beside");
}

#[test]
fn a_signal_handler_has_regions_or_is_refused() {
    Scene::new().rows("signals");
}

#[test]
fn a_program_that_is_executed_has_regions_of_its_own() {
    let Some(rows) = Scene::new().rows("exec") else {
        return;
    };
    let regions: Vec<&str> = rows.iter().map(|row| &*row.region).collect();
    assert_eq!(regions, ["marked", "marked/inside"]);
    assert_eq!((rows[0].calls, rows[1].calls), (3, 1));
}

#[test]
fn libraries_with_regions_can_be_closed() {
    let scene = Scene::new();
    let folder = scene.library.dir();
    let plugin = folder.join("plugin.so");
    run(Command::new("cc")
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I",
        ])
        .arg(root().join("include"))
        .arg(root().join("tests/programs/plugin.c"))
        .arg("-L")
        .arg(folder)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-lquipu")
        .arg("-o")
        .arg(&plugin));
    let program = folder.join("closing");
    run(Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(root().join("tests/programs/closing.c"))
        .args(["-ldl", "-o"])
        .arg(&program));
    run(scene.command(&program).arg(&plugin));
    let Some(rows) = rows(&scene.report()) else {
        return;
    };
    // The library that counts stays as long as threads that have regions.
    assert_eq!(of(&rows, "of the plugin"), vec![(1, 0, "0".to_owned()); 4]);
}

/// Marks are tests of a variable where regions are off: nothing is opened, read or written.
#[test]
fn marks_are_off_unless_asked_for() {
    let scene = Scene::new();
    if !is_there("strace") {
        return skip("marks that are off", "there is no strace");
    }
    let calls = scene.folder.path().join("calls");
    let traced = |asked: bool| {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=perf_event_open,read", "-o"]);
        command.arg(&calls).arg(&scene.program).arg("marks");
        if asked {
            command.env("QUIPU_REGIONS", scene.report());
        }
        let output = command.output().expect("it starts");
        output
            .status
            .success()
            .then(|| std::fs::read_to_string(&calls).unwrap_or_default())
    };
    let (Some(off), Some(on)) = (traced(false), traced(true)) else {
        return skip("marks that are off", "strace may not trace");
    };
    assert!(on.contains("perf_event_open("), "{on}");
    assert!(!off.contains("perf_event_open("), "{off}");
}

/// Without regions at all a program needs no library for them.
#[test]
fn marks_can_be_left_out() {
    if !is_there("nm") {
        return skip("marks that are left out", "there is no nm");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let object = folder.path().join("marks.o");
    run(Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-DQUIPU_NO_REGIONS",
            "-c",
            "-I",
        ])
        .arg(root().join("include"))
        .arg(root().join("tests/programs/plugin.c"))
        .arg("-o")
        .arg(&object));
    let wanted = printed(Command::new("nm").arg("--undefined-only").arg(&object));
    assert!(!wanted.contains("quipu_region"), "{wanted}");
}
