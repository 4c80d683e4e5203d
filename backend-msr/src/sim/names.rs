//! The events of a simulated machine.

use std::collections::HashMap;

use quipu_hal::{
    CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter, FixedCounter,
    P5Function, ResolvedEvent, Result, Scheme, SlotClass, SlotSet, X86Select,
};

/// An [`EventMap`] of events under names of one's own, encoded as a CPU's generation has it.
///
/// ```
/// use std::sync::Arc;
/// use quipu_hal::{Backend, Event, Group, GroupSpec, Target};
/// use quipu_pmu::{ManualClock, VirtualPmu};
/// use quipu_msr::sim::{EventNames, Generation, Level, SimulatedMsrs, Stretch};
/// use quipu_msr::{MsrPmu, Options};
///
/// let bus = SimulatedMsrs::new(Generation::Amd15h, 1);
/// let map = EventNames::new(bus.model()).any("DIVISIONS", 0xd0 | 1 << 32);
/// let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default())?;
/// let backend = VirtualPmu::new(pmu, ManualClock::new(), Arc::new(map))?;
/// let mut group = backend.open(&GroupSpec::new([Event::Named("DIVISIONS".into())]), &Target::Cpu(0))?;
/// bus.run(0, &Stretch::new(Level::User, 100).occurring(0xd0 | 1 << 32, 3));
/// let mut out = group.read_buf();
/// group.read(&mut out)?;
/// assert_eq!(out[0][0].value, 300);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct EventNames {
    cpu: CpuModel,
    events: HashMap<&'static str, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    code: Code,
    slots: SlotSet,
    max_rate: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Code {
    /// The bits that name an event.
    Select(u64),
    Fixed(u8),
}

impl EventNames {
    /// Returns a map without events.
    pub fn new(cpu: CpuModel) -> Self {
        Self {
            cpu,
            events: HashMap::new(),
        }
    }

    /// Adds an event for any general counter, by its select bits.
    #[must_use]
    pub fn any(self, name: &'static str, bits: u64) -> Self {
        self.with(name, bits, SlotSet::ANY_GENERAL, None)
    }

    /// Adds an event that some counters can count, and that occurs at most so often in a second.
    #[must_use]
    pub fn with(
        mut self,
        name: &'static str,
        bits: u64,
        slots: SlotSet,
        max_rate: Option<u64>,
    ) -> Self {
        let code = Code::Select(bits);
        let entry = Entry {
            code,
            slots,
            max_rate,
        };
        self.events.insert(name, entry);
        self
    }

    /// Adds the event of a fixed counter.
    #[must_use]
    pub fn fixed(mut self, name: &'static str, index: u8) -> Self {
        let entry = Entry {
            code: Code::Fixed(index),
            slots: SlotSet::one(SlotClass::Fixed, index),
            max_rate: None,
        };
        self.events.insert(name, entry);
        self
    }

    /// Returns the select bits of an event, or `None` if it is a fixed counter's.
    pub fn bits(&self, name: &str) -> Option<u64> {
        match self.events.get(name)?.code {
            Code::Select(bits) => Some(bits),
            Code::Fixed(_) => None,
        }
    }

    fn encoding(&self, code: Code, filter: Filter) -> Encoding {
        let user = filter.contains(Filter::USER);
        let kernel = filter.contains(Filter::KERNEL);
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        match (code, self.cpu.scheme) {
            (Code::Fixed(index), _) => Encoding::Fixed(FixedCounter {
                index,
                control: if user { FixedCounter::USER } else { 0 }
                    | if kernel { FixedCounter::KERNEL } else { 0 },
            }),
            (Code::Select(bits), Scheme::P5) => {
                let user = flag(user, P5Function::USER.into());
                let kernel = flag(kernel, P5Function::KERNEL.into());
                Encoding::P5(P5Function((bits | user | kernel) as u16))
            }
            (Code::Select(bits), _) => Encoding::X86(X86Select {
                select: bits | flag(user, X86Select::USER) | flag(kernel, X86Select::KERNEL),
                extra: Vec::new(),
            }),
        }
    }
}

impl EventMap for EventNames {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let entry = match event {
            Event::Named(name) => self.events.get_key_value(name.as_str()),
            _ => None,
        };
        let (&name, entry) = entry.ok_or_else(|| {
            Error::new(ErrorKind::UnsupportedEvent, format!("count {event}"))
                .with_reason("the simulated machine has no such event")
        })?;
        let mut info = EventInfo::counter(name);
        info.max_rate = entry.max_rate;
        Ok(ResolvedEvent::new(
            self.encoding(entry.code, filter),
            entry.slots,
            info,
        ))
    }
}
