//! `quipu annotate`, whose addresses and shares are those of `perf annotate`, and its instructions objdump's.

use std::process::{Command, Output};

use super::judge::BUSY;
use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

fn annotate(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = quipu();
    command.current_dir(bench.directory.path()).arg("annotate");
    command.args(arguments).output().expect("it starts")
}

/// Has a program sampled that computes; returns `None`, which is said, where that cannot be.
fn recorded(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    bench.compile("busy", BUSY).expect("it compiled another");
    let program = bench.path("busy").to_string_lossy().into_owned();
    let output = bench.record(&["-e", "cpu-clock:u", "-c", "50000"], &program);
    assert!(output.status.success(), "{}", stderr(&output));
    Some(bench)
}

/// Returns share and address of each instruction, as they are printed.
fn shares(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| {
        let (share, rest) = line.split_once(" :")?;
        share.trim().parse::<f64>().ok()?;
        let (address, _) = rest.trim_start().split_once(':')?;
        Some((share.trim().to_owned(), address.to_owned()))
    });
    lines.collect()
}

#[test]
fn addresses_and_shares_are_those_of_perf() {
    const TEST: &str = "addresses_and_shares_are_those_of_perf";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let arguments = ["--stdio", "-i", "perf.data", "-s", "turn"];
    let Some(theirs) = perf(&bench, &[&["annotate"], &arguments[..]].concat()) else {
        return skip(TEST, "perf does not start here");
    };
    let theirs = shares(&stdout(&theirs));
    if theirs.is_empty() {
        return skip(TEST, "perf shows no instructions: it needs objdump");
    }
    let ours = annotate(&bench, &arguments);
    assert!(ours.status.success(), "{}", stderr(&ours));
    assert_eq!(shares(&stdout(&ours)), theirs);
    assert!(
        theirs.iter().any(|(share, _)| share != "0.00"),
        "{theirs:?}"
    );
}

#[test]
fn instructions_begin_where_objdump_has_them() {
    const TEST: &str = "instructions_begin_where_objdump_has_them";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let objdump = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "--disassemble=turn"])
        .arg(bench.path("busy"))
        .output();
    let Ok(objdump) = objdump else {
        return skip(TEST, "objdump is not installed");
    };
    let text = stdout(&objdump);
    let lines = text.lines().skip_while(|line| !line.contains("<turn>:"));
    let lines = lines.skip(1).take_while(|line| !line.is_empty());
    let theirs: Vec<_> = lines
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    let ours = annotate(&bench, &["turn"]);
    let ours = shares(&stdout(&ours))
        .into_iter()
        .map(|(_, address)| address);
    assert_eq!(ours.collect::<Vec<_>>(), theirs, "{text}");
    assert!(theirs.len() > 5, "{text}");
}

#[test]
fn source_lines_stand_beside_their_instructions() {
    const TEST: &str = "source_lines_stand_beside_their_instructions";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let text = stdout(&annotate(&bench, &["-l", "-s", "turn"]));
    let source = "static void turn(long n) { for (volatile long i = 0; i < n; i++); }";
    assert!(text.contains(source), "{text}");
    assert!(text.contains(" // busy.c:3\n"), "{text}");
    assert!(
        text.contains("Lines of turn:\n  100.00 busy.c:3\n"),
        "{text}"
    );
    // Without a source file the instructions are left.
    std::fs::remove_file(bench.path("busy.c")).expect("it was there");
    let text = stdout(&annotate(&bench, &["turn"]));
    assert!(!text.contains(source) && shares(&text).len() > 5, "{text}");
}

/// Names of C++, so that a compiler of C is enough.
const PATHS: &str = r#"
static volatile long sum;
void histogram(long n) __asm__("_ZN9wordcount9histogramEl");
void read_line(long n) __asm__("_ZN6server9read_lineEl");
void read_block(long n) __asm__("_ZN6server10read_blockEl");
void histogram(long n) { for (long i = 0; i < n; i++) sum += i; }
void read_line(long n) { for (long i = 0; i < n; i++) sum += i; }
void read_block(long n) { for (long i = 0; i < n; i++) sum += i; }
int main(void) { histogram(30000000); read_line(30000000); read_block(30000000); return 0; }
"#;

#[test]
fn functions_are_named_as_people_say_them() {
    const TEST: &str = "functions_are_named_as_people_say_them";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("paths", PATHS).expect("it compiled another");
    let program = bench.path("paths").to_string_lossy().into_owned();
    let output = bench.record(&["-e", "cpu-clock:u", "-c", "200000"], &program);
    assert!(output.status.success(), "{}", stderr(&output));
    let wholes = [
        ("histogram", "wordcount::histogram(long)"),
        ("_lin", "server::read_line(long)"),
        ("server::read_block(long)", "server::read_block(long)"),
    ];
    for (said, whole) in wholes {
        let text = stdout(&annotate(&bench, &[said]));
        assert!(text.contains(&format!("<{whole}>:")), "{said}: {text}");
        assert_eq!(text.matches(">:\n").count(), 1, "{said}: {text}");
        let hottest = text.lines().find(|line| line.contains("hottest: "));
        assert!(
            hottest.is_some_and(|line| line.contains(" (paths.c:")),
            "{text}"
        );
        let rows = bench.rows(&["-S", said]);
        let names: Vec<_> = rows
            .iter()
            .filter_map(|row| row["symbol"].as_str())
            .collect();
        assert_eq!(names, [whole], "{said}");
        let script = quipu()
            .current_dir(bench.directory.path())
            // Its names have no parameters, as those of perf script.
            .args([
                "script",
                "-F",
                "ip,sym",
                "-S",
                said.trim_end_matches("(long)"),
            ])
            .output()
            .expect("it starts");
        let lines = stdout(&script);
        let lines: std::collections::BTreeSet<_> = lines
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        let bare = whole.trim_end_matches("(long)");
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), [bare], "{said}");
    }
    for (said, why) in [
        ("hsitogram", "the nearest is wordcount::histogram(long)"),
        (
            // Not only `read`, which is in names of the C library too.
            "server::read",
            "has samples in 2 functions with server::read in their names: server::read_block(long), server::read_line(long)",
        ),
        (
            "xyzzy",
            "has no samples in a function xyzzy; quipu report lists the functions",
        ),
    ] {
        for output in [annotate(&bench, &[said]), bench.report(&["-S", said])] {
            assert_eq!(output.status.code(), Some(125), "{said}");
            assert_eq!(stdout(&output), "", "{said}");
            assert!(stderr(&output).contains(why), "{said}: {}", stderr(&output));
        }
    }
    // Without the source file that is said.
    std::fs::remove_file(bench.path("paths.c")).expect("it was there");
    let text = stdout(&annotate(&bench, &["histogram"]));
    assert!(
        text.contains("no source: ") && text.contains("paths.c is not here"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_shown_is_told_with_the_reason() {
    const TEST: &str = "what_cannot_be_shown_is_told_with_the_reason";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let told = |arguments: &[&str], words: &str| {
        let output = annotate(&bench, arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    };
    told(&["nosuch"], "no samples in a function nosuch");
    told(&["-d", "libnosuch.so"], "no samples of what was chosen");
    told(&["--percent-limit", "101"], "--percent-limit 0 shows all");
    told(&["-i", "nosuch.data"], "no such file");
    let kernel = bench.record(&["-e", "page-faults:k", "-c", "1"], &bench.program());
    if kernel.status.success() {
        let output = annotate(&bench, &["--percent-limit", "0"]);
        let text = stderr(&output);
        assert!(
            text.contains("the kernel patches its code") || text.contains("no samples"),
            "{text}"
        );
    }
}
