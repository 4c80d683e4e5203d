//! Resolving events: from what a group asks for to where it can be counted, with which bits.

use std::sync::Arc;

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec, Filter, PerfConfig,
    PmuEvent, RawEvent, Result, X86Select, text,
};

use crate::event_bits::{
    BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, TRACEPOINT_FILTER, software_info,
};
use crate::parts::Placement;
use crate::sysfs::{CorePmu, SysfsPmus};
use crate::tracefs::Tracefs;

/// An event that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    /// Where it can be counted.
    pub(crate) placement: Placement,
    /// What is known of it.
    pub(crate) info: EventInfo,
}

/// Where events come from on this machine.
pub(crate) struct EventSource {
    cores: Vec<CorePmu>,
    pmus: SysfsPmus,
    map: Option<Arc<dyn EventMap>>,
}

impl EventSource {
    /// The events of a machine with these core PMUs, and those that `pmus` and `tracefs` tell of.
    pub(crate) fn new(pmus: SysfsPmus) -> Self {
        let mut cores = pmus.core_pmus();
        if cores.len() < 2 {
            // The kernel finds a single core PMU by itself.
            cores.clear();
        }
        Self {
            cores,
            pmus,
            map: None,
        }
    }

    /// Sets where native names come from.
    pub(crate) fn set_map(&mut self, map: Arc<dyn EventMap>) {
        self.map = Some(map);
    }

    /// The core PMUs that generalized events are split over; none where there is only one.
    pub(crate) fn cores(&self) -> &[CorePmu] {
        &self.cores
    }

    /// Where and how an event can be counted.
    ///
    /// A name is first looked up in the event map, then, if it reads `a:b`, as a tracepoint.
    pub(crate) fn resolve(&self, spec: &EventSpec) -> Result<Resolved> {
        let named = |placement, honours| Resolved {
            placement,
            info: EventInfo::counter(spec.event.to_string()).honouring(honours),
        };
        match &spec.event {
            Event::Hardware(event) => Ok(named(
                self.on_cores(EventBits::hardware(*event)),
                HARDWARE_FILTER,
            )),
            Event::Cache(event) => Ok(named(
                self.on_cores(EventBits::cache(*event)),
                HARDWARE_FILTER,
            )),
            Event::Raw(event) => Ok(named(
                self.on_cores(EventBits::raw(*event)),
                HARDWARE_FILTER,
            )),
            Event::Software(event) => Ok(Resolved {
                placement: Placement::Anywhere(EventBits::software(*event)),
                info: software_info(*event),
            }),
            Event::Breakpoint(event) => Ok(named(
                Placement::Anywhere(EventBits::breakpoint(*event)),
                BREAKPOINT_FILTER,
            )),
            Event::Pmu(event) => self.pmu_event(event),
            Event::Tracepoint { system, name } => tracepoint(system, name),
            Event::Named(name) => self.named(name, spec.filter),
            other => Err(unsupported(other).with_reason("this backend does not know this kind")),
        }
    }

    /// The bits of an event of the CPU's own PMU: on every core PMU if there are several.
    fn on_cores(&self, bits: EventBits) -> Placement {
        if self.cores.is_empty() {
            return Placement::Anywhere(bits);
        }
        let each = self.cores.iter().enumerate();
        Placement::Cores(
            each.map(|(i, core)| (i, bits.on_core(core.type_)))
                .collect(),
        )
    }

    fn pmu_event(&self, event: &PmuEvent) -> Result<Resolved> {
        let resolved = self.pmus.resolve(event)?;
        let bits = EventBits::of(resolved.config);
        let core = self
            .cores
            .iter()
            .position(|core| core.type_ == resolved.config.type_);
        let placement = match (core, resolved.cpumask) {
            (Some(core), _) => Placement::Cores(vec![(core, bits)]),
            (None, Some(cpus)) => Placement::Cpus(cpus, bits),
            (None, None) => Placement::Anywhere(bits),
        };
        Ok(Resolved {
            placement,
            info: resolved.info,
        })
    }

    fn named(&self, name: &str, filter: Filter) -> Result<Resolved> {
        let event = Event::Named(name.to_owned());
        let from_map = match &self.map {
            Some(map) => match map.resolve(&event, filter) {
                Ok(native) => {
                    let bits = raw_bits(&event, &native.encoding)?;
                    return Ok(Resolved {
                        placement: self.on_cores_of(map.as_ref(), bits),
                        info: native.info,
                    });
                }
                Err(e) if e.kind() == ErrorKind::UnsupportedEvent => Some(e),
                Err(e) => return Err(e),
            },
            None => None,
        };
        if let Some((system, name)) = name.split_once(':') {
            return tracepoint(system, name);
        }
        // The map knows more names than the generalized ones.
        Err(from_map.unwrap_or_else(|| {
            let error = unsupported(&event).with_reason("there is no event of this name");
            match text::nearest(name, []).as_slice() {
                [] => error,
                near => error.with_hint(format!("did you mean {}?", near.join(", "))),
            }
        }))
    }

    /// The bits of a native event, on the cores it is native to.
    fn on_cores_of(&self, map: &dyn EventMap, bits: EventBits) -> Placement {
        let core_type = map.cpu().core_type.as_deref();
        let own = core_type.and_then(|core_type| {
            self.cores
                .iter()
                .position(|core| core.name.strip_prefix("cpu_") == Some(core_type))
        });
        match own {
            Some(i) => Placement::Cores(vec![(i, bits.on_core(self.cores[i].type_))]),
            None => self.on_cores(bits),
        }
    }
}

fn tracepoint(system: &str, name: &str) -> Result<Resolved> {
    let id = Tracefs::find()?.id(system, name)?;
    Ok(Resolved {
        placement: Placement::Anywhere(EventBits::tracepoint(id)),
        info: EventInfo::counter(format!("{system}:{name}"))
            .honouring(TRACEPOINT_FILTER)
            .occurring_in(Filter::KERNEL),
    })
}

/// The bits of a native event as the kernel's own PMU drivers take them.
fn raw_bits(event: &Event, encoding: &Encoding) -> Result<EventBits> {
    /// What the kernel decides by itself: privilege levels, the interrupt, the pin, enabling.
    const KERNELS_OWN: u64 = X86Select::USER
        | X86Select::KERNEL
        | X86Select::PIN
        | X86Select::INTERRUPT
        | X86Select::ENABLE
        | X86Select::GUEST_ONLY
        | X86Select::HOST_ONLY;
    let raw = |config| Ok(EventBits::raw(RawEvent::new(config)));
    match encoding {
        Encoding::Perf(config) => Ok(EventBits::of(PerfConfig { ..*config })),
        Encoding::X86(x86) => {
            let config = x86.select & !KERNELS_OWN;
            match x86.extra.as_slice() {
                [] => raw(config),
                // Intel's extra registers go into config1, whichever it is: the event decides
                // (`intel_extra_regs`, `arch/x86/events/intel/core.c`).
                [extra] => Ok(EventBits::raw(RawEvent {
                    config,
                    config1: extra.value,
                    ..RawEvent::default()
                })),
                _ => Err(
                    Error::new(ErrorKind::UnsupportedFeature, format!("open {event}"))
                        .with_reason("Linux sets one extra register for an event, not several"),
                ),
            }
        }
        // Codes by which the kernel knows the events of the fixed counters (`fixed_events`,
        // `arch/x86/events/intel/core.c`).
        Encoding::Fixed(fixed) => match fixed.index {
            0 => raw(0x00c0),
            1 => raw(0x003c),
            2 => raw(0x0300),
            3 => raw(0x0400),
            _ => Err(unsupported(event).with_reason("Linux does not know this fixed counter")),
        },
        Encoding::Armv8(arm) => raw(arm.event().into()),
        _ => Err(unsupported(event).with_reason("Linux has no driver for this kind of counter")),
    }
}

fn unsupported(event: &Event) -> Error {
    Error::new(ErrorKind::UnsupportedEvent, format!("open {event}"))
}
