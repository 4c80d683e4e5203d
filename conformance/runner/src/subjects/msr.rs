//! The model-specific registers of this machine.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use quipu::msr::MsrBackend;
use quipu_conformance::{Subject, Workload};
use quipu_hal::{DynBackend, Event, EventSpec, Filter, Hardware, Pmu, PmuEvent, SlotClass, Target};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Tested;

/// The backend on one CPU, which the checks are kept on. Registers count everybody there, so that no
/// event has an exact workload.
struct MsrSubject {
    backend: MsrBackend,
    cpu: u32,
}

/// Keeps this process on the first CPU that has registers.
pub(super) fn subject() -> Result<Tested> {
    let backend = quipu::msr::open()?;
    let pmu = backend.pmu().description().to_owned();
    let cpu = *backend.pmu().cpus().first().context("there is no CPU")?;
    stay_on(cpu).with_context(|| format!("cannot stay on CPU {cpu}"))?;
    Ok(Tested {
        subject: Arc::new(MsrSubject { backend, cpu }),
        pmu: Some(pmu),
    })
}

/// The calling thread, and those that it starts, run on this CPU alone.
fn stay_on(cpu: u32) -> rustix::io::Result<()> {
    let cpu = usize::try_from(cpu).map_err(|_| Errno::INVAL)?;
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

impl Subject for MsrSubject {
    fn backend(&self) -> &dyn DynBackend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::Cpu(self.cpu)
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
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(EventSpec::new(Hardware::Instructions).with_filter(Filter::USER_ONLY))
    }

    /// General counters; fixed ones count their own event only.
    fn slots(&self) -> Option<usize> {
        let slots = self.backend.pmu().slots().iter();
        Some(
            slots
                .filter(|slot| slot.class == SlotClass::General)
                .count(),
        )
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            PmuEvent::new("no_such_pmu").with("no_such_event").into(),
            Event::Named("no-such-event".into()),
        ]
    }

    fn resources(&self) -> Option<u64> {
        let pmu = self.backend.pmu();
        let free = |&cpu: &u32| pmu.acquire(cpu).and_then(|()| pmu.release(cpu)).is_ok();
        let held = pmu.cpus().iter().filter(|cpu| !free(cpu)).count();
        u64::try_from(held).ok()
    }

    fn second_owner(&self) -> Option<quipu_hal::Result<()>> {
        let pmu = self.backend.pmu();
        Some(pmu.acquire(self.cpu).and_then(|()| pmu.release(self.cpu)))
    }
}
