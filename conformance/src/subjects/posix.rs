//! Any Unix: page faults of the calling thread.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_hal::{DynBackend, Event, EventSpec, Filter, Hardware, Software, Target};

use super::pages;
use crate::{Subject, Workload};

/// A backend of what any Unix tells of its threads, counting the calling one.
pub struct PosixSubject {
    backend: Arc<dyn DynBackend>,
}

impl PosixSubject {
    /// The subject around a backend.
    pub fn new(backend: Arc<dyn DynBackend>) -> Self {
        pages::warm_up();
        Self { backend }
    }
}

impl Subject for PosixSubject {
    fn backend(&self) -> &dyn DynBackend {
        &*self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentThread
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        vec![EventSpec::new(Software::PageFaults)]
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        self.workload_at(event, Filter::USER, times)
    }

    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let faults = event.event == Software::PageFaults.into();
        faults.then(|| pages::page_faults(level, times)).flatten()
    }

    fn has_other_causes(&self, _: &EventSpec) -> bool {
        true
    }

    fn pass(&self, nanoseconds: u64) {
        let (start, long) = (Instant::now(), Duration::from_nanos(nanoseconds));
        while start.elapsed() < long {
            black_box(0);
        }
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            Event::Named("no-such-event".into()),
            Hardware::Cycles.into(),
        ]
    }
}
