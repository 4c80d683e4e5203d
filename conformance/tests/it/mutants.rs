//! Mutation tests of the suite: backends that are broken on purpose, and the checks that catch them.

mod control;
mod opening;
mod readers;
mod readings;
pub(crate) mod registers;
mod tamper;
mod user_reads;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use quipu_conformance::fixtures::SimFixture;
use quipu_conformance::{Check, Fixture, Verdict, all, run};

use self::tamper::Mutant;

/// Checks in which threads race, so that whether they catch a mutant depends on who comes first;
/// with each, a mutant that it must catch sooner or later.
const RACES: [(&str, &str); 4] = [
    ("concurrency.open-and-close", "one-more"),
    ("concurrency.readers-see-sense", "backwards"),
    ("concurrency.snapshot-holds", "torn-snapshot"),
    ("concurrency.exact-in-a-storm", "one-more"),
];

fn mutants() -> Vec<Mutant> {
    let mut mutants = readings::mutants();
    mutants.extend(control::mutants());
    mutants.extend(opening::mutants());
    mutants.extend(registers::mutants());
    mutants.extend(user_reads::mutants());
    mutants.extend(readers::mutants());
    mutants
}

fn races(check: &Check) -> bool {
    RACES.iter().any(|(id, _)| *id == check.id)
}

/// The checks that catch a mutant.
fn catchers(mutant: &Mutant) -> BTreeSet<&'static str> {
    let report = run(&mutant.fixture(), all().filter(|check| !races(check)));
    report.failed().map(|(check, _)| check.id).collect()
}

/// Which mutant is caught by which checks, in the order of the mutants; tried by all CPUs.
fn matrix(mutants: &[Mutant]) -> Vec<BTreeSet<&'static str>> {
    let caught = Mutex::new(vec![BTreeSet::new(); mutants.len()]);
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((i, mutant)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    mutants.get(i).map(|mutant| (i, mutant))
                } {
                    let by = catchers(mutant);
                    caught.lock().expect("no thread panics with it")[i] = by;
                }
            });
        }
    });
    caught.into_inner().expect("no thread panicked")
}

/// The matrix as it is kept: for each mutant the checks that catch it, and the checks that catch
/// none.
fn print(mutants: &[Mutant], matrix: &[BTreeSet<&'static str>]) -> String {
    let mut text = String::new();
    for (mutant, caught) in mutants.iter().zip(matrix) {
        writeln!(text, "{}: {}", mutant.name, mutant.defect).expect("text takes anything");
        for check in caught {
            writeln!(text, "    {check}").expect("text takes anything");
        }
    }
    let caught: BTreeSet<_> = matrix.iter().flatten().copied().collect();
    let fixture: Arc<dyn Fixture> = Arc::new(SimFixture::new());
    let idle = run(
        &fixture,
        all().filter(|c| !races(c) && !caught.contains(c.id)),
    );
    for (title, passes) in [
        ("catches none", true),
        ("cannot be run over the simulated PMU", false),
    ] {
        writeln!(text, "\n{title}:").expect("text takes anything");
        for finding in idle
            .findings
            .iter()
            .filter(|f| (f.verdict == Verdict::Pass) == passes)
        {
            writeln!(text, "    {}", finding.check.id).expect("text takes anything");
        }
    }
    text
}

#[test]
fn every_mutant_is_caught_by_the_checks_that_caught_it_before() {
    let mutants = mutants();
    assert!(mutants.len() >= 25, "only {} mutants", mutants.len());
    let matrix = matrix(&mutants);
    let text = print(&mutants, &matrix);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mutants/matrix.txt");
    if std::env::var_os("QUIPU_WRITE_MATRIX").is_some() {
        std::fs::write(&path, &text).expect("the matrix can be written");
    }
    for (mutant, caught) in mutants.iter().zip(&matrix) {
        assert!(
            !caught.is_empty(),
            "{} lives: {}",
            mutant.name,
            mutant.defect
        );
    }
    let kept = std::fs::read_to_string(&path).expect("the matrix is there");
    let moved = text
        .lines()
        .zip(kept.lines())
        .find(|(now, then)| now != then);
    assert!(
        text == kept,
        "the matrix has changed, at {moved:?}; if that is meant, run the test once with \
         QUIPU_WRITE_MATRIX=1"
    );
}

#[test]
fn checks_in_which_threads_race_catch_their_mutants() {
    const TRIES: usize = 200;
    let mutants = mutants();
    for (id, name) in RACES {
        let mutant = mutants
            .iter()
            .find(|mutant| mutant.name == name)
            .expect("a mutant");
        let check = all().find(|check| check.id == id).expect("a check");
        let caught = |_| matches!(check.run(&mutant.fixture()), Verdict::Fail(_));
        assert!((0..TRIES).any(caught), "{id} does not catch {name}");
    }
}

#[test]
fn no_check_catches_what_is_not_broken() {
    let same = Mutant::of("none", "nothing is wrong", Nothing);
    assert_eq!(catchers(&same), BTreeSet::new());
    assert_eq!(catchers(&user_reads::proper()), BTreeSet::new());
    assert_eq!(catchers(&readers::proper()), BTreeSet::new());
}

#[derive(Clone)]
struct Nothing;

impl tamper::Defect for Nothing {}
