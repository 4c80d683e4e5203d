//! Call chains that are cut, by frame pointers and by copies of the stack, and what is said of that.

use super::{Bench, skip, stderr, stdout};

/// Adds numbers up for about as long as a hundred samples take.
const LIBRARY: &str = r"
double sum(const double *from, long n) {
    double all = 0;
    for (long round = 0; round < 100000; round++)
        for (long i = 0; i < n; i++) all = all * 0.999 + from[i];
    return all;
}
";

const PROGRAM: &str = r"
double sum(const double *, long);
static double numbers[1000];
int main(void) { return sum(numbers, 1000) > 1; }
";

/// Compiles a program and its library; the reason why not.
fn compile(bench: &Bench, frames: &[&str]) -> Result<String, String> {
    for (file, source) in [("sum.c", LIBRARY), ("calls.c", PROGRAM)] {
        std::fs::write(bench.path(file), source).expect("written");
    }
    let cc = |arguments: &[&str]| {
        let output = std::process::Command::new("cc")
            .current_dir(bench.directory.path())
            .args(arguments)
            .output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(stderr(&output)),
            Err(e) => Err(format!("no C compiler: {e}")),
        }
    };
    let library = ["-O2", "-shared", "-fPIC", "-o", "libsum.so", "sum.c"];
    cc(&[&library[..], frames].concat())?;
    let program = ["-O0", "-fno-omit-frame-pointer", "-Wl,-rpath,$ORIGIN"];
    cc(&[&program[..], &["-o", "calls", "calls.c", "./libsum.so"]].concat())?;
    Ok(bench.path("calls").to_string_lossy().into_owned())
}

#[test]
fn chains_that_end_in_a_library_without_frame_pointers_are_told() {
    const TEST: &str = "chains_that_end_in_a_library_without_frame_pointers_are_told";
    const TOLD: &str = "call chains that lack callers ([cut]), most in libsum.so: shares of callers are lower bounds";
    const REMEDY: &str = "record --call-graph dwarf finds the callers";
    if !cfg!(target_arch = "x86_64") {
        return skip(TEST, "the leaf has a frame on x86-64 alone");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let without = &["-fomit-frame-pointer"][..];
    // With optimization, a function that calls no other has no frame all the same.
    let with = &["-O0", "-fno-omit-frame-pointer"][..];
    for (frames, chains, is_told, is_cut) in [
        (without, &["-g"][..], true, true),
        (without, &["-g", "-q"], false, true),
        (without, &[], false, false),
        (without, &["--call-graph", "dwarf,1024"], false, false),
        (with, &["-g"], false, false),
    ] {
        let program = match compile(&bench, frames) {
            Ok(program) => program,
            Err(reason) => return skip(TEST, reason),
        };
        let options = [&["-e", "cpu-clock:u", "-F", "200"], chains].concat();
        let recorded = bench.record(&options, &program);
        let text = stderr(&recorded);
        let case = format!("{frames:?} {chains:?}");
        assert_eq!(recorded.status.code(), Some(0), "{text}");
        assert_eq!(text.contains(TOLD), is_told, "{case}: {text}");
        assert_eq!(text.contains(REMEDY), is_told, "{case}: {text}");

        // Of the stacks of the library all are cut, or none.
        let folded = stdout(&bench.report(&["--folded"]));
        let of_sum: Vec<_> = folded
            .lines()
            .filter(|line| line.contains(";sum "))
            .collect();
        assert!(!of_sum.is_empty(), "{case}: {folded}");
        for line in of_sum {
            // The library's function has called no other, so that its own caller alone is missing.
            let callers = match (is_cut, chains.is_empty()) {
                (true, _) => "[cut];sum ",
                (false, true) => "calls;sum ",
                (false, false) => "main;sum ",
            };
            assert!(line.contains(callers), "{case}: {line}");
            assert_eq!(line.contains("[cut]"), is_cut, "{case}: {line}");
        }

        // What is said is the share that the row has, where shares of callers are shown.
        for (form, callers) in [(&["--children"][..], true), (&["-g"], true), (&[], false)] {
            let text = stdout(&bench.report(&[form, &["--percent-limit", "0"]].concat()));
            let said = text.contains(TOLD) && text.contains(REMEDY);
            assert_eq!(said, is_cut && callers, "{case} {form:?}: {text}");
        }
        let rows = bench.rows(&["--children"]);
        let cut = rows.iter().find(|row| row["symbol"] == "[cut]");
        assert_eq!(cut.is_some(), is_cut, "{case}: {rows:?}");
        if let Some(cut) = cut {
            let of = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
            let share = cut["children-period"].as_u64().expect("a number") as f64;
            let share = format!("{:.2} % of all", share * 100.0 / of("period") as f64);
            let output = bench.report(&["--folded"]);
            let note = stderr(&output);
            assert!(
                note.contains(&share) && note.contains(TOLD),
                "{share}: {note}"
            );
            let tree = stdout(&bench.report(&["-g"]));
            let mut lines = tree
                .lines()
                .skip_while(|line| !line.ends_with(" sum"))
                .skip(1);
            assert!(
                lines.next().is_some_and(|line| line.ends_with("%  [cut]")),
                "{tree}"
            );
        }
        let drawn = bench.report(&["--flamegraph", "drawn.svg"]);
        assert_eq!(drawn.status.code(), Some(0), "{}", stderr(&drawn));
        let drawn = std::fs::read_to_string(bench.path("drawn.svg")).expect("it is drawn");
        assert_eq!(drawn.contains(TOLD), is_cut, "{case}");
        assert_eq!(drawn.contains("[cut]"), is_cut, "{case}");

        // What was found is kept.
        for file in ["libsum.so", "calls"] {
            std::fs::remove_file(bench.path(file)).expect("it is there");
        }
        assert_eq!(stdout(&bench.report(&["--folded"])), folded, "{case}");
    }
}

/// Calls itself deeper than a small copy of the stack reaches.
const DEEP: &str = r"
static volatile long sum;
static long deep(long n) {
    volatile long here[16];
    here[n % 16] = n;
    if (n > 0) return deep(n - 1) + here[n % 16];
    for (long i = 0; i < 100000000; i++) sum += i;
    return sum;
}
int main(void) { return deep(50) == 1; }
";

#[test]
fn chains_longer_than_the_copy_of_the_stack_are_cut() {
    const TEST: &str = "chains_longer_than_the_copy_of_the_stack_are_cut";
    const REMEDY: &str = "larger copies of the stack have more callers";
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return skip(TEST, "stacks of this architecture are not unwound");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = bench.compile("deep", DEEP) {
        return skip(TEST, reason);
    }
    let program = bench.path("deep").to_string_lossy().into_owned();
    for (copy, is_cut) in [("dwarf,1024", true), ("dwarf,32768", false)] {
        let options = ["-e", "cpu-clock:u", "-F", "200", "--call-graph", copy];
        let recorded = bench.record(&options, &program);
        assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
        let text = stdout(&bench.report(&["--children"]));
        let share = text.lines().find(|line| line.ends_with(" main"));
        assert_eq!(share.is_some(), !is_cut, "{copy}: {text}");
        assert_eq!(text.contains("[.] [cut]"), is_cut, "{copy}: {text}");
        assert_eq!(text.contains(REMEDY), is_cut, "{copy}: {text}");
        // That the report follows no more frames cuts none.
        let short = stdout(&bench.report(&["--children", "--max-stack", "3"]));
        assert!(!short.contains("[cut]"), "{short}");
    }
}

/// A name, its source, and its compiler.
struct Program {
    file: &'static str,
    source: &'static str,
    compiler: &'static [&'static str],
    remedy: &'static str,
}

/// Their callers are in a register that the innermost function uses for itself.
const LANGUAGES: [Program; 4] = [
    Program {
        file: "words.c",
        source: "
            static volatile long sum;
            __attribute__((noinline)) static void hash(long n) { for (long i = 0; i < n; i++) sum += i; }
            __attribute__((noinline)) static void insert(long n) { hash(n); sum++; }
            int main(void) { insert(100000000); return sum == 1; }",
        compiler: &["cc", "-O1", "-fomit-frame-pointer"],
        remedy: "record --call-graph dwarf finds the callers (8 KB a sample), or build with -fno-omit-frame-pointer (C, C++)",
    },
    Program {
        file: "words.cc",
        source: "
            static volatile long sum;
            namespace words {
            __attribute__((noinline)) void hash(long n) { for (long i = 0; i < n; i++) sum += i; }
            __attribute__((noinline)) void insert(long n) { hash(n); sum++; }
            }
            int main() { words::insert(100000000); return sum == 1; }",
        compiler: &["c++", "-O1", "-fomit-frame-pointer"],
        remedy: "record --call-graph dwarf finds the callers (8 KB a sample), or build with -fno-omit-frame-pointer (C, C++)",
    },
    Program {
        file: "words.rs",
        source: "
            mod words {
                #[inline(never)]
                pub fn hash(n: u64) -> u64 { (0..n).fold(0, |sum, i| std::hint::black_box(sum + i)) }
                #[inline(never)]
                pub fn insert(n: u64) -> u64 { hash(n) + 1 }
            }
            fn main() { std::process::exit((words::insert(100000000) == 1) as i32) }",
        compiler: &["rustc", "-O", "-C", "force-frame-pointers=no"],
        remedy: "record --call-graph dwarf finds the callers (8 KB a sample), or build with -C force-frame-pointers=yes (rustc)",
    },
    // It has a frame, and with that a frame pointer: nothing is cut.
    Program {
        file: "words.go",
        source: "
            package main
            var sum [64]int
            //go:noinline
            func hash(n int) int {
                var counts [64]int
                for i := 0; i < n; i++ { counts[i%64] += i }
                sum = counts
                return counts[n%64]
            }
            //go:noinline
            func insert(n int) int { return hash(n) + 1 }
            func main() { if insert(100000000) == 1 { panic(1) } }",
        compiler: &["go", "build"],
        remedy: "",
    },
];

#[test]
fn the_remedy_is_that_of_the_language() {
    const TEST: &str = "the_remedy_is_that_of_the_language";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for program in LANGUAGES {
        std::fs::write(bench.path(program.file), program.source).expect("it is ours");
        let (compiler, options) = program.compiler.split_first().expect("its name");
        let compiled = std::process::Command::new(compiler)
            .current_dir(bench.directory.path())
            .args(options)
            .args(["-o", "words", program.file])
            .output();
        match compiled {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("{compiler}: {}", stderr(&output)),
            Err(e) => {
                skip(TEST, format_args!("{compiler}: {e}"));
                continue;
            }
        }
        let words = bench.path("words").to_string_lossy().into_owned();
        let recorded = bench.record(&["-g", "-e", "cpu-clock:u", "-F", "200"], &words);
        let text = stderr(&recorded);
        assert_eq!(recorded.status.code(), Some(0), "{text}");
        let text = super::unwrapped(&text);
        let children = stdout(&bench.report(&["--children"]));
        for text in [text, children] {
            match program.remedy {
                "" => assert!(!text.contains("[cut]"), "{}: {text}", program.file),
                remedy => assert!(text.contains(remedy), "{}: {text}", program.file),
            }
        }
    }
}
