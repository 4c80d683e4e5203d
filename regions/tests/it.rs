//! Regions as a program uses them: threads, mistakes, reports at the end.

use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use quipu::Count;
use quipu_regions::{Region, RegionReport, Report, region};

const CHILD: &str = "QUIPU_TEST_CHILD";

/// Runs one of these tests in a process of its own, with these variables.
fn again(test: &str, variables: &[(&str, &Path)]) -> std::process::Output {
    let mut child = Command::new(std::env::current_exe().expect("a path"));
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    for (name, value) in variables {
        child.env(name, value);
    }
    child.output().expect("it starts")
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

fn find<'a>(regions: &'a [RegionReport], name: &str) -> &'a RegionReport {
    let mut found = regions.iter().filter(|region| region.name() == name);
    found.next().unwrap_or_else(|| panic!("no region {name}"))
}

fn faults(region: &RegionReport) -> u128 {
    let faults = region
        .events
        .iter()
        .find(|event| event.counted.event == "page-faults");
    let faults = faults.expect("it is counted unless others are chosen");
    match faults.counted.count {
        Some(Count::Exact(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// Touches fresh memory: more than the C library keeps of what was given back.
fn fill() {
    std::hint::black_box(vec![1u8; 1 << 26]);
}

#[test]
fn each_thread_counts_what_it_does() {
    let all = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let all = &all;
            scope.spawn(move || {
                all.wait();
                for _ in 0..=number {
                    let _region = region!("each thread");
                    fill();
                }
                fill();
            });
        }
    });
    let report = Report::now();
    let threads = report.threads.iter();
    let regions = threads.flat_map(|thread| &thread.regions);
    let mut own: Vec<_> = regions
        .filter(|region| region.name() == "each thread")
        .collect();
    own.sort_by_key(|region| region.calls);
    assert_eq!(
        own.iter().map(|region| region.calls).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    // As many as one of these has, in each call.
    let once = faults(own[0]);
    assert!(once > 0);
    for region in &own {
        let calls = u128::from(region.calls);
        assert!(
            faults(region).abs_diff(calls * once) <= calls * once / 50,
            "{own:?}"
        );
        assert_eq!(region.not_left, 0);
        assert!(region.shortest <= region.longest && region.longest <= Some(region.elapsed));
    }
    let totals = report.totals();
    let total = find(&totals, "each thread");
    assert_eq!((total.calls, total.threads), (10, 4));
    assert_eq!(faults(total), own.iter().map(|region| faults(region)).sum());
}

#[test]
fn what_is_left_wrongly_is_an_error_by_name() {
    let [outer, inner] = ["wrong outer", "wrong inner"].map(Region::named);
    thread::spawn(move || {
        outer.begin().expect("counters");
        inner.begin().expect("counters");
        let error = format!("{:#}", outer.end().expect_err("another one is inside"));
        assert!(
            error.contains("wrong outer") && error.contains("wrong inner"),
            "{error}"
        );
        let elsewhere = thread::spawn(move || inner.end()).join().expect("no panic");
        let error = format!("{:#}", elsewhere.expect_err("another thread's"));
        assert!(error.contains("leave the region wrong inner"), "{error}");
        inner.end().expect("the innermost");
        inner.end().expect_err("left twice");
    })
    .join()
    .expect("no panic");
    let report = Report::now();
    let totals = report.totals();
    let [outer, inner] = ["wrong outer", "wrong inner"].map(|name| find(&totals, name));
    assert_eq!((outer.calls, outer.not_left, outer.longest), (1, 1, None));
    assert_eq!((inner.calls, inner.not_left), (1, 0));
    assert_eq!(inner.path, ["wrong outer", "wrong inner"]);
    let text = report.to_string();
    assert!(
        text.contains("wrong outer was entered and not left, 1 times"),
        "{text}"
    );
    assert!(
        text.contains("cannot leave the region wrong inner"),
        "{text}"
    );
}

#[test]
fn nothing_is_lost_while_reports_are_made() {
    enter_while_reports_are_made(["many outer", "many inner"], 20_000);
}

#[test]
#[ignore = "it takes a minute; ci/long runs it"]
fn nothing_is_lost_in_ten_million_entries() {
    enter_while_reports_are_made(["ten million outer", "ten million inner"], 625_000);
}

/// Enters two regions so many times in each of eight threads.
fn enter_while_reports_are_made(names: [&str; 2], entries: u64) {
    const THREADS: u64 = 8;
    let [outer, inner] = names.map(Region::named);
    let running = AtomicU64::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..entries {
                    outer.begin().expect("counters");
                    inner.begin().expect("counters");
                    inner.end().expect("the innermost");
                    outer.end().expect("the innermost");
                }
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while running.load(Ordering::Relaxed) > 0 {
            let totals = Report::now().totals();
            let calls = |name| {
                totals
                    .iter()
                    .find(|region| region.name() == name)
                    .map(|region| region.calls)
            };
            assert!(calls(names[1]) <= calls(names[0]), "{totals:?}");
            thread::sleep(Duration::from_millis(1));
        }
    });
    let totals = Report::now().totals();
    for name in names {
        let region = find(&totals, name);
        assert_eq!(
            (region.calls, region.not_left),
            (THREADS * entries, 0),
            "{name}"
        );
        assert!(region.own_elapsed <= region.elapsed);
    }
}

#[test]
fn nothing_is_allocated_after_the_first_time() {
    let [outer, inner] = ["spare outer", "spare inner"].map(Region::named);
    let call = || {
        outer.begin().expect("counters");
        inner.begin().expect("counters");
        inner.end().expect("the innermost");
        outer.end().expect("the innermost");
    };
    call();
    let spent = allocation_counter::measure(|| (0..100).for_each(|_| call()));
    assert_eq!(spent.count_total, 0, "{spent:?}");
}

#[test]
fn the_user_is_given_a_report_at_the_end() {
    const TEST: &str = "the_user_is_given_a_report_at_the_end";
    if is_child() {
        let _region = region!("at the, end");
        {
            let _inner = region!("inner");
            fill();
        }
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let events = Path::new("page-faults,no-such-event");
    let report = |place: &Path| {
        let output = again(
            TEST,
            &[("QUIPU_REGIONS", place), ("QUIPU_REGION_EVENTS", events)],
        );
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let text = report(Path::new("-"));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|row| row.first() == Some(&name))
            .unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(row("inner")[1..3], ["1", "1"], "{text}");
    assert!(text.contains("no-such-event: "), "{text}");

    let json = directory.path().join("one.json");
    report(&json);
    let one = std::fs::read(&json).expect("written");
    let one: Report = serde_json::from_slice(&one).expect("a report");
    let totals = one.totals();
    assert_eq!(find(&totals, "inner").path, ["at the, end", "inner"]);
    assert!(faults(find(&totals, "inner")) <= faults(find(&totals, "at the, end")));
    let folded = quipu_regions::folded(&[one], "page-faults");
    assert!(
        folded
            .iter()
            .any(|line| line.starts_with("at the, end;inner ")),
        "{folded:?}"
    );

    let csv = directory.path().join("one.csv");
    report(&csv);
    let csv = std::fs::read_to_string(&csv).expect("written");
    assert!(
        csv.lines()
            .any(|line| line.contains(",\"at the, end/inner\",1,0,")),
        "{csv}"
    );
    assert!(
        csv.lines()
            .any(|line| line.ends_with("no-such-event,,,not counted")),
        "{csv}"
    );

    report(directory.path());
    let own = std::fs::read_dir(directory.path()).expect("a directory");
    let own = own
        .filter_map(Result::ok)
        .map(|file| file.file_name().into_string().expect("text"));
    let is_of_process = |name: &String| name.ends_with(".json") && name.contains('-');
    assert_eq!(own.filter(is_of_process).count(), 1);
}

#[test]
fn a_report_has_the_rank_that_a_launcher_gave() {
    const TEST: &str = "a_report_has_the_rank_that_a_launcher_gave";
    if is_child() {
        assert_eq!(Report::now().rank, Some(12));
        return;
    }
    for variable in ["PMIX_RANK", "SLURM_PROCID"] {
        let child = again(TEST, &[(variable, Path::new("12"))]);
        assert!(child.status.success(), "{variable}: {child:?}");
    }
}

#[test]
fn a_link_is_not_written_through() {
    const TEST: &str = "a_link_is_not_written_through";
    if is_child() {
        let _region = region!("linked");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let [target, link] = ["target", "link"].map(|name| directory.path().join(name));
    std::fs::write(&target, "as it was").expect("written");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let output = again(TEST, &[("QUIPU_REGIONS", &link)]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("quipu: cannot write the regions to"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string(&target).expect("still there"),
        "as it was"
    );
}

#[test]
fn events_are_chosen_before_the_first_region() {
    const TEST: &str = "events_are_chosen_before_the_first_region";
    if !is_child() {
        assert!(again(TEST, &[]).status.success());
        return;
    }
    quipu_regions::choose_events("no{").expect_err("malformed");
    quipu_regions::choose_events("{task-clock,page-faults}").expect("the first");
    let error = quipu_regions::choose_events("page-faults").expect_err("the second");
    assert!(format!("{error:#}").contains("chosen already"));
    drop(region!("chosen"));
    let totals = Report::now().totals();
    let events = find(&totals, "chosen").events.iter();
    let events: Vec<_> = events.map(|event| event.own.event.as_str()).collect();
    assert_eq!(events, ["task-clock", "page-faults"]);
}
