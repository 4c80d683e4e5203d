//! A complete backend to begin one's own with: a system that virtualises 64-bit counters for each
//! thread without times and without a scheduler, as kpc of macOS and hwpmc(4) in process mode do.
//! `cargo run -p quipu-conformance --example thread_counters` runs the suite over it.

mod backend;
mod system;

use std::sync::Arc;

use quipu_conformance::{Report, Workload, all, run};
use quipu_hal::{Backend, Event, EventSpec, Target};

use backend::ThreadCounters;
use system::{EVENTS, Simulated};

/// The backend with workloads of known counts, for the suite.
struct Fixture {
    system: Arc<Simulated>,
    backend: ThreadCounters<Simulated>,
}

fn named(name: &str) -> EventSpec {
    EventSpec::new(Event::Named(name.into()))
}

impl quipu_conformance::Fixture for Fixture {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentThread
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        ["CYCLES", "INSTRUCTIONS", "LOADS"].map(named).to_vec()
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        let (_, number, _) = EVENTS
            .into_iter()
            .find(|(name, ..)| *event == named(name))?;
        let system = Arc::clone(&self.system);
        Some(Box::new(move || system.occur(number, times, 1_000)))
    }

    fn pass(&self, nanoseconds: u64) {
        self.system.occur(0, 0, nanoseconds);
    }

    fn counters_of(&self, event: &EventSpec) -> Option<usize> {
        let (_, _, counters) = EVENTS
            .into_iter()
            .find(|(name, ..)| *event == named(name))?;
        usize::try_from(counters.count_ones()).ok()
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![Event::Named("NO_SUCH_EVENT".into())]
    }

    fn resources(&self) -> Option<u64> {
        Some(self.system.in_use())
    }
}

/// Runs the suite over the simulated system.
fn conformance() -> Report {
    let system = Arc::new(Simulated::default());
    let backend = ThreadCounters::new(Arc::clone(&system));
    run(
        &(Arc::new(Fixture { system, backend }) as Arc<dyn quipu_conformance::Fixture>),
        all(),
    )
}

fn main() {
    println!("{}", conformance());
}

#[cfg(test)]
mod tests {
    use quipu_hal::{ErrorKind, GroupSpec};

    use super::*;

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

    #[test]
    fn events_that_need_few_counters_get_them() {
        let backend = ThreadCounters::new(Arc::new(Simulated::default()));
        let open = |names: &[&str]| {
            let group = GroupSpec::new(names.iter().map(|name| named(name)));
            backend.open(&group, &Target::CurrentThread)
        };
        let refusal = |names: &[&str]| {
            open(names)
                .err()
                .map(|error| (error.kind(), error.member()))
        };
        assert_eq!(
            refusal(&["DIVIDES"; 3]),
            Some((ErrorKind::TooManyEvents, Some(2)))
        );
        let group = open(&["LOADS", "LOADS", "DIVIDES", "DIVIDES"]).expect("eight counters");
        assert_eq!(
            refusal(&["CYCLES", "DIVIDES"]),
            Some((ErrorKind::Busy, Some(1)))
        );
        drop(group);
        open(&["CYCLES", "DIVIDES"]).expect("all are free again");
    }
}
