//! Recordings without kept names that are read where the programs are not, and what is said of functions without names.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::{Bench, quipu, skip, stderr, stdout};

/// Spins in a function, and calls the kernel.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
__attribute__((noinline)) void spins(void) { for (volatile long i = 0; i < 20000; i++); }
int main(int count, char **words) {
    long end = now() + atol(words[1]);
    while (now() < end) {
        spins();
        for (int i = 0; i < 200; i++) getppid();
    }
    return 0;
}
"#;

/// A bench with the program as `app`.
fn bench(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    match bench.compile("app", PROGRAM) {
        Ok(()) => Some(bench),
        Err(reason) => {
            skip(test, reason);
            None
        }
    }
}

/// Records into `perf.data`.
fn record(bench: &Bench, options: &[&str]) {
    let options = [&["-q", "-F", "999"][..], options].concat();
    let output = bench.record(&options, "./app 200");
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Runs quipu with a directory as home.
fn at_home(bench: &Bench, home: &str, arguments: &[&str]) -> Output {
    let mut command = quipu();
    command
        .current_dir(bench.directory.path())
        .env("HOME", bench.path(home))
        .args(arguments);
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    output
}

/// Asserts that perf names the function by what is in the cache of a home.
fn assert_perf_names_it(bench: &Bench, home: &str) {
    let mut perf = Command::new("perf");
    let perf = perf
        .current_dir(bench.directory.path())
        .env("HOME", bench.path(home))
        .args(["report", "--stdio", "-s", "sym"]);
    match perf.output() {
        Ok(output) if output.status.success() => {
            let text = stdout(&output);
            assert!(text.contains("spins"), "{text}{}", stderr(&output));
        }
        _ => skip("assert_perf_names_it", "there is no perf"),
    }
}

#[test]
fn files_are_found_under_another_root() {
    let Some(bench) = bench("files_are_found_under_another_root") else {
        return;
    };
    record(&bench, &["-e", "cpu-clock:u", "--names", "none"]);
    let app = bench.path("app");
    let app = app.canonicalize().expect("it is there");
    let copy = bench
        .path("root")
        .join(app.strip_prefix("/").expect("from the root"));
    fs::create_dir_all(copy.parent().expect("a directory")).expect("created");
    fs::rename(&app, &copy).expect("renamed");
    let report = bench.report(&[]);
    assert!(!stdout(&report).contains("spins"), "{}", stdout(&report));
    let note = "app: there is no such file, so its functions have no names (";
    assert!(stderr(&report).contains(note), "{}", stderr(&report));
    for command in ["report", "script", "annotate"] {
        let mut quipu = quipu();
        let output = quipu
            .current_dir(bench.directory.path())
            .args([command, "--symfs", "root"])
            .output()
            .expect("it starts");
        let text = stdout(&output);
        assert!(
            text.contains("spins"),
            "{command}: {text}{}",
            stderr(&output)
        );
    }
    // Another build there, and one here that is not looked at.
    let other = PROGRAM.replace("spins", "other_name");
    bench.compile("app", &other).expect("it compiled one");
    fs::copy(bench.path("app"), &copy).expect("copied");
    let report = bench.report(&["--symfs", "root"]);
    assert!(
        !stdout(&report).contains("other_name"),
        "{}",
        stdout(&report)
    );
    let note = "not the file that was recorded";
    assert!(stderr(&report).contains(note), "{}", stderr(&report));
}

#[test]
fn the_kernels_symbols_are_those_of_a_file_that_is_named() {
    const TEST: &str = "the_kernels_symbols_are_those_of_a_file_that_is_named";
    let Some(bench) = bench(TEST) else {
        return;
    };
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let text = symbols.lines().find(|line| line.ends_with(" T _text"));
    let text = text.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let Some(text @ 1..) = text else {
        return skip(TEST, "the kernel hides its addresses");
    };
    record(&bench, &["-e", "cpu-clock"]);
    let one = format!("{text:016x} T _text\n{:016x} T of_kallsyms\n", text + 1);
    fs::write(bench.path("kallsyms"), one).expect("written");
    let of = |options: &[&str]| {
        let output = bench.report(&[&["-s", "sym"], options].concat());
        (output.status.success(), stdout(&output) + &stderr(&output))
    };
    let (_, report) = of(&["--kallsyms", "kallsyms"]);
    assert!(report.contains("[k] of_kallsyms"), "{report}");
    // One that was loaded elsewhere.
    let moved = format!("{:016x} T _text\n{:016x} T of_kallsyms\n", 0x1000, 0x1001);
    fs::write(bench.path("kallsyms"), moved).expect("written");
    let (_, report) = of(&["--kallsyms", "kallsyms"]);
    assert!(report.contains("[k] of_kallsyms"), "{report}");
    // Its ELF file, which is linked for another address.
    let source = ".globl _text, of_vmlinux\n.text\n_text: nop\n.type of_vmlinux, STT_FUNC\n\
                  of_vmlinux: .skip 0x4000000\n.size of_vmlinux, . - of_vmlinux\n";
    fs::write(bench.path("kernel.s"), source).expect("written");
    for (name, id) in [("vmlinux", "none"), ("other", "0x0123456789")] {
        let linked = Command::new("cc")
            .current_dir(bench.directory.path())
            .args(["-nostdlib", "-static", "-o", name, "kernel.s"])
            .arg(format!("-Wl,-e,_text,-Ttext=0x10000000,--build-id={id}"))
            .output()
            .expect("it compiled the program");
        if !linked.status.success() {
            return skip(TEST, stderr(&linked));
        }
    }
    let (_, report) = of(&["--vmlinux", "vmlinux"]);
    assert!(report.contains("[k] of_vmlinux"), "{report}");
    let (is_read, refused) = of(&["-k", "other"]);
    assert!(
        !is_read && refused.contains("its build ID differs"),
        "{refused}"
    );
    let (_, report) = of(&["-k", "other", "-f"]);
    assert!(report.contains("[k] of_vmlinux"), "{report}");
    for (option, wrong) in [
        ("--vmlinux", "kernel.s"),
        ("--kallsyms", "kernel.s"),
        ("-k", "none"),
    ] {
        let (is_read, refused) = of(&[option, wrong]);
        assert!(
            !is_read && refused.contains(wrong),
            "{option} {wrong}: {refused}"
        );
    }
}

#[test]
fn an_archive_brings_the_programs_to_another_machine() {
    let Some(bench) = bench("an_archive_brings_the_programs_to_another_machine") else {
        return;
    };
    record(&bench, &["-e", "cpu-clock:u", "--names", "none"]);
    let told = at_home(&bench, "here", &["archive"]);
    assert!(
        stdout(&told).contains("files in perf.data.tar.gz"),
        "{}",
        stdout(&told)
    );
    fs::remove_file(bench.path("app")).expect("it is there");
    let cache = bench.path("there/.debug");
    fs::create_dir_all(&cache).expect("created");
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(bench.path("perf.data.tar.gz"))
        .arg("-C")
        .arg(&cache)
        .output();
    let unpacked = match unpacked {
        Ok(unpacked) => unpacked,
        Err(e) => {
            let test = "an_archive_brings_the_programs_to_another_machine";
            return skip(test, format_args!("tar(1): {e}"));
        }
    };
    assert!(unpacked.status.success(), "{}", stderr(&unpacked));
    let report = at_home(&bench, "there", &["report"]);
    assert!(stdout(&report).contains("spins"), "{}", stderr(&report));
    let annotated = at_home(&bench, "there", &["annotate", "spins"]);
    assert!(
        stdout(&annotated).contains("spins"),
        "{}",
        stderr(&annotated)
    );
    assert_perf_names_it(&bench, "there");
    let elsewhere = at_home(&bench, "here", &["report"]);
    assert!(!stdout(&elsewhere).contains("spins"));
}

#[test]
fn programs_are_kept_in_the_cache_if_that_is_asked_for() {
    let Some(bench) = bench("programs_are_kept_in_the_cache_if_that_is_asked_for") else {
        return;
    };
    let options = [
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "-F",
        "999",
        "--names",
        "cache",
    ];
    for _ in 0..2 {
        at_home(
            &bench,
            "home",
            &[&options[..], &["--", "./app", "200"]].concat(),
        );
    }
    let original = fs::read(bench.path("app")).expect("it is there");
    fs::remove_file(bench.path("app")).expect("it is there");
    let app = bench.directory.path().canonicalize().expect("a directory");
    let app = app.join("app");
    let directory = bench
        .path("home/.debug")
        .join(app.strip_prefix("/").expect("rooted"));
    let entries = fs::read_dir(directory).expect("kept").flatten();
    let copies: Vec<PathBuf> = entries.map(|entry| entry.path().join("elf")).collect();
    let [copy] = &copies[..] else {
        panic!("{copies:?}");
    };
    assert!(fs::read(copy).expect("a copy") == original);
    let report = at_home(&bench, "home", &["report"]);
    assert!(stdout(&report).contains("spins"), "{}", stderr(&report));
    assert_perf_names_it(&bench, "home");
}

#[test]
fn instructions_without_names_are_told_apart_and_have_a_reason() {
    const TEST: &str = "instructions_without_names_are_told_apart_and_have_a_reason";
    let Some(bench) = bench(TEST) else {
        return;
    };
    let strip = Command::new("strip").arg(bench.path("app")).status();
    if !strip.is_ok_and(|status| status.success()) {
        return skip(TEST, "there is no strip(1)");
    }
    record(&bench, &["-e", "cpu-clock:u"]);
    let stripped = "app: it is stripped, so its functions have no names (";
    let check = |reason: &str| {
        let report = bench.report(&[]);
        let (text, notes) = (stdout(&report), stderr(&report));
        let rows = text.lines().filter(|line| line.contains("[.] app+0x"));
        assert!(rows.count() > 1, "{text}");
        let told = notes.lines().filter(|line| line.contains(reason));
        assert_eq!(told.count(), 1, "{notes}");
        let all = bench.rows(&[]);
        let ends =
            |value: &serde_json::Value, end| value.as_str().is_some_and(|s| s.ends_with(end));
        // What the dynamic linker needs has its name still.
        let of_app = all
            .iter()
            .filter(|row| ends(&row["object"], "app") && !ends(&row["symbol"], "@plt"));
        assert!(of_app.clone().count() > 1);
        for row in of_app {
            let address = row["address"].as_str().expect("an address");
            assert!(
                address.starts_with("0x") && row["symbol"].is_null(),
                "{row}"
            );
        }
    };
    check(stripped);
    // The reason is kept with the recording.
    fs::remove_file(bench.path("app")).expect("it is there");
    check(stripped);
    bench.compile("app", PROGRAM).expect("it compiled one");
    record(&bench, &["-e", "cpu-clock:u", "--names", "none"]);
    fs::remove_file(bench.path("app")).expect("it is there");
    check("app: there is no such file, so its functions have no names (");
}
