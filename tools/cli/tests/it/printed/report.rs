//! `quipu report`.

use super::{all_printed, printed, recording};

/// Compares with a snapshot, without the time when the file was written.
macro_rules! assert_printed {
    ($text:expr) => {
        insta::with_settings!({filters => vec![(r"captured on    : .*", "captured on    : [time]")]}, {
            insta::assert_snapshot!($text)
        });
    };
}

#[test]
fn flat() {
    let runs: [&[&str]; 4] = [
        &["report"],
        &["report", "--header"],
        &["report", "--sort", "nothing"],
        &["report", "-F", "nothing"],
    ];
    assert_printed!(all_printed(&recording::directory(), &runs));
}

#[test]
fn callers() {
    let runs: [&[&str]; 5] = [
        &["report", "-g"],
        &["report", "-g", "caller"],
        &["report", "-g", "folded"],
        &["report", "--children"],
        &["report", "--children", "-g"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}

#[test]
fn keys_and_columns() {
    let runs: [&[&str]; 7] = [
        &["report", "--sort", "comm,tid,cpu"],
        &["report", "--sort", "dso"],
        &["report", "--sort", "srcline"],
        &[
            "report",
            "-F",
            "overhead_children,overhead,sample,period,sym",
        ],
        &["report", "-t", ";"],
        &["report", "-w", "8,8,6,10,12"],
        &["report", "--inline"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}

#[test]
fn selections() {
    let runs: [&[&str]; 8] = [
        &["report", "--symbol-filter", "ash"],
        &["report", "--symbol-filter", "histogram"],
        &["report", "-S", "histogram"],
        &["report", "--comms", "nosuch", "--json"],
        &["report", "--time", "1,2", "--flamegraph", "flames.svg"],
        &["report", "--comms", "worker", "--percentage", "relative"],
        &["report", "-U", "--percent-limit", "20"],
        &["report", "--time", "0.011,0.013"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}

#[test]
fn for_programs() {
    let runs: [&[&str]; 4] = [
        &["report", "--json"],
        &["report", "--csv"],
        &["report", "--json", "--children"],
        &["report", "--stats"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}

#[test]
fn flame_graph() {
    let directory = recording::directory();
    let shown = printed(&directory, &["report", "--flamegraph", "flames.svg"]);
    let graph = std::fs::read_to_string(directory.path().join("flames.svg")).expect("written");
    // The frames and the texts; the rest is the script and the layout of the library that draws it.
    let is_ours = |line: &&str| line.contains("<title>") || line.contains("<text id=");
    let ours: Vec<_> = graph.split_inclusive('>').collect();
    let text = ours.concat().replace("><", ">\n<");
    let lines: Vec<_> = text.lines().filter(is_ours).collect();
    insta::assert_snapshot!(format!("{shown}{}", lines.join("\n")));
}

#[test]
fn refusals() {
    let directory = recording::directory();
    std::fs::write(directory.path().join("text"), "text").expect("writable");
    let runs: [&[&str]; 4] = [
        &["report", "-i", "missing.data"],
        &["report", "-i", "text"],
        &["report", "-i", "."],
        &["report", "-b"],
    ];
    insta::assert_snapshot!(all_printed(&directory, &runs));
}
