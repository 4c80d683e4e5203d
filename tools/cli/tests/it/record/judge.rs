//! Files of perf(1), of which `quipu report` says what `perf report` says: counts, shares, losses.

use std::collections::BTreeMap;

use std::process::Output;

use super::peer::{perf, recorded_by_perf};
use super::{Bench, skip, stderr, stdout};

/// Runs three functions for times like 1 : 2 : 3, touching a page that was never touched in each turn.
pub(super) const BUSY: &str = r"
static volatile char pages[2000L * PAGE] __attribute__((aligned(PAGE)));
static void turn(long n) { for (volatile long i = 0; i < n; i++); }
void one(void) { turn(1000); }
void two(void) { turn(2000); }
void three(void) { turn(3000); }
int main(void) {
    for (int i = 0; i < 2000; i++) { pages[i * (long)PAGE] = 1; one(); two(); three(); }
    return 0;
}
";

/// Touches fresh pages, as many times as rings of a page cannot take.
const FAULTS: &str = r"
#include <sys/mman.h>
int main(void) {
    for (int i = 0; i < 60; i++) {
        volatile char *pages = mmap(0, 1000L * PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int j = 0; j < 1000; j++) pages[j * (long)PAGE] = 1;
        munmap((void *)pages, 1000L * PAGE);
    }
    return 0;
}
";

/// The functions of the programs; those of a library may have several names.
const FUNCTIONS: [&str; 5] = ["main", "turn", "one", "two", "three"];

/// Content of a report.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    /// The counts of the events that have samples, in their order; perf says nothing of the others.
    pub(super) counts: Vec<u64>,
    pub(super) lost: u64,
    /// Percent of the first of them by function, as they are printed.
    pub(super) shares: BTreeMap<String, String>,
}

impl Told {
    /// Returns the first count; 0 if there are no samples.
    pub(super) fn first(&self) -> u64 {
        self.counts.first().copied().unwrap_or_default()
    }

    /// Takes apart the text of a report, whose lines end with a function. `lost` finds the number of losses in a
    /// line that tells them.
    fn parse(text: &str, lost: fn(&str) -> Option<u64>) -> Self {
        let mut told = Self {
            counts: Vec::new(),
            lost: text.lines().filter_map(lost).sum(),
            shares: BTreeMap::new(),
        };
        for line in text.lines() {
            if let Some(count) = line.strip_prefix("# Event count (approx.): ") {
                let count: u64 = count.parse().expect("a number");
                told.counts.extend(Some(count).filter(|count| *count > 0));
            }
            let share = line.trim_start().split_once('%');
            let function = line.split_whitespace().last().unwrap_or_default();
            if let (Some((share, _)), [_]) = (share, told.counts.as_slice())
                && FUNCTIONS.contains(&function)
            {
                let before = told.shares.insert(function.to_owned(), share.to_owned());
                assert_eq!(before, None, "{line}");
            }
        }
        told
    }
}

/// Reads what perf says of a file.
pub(super) fn told_by_perf(bench: &Bench, file: &str) -> Told {
    Told::parse(&stdout(&report_of_perf(bench, file)), |line| {
        let lost = line.strip_prefix("# Total Lost Samples: ")?;
        lost.parse().ok()
    })
}

/// Has perf report a file.
pub(super) fn report_of_perf(bench: &Bench, file: &str) -> Output {
    let arguments = [
        "report",
        "--stdio",
        "--no-group",
        "--no-children",
        "-g",
        "none",
        "-i",
        file,
    ];
    let sort = ["--sort", "sym", "--percent-limit", "0.1"];
    perf(bench, &[&arguments[..], &sort].concat()).expect("it recorded")
}

/// Reads what quipu says of a file.
pub(super) fn told_by_quipu(bench: &Bench, file: &str) -> Told {
    let output = bench.report(&["-i", file, "--percent-limit", "0.1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    Told::parse(&stdout(&output), |line| {
        let line = line.strip_prefix("# Samples: ")?.strip_suffix(" lost")?;
        line.rsplit(' ').next()?.parse().ok()
    })
}

/// Compiles the program and has perf record it; the reason why not.
fn recorded(bench: &Bench, source: &str, options: &[&str]) -> Result<(), String> {
    bench.compile("judged", source)?;
    let program = bench.path("judged");
    let program = program.to_string_lossy();
    recorded_by_perf(bench, &program, options)
}

/// Compares both reports of a recording with these options, and returns what they say.
fn agreed(test: &str, source: &str, options: &[&str]) -> Option<(Bench, Told)> {
    let bench = Bench::new(test)?;
    if let Err(reason) = recorded(&bench, source, options) {
        skip(test, reason);
        return None;
    }
    let (ours, theirs) = (
        told_by_quipu(&bench, "p.data"),
        told_by_perf(&bench, "p.data"),
    );
    if theirs.shares.is_empty() && ours.counts.is_empty() {
        skip(
            test,
            "perf took no sample: the kernel interrupts rarely now",
        );
        return None;
    }
    assert_eq!(ours, theirs, "{options:?}");
    assert!(!ours.shares.is_empty());
    Some((bench, ours))
}

#[test]
fn a_fixed_period_that_samples_do_not_say_is_that_of_the_event() {
    const TEST: &str = "a_fixed_period_that_samples_do_not_say_is_that_of_the_event";
    let Some((bench, told)) = agreed(TEST, BUSY, &["-e", "cpu-clock:u", "-c", "200000"]) else {
        return;
    };
    let rows = bench.rows(&["-i", "p.data"]);
    let samples: u64 = rows.iter().filter_map(|row| row["samples"].as_u64()).sum();
    assert_eq!(told.counts, [200_000 * samples]);
}

#[test]
fn the_shares_at_a_frequency_are_those_that_perf_says() {
    const TEST: &str = "the_shares_at_a_frequency_are_those_that_perf_says";
    for options in [
        &["-e", "cpu-clock:u", "-F", "500"][..],
        &["-e", "cpu-clock:u", "-F", "500", "-g"],
        &["-e", "cpu-clock:u,page-faults:u", "-F", "500", "-d"],
    ] {
        agreed(TEST, BUSY, options);
    }
}

#[test]
fn losses_that_two_records_tell_are_counted_once() {
    const TEST: &str = "losses_that_two_records_tell_are_counted_once";
    for options in [
        &["-e", "page-faults:u", "-c", "1", "-m", "1"][..],
        &["-e", "page-faults:u,minor-faults:u", "-c", "1", "-m", "1"],
    ] {
        let Some((_, told)) = agreed(TEST, FAULTS, options) else {
            return;
        };
        if told.lost == 0 {
            return skip(TEST, "perf lost nothing");
        }
    }
}

#[test]
fn samples_whose_chain_is_empty_keep_their_instruction() {
    const TEST: &str = "samples_whose_chain_is_empty_keep_their_instruction";
    let options = [
        "-e",
        "cpu-clock:u",
        "-F",
        "500",
        "--call-graph",
        "dwarf,1024",
    ];
    let Some((bench, _)) = agreed(TEST, BUSY, &options) else {
        return;
    };
    let rows = bench.rows(&["-i", "p.data"]);
    let sum: f64 = rows.iter().filter_map(|row| row["overhead"].as_f64()).sum();
    assert!((99.9..100.1).contains(&sum), "{sum}: {rows:?}");
}

#[test]
fn members_of_a_group_are_counted_by_what_their_leader_read() {
    const TEST: &str = "members_of_a_group_are_counted_by_what_their_leader_read";
    let options = ["-e", "{cpu-clock:u,page-faults:u}:S", "-c", "200000"];
    let Some((bench, told)) = agreed(TEST, BUSY, &options) else {
        return;
    };
    // Up to the last sample.
    let [_, faults] = told.counts[..] else {
        panic!("{told:?}");
    };
    assert!((1..=2200).contains(&faults), "{faults}");
    let rows = bench.rows(&["-i", "p.data", "-e", "page-faults:u"]);
    assert!(rows.iter().any(|row| row["symbol"] == "turn"), "{rows:?}");
}

#[test]
fn throttling_is_told_as_often_as_it_is_recorded() {
    const TEST: &str = "throttling_is_told_as_often_as_it_is_recorded";
    let Some((bench, _)) = agreed(TEST, BUSY, &["-e", "cpu-clock:u", "-c", "10000"]) else {
        return;
    };
    let stats = perf(&bench, &["report", "--stats", "-i", "p.data"]).expect("it recorded");
    let stats = stdout(&stats);
    let line = stats
        .lines()
        .find(|line| line.trim_start().starts_with("THROTTLE"));
    let times = line.and_then(|line| line.split_whitespace().nth(2));
    let text = stdout(&bench.report(&["-i", "p.data"]));
    match times {
        None => {
            assert!(!text.contains("throttled"), "{text}");
            skip(TEST, "the kernel throttled nothing");
        }
        Some(times) => assert!(
            text.contains(&format!("# Event throttled {times} times, ")),
            "{text}"
        ),
    }
}

#[test]
fn of_a_file_that_was_cut_or_not_finished_the_rest_is_reported() {
    const TEST: &str = "of_a_file_that_was_cut_or_not_finished_the_rest_is_reported";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = recorded(&bench, BUSY, &["-e", "page-faults:u", "-c", "1"]) {
        return skip(TEST, reason);
    }
    let whole = std::fs::read(bench.path("p.data")).expect("a recording");
    let all = told_by_quipu(&bench, "p.data").first();
    let data = u64::from_ne_bytes(*whole[40..].first_chunk().expect("a header"));
    let len = u64::from_ne_bytes(*whole[48..].first_chunk().expect("a header"));
    let end = usize::try_from(data + len).expect("it is small");
    let mut unfinished = whole[..end].to_vec();
    unfinished[48..56].fill(0);
    for (content, reason, least) in [
        (&whole[..end / 2], "its data should end at byte", 1),
        (&whole[..end + 100], "is truncated", all),
        (&unfinished, "it was not finished", all),
    ] {
        std::fs::write(bench.path("cut.data"), content).expect("written");
        let output = bench.report(&["-i", "cut.data"]);
        let text = stderr(&output);
        assert!(
            text.contains("the file is not whole") && text.contains(reason),
            "{text}"
        );
        let told = told_by_quipu(&bench, "cut.data").first();
        assert!((least..=all).contains(&told), "{told} of {all}: {text}");
    }
}

/// Perf writes names of events last. Those of tracepoints cannot be told from their numbers, which are called that.
#[test]
fn tracepoints_of_a_file_that_was_not_finished_are_numbers_of_tracepoints() {
    const TEST: &str = "tracepoints_of_a_file_that_was_not_finished_are_numbers_of_tracepoints";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = ["-e", "sched:sched_process_exit,page-faults:u", "-c", "1"];
    if let Err(reason) = recorded(&bench, BUSY, &options) {
        return skip(TEST, reason);
    }
    let mut file = std::fs::read(bench.path("p.data")).expect("a recording");
    let word = |at: usize| u64::from_ne_bytes(*file[at..].first_chunk().expect("a header"));
    // What perf_event_attr(2) calls `config` is 8 bytes into the first attribute.
    let (attrs, end) = (word(24), word(40) + word(48));
    let id = word(usize::try_from(attrs + 8).expect("it is small"));
    file.truncate(usize::try_from(end).expect("it is small"));
    file[48..56].fill(0);
    std::fs::write(bench.path("cut.data"), file).expect("written");
    let text = stdout(&bench.report(&["-i", "cut.data"]));
    assert!(text.contains(&format!("'tracepoint {id}'")), "{text}");
    assert!(text.contains("'page-faults:u'"), "{text}");
}

/// Reads the shares and keys of a report's lines.
fn rows_of(text: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains('%'));
    let mut rows: Vec<Vec<String>> = lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect();
    rows.sort();
    rows
}

#[test]
fn keys_are_those_of_perf() {
    const TEST: &str = "keys_are_those_of_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = ["-e", "page-faults:u", "-c", "1", "--sample-cpu"];
    if let Err(reason) = recorded(&bench, BUSY, &options) {
        return skip(TEST, reason);
    }
    // By symbol alone perf keeps those of the same name in several files apart.
    for keys in ["dso", "comm", "pid", "cpu", "comm,dso,sym"] {
        let sort = ["--stdio", "--no-children", "--sort", keys, "-i", "p.data"];
        let theirs = perf(&bench, &[&["report"], &sort[..]].concat()).expect("it recorded");
        let ours = bench.report(&sort);
        assert!(ours.status.success(), "{keys}: {}", stderr(&ours));
        let mut ours = rows_of(&stdout(&ours));
        // The number of samples is a column of its own, after the share.
        ours.iter_mut().for_each(|row| drop(row.remove(1)));
        let mut theirs = rows_of(&stdout(&theirs));
        // perf does not find the names of all stubs.
        let is_stub = |row: &Vec<String>| row.iter().any(|cell| cell.contains("@plt"));
        theirs.retain(|row| !is_stub(row));
        ours.retain(|row| !is_stub(row) && !row.contains(&"[unknown]".to_owned()));
        assert_eq!(ours, theirs, "{keys}");
        assert!(!ours.is_empty(), "{keys}");
    }
    let wrong = bench.report(&["--sort", "nosuch", "-i", "p.data"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("there is no such key"));
}

#[test]
fn trees_begin_at_either_end_and_small_rows_are_left_out_in_one_line() {
    const TEST: &str = "trees_begin_at_either_end_and_small_rows_are_left_out_in_one_line";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(&["-e", "page-faults:u", "-c", "1", "-g"], &bench.program());
    let tree = |how: &str| -> Vec<String> {
        let text = stdout(&bench.report(&["-g", how, "--symbol-filter", "hot"]));
        let lines = text
            .lines()
            .skip_while(|line| !line.ends_with("hot"))
            .skip(1);
        let names = lines.map(|line| line.split_whitespace().last().unwrap_or_default());
        let names = names.filter(|name| ["main", "work"].contains(name));
        names.map(str::to_owned).collect()
    };
    assert_eq!(tree("callee"), ["work", "main"]);
    assert_eq!(tree("graph,0.5,caller"), ["main", "work"]);
    assert_eq!(tree("none"), [""; 0]);
    let text = stdout(&bench.report(&["--sort", "sym", "--percent-limit", "50"]));
    assert!(text.contains("hot") && !text.contains("warm"), "{text}");
    assert!(text.contains("below 50 %"), "{text}");
    let all = stdout(&bench.report(&["--sort", "sym"]));
    assert!(all.contains("warm") && !all.contains("Left out"), "{all}");
}
