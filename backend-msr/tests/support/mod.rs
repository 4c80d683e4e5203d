//! Simulated machines of every generation, with an event map of their own.

use std::collections::HashMap;

use quipu_hal::{
    CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter, FixedCounter,
    P5Function, ResolvedEvent, Result, Scheme, SlotClass, SlotSet, X86Select,
};

/// An event map of a few events under names.
pub(crate) struct Names {
    cpu: CpuModel,
    events: HashMap<&'static str, Entry>,
}

#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) code: Code,
    pub(crate) slots: SlotSet,
    pub(crate) max_rate: Option<u64>,
}

#[derive(Clone, Copy)]
pub(crate) enum Code {
    /// The bits that name an event, and flags.
    Select(u64),
    Fixed(u8),
}

impl Names {
    pub(crate) fn new(cpu: CpuModel) -> Self {
        Self {
            cpu,
            events: HashMap::new(),
        }
    }

    /// The same with an event for any general counter.
    pub(crate) fn any(self, name: &'static str, select: u64) -> Self {
        self.with(name, select, SlotSet::ANY_GENERAL, None)
    }

    pub(crate) fn with(
        mut self,
        name: &'static str,
        select: u64,
        slots: SlotSet,
        max_rate: Option<u64>,
    ) -> Self {
        let code = Code::Select(select);
        let entry = Entry {
            code,
            slots,
            max_rate,
        };
        self.events.insert(name, entry);
        self
    }

    pub(crate) fn fixed(mut self, name: &'static str, index: u8) -> Self {
        let entry = Entry {
            code: Code::Fixed(index),
            slots: SlotSet::one(SlotClass::Fixed, index),
            max_rate: None,
        };
        self.events.insert(name, entry);
        self
    }

    pub(crate) fn select(&self, name: &str) -> Option<u64> {
        match self.events.get(name)?.code {
            Code::Select(select) => Some(select),
            Code::Fixed(_) => None,
        }
    }
}

impl EventMap for Names {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let name = match event {
            Event::Named(name) => name.as_str(),
            _ => "an event without a name",
        };
        let entry = self.events.get(name).ok_or_else(|| {
            Error::new(ErrorKind::UnsupportedEvent, format!("count {name}"))
                .with_reason("the map of this test has no such event")
        })?;
        let (user, kernel) = (
            filter.contains(Filter::USER),
            filter.contains(Filter::KERNEL),
        );
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let encoding = match (entry.code, self.cpu.scheme) {
            (Code::Fixed(index), _) => Encoding::Fixed(FixedCounter {
                index,
                control: flag(user, 2) as u8 | flag(kernel, 1) as u8,
            }),
            (Code::Select(code), Scheme::P5) => {
                let flags =
                    flag(user, P5Function::USER.into()) | flag(kernel, P5Function::KERNEL.into());
                Encoding::P5(P5Function(code as u16 | flags as u16))
            }
            (Code::Select(code), _) => Encoding::X86(X86Select {
                select: code | flag(user, X86Select::USER) | flag(kernel, X86Select::KERNEL),
                extra: Vec::new(),
            }),
        };
        let mut info = EventInfo::counter(name);
        info.max_rate = entry.max_rate;
        Ok(ResolvedEvent {
            encoding,
            slots: entry.slots,
            info,
        })
    }
}
