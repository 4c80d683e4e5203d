//! What a pctr(4) device can count of an event map's events, and the reason where it cannot.

use std::sync::Arc;

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter,
    FixedCounter, ResolvedEvent, Result, Scheme, SlotClass, SlotSet, X86Select,
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
/// Intel's fixed counters are out of the driver's reach; the architectural events that count the
/// same on other counters take their place.
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
        let (encoding, wanted) = match &resolved.encoding {
            Encoding::Fixed(fixed) => match architectural(*fixed) {
                Some(select) if kind == CounterKind::Core => {
                    (Encoding::X86(select), SlotSet::ANY_GENERAL)
                }
                _ => return refuse("only a fixed counter counts it, and the driver has none"),
            },
            other => (other.clone(), resolved.slots),
        };
        let word = match kind.word(&encoding) {
            Ok(word) => word,
            Err(e) => return refuse(e.reason().unwrap_or_default()),
        };
        let mut slots = SlotSet::EMPTY;
        let mut refused = None;
        for counter in (0..4).filter(|n| wanted.contains(SlotClass::General, *n)) {
            match function::check(kind, counter, word, ENABLE) {
                Ok(()) => slots = slots.with(SlotClass::General, counter),
                Err(e) => refused = Some(e),
            }
        }
        match refused {
            Some(e) if slots.is_empty() => refuse(e.reason().unwrap_or_default()),
            _ => Ok(ResolvedEvent {
                encoding,
                slots,
                info: resolved.info,
            }),
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

/// The architectural event that counts what a fixed counter counts (Intel SDM volume 3,
/// "Architectural Performance Monitoring", pre-defined events).
fn architectural(fixed: FixedCounter) -> Option<X86Select> {
    let select = match fixed.index {
        0 => X86Select::new(0xc0, 0),
        1 => X86Select::new(0x3c, 0),
        2 => X86Select::new(0x3c, 1),
        _ => return None,
    };
    if fixed.control & FixedCounter::ANY_THREAD != 0 {
        return None;
    }
    let mut flags = 0;
    if fixed.control & FixedCounter::USER != 0 {
        flags |= X86Select::USER;
    }
    if fixed.control & FixedCounter::KERNEL != 0 {
        flags |= X86Select::KERNEL;
    }
    Some(select.with_flags(flags))
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
