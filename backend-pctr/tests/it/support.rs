//! An event map for the simulated CPUs, and groups on them.

pub(crate) mod pctr4;

use std::sync::Arc;

use quipu_hal::{
    Count, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec, Filter,
    Group, GroupSpec, Hardware, MaxRate, P5Function, ResolvedEvent, Result, SlotClass, SlotSet,
    Target, X86Select,
};
use quipu_pctr::simulation::{Era, Processor, SimDevice, SimMachine};
use quipu_pctr::{CounterKind, PctrPmu, with_device};
use quipu_pmu::{VirtualGroup, VirtualPmu};

use self::pctr4::{On, P5_EVENTS, P6_EVENTS, UnitMask};

/// The backend over a simulated device.
pub(crate) type SimBackend = VirtualPmu<PctrPmu<SimDevice>>;
/// A group on it.
pub(crate) type SimGroup = VirtualGroup<PctrPmu<SimDevice>>;

/// An event that is stated to occur at most [`RAPID_RATE`] times a second, on a P6 and later.
pub(crate) const RAPID: &str = "RAPID";
/// Encodes an event of the Pentium.
pub(crate) const RAPID_P5: &str = "Pipeline flushes";
/// Occurrences a second.
pub(crate) const RAPID_RATE: u64 = 5_000_000_000;

/// The most that the others occur.
pub(crate) const MAX_RATE: MaxRate = MaxRate::per_cycle(6);

/// An event number that no CPU has.
pub(crate) const UNKNOWN: u8 = 0xff;

/// The events of a simulated CPU, by the names of pctr(4) and pctr(1), and raw ones.
pub(crate) struct Events {
    cpu: CpuModel,
    processor: Processor,
}

impl Events {
    /// Those of a machine, if its driver knows counters.
    pub(crate) fn of(machine: &SimMachine) -> Option<Arc<dyn EventMap>> {
        let cpu = machine.cpu_model()?;
        let processor = machine.processor();
        Some(Arc::new(Self { cpu, processor }))
    }

    fn encode(&self, event: u8, unit_mask: u8, filter: Filter) -> Encoding {
        let user = filter.contains(Filter::USER);
        let kernel = filter.contains(Filter::KERNEL);
        if self.processor == Processor::P5 {
            let mut flags = 0;
            if user {
                flags |= P5Function::USER;
            }
            if kernel {
                flags |= P5Function::KERNEL;
            }
            return Encoding::P5(P5Function::new(event).with_flags(flags));
        }
        let mut flags = 0;
        if user {
            flags |= X86Select::USER;
        }
        if kernel {
            flags |= X86Select::KERNEL;
        }
        Encoding::X86(X86Select::new(event.into(), unit_mask).with_flags(flags))
    }

    /// The name of cycles or instructions.
    fn generalized(&self, hardware: Hardware) -> Option<&'static str> {
        match (self.processor.kind()?, hardware) {
            (CounterKind::P5, Hardware::Instructions) => Some("Instructions executed"),
            (CounterKind::Amd, Hardware::Instructions) => Some("RETIRED_INSTRUCTIONS"),
            (_, Hardware::Instructions) => Some("INST_RETIRED"),
            (CounterKind::P5, _) => None,
            (_, Hardware::Cycles) => Some("CPU_CLK_UNHALTED"),
            _ => None,
        }
    }
}

/// Code, unit mask and counters of an event.
fn find(processor: Processor, name: &str) -> Option<(u8, u8, SlotSet)> {
    let any = SlotSet::ANY_GENERAL;
    if name == RAPID {
        // SEGMENT_REG_LOADS of Intel; segment register loads of AMD.
        return Some((
            if processor.kind() == Some(CounterKind::Amd) {
                0x20
            } else {
                0x06
            },
            0,
            any,
        ));
    }
    match processor.kind()? {
        CounterKind::P5 => {
            let (code, _) = P5_EVENTS.into_iter().find(|(_, n)| *n == name)?;
            Some((code, 0, any))
        }
        CounterKind::P6 => {
            let (code, _, on, unit_mask) = P6_EVENTS.into_iter().find(|(_, n, ..)| *n == name)?;
            let mesi = if unit_mask == UnitMask::Mesi { 0xf } else { 0 };
            Some((code, mesi, counters(on)))
        }
        CounterKind::Core => match name {
            "INST_RETIRED" => Some((0xc0, 0, any)),
            "CPU_CLK_UNHALTED" => Some((0x3c, 0, any)),
            "BR_INST_RETIRED" => Some((0xc4, 0, any)),
            "FP_COMP_OPS_EXE" => Some((0x10, 0, SlotSet::one(SlotClass::General, 0))),
            "FP_ASSIST" => Some((0x11, 0, SlotSet::one(SlotClass::General, 1))),
            "MUL" => Some((0x12, 0, SlotSet::one(SlotClass::General, 1))),
            _ => None,
        },
        CounterKind::Amd => match name {
            "RETIRED_INSTRUCTIONS" => Some((0xc0, 0, any)),
            "CPU_CLK_UNHALTED" => Some((0x76, 0, any)),
            "RETIRED_BRANCHES" => Some((0xc2, 0, any)),
            "DISPATCHED_FPU" => Some((0x00, 0x3f, any)),
            _ => None,
        },
        _ => None,
    }
}

impl EventMap for Events {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn max_rate(&self, _: &Encoding) -> MaxRate {
        MAX_RATE
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let info = |name: &str| {
            EventInfo::counter(name.to_owned())
                .honouring(Filter::LEVELS)
                .with_max_rate([RAPID, RAPID_P5].contains(&name).then_some(RAPID_RATE))
        };
        let named = match event {
            Event::Named(name) => Some(name.as_str()),
            Event::Hardware(hardware) => self.generalized(*hardware),
            Event::Raw(raw) => {
                let Encoding::X86(select) = self.encode(0, 0, filter) else {
                    let function = P5Function::new(raw.config as u8);
                    let flags = match self.encode(0, 0, filter) {
                        Encoding::P5(flags) => flags.0,
                        _ => 0,
                    };
                    return Ok(ResolvedEvent::new(
                        Encoding::P5(function.with_flags(flags)),
                        SlotSet::ANY_GENERAL,
                        info("raw"),
                    ));
                };
                return Ok(ResolvedEvent::new(
                    Encoding::X86(select.with_flags(raw.config)),
                    SlotSet::ANY_GENERAL,
                    info("raw"),
                ));
            }
            _ => None,
        };
        let found = named.and_then(|name| Some((name, find(self.processor, name)?)));
        let Some((name, (code, unit_mask, slots))) = found else {
            return Err(
                Error::new(ErrorKind::UnsupportedEvent, format!("count {event}"))
                    .with_reason("this CPU has no such event"),
            );
        };
        Ok(ResolvedEvent::new(
            self.encode(code, unit_mask, filter),
            slots,
            info(name),
        ))
    }

    fn slots_of(&self, encoding: &Encoding) -> Result<SlotSet> {
        let refuse = |reason: &str| {
            Err(Error::new(ErrorKind::UnsupportedEvent, "count it").with_reason(reason))
        };
        let (event, unit_mask) = match encoding {
            Encoding::P5(function) => (function.event(), 0),
            Encoding::X86(select) => (select.event() as u8, select.unit_mask()),
            _ => return Ok(SlotSet::ANY_GENERAL),
        };
        let found = match self.processor.kind() {
            Some(CounterKind::P5) => P5_EVENTS
                .into_iter()
                .find(|(code, _)| *code == event)
                .map(|_| (On::Any, UnitMask::None)),
            Some(CounterKind::P6) => P6_EVENTS
                .into_iter()
                .find(|(code, ..)| *code == event)
                .map(|(_, _, on, unit_mask)| (on, unit_mask)),
            _ if event == UNKNOWN => None,
            Some(CounterKind::Core) if event == 0x12 => Some((On::Counter1, UnitMask::None)),
            _ => Some((On::Any, UnitMask::None)),
        };
        match found {
            None => refuse("the CPU has no such event"),
            Some((_, UnitMask::Mesi)) if unit_mask & 0xf == 0 => {
                refuse("no cache state is asked for")
            }
            Some((on, _)) => Ok(counters(on)),
        }
    }
}

fn counters(on: On) -> SlotSet {
    match on {
        On::Any => SlotSet::ANY_GENERAL,
        On::Counter0 => SlotSet::one(SlotClass::General, 0),
        On::Counter1 => SlotSet::one(SlotClass::General, 1),
    }
}

/// The backend over a machine's device.
pub(crate) fn backend(machine: &SimMachine) -> SimBackend {
    with_device(machine.open(), Events::of(machine), machine.clock()).unwrap()
}

/// Every era and CPU with counters.
pub(crate) fn with_counters() -> impl Iterator<Item = (Era, Processor)> {
    Era::machines().filter(|(era, cpu)| cpu.kind().is_some() && era.counters(*cpu) > 0)
}

/// An event of each CPU that any counter counts, and one more, with their codes.
pub(crate) fn two_events(processor: Processor) -> [(&'static str, u8); 2] {
    match processor.kind() {
        Some(CounterKind::P5) => [("Instructions executed", 0x16), ("Branches", 0x12)],
        Some(CounterKind::Amd) => [("RETIRED_INSTRUCTIONS", 0xc0), ("RETIRED_BRANCHES", 0xc2)],
        _ => [("INST_RETIRED", 0xc0), ("BR_INST_RETIRED", 0xc4)],
    }
}

/// An event by its name.
pub(crate) fn named(name: &str) -> EventSpec {
    Event::Named(name.to_owned()).into()
}

/// Opens a group of events on the CPU that threads run on.
pub(crate) fn open(backend: &SimBackend, names: &[&str]) -> SimGroup {
    let spec = GroupSpec::new(names.iter().map(|n| named(n)));
    backend.open_group(&spec, &Target::CurrentCpu).unwrap()
}

/// The values of a group, which have to be exact.
pub(crate) fn values(group: &mut SimGroup) -> Vec<u64> {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    let exact = |r: &quipu_hal::Reading| match r.count() {
        Count::Exact(_) => r.value,
        other => panic!("{other:?}"),
    };
    buf[0].iter().map(exact).collect()
}
