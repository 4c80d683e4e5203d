//! `quipu script`, whose lines are those of `perf script`.

use serde_json::Value;

use super::peer::{perf, recorded_by_perf};
use super::{Bench, quipu, skip, stderr, stdout};

/// Computes, touches fresh pages, waits and has a child: code of the program, of libraries and of the kernel.
const WORK: &str = r"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void turn(long n) { for (volatile long i = 0; i < n; i++); }
void work(void) { turn(2000); char *p = malloc(300000); memset(p, 1, 300000); free(p); }
int main(void) {
    for (int i = 0; i < 300; i++) work();
    if (fork() == 0) { for (int i = 0; i < 300; i++) work(); _exit(0); }
    usleep(1000);
    wait(0);
    return 0;
}
";

fn script(bench: &Bench, arguments: &[&str]) -> std::process::Output {
    quipu()
        .current_dir(bench.directory.path())
        .arg("script")
        .args(arguments)
        .output()
        .expect("it starts")
}

/// Returns true if the lines differ in one name alone, and both names are of one function of the kernel: perf takes the
/// last that the kernel lists, quipu the one with the fewest underscores in front.
fn is_kernel_function_of_two_names(ours: &str, theirs: &str, kernel: &str) -> bool {
    if ours.split(' ').count() != theirs.split(' ').count() {
        return false;
    }
    let mut different = (ours.split(' ').zip(theirs.split(' '))).filter(|(a, b)| a != b);
    let (Some((ours, theirs)), None) = (different.next(), different.next()) else {
        return false;
    };
    let place = |word: &str| {
        let (name, offset) = word.split_once('+').unwrap_or((word, ""));
        let start = kernel.lines().find_map(|line| {
            let mut words = line.split([' ', '\t']);
            let start = words.next()?;
            (words.nth(1) == Some(name)).then(|| start.to_owned())
        });
        Some((start?, offset.to_owned()))
    };
    place(ours).is_some_and(|ours| place(theirs) == Some(ours))
}

#[test]
fn a_function_of_two_names_is_no_difference() {
    let kernel =
        "ffffffff821f67c0 T memset\nffffffff821f67c0 T __pi_memset\nffffffff821f6800 T memmove\n";
    let is_same = |ours: &str, theirs: &str| is_kernel_function_of_two_names(ours, theirs, kernel);
    let [line, other] =
        ["memset", "__pi_memset"].map(|name| format!("worker 7 1.5: cb {name}+0xb ([k])"));
    assert!(is_same(&line, &other));
    assert!(is_same("  cb memset", "  cb __pi_memset"));
    assert!(!is_same(&line, &other.replace("+0xb", "+0xc")));
    assert!(!is_same(&line, &other.replace("1.5", "1.6")));
    assert!(!is_same(&line, &line.replace("memset", "memmove")));
    assert!(!is_same(&line, &line.replace("memset", "unknown")));
}

/// Compares the lines of both for a file; returns how many there are.
fn compare(bench: &Bench, file: &str, options: &[&str]) -> usize {
    let arguments = [&["-i", file], options].concat();
    let theirs = perf(bench, &[&["script"], &arguments[..]].concat()).expect("it recorded");
    let ours = script(bench, &arguments);
    assert!(ours.status.success(), "{options:?}: {}", stderr(&ours));
    let (ours, theirs) = (stdout(&ours), stdout(&theirs));
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{options:?}");
    let kernel = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        // perf does not find the names of all stubs.
        if ours != theirs && !(theirs.contains(" @plt") && ours.contains("@plt")) {
            let is_right = is_kernel_function_of_two_names(ours, theirs, &kernel);
            assert!(is_right, "{file} {options:?}: {ours:?}, {theirs:?}");
        }
    }
    ours.lines().count()
}

/// Records the program by perf; the reason why not.
fn recorded(bench: &Bench, options: &[&str]) -> Result<(), String> {
    bench.compile("worker", WORK)?;
    let program = bench.path("worker").to_string_lossy().into_owned();
    recorded_by_perf(bench, &program, options)
}

#[test]
fn lines_are_those_of_perf() {
    const TEST: &str = "lines_are_those_of_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for (recording, scripts) in [
        (
            &["-e", "cpu-clock", "-F", "2000"][..],
            &[
                &[][..],
                &["--ns"],
                &["-F", "comm,pid,tid,time,ip,sym"],
                &["-F", "-dso,-symoff"],
                &["--comms", "nosuch"],
            ][..],
        ),
        (
            &["-e", "cpu-clock", "-F", "2000", "-g"],
            &[&[], &["-G"], &["--max-stack", "2"], &["-F", "ip,sym,dso"]],
        ),
        (
            &["-e", "page-faults", "-c", "1", "-d"],
            &[&[], &["-F", "comm,event,addr"], &["-F", "sw:time,period"]],
        ),
        (
            &["-e", "sched:*,raw_syscalls:*,signal:*,task:*"],
            &[
                &[],
                &["-F", "+ip"],
                &["-C", "0"],
                &["-F", "trace:event,trace"],
            ],
        ),
        (
            &[
                "-e",
                "cpu-clock,page-faults,sched:sched_switch",
                "-g",
                "-F",
                "1000",
            ],
            &[&[], &["-F", "trace:comm,ip,sym"]],
        ),
    ] {
        if let Err(reason) = recorded(&bench, recording) {
            skip(TEST, format_args!("{recording:?}: {reason}"));
            continue;
        }
        let lines = scripts
            .iter()
            .map(|options| compare(&bench, "p.data", options));
        let lines: usize = lines.sum();
        assert!(lines > 10, "{recording:?}");
    }
}

#[test]
fn inlined_functions_are_those_of_perf() {
    const TEST: &str = "inlined_functions_are_those_of_perf";
    const INLINED: &str = r"
volatile unsigned long sink;
static inline __attribute__((always_inline)) void inner(long i) { sink += i * i; }
static inline __attribute__((always_inline)) void middle(long i) { inner(i); sink ^= i; }
__attribute__((noinline)) void outer(long n) { for (long i = 0; i < n; i++) middle(i); }
int main(void) { for (int i = 0; i < 300; i++) outer(200000); return 0; }
";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let recording = ["-e", "cpu-clock:u", "-F", "2000", "--call-graph", "dwarf"];
    let recorded = bench.compile("inlined", INLINED).and_then(|()| {
        let program = bench.path("inlined").to_string_lossy().into_owned();
        recorded_by_perf(&bench, &program, &recording)
    });
    if let Err(reason) = recorded {
        return skip(TEST, reason);
    }
    let lines = |output: &std::process::Output| -> Vec<String> {
        let text = stdout(output);
        let of_program = text.lines().filter(|line| {
            ["inner", "middle", "outer", "main+"]
                .iter()
                .any(|name| line.contains(name))
        });
        of_program.map(str::to_owned).collect()
    };
    let theirs = perf(&bench, &["script", "-i", "p.data"]).expect("it recorded");
    let theirs = lines(&theirs);
    let ours = lines(&script(&bench, &["-i", "p.data", "--inline"]));
    let inlined = theirs
        .iter()
        .filter(|line| line.contains("inner") && line.ends_with("(inlined)"));
    if inlined.count() < 10 {
        return skip(TEST, "perf finds no inlined functions here");
    }
    assert_eq!(ours, theirs);
    let rows = stdout(&script(&bench, &["-i", "p.data", "--inline", "-j"]));
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).expect("JSON"));
    let inlined = rows.flat_map(|row| row["frames"].as_array().cloned().unwrap_or_default());
    // The loader may have some as well.
    let of_program = |frame: &Value| frame["symbol"] == "inner" || frame["symbol"] == "middle";
    let inlined = inlined.filter(|frame| frame["inlined"] == true && of_program(frame));
    let inlined = inlined.count();
    assert_eq!(
        inlined,
        theirs
            .iter()
            .filter(|line| line.ends_with("(inlined)"))
            .count()
    );
}

/// Functions that touch a page each, with two names: of all bindings, with lengths and without, with underscores before them, of
/// different lengths, and mangled.
fn functions_of_two_names() -> String {
    let kinds = ["local", "globl", "weak"].map(|binding| [(binding, true), (binding, false)]);
    let kinds = kinds.concat();
    let names = [
        ["a", "longer"],
        ["longer", "a"],
        ["_one", "two_"],
        ["__two", "_one"],
        ["_ZN2ab11of_languageEi", "of_c"],
        ["_ZN1a1bEi", "_ZN6longer1bEi"],
    ];
    let (mut code, mut table) = (String::new(), String::new());
    let pairs = kinds.iter().flat_map(|a| kinds.iter().map(move |b| [a, b]));
    let all = pairs.flat_map(|pair| names.map(|names| (pair, names)));
    for (at, (pair, names)) in all.enumerate() {
        let (mut labels, mut ends) = (String::new(), String::new());
        for ((binding, has_length), name) in pair.into_iter().zip(names) {
            // A clone of a function, as compilers call them: each name is there once.
            let name = format!("{name}.part.{at}");
            labels += &format!(".{binding} {name}; .type {name}, @function; {name}:\\n");
            if *has_length {
                ends += &format!(".size {name}, . - {name}\\n");
            }
        }
        code += &format!(".p2align 4; {labels} .Lpair{at}: movb $1, (%rdi); ret; {ends}");
        table += &format!(".quad .Lpair{at}\\n");
    }
    format!(
        r#"
#include <sys/mman.h>
__asm__(".text; {code} .data; .globl functions; functions: {table} .quad 0; .text");
extern void (*functions[])(char *);
int main(void) {{
    char *pages = mmap(0, 1000L * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 1000L * PAGE, MADV_NOHUGEPAGE);
    for (long i = 0; functions[i]; i++) functions[i](pages + i * PAGE);
    return 0;
}}
"#
    )
}

#[test]
fn of_two_names_of_a_function_the_one_is_taken_that_perf_takes() {
    const TEST: &str = "of_two_names_of_a_function_the_one_is_taken_that_perf_takes";
    if cfg!(not(target_arch = "x86_64")) {
        return skip(TEST, "the functions are of x86-64");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let recorded = bench
        .compile("names", &functions_of_two_names())
        .and_then(|()| {
            let program = bench.path("names").to_string_lossy().into_owned();
            recorded_by_perf(&bench, &program, &["-e", "page-faults:u", "-c", "1"])
        });
    if let Err(reason) = recorded {
        return skip(TEST, reason);
    }
    compare(&bench, "p.data", &["-F", "ip,sym"]);
    let names = stdout(&script(&bench, &["-i", "p.data", "-F", "ip,sym"]));
    // Four of six pairs are of C, whose clones are shown as such.
    let names = names.lines().filter(|line| line.contains(".part."));
    assert!(names.count() >= 144);
}

#[test]
fn lines_of_own_files_and_of_a_time_are_those_of_perf() {
    const TEST: &str = "lines_of_own_files_and_of_a_time_are_those_of_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(
        &["-e", "page-faults:u", "-c", "1", "-g", "-d"],
        &bench.program(),
    );
    if perf(&bench, &["version"]).is_none() {
        return skip(TEST, "perf does not start here");
    }
    let all = compare(&bench, "perf.data", &["-G"]);
    assert!(all > 400, "{all}");
    compare(&bench, "perf.data", &["-F", "+addr,-symoff"]);
    let text = stdout(&script(&bench, &["-G", "--ns", "-F", "time"]));
    let times: Vec<_> = text
        .lines()
        .map(|line| line.trim_end_matches(": ").trim())
        .collect();
    let some = format!("{},{}", times[all / 4], times[all / 2]);
    let chosen = compare(&bench, "perf.data", &["-G", "--time", &some]);
    assert!(
        (all / 4..=all / 4 + 2).contains(&chosen),
        "{chosen} of {all}"
    );
}

#[test]
fn objects_have_the_fields_of_tracepoints_and_the_functions_of_chains() {
    const TEST: &str = "objects_have_the_fields_of_tracepoints_and_the_functions_of_chains";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let rows = |options: &[&str]| -> Vec<Value> {
        let output = script(&bench, &[&["-j"], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stdout(&output);
        text.lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    };
    bench.record(
        &["-e", "page-faults:u", "-c", "1", "-g", "-d"],
        &bench.program(),
    );
    let hot = rows(&["--symbols", "hot"]);
    assert!(hot.len() >= 300, "{}", hot.len());
    for row in &hot {
        let names: Vec<_> = (0..3)
            .map(|at| row["frames"][at]["symbol"].as_str())
            .collect();
        assert_eq!(names, [Some("hot"), Some("work"), Some("main")], "{row}");
        assert!(
            row["address"]
                .as_str()
                .is_some_and(|text| text.starts_with("0x")),
            "{row}"
        );
        assert_eq!(
            (&row["period"], &row["command"]),
            (&1.into(), &"program".into())
        );
    }
    let recorded = bench.record(&["-e", "sched:sched_process_exec"], "true");
    if recorded.status.code() == Some(125) {
        return skip(TEST, stderr(&recorded).trim());
    }
    let exec = rows(&[]);
    let name = exec[0]["fields"]["filename"].as_str();
    assert!(name.is_some_and(|name| name.ends_with("true")), "{exec:?}");
    assert_eq!(exec[0]["fields"]["pid"], exec[0]["pid"]);
}

#[test]
fn what_samples_do_not_have_is_refused() {
    const TEST: &str = "what_samples_do_not_have_is_refused";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(&["-e", "page-faults:u", "-c", "1"], &bench.program());
    for (options, status, word) in [
        (&["-F", "addr"][..], 2, "record -d records it"),
        (&["-F", "nosuch"], 2, "there is no such field"),
        (&["-F", "brstackinsn"], 2, "that is not here"),
        (&["--time", "x"], 2, "the first and the last second"),
        (&["-i", "nosuch"], 125, "there is no such file"),
    ] {
        let output = script(&bench, options);
        assert_eq!(output.status.code(), Some(status), "{options:?}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{options:?}");
    }
}

#[test]
fn a_stream_is_read_from_standard_input() {
    const TEST: &str = "a_stream_is_read_from_standard_input";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let program = bench.program();
    let arguments = [
        "record",
        "-q",
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "-o",
        "-",
        "--",
        &program,
    ];
    let Some(stream) = perf(&bench, &arguments) else {
        return skip(TEST, "perf does not start here");
    };
    std::fs::write(bench.path("stream"), &stream.stdout).expect("written");
    let ours = quipu()
        .args(["script", "-i", "-"])
        .write_stdin(stream.stdout)
        .output()
        .expect("it starts");
    let theirs = perf(&bench, &["script", "-i", "stream"]).expect("it recorded");
    let (ours, theirs) = (stdout(&ours), stdout(&theirs));
    let without_stubs = |text: &str| {
        text.lines()
            .filter(|l| l.contains(" hot+"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if without_stubs(&theirs).is_empty() {
        // perf 6.1 writes such a stream now and then.
        return skip(TEST, "perf itself names nothing of its stream");
    }
    assert_eq!(without_stubs(&ours), without_stubs(&theirs));
    assert!(without_stubs(&ours).len() >= 300, "{ours}");
}
