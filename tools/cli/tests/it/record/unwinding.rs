//! Call chains of programs without frame pointers, from copies of the stack; perf(1) judges them.

use super::peer::{perf, recorded_by_perf};
use super::{Bench, quipu, skip, stderr, stdout};

/// Calls itself before it sorts and touches fresh pages, in the program and in libc; a handler of signals does too.
const DEEP: &str = r"
#include <signal.h>
#include <stdlib.h>
static volatile char pages[64L * PAGE] __attribute__((aligned(PAGE)));
static volatile char handled[8L * PAGE] __attribute__((aligned(PAGE)));
static int fresh;
__attribute__((noinline)) int compare(const void *a, const void *b) {
    if (fresh < 64) pages[fresh++ * (long)PAGE] = 1;
    return (*(int *)a > *(int *)b) - (*(int *)a < *(int *)b);
}
__attribute__((noinline)) int deep(int n, int *v) {
    volatile int local[n + 1];
    local[n] = n;
    if (n == 0) qsort(v, 64, sizeof *v, compare);
    else local[n] += deep(n - 1, v);
    return local[n];
}
__attribute__((noinline)) void handler(int signal) {
    for (int i = 0; i < 8; i++) handled[i * (long)PAGE] = signal;
}
int main(void) {
    int v[64];
    for (int i = 0; i < 64; i++) v[i] = (i * 37) % 64;
    signal(SIGUSR1, handler);
    int sum = deep(6, v);
    raise(SIGUSR1);
    return sum - 21;
}
";

/// Compiles the program without frame pointers; the reason why not.
fn compile(bench: &Bench) -> Result<String, String> {
    let options = [
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ];
    bench.compile_with(&options, "deep", DEEP)?;
    Ok(bench.path("deep").to_string_lossy().into_owned())
}

/// Returns the chains of a file, each a list of lines, as quipu prints them.
fn chains(text: &str) -> Vec<Vec<String>> {
    let samples = text
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty());
    samples
        .map(|sample| {
            sample
                .lines()
                .skip(1)
                .map(|line| line.trim().to_owned())
                .collect()
        })
        .collect()
}

fn script(bench: &Bench, file: &str, fields: &str) -> Vec<Vec<String>> {
    let output = quipu()
        .current_dir(bench.directory.path())
        .args(["script", "-i", file, "-F", fields])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    chains(&stdout(&output))
}

/// Compares the chains of main and what it calls in a file with those that perf finds. What runs before and after
/// has functions without call frame information, whose callers perf guesses.
fn agree(bench: &Bench, file: &str) {
    let arguments = ["script", "--no-inline", "-i", file, "-F", "comm,ip,sym,dso"];
    let theirs = chains(&stdout(&perf(bench, &arguments).expect("it is there")));
    let ours = script(bench, file, "comm,ip,sym,dso");
    assert_eq!(ours.len(), theirs.len(), "{file}");
    let places = |chain: &Vec<String>| -> Vec<String> {
        let place = |line: &String| {
            let (address, rest) = line.split_once(' ').unwrap_or_default();
            format!("{address} {}", rest.rsplit(' ').next().unwrap_or_default())
        };
        chain.iter().map(place).collect()
    };
    let of_main = |chain: &Vec<String>| chain.iter().any(|line| line.contains(" main ("));
    let mut compared = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if of_main(ours) || of_main(theirs) {
            let (ours, mut theirs) = (places(ours), places(theirs));
            // Where the copy ends before the stack does, which depends on the environment's size, perf may print the
            // address that it could not read as a last frame.
            theirs.pop_if(|last| last.starts_with("ffffffffffffffff "));
            assert_eq!(ours, theirs, "{file}");
            compared += 1;
        }
    }
    assert!(compared >= 40, "{file}: {compared} of {}", ours.len());
}

const UNWOUND: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[test]
fn callers_without_frame_pointers_are_found() {
    const TEST: &str = "callers_without_frame_pointers_are_found";
    if !UNWOUND {
        return skip(TEST, "stacks of this architecture are not unwound");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let program = match compile(&bench) {
        Ok(program) => program,
        Err(reason) => return skip(TEST, reason),
    };
    let options = [
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "-m",
        "1024",
        "--call-graph",
        "dwarf",
    ];
    let recorded = bench.record(&options, &program);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let chains = script(&bench, "perf.data", "comm,ip,sym");
    let names = |chain: &Vec<String>| -> Vec<String> {
        let name = |line: &String| line.split(' ').nth(1).unwrap_or_default().to_owned();
        chain.iter().map(name).collect()
    };
    let of = |function: &str| -> Vec<Vec<String>> {
        let all = chains.iter().map(names);
        all.filter(|names| names.first().is_some_and(|name| name == function))
            .collect()
    };
    let compares = of("compare");
    assert!(compares.len() >= 64, "{chains:?}");
    for names in compares {
        let deep = names.iter().filter(|name| *name == "deep").count();
        assert_eq!(deep, 7, "{names:?}");
        assert!(names.iter().any(|name| name == "main"), "{names:?}");
        assert_eq!(
            names.last().map(String::as_str),
            Some("_start"),
            "{names:?}"
        );
    }
    // Through the frame that the kernel made for the handler, whose caller is what raised the signal.
    let handlers = of("handler");
    assert!(handlers.len() >= 7, "{chains:?}");
    for names in handlers {
        assert!(
            names
                .iter()
                .any(|name| name.contains("raise") || name == "main"),
            "{names:?}"
        );
        assert_eq!(
            names.last().map(String::as_str),
            Some("_start"),
            "{names:?}"
        );
    }
    let children = bench.rows(&["--children"]);
    let main = children
        .iter()
        .find(|row| row["symbol"] == "main")
        .expect("main");
    assert!(
        main["children-samples"].as_u64().expect("a number") >= 72,
        "{main}"
    );
    if perf(&bench, &["--version"]).is_none() {
        return skip(TEST, "perf does not start here");
    }
    agree(&bench, "perf.data");
}

#[test]
fn stacks_that_perf_copied_are_unwound_alike() {
    const TEST: &str = "stacks_that_perf_copied_are_unwound_alike";
    if !UNWOUND {
        return skip(TEST, "stacks of this architecture are not unwound");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    // As it is by default, and smaller.
    for method in ["dwarf", "dwarf,2048"] {
        let options = [
            "-e",
            "page-faults:u",
            "-c",
            "1",
            "-m",
            "1024",
            "--call-graph",
            method,
        ];
        let recorded =
            compile(&bench).and_then(|program| recorded_by_perf(&bench, &program, &options));
        if let Err(reason) = recorded {
            return skip(TEST, reason);
        }
        agree(&bench, "p.data");
    }
}

#[test]
fn the_cpus_last_branches_are_refused_with_the_reason_where_there_are_none() {
    let Some(bench) =
        Bench::new("the_cpus_last_branches_are_refused_with_the_reason_where_there_are_none")
    else {
        return;
    };
    // A clock has no record of branches on any machine.
    let output = bench.record(&["-e", "cpu-clock", "--call-graph", "lbr"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("samples cannot have BRANCH_STACK"),
        "{}",
        stderr(&output)
    );
    for (method, reason) in [("dwarf,65529", "65528"), ("frames", "expected fp, dwarf")] {
        let output = bench.record(&["--call-graph", method], "true");
        assert_eq!(output.status.code(), Some(2), "{method}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}
