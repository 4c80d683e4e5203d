//! `quipu record` and `quipu report`, end to end, and with perf(1) where it is there.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use nix::unistd::{SysconfVar, sysconf};
use serde_json::Value;
use tempfile::TempDir;

use crate::printed::unwrapped;
use crate::skip;

mod annotate;
mod branches;
mod build_files;
mod cut_chains;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod diff;
mod elsewhere;
mod files;
mod groups;
mod jit;
mod journeys;
mod judge;
mod kept_names;
mod levels;
mod names;
mod off_cpu;
mod peer;
mod privileges;
mod script;
mod shown;
mod signals;
mod streams;
mod switching;
mod targets;
mod thread_counts;
mod timing;
mod top;
mod top_in_tmux;
mod tracepoints;
mod unwinding;
mod viewers;

/// A program with two functions that touch 300 and 100 fresh pages, and one that is called 1000 times,
/// with frame pointers and at a fixed address.
const PROGRAM: &str = r"
#define ALIGNED __attribute__((aligned(PAGE)))
static volatile char hot_pages[300L * PAGE] ALIGNED, warm_pages[100L * PAGE] ALIGNED;
static volatile int calls ALIGNED;
void called(void) { calls++; }
void hot(void) { for (int i = 0; i < 300; i++) hot_pages[i * (long)PAGE] = 1; }
void warm(void) { for (int i = 0; i < 100; i++) warm_pages[i * (long)PAGE] = 1; }
void work(void) { hot(); warm(); calls++; }
int main(void) {
    calls = 0;
    work();
    for (int i = 0; i < 1000; i++) called();
    return 7;
}
";

/// The directory of a test, with the compiled program in it.
struct Bench {
    directory: TempDir,
}

impl Drop for Bench {
    /// Removes the maps of functions that its programs wrote beside each other in /tmp, which they list.
    fn drop(&mut self) {
        let maps = std::fs::read_to_string(self.directory.path().join("maps"));
        for map in maps.unwrap_or_default().lines() {
            let _ = std::fs::remove_file(map);
        }
    }
}

fn page_size() -> std::ffi::c_long {
    let size = sysconf(SysconfVar::PAGE_SIZE).expect("a number");
    size.expect("every system has one")
}

impl Bench {
    /// Compiles the program, if there is a C compiler and events may be sampled.
    fn new(test: &str) -> Option<Self> {
        let bench = Self {
            directory: TempDir::new().expect("a directory"),
        };
        if let Err(reason) = bench.compile("program", PROGRAM) {
            skip(test, reason);
            return None;
        }
        let probe = bench.record(&["-e", "page-faults:u"], "true");
        if probe.status.code() == Some(125) {
            skip(test, stderr(&probe).trim());
            return None;
        }
        Some(bench)
    }

    /// Compiles a program without optimization, so that every function has its frame; the reason why not.
    fn compile(&self, name: &str, source: &str) -> Result<(), String> {
        let options = ["-O0", "-g", "-no-pie", "-fno-omit-frame-pointer"];
        self.compile_with(&options, name, source)
    }

    /// Compiles a program with these options; the reason why not.
    fn compile_with(&self, options: &[&str], name: &str, source: &str) -> Result<(), String> {
        let file = self.path(&format!("{name}.c"));
        std::fs::write(&file, source).expect("written");
        let compiled = std::process::Command::new("cc")
            .args(options)
            .arg(format!("-DPAGE={}", page_size()))
            .arg("-o")
            .args([&self.path(name), &file])
            .output();
        match compiled {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr))),
            Err(e) => Err(format!("no C compiler: {e}")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(&self) -> String {
        self.path("program").to_string_lossy().into_owned()
    }

    /// Runs `quipu record` of a command into `perf.data`.
    fn record(&self, options: &[&str], command: &str) -> Output {
        let words = command.split(' ');
        quipu()
            .current_dir(self.directory.path())
            .arg("record")
            .args(options)
            .arg("--")
            .args(words)
            .output()
            .expect("it starts")
    }

    /// Runs `quipu report` of `perf.data`, or another file that the options name.
    fn report(&self, options: &[&str]) -> Output {
        quipu()
            .current_dir(self.directory.path())
            .arg("report")
            .args(options)
            .output()
            .expect("it starts")
    }

    /// Returns the lines of a report in JSON.
    fn rows(&self, options: &[&str]) -> Vec<Value> {
        let output = self.report(&[&["--json"], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).expect("JSON is text");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// Records until the program's own page faults are all that was seen of it: the machine may add
    /// one by taking a page away, which three tries in a row will not see.
    fn record_faults(&self, options: &[&str]) -> Vec<Value> {
        let mut rows = Vec::new();
        for _ in 0..3 {
            let output = self.record(options, &self.program());
            assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
            rows = self.rows(&[]);
            if (samples_of(&rows, "hot"), samples_of(&rows, "warm")) == (300, 100) {
                break;
            }
        }
        rows
    }
}

fn quipu() -> Command {
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command.env_remove("NO_COLOR");
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns how many samples a function has by itself.
fn samples_of(rows: &[Value], function: &str) -> u64 {
    let own = rows.iter().filter(|row| row["symbol"] == function);
    own.map(|row| row["samples"].as_u64().expect("a number"))
        .sum()
}

/// Returns how many samples `quipu record` says it took.
fn samples_told(output: &Output) -> u64 {
    let text = stderr(output);
    let line = text
        .lines()
        .find(|line| line.contains(" lost, "))
        .expect(&text);
    let words: Vec<&str> = line.split(' ').collect();
    words[3].parse().expect("a number")
}

/// Returns the address of a function of the program, which is not moved when it is loaded.
fn address_of(program: &Path, function: &str) -> Option<String> {
    let output = std::process::Command::new("nm")
        .arg(program)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let address = fields.next()?;
        (fields.nth(1) == Some(function)).then(|| address.to_owned())
    })
}

#[test]
fn every_page_fault_is_named_by_its_function() {
    let Some(bench) = Bench::new("every_page_fault_is_named_by_its_function") else {
        return;
    };
    let rows = bench.record_faults(&["-e", "page-faults:u", "-c", "1", "-g", "-d"]);
    assert_eq!(samples_of(&rows, "hot"), 300);
    assert_eq!(samples_of(&rows, "warm"), 100);
    let hot = &rows[0];
    assert_eq!(
        (&hot["symbol"], &hot["event"]),
        (&"hot".into(), &"page-faults:u".into())
    );
    assert_eq!(
        (&hot["period"], &hot["command"]),
        (&300.into(), &"program".into())
    );
    assert_eq!(hot["object"], bench.program());

    let all = bench.rows(&["--children"]);
    let children = |name: &str| {
        let row = all.iter().find(|row| row["symbol"] == name).expect(name);
        row["children-samples"].as_u64().expect("a number")
    };
    assert_eq!((children("hot"), children("warm")), (300, 100));
    assert_eq!(children("work") - samples_of(&all, "work"), 400);
    assert!(children("main") >= children("work"));

    let text = stdout(&bench.report(&["-g"]));
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = lines
        .iter()
        .position(|line| line.ends_with("[.] hot"))
        .expect(&text);
    assert!(lines[at].contains("    300  program  program"), "{text}");
    assert!(
        lines[at + 1].ends_with("  work") && lines[at + 2].ends_with("  main"),
        "{text}"
    );

    let svg = bench.path("out.svg");
    let drawn = bench.report(&["--flamegraph", "out.svg"]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let picture = std::fs::read_to_string(svg).expect("it was written");
    for frame in [
        "hot (300 page-faults:u,",
        "warm (100 page-faults:u,",
        "work (",
        "main (",
    ] {
        assert!(picture.contains(frame), "{frame}");
    }
}

#[test]
fn a_breakpoint_on_a_function_gives_a_sample_for_each_call() {
    const TEST: &str = "a_breakpoint_on_a_function_gives_a_sample_for_each_call";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let Some(address) = address_of(&bench.path("program"), "called") else {
        return skip(TEST, "nm(1) does not tell where the function is");
    };
    let event = format!("mem:0x{address}:x:u");
    let output = bench.record(&["-e", &event], &bench.program());
    if output.status.code() == Some(125) {
        return skip(TEST, stderr(&output).trim());
    }
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(samples_told(&output), 1000);
    let rows = bench.rows(&[]);
    assert_eq!((rows.len(), samples_of(&rows, "called")), (1, 1000));
}

#[test]
fn the_clock_finds_who_is_busy() {
    const TEST: &str = "the_clock_finds_who_is_busy";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let output = quipu()
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-e",
            "cpu-clock:u",
            "-F",
            "999",
            "--",
            "sh",
            "-c",
            script,
        ])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = bench.rows(&[]);
    let told: u64 = rows.iter().filter_map(|row| row["samples"].as_u64()).sum();
    assert_eq!(told, samples_told(&output));
    assert!(
        told > 0 && rows.iter().all(|row| row["command"] == "sh"),
        "{rows:?}"
    );
}

/// More samples in a second than any kernel takes.
#[test]
fn a_rate_above_the_kernels_limit_is_lowered_unless_that_is_refused() {
    const TEST: &str = "a_rate_above_the_kernels_limit_is_lowered_unless_that_is_refused";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = ["-e", "cpu-clock:u", "-F", "1000000000"];
    let lowered = bench.record(&options, "true");
    let text = stderr(&lowered);
    assert_eq!(lowered.status.code(), Some(0), "{text}");
    let limit = "1000000000 samples a second are more than the kernel allows: \
                 kernel.perf_event_max_sample_rate is ";
    assert!(text.contains(limit) && text.contains("; taking "), "{text}");
    let mark = bench.path("mark");
    let touch = format!("touch {}", mark.display());
    let refused = bench.record(&[&options[..], &["--strict-freq"]].concat(), &touch);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(unwrapped(&stderr(&refused)).contains(limit) && !mark.exists());
}

#[test]
fn several_events_are_told_apart() {
    let Some(bench) = Bench::new("several_events_are_told_apart") else {
        return;
    };
    let options = ["-e", "page-faults:u,minor-faults:u", "-c", "1", "-v"];
    let rows = bench.record_faults(&options);
    for event in ["page-faults:u", "minor-faults:u"] {
        let own: Vec<_> = rows
            .iter()
            .filter(|row| row["event"] == event)
            .cloned()
            .collect();
        assert!(samples_of(&own, "hot") > 0, "{event}: {rows:?}");
    }
    let one = bench.rows(&["-e", "minor-faults:u"]);
    assert!(one.iter().all(|row| row["event"] == "minor-faults:u"));
    let other = bench.report(&["-e", "cycles"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("it has page-faults:u, minor-faults:u"));
}

#[test]
fn the_commands_own_exit_status_is_kept() {
    let Some(bench) = Bench::new("the_commands_own_exit_status_is_kept") else {
        return;
    };
    for (command, status) in [("false", 1), ("/nowhere/at/all", 127), ("/etc/passwd", 126)] {
        let output = bench.record(&["-e", "page-faults:u"], command);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    }
    let quiet = bench.record(&["-q", "-e", "page-faults:u"], "true");
    assert_eq!(
        (quiet.status.code(), stderr(&quiet).as_str()),
        (Some(0), "")
    );
}
