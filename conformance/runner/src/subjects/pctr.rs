//! The pctr(4) device of this machine, or another that speaks like it.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use quipu::NativeEvents;
use quipu::events::Interface;
use quipu::pctr::{DEFAULT_PATH, PctrBackend};
use quipu_conformance::{Subject, Workload};
use quipu_hal::{DynBackend, Event, EventSpec, Filter, Hardware, Pmu, PmuEvent, SlotClass, Target};

use super::Tested;

/// The backend on the CPU that the checks happen to run on. Counters count everybody there, so that no
/// event has an exact workload; and a check during which the thread is moved to another CPU fails, as
/// it should: run the suite where there is one CPU, or on an idle machine.
struct PctrSubject {
    backend: PctrBackend,
}

pub(super) fn subject(device: Option<&Path>) -> Result<Tested> {
    let path = device.unwrap_or(Path::new(DEFAULT_PATH));
    let events = NativeEvents::this().maps(Interface::Pctr).ok();
    let first = events.and_then(|maps| maps.into_iter().next());
    let backend = quipu::pctr::open(path, first)?;
    let slots = backend.pmu().slots();
    let counters = slots.iter().filter(|s| s.class == SlotClass::General);
    let pmu = format!("{} counters behind {}", counters.count(), path.display());
    Ok(Tested {
        subject: Arc::new(PctrSubject { backend }),
        pmu: Some(pmu),
    })
}

impl Subject for PctrSubject {
    fn backend(&self) -> &dyn DynBackend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentCpu
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        Vec::new()
    }

    fn workload(&self, _event: &EventSpec, _times: u64) -> Option<Workload> {
        None
    }

    fn pass(&self, nanoseconds: u64) {
        let (start, long) = (Instant::now(), Duration::from_nanos(nanoseconds));
        while start.elapsed() < long {
            black_box(0);
        }
        // What goes wrong with a group is told by its next read.
        let _ = self.backend.tick();
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(EventSpec::new(Hardware::Instructions).with_filter(Filter::USER_ONLY))
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            PmuEvent::new("no_such_pmu").with("no_such_event").into(),
            Event::Named("no-such-event".into()),
        ]
    }

    fn registers(&self) -> Option<String> {
        let status = self.backend.pmu().control().read().ok()?;
        Some(format!("{:x?}", status.functions))
    }
}
