//! Programs with LIKWID's markers, built against the headers here and run: threads of OpenMP, Fortran, files, refusals.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tempfile::TempDir;

/// An event that is counted, and one that cannot be.
const EVENTS: &str = "page-faults,no-such-event";

fn skip(name: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP {name}: {reason}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}{err}",
        output.status
    );
    output
}

/// The library as it is installed, and programs beside it.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let test = env::current_exe().expect("the test's own path");
        let built = test.parent().expect("its folder").join("liblikwid.so");
        fs::copy(&built, folder.path().join("liblikwid.so.5.2"))
            .unwrap_or_else(|e| panic!("{}: {e}", built.display()));
        std::os::unix::fs::symlink("liblikwid.so.5.2", folder.path().join("liblikwid.so"))
            .expect("a link");
        Self(folder)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds a program, or returns `None` where there is no such compiler.
    fn build(&self, compiler: &[&str], sources: &[&str]) -> Option<PathBuf> {
        if Command::new(compiler[0]).arg("--version").output().is_err() {
            skip(
                sources[sources.len() - 1],
                &format!("there is no {}", compiler[0]),
            );
            return None;
        }
        let program = self.place("program");
        run(Command::new(compiler[0])
            .current_dir(self.0.path())
            .args(&compiler[1..])
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-DLIKWID_PERFMON",
                "-fopenmp",
                "-I",
            ])
            .arg(root().join("include"))
            .args(sources.iter().map(|source| root().join(source)))
            .args(["-x", "none"])
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(self.0.path())
            .arg(format!("-Wl,-rpath,{}", self.0.path().display()))
            .args(["-llikwid", "-lm"]));
        Some(program)
    }
}

#[test]
fn each_thread_of_openmp_has_its_own_faults() {
    for compiler in [["cc", "-std=gnu11"], ["c++", "-xc++"]] {
        let scene = Scene::new();
        let Some(program) = scene.build(&compiler, &["tests/programs/openmp.c"]) else {
            continue;
        };
        let file = scene.place("file");
        let output = run(Command::new(&program)
            .env("LIKWID_EVENTS", EVENTS)
            .env("LIKWID_FILEPATH", &file));
        assert!(output.stderr.is_empty(), "{output:?}");
        let file = fs::read_to_string(file).expect("written");
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(lines[..3], ["4 2 1", "0:outer-0", "1:inner-0"], "{file}");
        let mut faults: Vec<(u32, f64)> = Vec::new();
        for line in &lines[3..] {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [id, "0", cpu, "3", seconds, "2", value, "nan"] = fields[..] else {
                panic!("{line}");
            };
            assert!(
                cpu.parse::<u32>().is_ok() && seconds.parse::<f64>().is_ok_and(|time| time > 0.0),
                "{line}"
            );
            faults.push((
                id.parse().expect("a number"),
                value.parse().expect("a number"),
            ));
        }
        faults.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        let of = |id: u32, each: f64| (1..=4).map(move |thread| (id, f64::from(thread) * each));
        let all: Vec<_> = of(0, 900.0).chain(of(1, 600.0)).collect();
        assert_eq!(faults, all, "{file}");
    }
}

#[test]
fn the_report_goes_where_it_is_asked_for() {
    let scene = Scene::new();
    let Some(program) = scene.build(&["cc", "-std=gnu11"], &["tests/programs/openmp.c"]) else {
        return;
    };
    // A table at the end, with the reason of what is not counted.
    let said = run(Command::new(&program).env("LIKWID_EVENTS", EVENTS)).stderr;
    let said = String::from_utf8(said).expect("text");
    assert!(
        said.lines().any(|line| line.starts_with("outer ")),
        "{said}"
    );
    assert!(said.contains("no-such-event: cannot "), "{said}");
    // The report of regions.
    let report = scene.place("report.csv");
    let output = run(Command::new(&program)
        .env("LIKWID_EVENTS", EVENTS)
        .env("QUIPU_REGIONS", &report));
    assert!(output.stderr.is_empty(), "{output:?}");
    let report = fs::read_to_string(report).expect("written");
    let exact = |line: &&str| line.contains(",outer,") && line.ends_with("exact");
    assert_eq!(report.lines().filter(exact).count(), 4, "{report}");
}

#[test]
fn what_has_no_counterpart_is_said_in_a_line() {
    let scene = Scene::new();
    let Some(program) = scene.build(&["cc", "-std=gnu11"], &["tests/programs/openmp.c"]) else {
        return;
    };
    let events = format!("{EVENTS}|NO_SUCH_GROUP|NO_SUCH_EVENT:PMC0");
    let report = scene.place("report");
    let output = run(Command::new(&program)
        .env("LIKWID_EVENTS", events)
        .env("QUIPU_REGIONS", &report));
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(
        said,
        "quipu: LIKWID_EVENTS is not counted in whole: no group NO_SUCH_GROUP; \
         NO_SUCH_EVENT:PMC0: this CPU has no event that is named so (of PMC0)\n"
    );
}

#[test]
fn markers_are_off_unless_asked_for() {
    let scene = Scene::new();
    let Some(program) = scene.build(&["cc", "-std=gnu11"], &["tests/programs/openmp.c"]) else {
        return;
    };
    // The program misses its counts then.
    let output = Command::new(&program).output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("quipu: the markers are off: "), "{said}");
    assert!(said.contains("-1 calls"), "{said}");
}

#[test]
fn fortran_has_the_same_regions() {
    let scene = Scene::new();
    let sources = ["include/likwid.f90", "tests/programs/marked.f90"];
    let Some(program) = scene.build(&["gfortran"], &sources) else {
        return;
    };
    run(Command::new(&program).env("LIKWID_EVENTS", EVENTS));
}

#[test]
fn the_headers_have_nothing_without_likwid_perfmon() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    if Command::new("cc").arg("--version").output().is_err() {
        return skip("headers without LIKWID_PERFMON", "there is no cc");
    }
    let source = folder.path().join("marked.c");
    let marks = "#include <likwid-marker.h>\nint main(void)\n{\n    LIKWID_MARKER_INIT;\n    LIKWID_MARKER_START(\"a\");\n    \
                 LIKWID_MARKER_STOP(\"a\");\n    LIKWID_MARKER_CLOSE;\n    return 0;\n}\n";
    fs::write(&source, marks).expect("written");
    run(Command::new("cc")
        .arg("-I")
        .arg(root().join("include"))
        .arg(&source)
        .arg("-o")
        .arg(&program));
    run(&mut Command::new(&program));
}

/// Memory that threads share is what valgrind would find.
#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind")
        .args(["--quiet", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        let scene = Scene::new();
        let Some(program) = scene.build(&["cc", "-std=gnu11"], &["tests/programs/openmp.c"]) else {
            return;
        };
        let file = scene.place("file");
        let output = Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=99"])
            .arg(&program)
            .env("LIKWID_EVENTS", EVENTS)
            .env("LIKWID_FILEPATH", &file)
            .output()
            .expect("it starts");
        // What valgrind itself faults for is counted too.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("=="), "{said}");
    } else {
        skip("markers under valgrind", "it runs nothing here");
    }
}
