//! A few events of Intel's CPUs.

use std::sync::Arc;

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter,
    Hardware, RawEvent, ResolvedEvent, Result, Scheme, SlotSet, X86Select,
};
use quipu_hwpmc::HwpmcBackend;

use crate::simulated::Sim;

struct Few(CpuModel);

impl EventMap for Few {
    fn cpu(&self) -> &CpuModel {
        &self.0
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let word = match event {
            Event::Hardware(Hardware::Instructions) => 0xc0,
            Event::Hardware(Hardware::Cycles) => 0x3c,
            Event::Hardware(Hardware::Branches) => 0xc4,
            Event::Raw(RawEvent { config, .. }) => *config,
            _ => {
                let attempted = format!("count {event}");
                return Err(Error::new(ErrorKind::UnsupportedEvent, attempted)
                    .with_reason("this map has three events of names"));
            }
        };
        let mut select = X86Select::default().with_flags(word | X86Select::ENABLE);
        if filter.contains(Filter::USER) {
            select = select.with_flags(X86Select::USER);
        }
        if filter.contains(Filter::KERNEL) {
            select = select.with_flags(X86Select::KERNEL);
        }
        let info = EventInfo::counter(event.to_string()).honouring(Filter::LEVELS);
        Ok(ResolvedEvent::new(
            Encoding::X86(select),
            SlotSet::ANY_GENERAL,
            info,
        ))
    }
}

/// Returns a backend of a simulated system.
pub(crate) fn backend(sim: &Sim) -> Result<HwpmcBackend<Sim>> {
    let cpu = CpuIdentity::X86 {
        vendor: "GenuineIntel".into(),
        family: 6,
        model: 0x55,
        stepping: 4,
    };
    let events = Few(CpuModel::new(cpu, Scheme::IntelArchitectural, Vec::new()));
    HwpmcBackend::new(sim.clone(), Arc::new(events))
}
