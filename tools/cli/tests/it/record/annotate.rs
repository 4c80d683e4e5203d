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
