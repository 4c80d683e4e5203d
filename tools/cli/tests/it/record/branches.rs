//! Branch stacks, of a recording that is given some: samples have those branches where there is no CPU that records them.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Output;

use quipu_perf_data::{EventAttr, Reader, RecordedEvent, Writer};
use serde_json::Value;

use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

/// `PERF_SAMPLE_BRANCH_STACK`.
const BRANCH_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_USER`, `_ANY` and `_TYPE_SAVE`.
const BRANCHES: u64 = 1 | 1 << 3 | 1 << 16;

/// Records page faults and writes them with branch stacks into `b.data`: each sample has branches between the instructions of
/// the samples before it, one of which goes nowhere, with flags of every kind, or that were predicted or not.
pub(super) fn recorded(bench: &Bench, is_predicted_or_not: bool) {
    bench.record(&["-e", "page-faults:u", "-c", "1"], &bench.program());
    let file = File::open(bench.path("perf.data")).expect("a recording");
    let mut reader = Reader::new(file).expect("a recording");
    let features = reader.features().clone();
    let with_branches = |event: &RecordedEvent| {
        let mut attr = event.attr().bytes().to_vec();
        let sample_type = event.attr().sample_type() | BRANCH_STACK;
        attr.resize(attr.len().max(80), 0);
        let len = u32::try_from(attr.len()).expect("short");
        attr[4..8].copy_from_slice(&len.to_ne_bytes());
        attr[24..32].copy_from_slice(&sample_type.to_ne_bytes());
        attr[72..80].copy_from_slice(&BRANCHES.to_ne_bytes());
        let attr = EventAttr::from_bytes(&attr).expect("good");
        RecordedEvent::new(attr, event.ids().to_vec(), event.name().unwrap_or("faults"))
    };
    let layout = reader.events()[0].attr().layout();
    let events = reader.events().iter().map(with_branches).collect();
    let out = File::create(bench.path("b.data")).expect("writable");
    let mut writer = Writer::new(out, events).expect("writable");
    let (mut before, mut count) = ([0x10u64; 2], 0u64);
    let mut records = reader.records().expect("records");
    while let Some(record) = records.next_record().expect("whole") {
        let mut bytes = record.bytes().to_vec();
        if let Some(sample) = record.decode_sample(&layout).expect("good") {
            let ip = sample.ip().expect("an instruction");
            let branches = [[before[0], ip, 0], [before[1], before[0], 0]];
            bytes.extend_from_slice(&2u64.to_ne_bytes());
            for [from, to, _] in branches {
                count += 1;
                // Predicted or not, in a transaction, aborted; cycles; type; speculation.
                let flags = count % 16
                    + ((count * 37 % 1000) << 4)
                    + ((count % 16) << 20)
                    + ((count % 4) << 24);
                let flags = match is_predicted_or_not {
                    true => 1 << (count % 2),
                    false => flags + ((count / 16 % 8) << 26),
                };
                for word in [from, to, flags] {
                    bytes.extend_from_slice(&word.to_ne_bytes());
                }
            }
            let len = u16::try_from(bytes.len()).expect("short");
            bytes[6..8].copy_from_slice(&len.to_ne_bytes());
            before = [ip, before[0]];
        }
        writer.write(&[&bytes]).expect("written");
    }
    writer.finish(&features).expect("written");
}

fn script(bench: &Bench, arguments: &[&str]) -> Output {
    let mut quipu = quipu();
    let quipu = quipu.current_dir(bench.directory.path());
    quipu
        .arg("script")
        .args(arguments)
        .output()
        .expect("it runs")
}

/// Leaves out the last field of branches, which perf has from Linux 6.2 on.
fn without_speculation(text: &str) -> String {
    let names = [
        "NON_SPEC_CORRECT_PATH",
        "SPEC_CORRECT_PATH",
        "SPEC_WRONG_PATH",
        "-",
    ];
    let mut text = text.to_owned();
    for name in names {
        text = text.replace(&format!("/{name} "), " ");
    }
    text
}

/// Returns a place for recordings, where their crafted flags are in the order of this machine.
fn bench(test: &str) -> Option<Bench> {
    if cfg!(target_endian = "big") {
        skip(
            test,
            "the flags are written in the order of little-endian machines",
        );
        return None;
    }
    Bench::new(test)
}

#[test]
fn branches_are_printed_as_by_perf() {
    const TEST: &str = "branches_are_printed_as_by_perf";
    let Some(bench) = bench(TEST) else {
        return;
    };
    recorded(&bench, false);
    for fields in [
        "brstack",
        "comm,tid,time,brstack",
        "ip,brstacksym",
        "ip,sym,dso,brstack",
        "ip,sym,dso,brstacksym",
    ] {
        let arguments = ["script", "-i", "b.data", "-F", fields];
        let Some(theirs) = perf(&bench, &arguments) else {
            return skip(TEST, "perf does not start here");
        };
        let ours = script(&bench, &arguments[1..]);
        assert_eq!(stderr(&ours), "", "{fields}");
        let [ours, theirs] = [ours, theirs].map(|output| without_speculation(&stdout(&output)));
        // Stubs for linking have names from perf alone.
        let both = ours
            .lines()
            .zip(theirs.lines())
            .filter(|(_, line)| !line.contains("@plt"));
        let mut seen = 0;
        for (ours, theirs) in both {
            assert_eq!(ours, theirs, "{fields}");
            seen += usize::from(theirs.contains("/P/") || theirs.contains("/M/"));
        }
        assert_eq!(ours.lines().count(), theirs.lines().count(), "{fields}");
        assert!(seen > 100, "{fields}: {seen}");
    }
    bench.record(&["-e", "page-faults:u", "-c", "1"], &bench.program());
    let without = script(&bench, &["-F", "brstack"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(
        stderr(&without).contains("record -b records it"),
        "{}",
        stderr(&without)
    );
}

/// Returns how many branches rows have, by the texts of their keys; rows with a function that perf gives no name, or only perf
/// gives one, are left out.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let rows = text.lines().filter(|line| {
        let is_row = !line.starts_with('#') && line.contains(';');
        let nameless = ["0x0000", "@plt", "[unknown]"];
        is_row && !nameless.iter().any(|part| line.contains(part))
    });
    for row in rows {
        let mut fields = row.split(';').map(str::trim);
        let (_share, count) = (fields.next(), fields.next());
        let count: u64 = count.expect(row).parse().expect(row);
        *counts
            .entry(fields.collect::<Vec<_>>().join(";"))
            .or_default() += count;
    }
    counts
}

/// Leaves out the column of instructions by cycle, which perf adds to symbols and fills on its screen only.
fn without_ipc(text: &str) -> String {
    let has = text.contains(";IPC ");
    let cut = |line: &str| match line.rsplit_once(';') {
        Some((line, _)) if has => format!("{line}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(cut).collect()
}

/// Returns the rows with shares, in an order of their own: perf has that of equal rows from where they are in memory.
fn rows(text: &str) -> Vec<String> {
    let rows = text
        .lines()
        .filter(|row| !row.starts_with('#') && row.contains("%"));
    let fields = |row: &str| row.split(';').map(str::trim).collect::<Vec<_>>().join(";");
    let mut rows: Vec<_> = rows.map(fields).filter(|row| row.contains(';')).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn branches_are_reported_as_by_perf() {
    const TEST: &str = "branches_are_reported_as_by_perf";
    let Some(bench) = bench(TEST) else {
        return;
    };
    recorded(&bench, true);
    let usual = ["report", "-b", "-i", "b.data", "-n", "-t", ";"];
    let of_perf = |keys: &[&str]| perf(&bench, &[&usual[..], &["--stdio"], keys].concat());
    for keys in [
        &[][..],
        &["-s", "dso_from,dso_to"],
        &["-s", "comm,dso_to"],
        &["-s", "symbol_from,symbol_to"],
        &["-s", "symbol_from,symbol_to,mispredict"],
        &["-s", "mispredict,symbol_to"],
        &["-s", "dso,sym"],
        &["-s", "dso_from,dso_to", "--dsos", "program,libc.so.6"],
        &[
            "-s",
            "dso_to,sym",
            "-S",
            "hot,warm",
            "--percentage",
            "relative",
        ],
        &["-s", "dso_to,sym", "-S", "hot,warm"],
        &["-s", "symbol_from,symbol_to", "--comms", "nobody,program"],
    ] {
        let Some(theirs) = of_perf(keys) else {
            return skip(TEST, "perf does not start here");
        };
        let ours = bench.report(&[&usual[1..], keys].concat());
        assert_eq!(stderr(&ours), "", "{keys:?}");
        let (ours, theirs) = (stdout(&ours), without_ipc(&stdout(&theirs)));
        let titles = |text: &str| {
            let line = text
                .lines()
                .find(|line| line.contains("Overhead"))
                .expect(text);
            line.split(';')
                .map(|title| title.trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(titles(&ours), titles(&theirs), "{keys:?}");
        assert_eq!(counts(&ours), counts(&theirs), "{keys:?}");
        assert!(!counts(&ours).is_empty(), "{theirs}");
        // Functions without names are one row here, and a row each with perf.
        if keys.concat().contains("dso_to") {
            assert_eq!(rows(&ours), rows(&theirs), "{keys:?}");
        }
    }
    let both = counts(&stdout(
        &bench.report(&[&usual[1..], &["-s", "mispredict"]].concat()),
    ));
    let (predicted, not) = (both["N"], both["Y"]);
    assert!(predicted > 100 && predicted.abs_diff(not) <= 1, "{both:?}");

    // A key of branches says that branches are reported.
    let keys = "symbol_to,dso_from,mispredict,cycles";
    let json = bench.rows(&["-i", "b.data", "-s", keys]);
    let hot = json
        .iter()
        .find(|row| row["to-symbol"] == "hot")
        .expect("hot");
    assert!(
        hot["mispredicted"].is_boolean() && hot["cycles"] == 0,
        "{hot}"
    );
    assert_eq!(hot["from-object"], bench.program());

    let without = bench.report(&["-b", "-i", "perf.data"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(stderr(&without).contains("record -b records them"));
}

#[test]
fn branches_are_told_to_programs() {
    const TEST: &str = "branches_are_told_to_programs";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    recorded(&bench, true);
    let output = script(&bench, &["-j", "-i", "b.data"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let samples = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect(line);
        row
    });
    let (mut before, mut seen) = (Value::Null, 0);
    for sample in samples {
        let branches = sample["branches"].as_array().expect("branches");
        assert_eq!(branches.len(), 2, "{sample}");
        let [newest, older] = [&branches[0], &branches[1]];
        assert_eq!(newest["to"]["ip"], sample["frames"][0]["ip"], "{sample}");
        assert_eq!(newest["from"], older["to"], "{sample}");
        assert_ne!(newest["mispredicted"], older["mispredicted"], "{sample}");
        assert_eq!(newest["in-transaction"], false, "{sample}");
        if !before.is_null() {
            assert_eq!(newest["from"], before, "{sample}");
        }
        before = newest["to"].clone();
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}
