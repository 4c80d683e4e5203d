//! Branch stacks, of a recording that is given some: samples have those branches where there is no CPU that records them.

use std::fs::File;
use std::process::Output;

use quipu_perf_data::{EventAttr, Reader, RecordedEvent, Writer};

use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

/// `PERF_SAMPLE_BRANCH_STACK`.
const BRANCH_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_USER`, `_ANY` and `_TYPE_SAVE`.
const BRANCHES: u64 = 1 | 1 << 3 | 1 << 16;

/// Records page faults and writes them with branch stacks into `b.data`: each sample has branches between the instructions of
/// the samples before it, one of which goes nowhere, with flags of every kind.
fn recorded(bench: &Bench) {
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
                let flags = flags + ((count / 16 % 8) << 26);
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

#[test]
fn branches_are_printed_as_by_perf() {
    const TEST: &str = "branches_are_printed_as_by_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if cfg!(target_endian = "big") {
        return skip(
            TEST,
            "the flags are written in the order of little-endian machines",
        );
    }
    recorded(&bench);
    for fields in [
        "brstack",
        "comm,tid,time,brstack",
        "ip,brstacksym",
        "ip,sym,dso,brstack",
        "ip,sym,dso,brstacksym",
    ] {
        let arguments = ["script", "-i", "b.data", "-F", fields];
        let Some(theirs) = perf(&bench, &arguments) else {
            return skip(TEST, "perf is not installed");
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
