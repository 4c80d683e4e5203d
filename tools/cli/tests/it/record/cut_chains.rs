//! Call chains by frame pointers that end in a library without them, and what is said of that.

use super::{Bench, skip, stderr};

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
    const TOLD: &str = "most of them in libsum.so: --call-graph dwarf finds the callers";
    if !cfg!(target_arch = "x86_64") {
        return skip(TEST, "the leaf has a frame on x86-64 alone");
    }
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let without = &["-fomit-frame-pointer"][..];
    // With optimization, a function that calls no other has no frame all the same.
    let with = &["-O0", "-fno-omit-frame-pointer"][..];
    for (frames, chains, is_told) in [
        (without, &["-g"][..], true),
        (without, &["-g", "-q"], false),
        (without, &[], false),
        (without, &["--call-graph", "dwarf,1024"], false),
        (with, &["-g"], false),
    ] {
        let program = match compile(&bench, frames) {
            Ok(program) => program,
            Err(reason) => return skip(TEST, reason),
        };
        let options = [&["-e", "cpu-clock:u", "-F", "200"], chains].concat();
        let recorded = bench.record(&options, &program);
        let text = stderr(&recorded);
        assert_eq!(recorded.status.code(), Some(0), "{text}");
        assert_eq!(
            text.contains(TOLD),
            is_told,
            "{frames:?} {chains:?}: {text}"
        );
        assert_eq!(text.contains("without frame pointers"), is_told, "{text}");
    }
}
