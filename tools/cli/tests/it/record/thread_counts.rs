//! Counts of events in each thread: `record -s`, `report -T`, as perf has them.

use super::peer::{perf, recorded_by_perf};
use super::{Bench, skip, stderr, stdout};

/// Touches 1000, 2000 and 3000 fresh pages, each on a thread of its own.
const THREADS: &str = r"
#include <pthread.h>
#include <sys/mman.h>
static void *touch(void *times) {
    long pages = (long)times * 1000;
    volatile char *fresh = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < pages; i++) fresh[i * PAGE] = 1;
    return 0;
}
int main(void) {
    for (long i = 1; i <= 3; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, touch, (void *)i);
        pthread_join(thread, 0);
    }
    return 0;
}
";

/// Returns the rows of the table of threads: the cells of each event of a thread, in order of the events' names.
fn table(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let words = line.trim_start_matches('#').split_whitespace();
        words.map(str::to_owned).collect()
    };
    let mut lines = text
        .lines()
        .skip_while(|line| !(line.starts_with("# ") && line.contains(" PID ")));
    let titles = cells(lines.next().expect("a table"));
    let mut order: Vec<_> = (2..titles.len()).collect();
    order.sort_by_key(|column| &titles[*column]);
    let rows = lines.filter(|line| !line.trim().is_empty()).map(|line| {
        let row = cells(line);
        let ids = row[..2].iter().cloned();
        ids.chain(order.iter().map(|column| row[*column].clone()))
            .collect()
    });
    rows.collect()
}

const EVENTS: [&str; 5] = ["-s", "-e", "page-faults:u,context-switches", "-c", "1"];

#[test]
fn each_thread_has_its_count() {
    const TEST: &str = "each_thread_has_its_count";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = bench.compile("threads", THREADS) {
        return skip(TEST, reason);
    }
    let program = bench.path("threads").to_string_lossy().into_owned();
    let recorded = bench.record(&EVENTS, &program);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let report = bench.report(&["-T"]);
    assert!(report.status.success(), "{}", stderr(&report));
    let own = table(&stdout(&report));
    // The one whose counters are as they were opened is missing: the first thread, or another that it exchanged them with.
    let counts: Vec<u64> = own
        .iter()
        .map(|row| row[3].parse().expect("exact"))
        .collect();
    let known = [1000, 2000, 3000].into_iter().filter(|pages| {
        let of_thread = pages..&(pages + 500);
        counts.iter().any(|count| of_thread.contains(&count))
    });
    assert!(known.count() >= 2, "{own:?}");

    let without = bench.report(&[]);
    let note = format!("the counts of {} threads too; -T shows them", own.len());
    assert!(stderr(&without).contains(&note), "{}", stderr(&without));
    let rows = bench.rows(&["-T"]);
    let of_threads = rows.iter().filter(|row| row["count"].is_u64());
    assert_eq!(of_threads.count(), 2 * own.len());

    let Some(perf_report) = perf(&bench, &["report", "-T", "--stdio"]) else {
        return skip(TEST, "perf does not start here");
    };
    assert_eq!(table(&stdout(&perf_report)), own);
}

#[test]
fn counts_of_threads_in_a_file_of_perf_are_not_lost() {
    const TEST: &str = "counts_of_threads_in_a_file_of_perf_are_not_lost";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = bench.compile("threads", THREADS) {
        return skip(TEST, reason);
    }
    if let Err(reason) = recorded_by_perf(&bench, "./threads", &EVENTS) {
        return skip(TEST, reason);
    }
    let theirs = perf(&bench, &["report", "-T", "--stdio", "-i", "p.data"]);
    let theirs = table(&stdout(&theirs.expect("it recorded")));
    assert!(theirs.len() >= 2, "{theirs:?}");
    let own = bench.report(&["-T", "-i", "p.data"]);
    assert_eq!(table(&stdout(&own)), theirs, "{}", stderr(&own));
}

#[test]
fn counts_of_threads_take_events_that_are_inherited() {
    let Some(bench) = Bench::new("counts_of_threads_take_events_that_are_inherited") else {
        return;
    };
    for other in ["-i", "--per-thread", "-a"] {
        let refused = bench.record(&["-s", other, "-e", "page-faults:u"], "true");
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--stat"), "{}", stderr(&refused));
    }
    let recorded = bench.record(&["-e", "page-faults:u"], "true");
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let none = bench.report(&["-T"]);
    assert!(
        stderr(&none).contains("there are no counts of threads"),
        "{}",
        stderr(&none)
    );
}
