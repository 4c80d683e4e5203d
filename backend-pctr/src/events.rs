//! The events of a pctr(4) device: those of an event map, and the passes of the idle loop.

use std::fmt;
use std::sync::Arc;

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter, MaxRate,
    ResolvedEvent, Result, Scheme, SlotClass, SlotSet,
};

use crate::device::PctrDevice;
use crate::function::CounterKind;
use crate::pmu::{IDLE as IDLE_SLOT, PctrPmu, Unavailable};

/// The name of the passes of the idle loop as an event.
const IDLE: &str = "idle";

/// The passes of the idle loop, which need no bits.
pub(crate) const IDLE_PASSES: Encoding = Encoding::Other {
    scheme: "pctr-idle",
    words: [0; 4],
};

/// An event map for the counters behind a device, with the passes of the kernel's idle loop as the event `idle` where
/// the kernel reports them.
pub struct PctrEvents {
    map: Option<Arc<dyn EventMap>>,
    cpu: CpuModel,
    kind: Option<CounterKind>,
    unavailable: Option<Unavailable>,
    counts_idle: bool,
}

impl PctrEvents {
    /// Creates the events of `map` for the counters of `pmu`.
    pub fn new<D: PctrDevice>(pmu: &PctrPmu<D>, map: Option<Arc<dyn EventMap>>) -> Self {
        Self {
            cpu: map.as_ref().map_or_else(unknown_cpu, |m| m.cpu().clone()),
            kind: pmu.kind(),
            unavailable: pmu.unavailable(),
            counts_idle: pmu.counts_idle(),
            map,
        }
    }
}

impl fmt::Debug for PctrEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PctrEvents")
            .field("cpu", &self.cpu)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl EventMap for PctrEvents {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        if matches!(event, Event::Named(name) if name.eq_ignore_ascii_case(IDLE)) {
            if !self.counts_idle {
                let error = Error::new(ErrorKind::UnsupportedEvent, "count idle");
                let reason = "this kernel does not report the passes of its idle loop";
                return Err(error.with_reason(reason));
            }
            let slots = SlotSet::one(SlotClass::FreeRunning, IDLE_SLOT);
            let info = EventInfo::counter(IDLE).honouring(Filter::empty());
            return Ok(ResolvedEvent::new(IDLE_PASSES, slots, info));
        }
        if !filter.intersects(Filter::USER | Filter::KERNEL) {
            let error = Error::new(ErrorKind::UnsupportedFeature, format!("count {event}"));
            return Err(error.with_reason("the filter excludes both user and kernel mode"));
        }
        let unsupported = || {
            Error::new(ErrorKind::UnsupportedEvent, format!("count {event}"))
                .with_reason("there is no map of this CPU's events")
        };
        // An event that the CPU does not have is reported as such first.
        let resolved = self.map.as_ref().map(|map| map.resolve(event, filter));
        match (self.unavailable, &self.map, resolved.transpose()?) {
            (Some(unavailable), ..) => Err(unavailable.error(format!("count {event}"))),
            (None, Some(map), Some(resolved)) if self.kind.is_some() => narrow(&**map, resolved),
            _ => Err(unsupported()),
        }
    }

    fn max_rate(&self, encoding: &Encoding) -> MaxRate {
        match &self.map {
            Some(map) => map.max_rate(encoding),
            None => MaxRate::of(encoding),
        }
    }
}

/// Keeps of an event's counters those that the map has for its bits, which raw bits may be.
fn narrow(map: &dyn EventMap, mut resolved: ResolvedEvent) -> Result<ResolvedEvent> {
    let slots = map.slots_of(&resolved.encoding).map_err(|e| {
        let attempted = format!("count {}", resolved.info.name);
        let error = Error::new(ErrorKind::UnsupportedEvent, attempted)
            .with_reason(e.reason().unwrap_or_default());
        match e.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })?;
    resolved.slots = resolved.slots.intersection(slots);
    Ok(resolved)
}

/// Returns an unknown CPU.
fn unknown_cpu() -> CpuModel {
    CpuModel::new(
        CpuIdentity::X86 {
            vendor: String::new(),
            family: 0,
            model: 0,
            stepping: 0,
        },
        Scheme::IntelArchitectural,
        Vec::new(),
    )
}
