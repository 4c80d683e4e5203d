//! `quipu pctr`, run as people run it, on simulated devices.

use assert_cmd::Command;

fn quipu(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("pctr").args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = quipu(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

fn refusal(args: &[&str], status: i32) -> String {
    let output = quipu(args).assert().code(status).get_output().clone();
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the line of a counter, its spaces squeezed.
fn counter(args: &[&str], number: usize) -> String {
    let text = stdout(args);
    let line = text
        .lines()
        .find(|l| l.starts_with(&format!(" ctr{number}")));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    words.join(" ")
}

const P6: [&str; 2] = ["--simulate", "i386-2003:p6"];

#[test]
fn without_a_request_all_counters_are_read() {
    let text = stdout(&P6);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            " ctr0 =                    0  [not set]",
            " ctr1 =                    0  [not set]",
            "  tsc =              2000000",
            "  idl =                    0",
        ]
    );
    assert_eq!(stdout(&["--simulate", "amd64-2019:k8"]).lines().count(), 5);
    assert_eq!(stdout(&["--simulate", "i386-2023:p5"]).lines().count(), 1);
}

#[test]
fn a_function_is_made_of_event_and_flags() {
    let cases: [(&[&str], usize, &str); 9] = [
        (
            &["-s", "0", "-f", "c0"],
            0,
            "ctr0 = 1010 [--ku c0] INST_RETIRED",
        ),
        (
            &["-s0", "-fINST_RETIRED", "-u"],
            0,
            "ctr0 = 1000 [---u c0] INST_RETIRED",
        ),
        (
            &["-s", "0", "-f", "0xc0", "-k"],
            0,
            "ctr0 = 10 [--k- c0] INST_RETIRED",
        ),
        (&["-s", "1", "-f", "12"], 1, "ctr1 = 1010 [--ku 12] MUL"),
        // All cache states by default, and some of them where pctr(1) has all or none.
        (&["-s", "0", "-f", "29"], 0, "ctr0 = 1010 [--ku 29/0f]"),
        (
            &["-s", "0", "-f", "29", "-M", "-E"],
            0,
            "ctr0 = 1010 [--ku 29/0c]",
        ),
        (
            &["-s", "0", "-f", "62", "-A"],
            0,
            "ctr0 = 1010 [--ku 62/20]",
        ),
        (
            &["-s", "0", "-f", "29", "-m", "3"],
            0,
            "ctr0 = 1010 [--ku 29/03]",
        ),
        (
            &["-s", "0", "-f", "c0", "-e", "-i", "-t", "2"],
            0,
            "ctr0 = 1010 [ieku c0+2]",
        ),
    ];
    for (args, number, expected) in cases {
        let line = counter(&[&P6, args].concat(), number);
        assert!(line.starts_with(expected), "{args:?}: {line}");
    }
    // The unit mask and conditions of an event by name, and the same mask by number.
    let core: [(&[&str], &str); 8] = [
        (&["-f", "40"], "[--ku 40/0f] L1D_CACHE_LD.MESI"),
        (&["-f", "40", "-M"], "[--ku 40/08] L1D_CACHE_LD.M_STATE"),
        (&["-f", "L2_LD"], "[--ku 29/7f]"),
        (&["-f", "29", "-M", "-E"], "[--ku 29/7c]"),
        (&["-f", "L2_LD", "-m", "41"], "[--ku 29/41]"),
        (&["-f", "MUL:u"], "[---u 12] MUL"),
        (&["-f", "MUL:u", "-k"], "[--k- 12] MUL"),
        (
            &["--cpu", "intel-skl", "-f", "UOPS_EXECUTED.STALL_CYCLES"],
            "[i-ku b1/01+1] UOPS_EXECUTED.STALL_CYCLES",
        ),
    ];
    for (args, expected) in core {
        let machine = ["--simulate", "amd64-2019:core", "-s", "1"];
        let line = counter(&[&machine, args].concat(), 1);
        assert!(line.contains(expected), "{args:?}: {line}");
    }
    let fpu = [
        "--simulate",
        "amd64-2016:k8",
        "-s",
        "2",
        "-f",
        "DISPATCHED_FPU",
    ];
    assert!(counter(&fpu, 2).starts_with("ctr2 = 1010 [--ku 00/3f]"));
    // One number, two events.
    for (number, name) in [
        ("0", "CACHE_M_STATE_LINE_SHARING"),
        ("1", "CACHE_LINE_SHARING"),
    ] {
        let mmx = [
            "--simulate",
            "i386-2008:p5",
            "--cpu",
            "intel-p5-mmx",
            "-s",
            number,
        ];
        for event in ["2c", name] {
            let line = counter(
                &[&mmx[..], &["-f", event]].concat(),
                number.parse().unwrap(),
            );
            assert!(
                line.ends_with(&format!("[-ku 2c] {name}")),
                "{event}: {line}"
            );
        }
    }
    let pentium = [
        "--simulate",
        "i386-2003:p5",
        "-s",
        "1",
        "-f",
        "16",
        "-c",
        "-u",
    ];
    let line = counter(&pentium, 1);
    assert!(line.starts_with("ctr1 = 1000 [c-u 16]"), "{line}");
    // With flags, 0 is the event of that number, where there is one.
    let reads = ["--simulate", "i386-2003:p5", "-s", "0", "-f", "0", "-u"];
    assert_eq!(counter(&reads, 0), "ctr0 = 1000 [--u 00] DATA_READ");
    let fpu = ["--simulate", "amd64-2016:k8", "-s", "0", "-f", "0", "-k"];
    assert!(counter(&fpu, 0).starts_with("ctr0 = 10 [--k- 00/3f]"));
    let stopped = counter(&[&P6[..], &["-s", "0", "-f", "0"]].concat(), 0);
    assert_eq!(stopped, "ctr0 = 0 [not set]");
}

#[test]
fn counter_1_of_a_p6_alone_has_counter_0_enabled() {
    let line = counter(&[&P6[..], &["-s", "1", "-f", "c0"]].concat(), 0);
    assert_eq!(line, "ctr0 = 0 [---- 00]");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let cases: [(&str, &[&str], i32, &str); 21] = [
        (
            "i386-2008:p5",
            &[
                "--cpu",
                "intel-p5-mmx",
                "-s",
                "0",
                "-f",
                "CACHE_LINE_SHARING",
            ],
            125,
            "only counter 1",
        ),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "0", "-u"],
            125,
            "no such event",
        ),
        (
            "i386-2003:k8",
            &["-s", "0", "-f", "76"],
            125,
            "the driver supports no counters",
        ),
        (
            "amd64-2019:core",
            &["-s", "1", "-f", "10"],
            125,
            "only counter 0",
        ),
        (
            "amd64-2019:core",
            &["-s", "0", "-f", "MUL"],
            125,
            "only counter 1",
        ),
        (
            "amd64-2019:core",
            &["-s", "0", "-f", "40", "-m", "0"],
            125,
            "no state (M, E, S, I)",
        ),
        (
            "amd64-2019:core",
            &["-s", "0", "-f", "INST_RETIRED.NO_SUCH"],
            125,
            "neither a unit mask",
        ),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "29", "-m", "0"],
            125,
            "no state (M, E, S, I)",
        ),
        (
            "i386-2003:p6",
            &["-s", "1", "-f", "c1"],
            125,
            "only counter 0",
        ),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "2"],
            125,
            "no such event",
        ),
        (
            "amd64-2019:core",
            &["-s", "0", "-f", "ff"],
            125,
            "no such event",
        ),
        (
            "amd64-2016:k8",
            &["-s", "3", "-f", "0x10"],
            125,
            "no such event",
        ),
        ("i386-2003:p6", &["-s", "2", "-f", "c0"], 2, "no counter 2"),
        ("i386-2003:p6", &["-s", "4", "-f", "c0"], 2, "4"),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "NO_SUCH"],
            2,
            "no event NO_SUCH",
        ),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "c0", "-c"],
            2,
            "only a Pentium",
        ),
        (
            "i386-2003:p6",
            &["-s", "0", "-f", "29", "-A", "-M"],
            2,
            "cannot be used with",
        ),
        (
            "i386-2003:p5",
            &["-s", "0", "-f", "10"],
            125,
            "no such event",
        ),
        ("i386-2003:p5", &["-s", "0", "-f", "16", "-e"], 2, "no edge"),
        ("amd64-2019:p5", &[], 2, "does not run on"),
        ("1996:p5", &[], 2, "the eras are"),
    ];
    for (machine, args, status, reason) in cases {
        let told = refusal(&[&["--simulate", machine], args].concat(), status);
        assert!(told.contains(reason), "{args:?}: {told}");
    }
    let told = refusal(&["--device", "/nonexistent/pctr"], 125);
    assert!(told.contains("there is no such node"), "{told}");
    let told = refusal(&["--device", "/dev/null"], 125);
    assert!(told.contains("does not speak the protocol"), "{told}");
    refusal(&["-f", "c0"], 2);
    refusal(&["-u"], 2);
}

#[test]
fn the_events_of_the_man_page_are_listed() {
    let text = stdout(&["-l", "--cpu", "intel-p6"]);
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
    assert!(stdout(&["-l", "--cpu", "intel-p5"]).lines().count() >= 38);
    let told = refusal(&["-l", "--cpu", "no-such-cpu"], 125);
    assert!(told.contains("no-such-cpu"), "{told}");
}
