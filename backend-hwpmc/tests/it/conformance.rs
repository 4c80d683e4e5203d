//! The conformance suite on the simulated system.

use std::sync::Arc;

use quipu_conformance::{Fixture, Workload, all, run};
use quipu_hal::{Backend, Event, EventSpec, Filter, Hardware, Target};
use quipu_hwpmc::HwpmcBackend;

use crate::events::backend;
use crate::simulated::Sim;

struct Simulated {
    sim: Sim,
    backend: HwpmcBackend<Sim>,
}

impl Fixture for Simulated {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentThread
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        vec![EventSpec::new(Hardware::Instructions).with_filter(Filter::USER_ONLY)]
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        let sim = self.sim.clone();
        (event.event == Hardware::Instructions.into())
            .then(|| Box::new(move || sim.occur(times, times)) as Workload)
    }

    fn counts_other_threads(&self) -> bool {
        true
    }

    fn pass(&self, nanoseconds: u64) {
        self.sim.occur(0, nanoseconds);
    }

    fn counters_of(&self, _: &EventSpec) -> Option<usize> {
        Some(2)
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(EventSpec::new(Hardware::Branches))
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![Event::Named("no-such-event".into())]
    }

    fn resources(&self) -> Option<u64> {
        u64::try_from(self.sim.lock().taken()).ok()
    }
}

#[test]
fn conforms() {
    let sim = Sim::new();
    sim.lock().is_root = true;
    sim.lock().has_host_threads = true;
    // From here on all threads sleep.
    sim.occur(0, 0);
    let backend = backend(&sim).expect("a backend");
    let fixture: Arc<dyn Fixture> = Arc::new(Simulated { sim, backend });
    let report = run(&fixture, all());
    assert_eq!(report.failed().count(), 0, "{report}");
    assert!(report.passed() > 60, "{report}");
    for (check, missing) in report.skipped() {
        let claimed = missing.is_claimed_by(fixture.backend().capabilities());
        assert!(!claimed, "{} was skipped: {missing}", check.id);
    }
}
