//! `quipu stat` with simulated counters, in which every event occurs as often.

use tempfile::TempDir;

use super::all_printed;
#[cfg(target_os = "linux")]
use super::printed;

/// Returns what runs of quipu stat print, without what differs from run to run.
fn stat(runs: &[&[&str]]) -> String {
    let simulated: Vec<_> = runs.iter().map(|run| [&["stat"], *run].concat()).collect();
    let runs: Vec<_> = simulated.iter().map(Vec::as_slice).collect();
    all_printed(&TempDir::new().expect("a directory"), &runs)
}

/// Compares with a snapshot, without times and sizes.
macro_rules! assert_printed {
    ($text:expr) => {
        insta::with_settings!({filters => vec![
            (r" +[0-9]+\.[0-9]+( \+- [0-9.]+)? seconds (time elapsed|user|sys)( +\( \+- *[0-9.]+% \))?", " [time] seconds $2"),
            (r" +[0-9.]+ MiB peak memory", " [size] MiB peak memory"),
            (r" +[0-9.]+ GHz", " [rate] GHz"),
            (r#""event-runtime":[0-9]+"#, r#""event-runtime":"[time]""#),
            (r#""metric-value":0\.[0-9]+,"metric-unit":"GHz""#, r#""metric-value":"[rate]","metric-unit":"GHz""#),
            (r"(cycles|instructions),[0-9]+,", "$1,[time],"),
            (r",[0-9.]+,GHz", ",[rate],GHz"),
            (r"(enabled|running) [0-9]+ ns", "$1 [time] ns"),
        ]}, { insta::assert_snapshot!($text) });
    };
}

const SIMULATED: &str = "--simulate=amd64-2019:core";

#[test]
fn text() {
    let events = ["-e", "cycles,instructions"];
    let true_ = ["--", "true"];
    let of = |options: &[&'static str]| [&[SIMULATED], options, &events, &true_].concat();
    let runs = [&[][..], &["-v"], &["-r", "3"]].map(of);
    assert_printed!(stat(&runs.iter().map(Vec::as_slice).collect::<Vec<_>>()));
}

#[test]
fn for_programs() {
    let of = |options: &[&'static str]| {
        [
            &[SIMULATED],
            options,
            &["-e", "cycles,instructions", "--", "true"],
        ]
        .concat()
    };
    let runs = [&["-x", ","][..], &["--csv"], &["-j"], &["--json"]].map(of);
    assert_printed!(stat(&runs.iter().map(Vec::as_slice).collect::<Vec<_>>()));
}

/// Of this machine, without the numbers.
#[cfg(target_os = "linux")]
#[test]
fn counts_in_a_file() {
    let directory = TempDir::new().expect("a directory");
    let record = ["stat", "record", "-e", "page-faults:u", "--", "true"];
    let recorded = printed(&directory, &record);
    if recorded.contains("exit status 125") {
        eprintln!("SKIP counts_in_a_file: {}", recorded.trim());
        return;
    }
    let runs: [&[&str]; 4] = [
        &["stat", "report"],
        &["stat", "report", "-x", ","],
        &["stat", "report", "--json"],
        &["stat", "report", "-A"],
    ];
    let text = format!("{recorded}\n{}", all_printed(&directory, &runs));
    insta::with_settings!({filters => vec![
        (r"'/.*/quipu stat", "'[quipu] stat"),
        (r"\b[KMG]/sec", "[unit]/sec"),
        (r" +[0-9][0-9.,]* ", " [number] "),
        (r"\b[0-9][0-9.]+\b", "[number]"),
    ]}, { insta::assert_snapshot!(text) });
}

#[test]
fn refusals_of_files() {
    assert_printed!(stat(&[
        &["record", SIMULATED, "-e", "cycles", "--", "true"],
        &["report"],
        &["report", "-i", "."],
    ]));
}

#[test]
fn cpus_apart_with_what_is_not_counted() {
    let of = |options: &[&'static str]| {
        [
            &[SIMULATED, "-a"],
            options,
            &["-e", "page-faults,cycles", "--", "true"],
        ]
        .concat()
    };
    let runs = [
        &["-A"][..],
        &["-A", "-x", ","],
        &["-A", "-j"],
        &["-A", "-vv"],
    ]
    .map(of);
    assert_printed!(stat(&runs.iter().map(Vec::as_slice).collect::<Vec<_>>()));
}

#[test]
fn refusals() {
    assert_printed!(stat(&[
        &[SIMULATED, "-e", "cycles:foo", "--", "true"],
        &[SIMULATED, "-e", "nosuch", "--", "true"],
        &[SIMULATED, "-e", "cylces", "--", "true"],
        &[SIMULATED, "-e", "cycles", "--", "nosuchcommand"],
        &["--simulate", "amd64-2019:nosuch", "--", "true"],
        &["--per-thread", "--", "true"],
    ]));
}

#[cfg(target_os = "linux")]
#[test]
fn refusals_on_linux() {
    assert_printed!(stat(&[
        &["-p", "999999999"],
        &["-t", "999999999", "-e", "page-faults"],
        &["--backend", "lunix", "--", "true"],
        &["-C", "99999", "-e", "page-faults"],
        &["-e", "cycles:foo,page-faults", "--", "true"],
    ]));
}
