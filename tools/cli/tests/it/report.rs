//! `quipu report` of files that this test writes: on every system, from a file and from standard input.

use std::io::Cursor;

use assert_cmd::Command;
use quipu_perf_data::{EventAttr, Features, RecordedEvent, Writer, synthesized};

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME` and `_PERIOD`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 8;

/// `sample_id_all`, which C numbers from the other end on big-endian machines.
const FLAGS: u64 = if cfg!(target_endian = "big") {
    1 << 45
} else {
    1 << 18
};

fn attr() -> EventAttr {
    let mut attr = [0; 64];
    attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
    attr[40..48].copy_from_slice(&FLAGS.to_ne_bytes());
    attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_ne_bytes());
    EventAttr::from_bytes(&attr).expect("a good attr")
}

/// A sample of two events.
fn sample(time: u64) -> Vec<u8> {
    let mut record = 9u32.to_ne_bytes().to_vec();
    record.extend([2u16, 40].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend(0x1000u64.to_ne_bytes());
    record.extend([7u32, 7].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend([time, 2].iter().flat_map(|n| n.to_ne_bytes()));
    record
}

/// A thread's name and three samples.
fn records() -> Vec<Vec<u8>> {
    [
        vec![synthesized::comm(7, 7, b"worker", 16)],
        (1..4).map(sample).collect(),
    ]
    .concat()
}

fn file() -> Vec<u8> {
    let event = RecordedEvent::new(attr(), vec![], "cycles");
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    for record in records() {
        writer.write(&[&record]).expect("memory");
    }
    let file = writer.finish(&Features::default());
    file.expect("memory").into_inner()
}

/// A counter's records of being stopped at a time and going on at another.
fn throttled(from: u64, to: u64) -> Vec<u8> {
    let change = |kind: u32, time: u64| {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend([0u16, 8 + 24 + 16].iter().flat_map(|n| n.to_ne_bytes()));
        record.extend([time, 1, 1].iter().flat_map(|n| n.to_ne_bytes()));
        record.extend([7u32, 7].iter().flat_map(|n| n.to_ne_bytes()));
        record.extend(time.to_ne_bytes());
        record
    };
    [change(5, from), change(6, to)].concat()
}

/// Returns that file as `perf record -o -` writes it, where events have no names.
fn stream() -> Vec<u8> {
    let mut out = file()[..8].to_vec();
    out.extend(16u64.to_ne_bytes());
    out.extend(64u32.to_ne_bytes());
    out.extend([0u16, 8 + 64].iter().flat_map(|n| n.to_ne_bytes()));
    out.extend(attr().bytes());
    out.extend(records().concat());
    out
}

fn report(input: &str, stdin: &[u8]) -> String {
    let mut quipu = Command::cargo_bin("quipu").expect("built");
    let quipu = quipu
        .args(["report", "--json", "-i", input])
        .write_stdin(stdin);
    let output = quipu.output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_file_is_read_by_name_and_from_standard_input() {
    let dir = tempfile::tempdir().expect("writable");
    let path = dir.path().join("x.data");
    std::fs::write(&path, file()).expect("writable");
    let by_name = report(&path.to_string_lossy(), b"");
    assert!(by_name.contains("cycles"), "{by_name}");
    assert_eq!(report("-", &file()), by_name);
}

#[test]
fn columns_are_separated_by_what_stands_in_no_text() {
    let run = |arguments: &[&str]| {
        let mut quipu = Command::cargo_bin("quipu").expect("built");
        let quipu = quipu.args(["report", "-i", "-"]).args(arguments);
        quipu.write_stdin(file()).output().expect("it runs")
    };
    for (arguments, expected) in [
        (
            &["-t", "rk"][..],
            "# OverheadrkSamplesrkCommandrkShared ObjectrkSymbol\n100.00%rk3rkwo.errk[unknown]rk[.] 0x1000\n",
        ),
        (
            &["-t", ";", "--children", "--sort", "comm"],
            "# Children;Self;Samples;Command\n100.00%;100.00%;3;worker\n",
        ),
    ] {
        let text = String::from_utf8(run(arguments).stdout).expect("text");
        assert!(text.ends_with(expected), "{text}");
    }
    for wrong in ["", "."] {
        assert_eq!(run(&["-t", wrong]).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn throttling_is_told_with_the_time_that_it_took() {
    let dir = tempfile::tempdir().expect("writable");
    let path = dir.path().join("x.data");
    let event = RecordedEvent::new(attr(), vec![], "cycles");
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    // From 1 to 11, of which 3 and 1.
    for record in [sample(1), throttled(2, 5), throttled(9, 10), sample(11)] {
        writer.write(&[&record]).expect("memory");
    }
    let file = writer.finish(&Features::default()).expect("memory");
    std::fs::write(&path, file.into_inner()).expect("writable");
    let sentence = "throttled 2 times, about 40 % of the time not sampled\n";
    for (option, expected) in [
        ("-g", format!("# Event {sentence}")),
        ("--json", String::new()),
    ] {
        let mut quipu = Command::cargo_bin("quipu").expect("built");
        let quipu = quipu.args(["report", option, "-i"]).arg(&path);
        let output = quipu.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&expected), "{text}");
        let note = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            note.contains(&format!("quipu: cycles {sentence}")),
            option == "--json",
            "{note}"
        );
    }
}

#[test]
fn a_period_that_cannot_be_is_told_and_has_no_weight() {
    let dir = tempfile::tempdir().expect("writable");
    let path = dir.path().join("x.data");
    let with_period = |time, period: u64| {
        let mut record = sample(time);
        record[32..].copy_from_slice(&period.to_ne_bytes());
        record
    };
    // Cycles are at most 10 in a nanosecond, of the time since the clock began and 20 ms.
    let most = 10 * (1_000 + 20_000_000);
    for (periods, told, count) in [
        ([2, most, 5], None, most + 7),
        ([2, most + 1, 5], Some("the period of 1 sample is"), 7),
        (
            [1 << 47, 3, 7 << 47],
            Some("the periods of 2 samples are"),
            3,
        ),
    ] {
        let event = RecordedEvent::new(attr(), vec![], "cycles");
        let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
        for period in periods {
            writer
                .write(&[&with_period(1_000, period)])
                .expect("memory");
        }
        let file = writer.finish(&Features::default()).expect("memory");
        std::fs::write(&path, file.into_inner()).expect("writable");
        let sentence = told
            .map(|start| format!("{start} beyond what the counter can have counted: it jumped\n"));
        for option in ["-g", "--json"] {
            let mut quipu = Command::cargo_bin("quipu").expect("built");
            let output = quipu.args(["report", option, "-i"]).arg(&path).output();
            let output = output.expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let notes = String::from_utf8_lossy(&output.stderr).into_owned();
            if option == "-g" {
                let head = format!(
                    "# Samples: 3 of event 'cycles', 0 lost\n# Event count (approx.): {count}\n"
                );
                assert!(text.starts_with(&head), "{text}");
            }
            match (&sentence, option) {
                (None, _) => assert!(!(text + &notes).contains("jumped")),
                (Some(sentence), "-g") => {
                    assert!(
                        text.contains(&format!("# Not in the count: {sentence}")),
                        "{text}"
                    );
                }
                (Some(sentence), _) => {
                    assert!(
                        notes.contains(&format!("quipu: cycles: {sentence}")),
                        "{notes}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_stream_is_read_from_standard_input() {
    assert_eq!(report("-", &stream()), report("-", &file()));
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let mut quipu = Command::cargo_bin("quipu").expect("built");
    let output = quipu
        .args(["report", "-i", "-"])
        .write_stdin("text")
        .output();
    let error = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
    assert!(
        error.contains("cannot read standard input: it is no perf.data file"),
        "{error}"
    );
}
