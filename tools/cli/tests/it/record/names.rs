//! Names are those of the file that ran: where a program was replaced, in other mount namespaces, in memory that code was copied to.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Bench, quipu, skip, stderr, stdout};

/// Spins in a function of a name that the compiler is given, which others call, for a time in ms; the place of the function in the
/// file is another for each.
fn spinning(name: &str, before: &str) -> String {
    format!(
        r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }}
__attribute__((noinline)) void {before}(void) {{ for (volatile long i = 0; i < 3; i++); }}
__attribute__((noinline)) void {name}(void) {{ for (volatile long i = 0; i < 100000; i++); }}
__attribute__((noinline)) void calls_{name}(void) {{ {name}(); __asm__ volatile(""); }}
int main(int count, char **words) {{
    long end = now() + atol(words[1]);
    {before}();
    puts("begins");
    fflush(stdout);
    while (now() < end) calls_{name}();
    return 0;
}}
"#
    )
}

/// Compiles a program whose functions are called and stay in their order, with these options too; the reason why not.
fn compile(bench: &Bench, name: &str, source: &str, options: &[&str]) -> Result<(), String> {
    let usual = [
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-toplevel-reorder",
        "-pthread",
    ];
    bench.compile_with(&[&usual, options].concat(), name, source)
}

/// The program that ran, and the one that takes its place.
fn two_programs(test: &str, options: &[&str]) -> Option<Bench> {
    let bench = Bench::new(test)?;
    let old = compile(
        &bench,
        "app",
        &spinning("first_hot", "first_start"),
        options,
    );
    let pad = "second_start_that_is_longer";
    let long = spinning("second_hot", pad).replace(
        "i < 3; i++);",
        "i < 3; i++) { volatile long a = i, b = a * 3, c = b * 5 + a; i += c - c; }",
    );
    if let Err(reason) = old.and(compile(&bench, "other", &long, options)) {
        skip(test, reason);
        return None;
    }
    Some(bench)
}

/// Everything that the commands print of a recording, on both streams.
fn all_that_is_shown(bench: &Bench, file: &str) -> Vec<(String, Output)> {
    let commands = [
        &["report"][..],
        &["report", "--children", "-g"],
        &["report", "--inline", "-s", "sym,srcline"],
        &["script"],
        &["script", "--json"],
        &["annotate"],
        &["diff", file, file],
    ];
    let run = |words: &[&str]| {
        let mut command = quipu();
        command.current_dir(bench.directory.path()).args(words);
        if words[0] != "diff" {
            command.args(["-i", file]);
        }
        (words.join(" "), command.output().expect("it starts"))
    };
    commands.into_iter().map(run).collect()
}

/// Asserts that no command prints a name of a program.
fn assert_never(bench: &Bench, file: &str, name: &str) {
    for (command, output) in all_that_is_shown(bench, file) {
        let text = stdout(&output) + &stderr(&output);
        assert!(!text.contains(name), "{command}: {text}");
    }
}

/// Returns the percentage of the samples that a function has by itself.
fn percent_of(bench: &Bench, file: &str, function: &str) -> u64 {
    let rows = bench.rows(&["-i", file]);
    let samples = |row: &serde_json::Value| row["samples"].as_u64().expect("a number");
    let all: u64 = rows.iter().map(samples).sum();
    let name = |row: &serde_json::Value| row["symbol"].as_str().unwrap_or("[unknown]").to_owned();
    let own = rows.iter().filter(|row| name(row) == function);
    own.map(samples).sum::<u64>() * 100 / all.max(1)
}

/// A process that ends with the test.
pub(super) struct Started(pub(super) Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a process has written a line.
fn wait_for(child: &mut Child, line: &str) {
    let mut bytes = vec![0; line.len() + 1];
    let out = child.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut bytes).expect("a line");
    assert_eq!(String::from_utf8_lossy(&bytes).trim_end(), line);
}

/// Returns the command that records into a file.
fn record(bench: &Bench, file: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-q",
            "-e",
            "cpu-clock:u",
            "-F",
            "999",
            "-g",
            "-o",
            file,
        ])
        .args(options)
        .stderr(Stdio::piped());
    command
}

/// Records a command to p.data.
fn record_to_its_end(bench: &Bench, options: &[&str]) {
    let output = record(bench, "p.data", options).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_program_that_is_replaced_while_it_runs_has_no_names_of_the_other() {
    const TEST: &str = "a_program_that_is_replaced_while_it_runs_has_no_names_of_the_other";
    // With build IDs, and without.
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(bench) = two_programs(TEST, &[id]) else {
            return;
        };
        let mut recording = record(&bench, "p.data", &["--", "./app", "600"]);
        let recording = recording.stdout(Stdio::piped()).spawn();
        let mut recording = recording.expect("it starts");
        wait_for(&mut recording, "begins");
        fs::rename(bench.path("other"), bench.path("app")).expect("renamed");
        let output = recording.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{id}: {}", stderr(&output));
        assert_never(&bench, "p.data", "second_");
        let warning = stderr(&bench.report(&["-i", "p.data"]));
        // Nothing was kept if it was replaced before `record` looked at it and could not open what the process had mapped.
        let own = percent_of(&bench, "p.data", "first_hot");
        assert!(
            own > 90 || warning.contains("not the file that was recorded"),
            "{id}: {own}: {warning}"
        );
    }
}

#[test]
fn two_files_of_one_path_have_their_own_names() {
    const TEST: &str = "two_files_of_one_path_have_their_own_names";
    let Some(bench) = two_programs(TEST, &[]) else {
        return;
    };
    // The second one is there when it is reported, the first one is not.
    let script = "./app 200; mv other app; ./app 200";
    let programs = bench.path("programs");
    fs::create_dir(&programs).expect("created");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for name in ["app", "other"] {
            fs::copy(from.join(name), to.join(name)).expect("copied");
        }
    };
    copy(bench.directory.path(), &programs);
    for kept in [true, false] {
        copy(&programs, bench.directory.path());
        let options = [
            "--names",
            if kept { "file" } else { "none" },
            "--",
            "sh",
            "-c",
            script,
        ];
        record_to_its_end(&bench, &options);
        let second = percent_of(&bench, "p.data", "second_hot");
        assert!((20..=80).contains(&second), "{second}");
        let nameless = percent_of(&bench, "p.data", "[unknown]");
        if kept {
            // It was held open until its process ended.
            let first = percent_of(&bench, "p.data", "first_hot");
            assert!((20..=80).contains(&first), "{first}");
            assert!(nameless < 20, "{nameless}");
            continue;
        }
        assert_never(&bench, "p.data", "first_");
        assert!((20..=80).contains(&nameless), "{nameless}");
        let warning = stderr(&bench.report(&["-i", "p.data"]));
        assert!(
            warning.contains("app: not the file that was recorded"),
            "{warning}"
        );
    }
    // The instructions are those of the second one alone.
    let annotated = bench.path("p.data");
    let annotated = quipu().arg("annotate").arg("-i").arg(annotated).output();
    let annotated = annotated.expect("it starts");
    assert!(
        stdout(&annotated).contains("second_hot"),
        "{}",
        stderr(&annotated)
    );
}

#[test]
fn a_program_that_is_deleted_before_the_recording_ends_has_names_and_callers() {
    const TEST: &str = "a_program_that_is_deleted_before_the_recording_ends_has_names_and_callers";
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(bench) = two_programs(TEST, &[id, "-fomit-frame-pointer"]) else {
            return;
        };
        // Long after it was executed, and when it has just ended.
        let scripts = [
            "./app 600 & until [ \"$(cat /proc/$!/comm)\" = app ]; do sleep 0.01; done; sleep 0.3; rm app; wait",
            "./other 400; rm other",
        ];
        for (script, function) in scripts.into_iter().zip(["first_hot", "second_hot"]) {
            let options = ["--call-graph", "dwarf", "--", "sh", "-c", script];
            record_to_its_end(&bench, &options);
            assert_has_names_and_callers(&bench, function);
        }
    }
}

/// Starts a command in a mount namespace of its own, in which the second program is at the path of the first, until it is dropped.
fn in_other_namespace(test: &str, bench: &Bench, options: &[&str]) -> Option<Started> {
    let script = "mount --bind other app && exec ./app 60000";
    let child = Command::new("unshare")
        .current_dir(bench.directory.path())
        .args(options)
        .args(["sh", "-c", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => Started(child),
        Err(e) => {
            skip(test, format!("unshare(1): {e}"));
            return None;
        }
    };
    let end = Instant::now() + Duration::from_secs(60);
    let comm = format!("/proc/{}/comm", child.0.id());
    while fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "app") {
        if let Some(status) = child.0.try_wait().expect("a child") {
            skip(
                test,
                format!("a mount namespace is not permitted here: {status}"),
            );
            return None;
        }
        assert!(Instant::now() < end, "it does not start");
        sleep(Duration::from_millis(10));
    }
    Some(child)
}

#[test]
fn a_process_of_another_mount_namespace_has_the_names_of_its_own_file() {
    const TEST: &str = "a_process_of_another_mount_namespace_has_the_names_of_its_own_file";
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(bench) = two_programs(TEST, &[id, "-fomit-frame-pointer"]) else {
            return;
        };
        let Some(app) = in_other_namespace(TEST, &bench, &["-m"]) else {
            return;
        };
        let pid = app.0.id().to_string();
        let options = ["-p", &pid, "--", "sleep", "0.4"];
        record_to_its_end(&bench, &options);
        assert_never(&bench, "p.data", "first_");
        let own = percent_of(&bench, "p.data", "second_hot");
        assert!(own > 90, "{id}: {own}");
        for (command, output) in all_that_is_shown(&bench, "p.data") {
            assert!(
                stdout(&output).contains("second_hot"),
                "{command}: {}",
                stderr(&output)
            );
        }
        // Callers, by the tables of the file of the process.
        let mut copies = record(&bench, "d.data", &["--call-graph", "dwarf", "-p", &pid]);
        let output = copies.args(["--", "sleep", "0.4"]).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let script = quipu()
            .current_dir(bench.directory.path())
            .args(["script", "-i", "d.data", "-F", "ip,sym"])
            .output();
        let script = stdout(&script.expect("it starts"));
        let callers = ["second_hot", "calls_second_hot", "main"];
        for caller in callers {
            assert!(script.contains(caller), "{caller}: {script}");
        }
        // The one that is shown as it runs.
        let table = super::top::table(&["-K", "-g"], app.0.id());
        assert!(
            table.contains("second_hot") && !table.contains("first_"),
            "{table}"
        );
        drop(app);
        // It has ended: what is at its path here is another file.
        assert_never(&bench, "p.data", "first_");
    }
}

#[test]
fn a_container_that_ends_before_the_recording_has_names_and_callers() {
    const TEST: &str = "a_container_that_ends_before_the_recording_has_names_and_callers";
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(bench) = two_programs(TEST, &[id, "-fomit-frame-pointer", "-static"]) else {
            return;
        };
        // Its file system is gone with it. Of a program that is too long to be copied the tables are.
        for before in ["", "truncate -s 100M root/own/app && "] {
            let script = format!(
                "mkdir -p root && mount -t tmpfs none root && mkdir root/own && cp other root/own/app && {before} \
                 exec chroot root /own/app 600"
            );
            let options = ["--call-graph", "dwarf", "--", "unshare", "-m", "sh", "-c"];
            let mut command = record(&bench, "p.data", &options);
            let output = command.arg(script).output().expect("it starts");
            if !output.status.success() {
                return skip(TEST, stderr(&output));
            }
            assert_has_names_and_callers(&bench, "second_hot");
        }
    }
}

#[test]
fn a_deleted_program_of_another_file_system_has_names_and_callers() {
    const TEST: &str = "a_deleted_program_of_another_file_system_has_names_and_callers";
    let Some(bench) = two_programs(TEST, &["-fomit-frame-pointer"]) else {
        return;
    };
    // No file is held open there: `umount` would fail.
    let directory = tempfile::tempdir_in("/dev/shm");
    let Ok(directory) = directory else {
        return skip(TEST, "there is no /dev/shm");
    };
    let program = directory.path().join("app");
    fs::copy(bench.path("other"), &program).expect("copied");
    let can_run = Command::new(&program).arg("0").output();
    if !can_run.is_ok_and(|output| output.status.success()) {
        return skip(TEST, "nothing is executed in /dev/shm");
    }
    let script = format!("{0} 400; rm {0}", program.display());
    let options = ["--call-graph", "dwarf", "--", "sh", "-c", &script];
    record_to_its_end(&bench, &options);
    assert_has_names_and_callers(&bench, "second_hot");
}

/// Asserts that a function has most of the samples of `p.data`, and its callers are there.
fn assert_has_names_and_callers(bench: &Bench, function: &str) {
    let own = percent_of(bench, "p.data", function);
    assert!(own > 80, "{own}: {:?}", bench.rows(&["-i", "p.data"]));
    let script = quipu()
        .current_dir(bench.directory.path())
        .args(["script", "-i", "p.data", "-F", "ip,sym"])
        .output();
    let script = stdout(&script.expect("it starts"));
    for caller in [function, &format!("calls_{function}"), "main"] {
        assert!(script.contains(caller), "{caller}: {script}");
    }
}

/// Executes a program from memory, with the words that follow.
const FROM_MEMORY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    int from = open(words[1], O_RDONLY), to = memfd_create("in memory", 0);
    char bytes[65536];
    for (long n; (n = read(from, bytes, sizeof bytes)) > 0;) write(to, bytes, n);
    fexecve(to, words + 1, environ);
    perror("fexecve");
    return 1;
}
"#;

#[test]
fn a_program_that_is_executed_from_memory_has_names_and_callers() {
    const TEST: &str = "a_program_that_is_executed_from_memory_has_names_and_callers";
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(bench) = two_programs(TEST, &[id, "-fomit-frame-pointer"]) else {
            return;
        };
        compile(&bench, "executes", FROM_MEMORY, &[]).expect("it compiled others");
        let options = [
            "--call-graph",
            "dwarf",
            "--",
            "./executes",
            "./other",
            "400",
        ];
        record_to_its_end(&bench, &options);
        assert_has_names_and_callers(&bench, "second_hot");
        // One that still runs, of which no copy is made.
        let child = Command::new(bench.path("executes"))
            .current_dir(bench.directory.path())
            .args(["./other", "60000"])
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Started(child.expect("it starts"));
        wait_for(&mut child.0, "begins");
        let pid = child.0.id().to_string();
        let options = [
            "--names",
            "none",
            "--call-graph",
            "dwarf",
            "-p",
            &pid,
            "--",
            "sleep",
            "0.3",
        ];
        record_to_its_end(&bench, &options);
        assert_has_names_and_callers(&bench, "second_hot");
    }
}

/// Copies the program's own code into memory that is mapped in its place, all of it or the pages that a function is in.
const REMAPPED: &str = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((aligned(4096), noinline)) void copied(void) { for (volatile long i = 0; i < 100000; i++); }
__attribute__((aligned(4096), section(".copying"), noinline)) static void copy(char *from, size_t len, char *kept) {
    // Without the C library's code in between, which may be in the pages as well.
    mmap(from, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(from, kept, len);
    mprotect(from, len, PROT_READ | PROT_EXEC);
}
int main(int count, char **words) {
    char *from = (char *)copied;
    size_t len = 4096;
    char *kept = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(kept, from, len);
    copy(from, len, kept);
    puts("copied");
    fflush(stdout);
    double end = now() + atof(words[1]);
    while (now() < end) copied();
    return 0;
}
"#;

#[test]
fn code_that_was_copied_into_memory_has_the_names_of_its_file() {
    const TEST: &str = "code_that_was_copied_into_memory_has_the_names_of_its_file";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = compile(&bench, "remapped", REMAPPED, &[]) {
        return skip(TEST, reason);
    }
    record_to_its_end(&bench, &["--", "./remapped", "0.3"]);
    let own = percent_of(&bench, "p.data", "copied");
    assert!(own > 90, "{own}: {:?}", bench.rows(&["-i", "p.data"]));
    // One that did so before.
    let child = Command::new(bench.path("remapped"))
        .arg("60")
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Started(child.expect("it starts"));
    std::io::Read::read_exact(child.0.stdout.as_mut().expect("a pipe"), &mut [0; 7])
        .expect("a line");
    let options = ["-p", &child.0.id().to_string(), "--", "sleep", "0.3"];
    record_to_its_end(&bench, &options);
    let own = percent_of(&bench, "p.data", "copied");
    assert!(own > 90, "{own}: {:?}", bench.rows(&["-i", "p.data"]));
}

/// Ends its first thread while another one runs.
const WITHOUT_FIRST_THREAD: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void works(void) { for (volatile long i = 0; i < 100000; i++); }
static pthread_t first;
static void *thread(void *unused) { pthread_join(first, 0); puts("ended"); fflush(stdout); for (;;) works(); }
int main(void) {
    pthread_t other;
    first = pthread_self();
    alarm(60);
    pthread_create(&other, 0, thread, 0);
    pthread_exit(0);
}
"#;

#[test]
fn a_process_whose_first_thread_has_ended_has_names() {
    const TEST: &str = "a_process_whose_first_thread_has_ended_has_names";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = compile(&bench, "threads", WITHOUT_FIRST_THREAD, &[]) {
        return skip(TEST, reason);
    }
    let child = Command::new(bench.path("threads"))
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Started(child.expect("it starts"));
    std::io::Read::read_exact(child.0.stdout.as_mut().expect("a pipe"), &mut [0; 6])
        .expect("a line");
    let options = ["-p", &child.0.id().to_string(), "--", "sleep", "0.4"];
    record_to_its_end(&bench, &options);
    let own = percent_of(&bench, "p.data", "works");
    assert!(own > 90, "{own}: {:?}", bench.rows(&["-i", "p.data"]));
}
