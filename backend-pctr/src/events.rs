//! What a pctr(4) device can count of an event map's events, and the reason where it cannot.

use std::sync::Arc;

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter,
    ResolvedEvent, Result, Scheme, SlotClass, SlotSet,
};

use crate::device::PctrDevice;
use crate::function::{self, CounterKind, ENABLE};
use crate::pmu::{PctrPmu, Refusal};

/// The name of the time stamp counter as an event.
const TIME_STAMP: &str = "tsc";

/// An event map narrowed to what the counters behind a device can do, with the time stamp counter
/// as the event `tsc`.
///
/// Each function word is [checked](function::check) for each counter before anything is set.
pub struct PctrEvents {
    map: Option<Arc<dyn EventMap>>,
    cpu: CpuModel,
    kind: Option<CounterKind>,
    refusal: Option<Refusal>,
}

impl PctrEvents {
    /// The events of `map` for the counters of `pmu`.
    pub fn new<D: PctrDevice>(pmu: &PctrPmu<D>, map: Option<Arc<dyn EventMap>>) -> Self {
        Self {
            cpu: map.as_ref().map_or_else(unknown_cpu, |m| m.cpu().clone()),
            kind: pmu.kind(),
            refusal: pmu.refusal(),
            map,
        }
    }

    /// Keeps of the counters that can count the event those that can be set to it.
    fn narrow(&self, kind: CounterKind, resolved: ResolvedEvent) -> Result<ResolvedEvent> {
        let name = &resolved.info.name;
        let refuse = |reason: &str| {
            Err(
                Error::new(ErrorKind::UnsupportedEvent, format!("count {name}"))
                    .with_reason(reason),
            )
        };
        // Of the Pentium and the P6 the check of the word knows more than a map.
        let by_map = matches!(kind, CounterKind::Core | CounterKind::Amd);
        let known = match &self.map {
            Some(map) if by_map => match map.slots_of(&resolved.encoding) {
                Ok(slots) => resolved.slots.intersection(slots),
                Err(e) => return refuse(e.reason().unwrap_or_default()),
            },
            _ => resolved.slots,
        };
        let word = match kind.word(&resolved.encoding) {
            Ok(word) => word,
            Err(e) => return refuse(e.reason().unwrap_or_default()),
        };
        let mut slots = SlotSet::EMPTY;
        let mut refused = None;
        for counter in (0..4).filter(|n| known.contains(SlotClass::General, *n)) {
            match function::check(kind, counter, word, ENABLE) {
                Ok(()) => slots = slots.with(SlotClass::General, counter),
                Err(e) => refused = Some(e),
            }
        }
        match refused {
            Some(e) if slots.is_empty() => refuse(e.reason().unwrap_or_default()),
            _ => Ok(ResolvedEvent { slots, ..resolved }),
        }
    }
}

impl EventMap for PctrEvents {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        if matches!(event, Event::Named(name) if name.eq_ignore_ascii_case(TIME_STAMP)) {
            return Ok(ResolvedEvent {
                encoding: Encoding::TimeStamp,
                slots: SlotSet::one(SlotClass::TimeStamp, 0),
                info: EventInfo::counter(TIME_STAMP).honouring(Filter::empty()),
            });
        }
        if !filter.intersects(Filter::USER | Filter::KERNEL) {
            let error = Error::new(ErrorKind::UnsupportedFeature, format!("count {event}"));
            return Err(error.with_reason(
                "it is asked for neither in user nor in kernel mode, so it counts nothing",
            ));
        }
        let unsupported = || {
            Error::new(ErrorKind::UnsupportedEvent, format!("count {event}"))
                .with_reason("there is no map of this CPU's events")
        };
        let resolved = self.map.as_ref().map(|map| map.resolve(event, filter));
        match (self.refusal, self.kind, resolved) {
            // An event that the CPU does not have is that first of all.
            (_, _, Some(Err(e))) => Err(e),
            (Some(refusal), _, _) => Err(refusal.error(format!("count {event}"))),
            (None, Some(kind), Some(Ok(resolved))) => self.narrow(kind, resolved),
            _ => Err(unsupported()),
        }
    }
}

/// A CPU of which nothing is known.
fn unknown_cpu() -> CpuModel {
    CpuModel {
        identity: CpuIdentity::X86 {
            vendor: String::new(),
            family: 0,
            model: 0,
            stepping: 0,
        },
        core_type: None,
        scheme: Scheme::IntelArchitectural,
        counters: Vec::new(),
    }
}
