//! A complete backend to begin one's own with: a system that virtualises 64-bit counters for each
//! thread, two fixed and eight configurable, without times and without a scheduler, as kpc of macOS
//! and hwpmc(4) in process mode do. `cargo run -p quipu-conformance --example thread_counters` runs
//! the suite over it.

mod backend;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quipu_conformance::{Report, Workload, all, run};
use quipu_hal::{Backend, Event, EventSpec, Target};

use backend::{COUNTERS, EVENTS, ThreadCounters, Transport};

/// A system in which events occur when they are made to.
#[derive(Debug, Default)]
pub(crate) struct Simulated {
    selected: [AtomicU64; COUNTERS],
}

thread_local! {
    static COUNTS: Cell<[u64; COUNTERS]> = const { Cell::new([0; COUNTERS]) };
    static TIME: Cell<u64> = const { Cell::new(0) };
}

impl Simulated {
    fn happen(&self, event: u64, times: u64) {
        let mut counts = COUNTS.get();
        for (count, selected) in counts.iter_mut().zip(&self.selected) {
            *count += if selected.load(Relaxed) == event {
                times
            } else {
                0
            };
        }
        COUNTS.set(counts);
        TIME.set(TIME.get() + 1_000);
    }
}

impl Transport for Arc<Simulated> {
    fn select(&self, counter: usize, event: u64) {
        self.selected[counter].store(event, Relaxed);
    }

    fn counters(&self) -> [u64; COUNTERS] {
        COUNTS.get()
    }

    fn thread_time(&self) -> u64 {
        TIME.get()
    }
}

/// The backend with workloads of known counts, for the suite.
struct Fixture {
    simulated: Arc<Simulated>,
    backend: ThreadCounters<Arc<Simulated>>,
}

impl quipu_conformance::Fixture for Fixture {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentThread
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        EVENTS
            .map(|(name, ..)| EventSpec::new(Event::Named(name.into())))
            .to_vec()
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        let named = |name: &str| event.event == Event::Named(name.into());
        let (_, number, _) = EVENTS.into_iter().find(|(name, ..)| named(name))?;
        let simulated = Arc::clone(&self.simulated);
        Some(Box::new(move || simulated.happen(number, times)))
    }

    fn pass(&self, nanoseconds: u64) {
        TIME.set(TIME.get() + nanoseconds);
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![Event::Named("NO_SUCH_EVENT".into())]
    }

    fn resources(&self) -> Option<u64> {
        let selected = self
            .simulated
            .selected
            .iter()
            .filter(|event| event.load(Relaxed) != 0);
        u64::try_from(selected.count()).ok()
    }
}

/// Runs the suite over the simulated system.
fn conformance() -> Report {
    let simulated = Arc::new(Simulated::default());
    let backend = ThreadCounters::new(Arc::clone(&simulated));
    let fixture: Arc<dyn quipu_conformance::Fixture> = Arc::new(Fixture { simulated, backend });
    run(&fixture, all())
}

fn main() {
    println!("{}", conformance());
}

#[test]
fn every_check_passes_or_names_what_the_system_lacks() {
    let report = conformance();
    assert_eq!(report.failed().count(), 0, "{report}");
    assert!(report.passed() > 60, "{report}");
    let backend = ThreadCounters::new(Arc::new(Simulated::default()));
    for (check, missing) in report.skipped() {
        let claimed = missing.is_claimed_by(backend.capabilities());
        assert!(!claimed, "{} was skipped: {missing}", check.id);
    }
}
