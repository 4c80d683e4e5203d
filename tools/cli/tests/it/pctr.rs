//! `quipu pctr`, run as people run it, on simulated devices.

use assert_cmd::Command;

/// Runs the command with the words of a line.
fn quipu(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("pctr").args(line.split_whitespace());
    command
}

fn stdout(line: &str) -> String {
    let output = quipu(line).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

fn refusal(line: &str, status: i32) -> String {
    let output = quipu(line).assert().code(status).get_output().clone();
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the line of a counter, its spaces squeezed.
fn counter(line: &str, number: usize) -> String {
    let text = stdout(line);
    let start = format!(" ctr{number}");
    let line = text.lines().find(|l| l.starts_with(&start));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    words.join(" ")
}

#[test]
fn without_a_request_all_counters_are_read() {
    let text = stdout("--simulate i386-2003:p6");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            " ctr0 =                    0  [not set]",
            " ctr1 =                    0  [not set]",
            "  tsc =              3000000",
            "  idl =                 1000",
        ]
    );
    assert_eq!(stdout("--simulate amd64-2019:k8").lines().count(), 5);
    assert_eq!(stdout("--simulate i386-2023:p5").lines().count(), 1);
}

#[test]
fn a_function_is_made_of_event_and_flags() {
    const P6: &str = "i386-2003:p6";
    const CORE: &str = "amd64-2019:core";
    for (machine, args, number, expected) in [
        (P6, "-s 0 -f c0", 0, "1010 [--ku c0] INST_RETIRED"),
        (
            P6,
            "-s0 -fINST_RETIRED -u",
            0,
            "1000 [---u c0] INST_RETIRED",
        ),
        (P6, "-s 0 -f 0xc0 -k", 0, "10 [--k- c0] INST_RETIRED"),
        (P6, "-s 1 -f 12", 1, "1010 [--ku 12] MUL"),
        // All cache states by default, and some of them where pctr(1) has all or none.
        (P6, "-s 0 -f 29", 0, "1010 [--ku 29/0f]"),
        (P6, "-s 0 -f 29 -M -E", 0, "1010 [--ku 29/0c]"),
        (P6, "-s 0 -f 62 -A", 0, "1010 [--ku 62/20]"),
        (P6, "-s 0 -f 29 -m 3", 0, "1010 [--ku 29/03]"),
        (P6, "-s 0 -f c0 -e -i -t 2", 0, "1010 [ieku c0+2]"),
        // What only some of the family have, with the unit mask that it needs.
        (P6, "-s 0 -f b2", 0, "1010 [--ku b2/0f] MMX_UOPS_EXEC"),
        (P6, "-s 0 -f d8", 0, "1010 [--ku d8] EMON_KNI_INST_RETIRED"),
        // The gate of counter 1.
        (P6, "-s 1 -f c0", 0, "0 [---- 00]"),
        (P6, "-s 0 -f 0", 0, "0 [not set]"),
        // The unit mask and conditions of an event by name, and the same mask by number.
        (CORE, "-s 1 -f 40", 1, "[--ku 40/0f] L1D_CACHE_LD.MESI"),
        (
            CORE,
            "-s 1 -f 40 -M",
            1,
            "[--ku 40/08] L1D_CACHE_LD.M_STATE",
        ),
        (CORE, "-s 1 -f L2_LD", 1, "[--ku 29/7f]"),
        (CORE, "-s 1 -f 29 -M -E", 1, "[--ku 29/7c]"),
        (CORE, "-s 1 -f L2_LD -m 41", 1, "[--ku 29/41]"),
        (CORE, "-s 1 -f MUL:u", 1, "[---u 12] MUL"),
        (CORE, "-s 1 -f MUL:u -k", 1, "[--k- 12] MUL"),
        (
            CORE,
            "-s 1 --cpu intel-skl -f UOPS_EXECUTED.STALL_CYCLES",
            1,
            "[i-ku b1/01+1] UOPS_EXECUTED.STALL_CYCLES",
        ),
        (
            "amd64-2016:k8",
            "-s 2 -f DISPATCHED_FPU",
            2,
            "1010 [--ku 00/3f]",
        ),
        // One number, two events.
        (
            "i386-2008:p5",
            "--cpu intel-p5-mmx -s 0 -f 2c",
            0,
            "[-ku 2c] CACHE_M_STATE_LINE_SHARING",
        ),
        (
            "i386-2008:p5",
            "--cpu intel-p5-mmx -s 1 -f 2c",
            1,
            "[-ku 2c] CACHE_LINE_SHARING",
        ),
        (
            "i386-2008:p5",
            "--cpu intel-p5-mmx -s 1 -f CACHE_LINE_SHARING",
            1,
            "[-ku 2c] CACHE_LINE_SHARING",
        ),
        ("i386-2003:p5", "-s 1 -f 16 -c -u", 1, "1000 [c-u 16]"),
        // With flags, 0 is the event of that number, where there is one.
        ("i386-2003:p5", "-s 0 -f 0 -u", 0, "1000 [--u 00] DATA_READ"),
        ("amd64-2016:k8", "-s 0 -f 0 -k", 0, "10 [--k- 00/3f]"),
    ] {
        let line = counter(&format!("--simulate {machine} {args}"), number);
        let expected = format!(" {expected}");
        assert!(line.contains(&expected), "{machine} {args}: {line}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (machine, args, status, reason) in [
        (
            "i386-2008:p5",
            "--cpu intel-p5-mmx -s 0 -f CACHE_LINE_SHARING",
            125,
            "only counter 1",
        ),
        ("i386-2003:p6", "-s 0 -f 0 -u", 125, "no such event"),
        (
            "i386-2003:k8",
            "-s 0 -f 76",
            125,
            "the driver supports no counters",
        ),
        ("amd64-2019:core", "-s 1 -f 10", 125, "only counter 0"),
        ("amd64-2019:core", "-s 0 -f MUL", 125, "only counter 1"),
        (
            "amd64-2019:core",
            "-s 0 -f 40 -m 0",
            125,
            "no state (M, E, S, I)",
        ),
        (
            "amd64-2019:core",
            "-s 0 -f INST_RETIRED.NO_SUCH",
            125,
            "neither a unit mask",
        ),
        (
            "amd64-2019:core",
            "-s 0 -f 0c",
            125,
            "PAGE_WALKS needs a unit mask",
        ),
        (
            "amd64-2019:core",
            "-s 0 -f PAGE_WALKS",
            125,
            "PAGE_WALKS needs a unit mask",
        ),
        (
            "amd64-2016:k8",
            "-s 0 -f 0 -m 0",
            125,
            "DISPATCHED_FPU needs a unit mask",
        ),
        (
            "i386-2003:p6",
            "-s 0 -f 29 -m 0",
            125,
            "no state (M, E, S, I)",
        ),
        ("i386-2003:p6", "-s 1 -f c1", 125, "only counter 0"),
        ("i386-2003:p6", "-s 0 -f 2", 125, "no such event"),
        // A Pentium II and an M have this, a Pentium III has not.
        ("i386-2003:p6", "-s 0 -f ce", 125, "no such event"),
        ("amd64-2019:core", "-s 0 -f ff", 125, "no such event"),
        ("amd64-2016:k8", "-s 3 -f 0x10", 125, "no such event"),
        ("i386-2003:p6", "-s 2 -f c0", 2, "no counter 2"),
        ("i386-2003:p6", "-s 4 -f c0", 2, "4"),
        ("i386-2003:p6", "-s 0 -f NO_SUCH", 2, "no event NO_SUCH"),
        ("i386-2003:p6", "-s 0 -f c0 -c", 2, "only a Pentium"),
        ("i386-2003:p6", "-s 0 -f 29 -A -M", 2, "cannot be used with"),
        ("i386-2003:p5", "-s 0 -f 10", 125, "no such event"),
        ("i386-2003:p5", "-s 0 -f 2a", 125, "no such event"),
        ("i386-2003:p5", "-s 0 -f 16 -e", 2, "no edge"),
        // Some kernels take it for another CPU, and setting a function would end them.
        (
            "amd64-2016:p4",
            "--cpu intel-core2 -s 0 -f c0",
            125,
            "another vendor or family",
        ),
        (
            "amd64-2019:zen",
            "--cpu amd-k8 -s 0 -f c0",
            125,
            "another vendor or family",
        ),
        ("amd64-2019:p5", "", 2, "does not run on"),
        ("1996:p5", "", 2, "the eras are"),
    ] {
        let told = refusal(&format!("--simulate {machine} {args}"), status);
        assert!(told.contains(reason), "{machine} {args}: {told}");
    }
    let told = refusal("--device /nonexistent/pctr", 125);
    assert!(told.contains("there is no such node"), "{told}");
    let told = refusal("--device /dev/null", 125);
    assert!(told.contains("does not speak the protocol"), "{told}");
    refusal("-f c0", 2);
    refusal("-u", 2);
}

#[test]
fn the_events_of_the_man_page_are_listed() {
    let text = stdout("-l --cpu intel-p6");
    let lines: Vec<String> = text
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "c0 INST_RETIRED",
        "c1 FLOPS counter 0 only",
        "12 MUL counter 1 only",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line}: {text}");
    }
    assert!(stdout("-l --cpu intel-p5").lines().count() >= 38);
    let told = refusal("-l --cpu no-such-cpu", 125);
    assert!(told.contains("no-such-cpu"), "{told}");
}
