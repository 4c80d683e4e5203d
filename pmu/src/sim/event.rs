//! Events of the simulated PMU.

use std::time::Duration;

use quipu_hal::{Event, EventInfo, Filter, Hardware, SlotClass, SlotSet, ValueKind};

use super::{Rate, Script, SimSelect};

/// An event of the simulated PMU.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SimEvent {
    /// Its number in the select register; not 0, and once in a model.
    pub number: u32,
    /// Its native name.
    pub name: String,
    /// Portable events it is.
    pub events: Vec<Event>,
    /// The slots that can count it.
    pub slots: SlotSet,
    /// The longest run of events a second that the event map states.
    pub max_rate: Option<u64>,
    /// Its kind: a counter accumulates, a gauge shows the level of its script.
    pub kind: ValueKind,
    /// When it happens.
    pub script: Script,
    /// When it happens instead on single CPUs.
    pub on_cpu: Vec<(u32, Script)>,
}

impl SimEvent {
    /// Returns a counter that any general slot can count.
    pub fn new(number: u32, name: impl Into<String>, script: Script) -> Self {
        Self {
            number,
            name: name.into(),
            events: Vec::new(),
            slots: SlotSet::ANY_GENERAL,
            max_rate: None,
            kind: ValueKind::Counter,
            script,
            on_cpu: Vec::new(),
        }
    }

    /// Makes it available as a portable event too.
    #[must_use]
    pub fn also(mut self, event: impl Into<Event>) -> Self {
        self.events.push(event.into());
        self
    }

    /// Sets the slots that can count it.
    #[must_use]
    pub fn on_slots(mut self, slots: SlotSet) -> Self {
        self.slots = slots;
        self
    }

    /// Sets the maximum rate, in events a second.
    #[must_use]
    pub fn with_max_rate(mut self, rate: u64) -> Self {
        self.max_rate = Some(rate);
        self
    }

    /// Makes it a gauge.
    #[must_use]
    pub fn as_gauge(mut self) -> Self {
        self.kind = ValueKind::Gauge;
        self
    }

    /// Sets another script on one CPU.
    #[must_use]
    pub fn on_cpu(mut self, cpu: u32, script: Script) -> Self {
        self.on_cpu.push((cpu, script));
        self
    }

    /// Returns the events of the default model. No two happen at the same rate, and those that happen
    /// steadily have another one on CPU 1 (half of each mode, plus 1 in user and 3 in kernel mode),
    /// so that a mix-up shows. Cycles state a maximum of 6 and instructions one of 12 events a
    /// nanosecond, the others none.
    ///
    /// | number | name | portable event | slots | a microsecond, user + kernel |
    /// | --- | --- | --- | --- | --- |
    /// | 1 | `CYCLES` | cycles | any | 2000 + 1000 |
    /// | 2 | `INSTRUCTIONS` | instructions | any | 4500 + 700 |
    /// | 3 | `BRANCHES` | branches | any | 900 + 130 |
    /// | 4 | `BRANCH_MISSES` | branch-misses | any | 17 + 6 |
    /// | 5 | `CACHE_REFERENCES` | cache-references | any | 80 + 41 |
    /// | 6 | `CACHE_MISSES` | cache-misses | any | 11 + 3 |
    /// | 7 | `FLOPS` | | general 0 | 1600 + 0 |
    /// | 8 | `CYCLES_DIV_BUSY` | | general 0 | 190 + 8 |
    /// | 9 | `PAGE_WALKS` | | general 0, 1 | 5 + 2 |
    /// | 10 | `FILL_BUFFER_FULL` | | general 2, 3 | in phases: 1 ms at 600 + 0, 3 ms at 20 + 4 |
    /// | 11 | `SYSTEM_CALLS` | | any | one at 0.5 ms, 1000 at 2 ms, in kernel mode |
    /// | 12 | `TEMPERATURE` | | any | a gauge: 45 for 10 ms, then 60 for 10 ms |
    /// | 13 | `REFERENCE_CYCLES` | ref-cycles | fixed 2, which the default model lacks | 1700 + 850 |
    pub fn ready_made() -> Vec<Self> {
        let steady = |number, name: &str, user, kernel| {
            Self::new(number, name, Script::steady(Rate::new(user, kernel)))
                .on_cpu(1, Script::steady(Rate::new(user / 2 + 1, kernel / 2 + 3)))
        };
        let ms = Duration::from_millis;
        let bursts = Script::steady(Rate::default())
            .with_burst(Duration::from_micros(500), 0, 1)
            .with_burst(ms(2), 0, 1000);
        let fills = Script::phases([(ms(1), Rate::new(600, 0)), (ms(3), Rate::new(20, 4))]);
        let warmth = Script::phases([(ms(10), Rate::new(45, 0)), (ms(10), Rate::new(60, 0))]);
        vec![
            steady(1, "CYCLES", 2000, 1000)
                .also(Hardware::Cycles)
                .with_max_rate(6_000_000_000),
            steady(2, "INSTRUCTIONS", 4500, 700)
                .also(Hardware::Instructions)
                .with_max_rate(12_000_000_000),
            steady(3, "BRANCHES", 900, 130).also(Hardware::Branches),
            steady(4, "BRANCH_MISSES", 17, 6).also(Hardware::BranchMisses),
            steady(5, "CACHE_REFERENCES", 80, 41).also(Hardware::CacheReferences),
            steady(6, "CACHE_MISSES", 11, 3).also(Hardware::CacheMisses),
            steady(7, "FLOPS", 1600, 0).on_slots(SlotSet::general(0b1)),
            steady(8, "CYCLES_DIV_BUSY", 190, 8).on_slots(SlotSet::general(0b1)),
            steady(9, "PAGE_WALKS", 5, 2).on_slots(SlotSet::general(0b11)),
            Self::new(10, "FILL_BUFFER_FULL", fills).on_slots(SlotSet::general(0b1100)),
            Self::new(11, "SYSTEM_CALLS", bursts),
            Self::new(12, "TEMPERATURE", warmth).as_gauge(),
            steady(13, "REFERENCE_CYCLES", 1700, 850)
                .also(Hardware::RefCycles)
                .on_slots(SlotSet::one(SlotClass::Fixed, 2)),
        ]
    }

    pub(super) fn is_gauge(&self) -> bool {
        self.kind == ValueKind::Gauge
    }

    /// Returns its description. The simulated machine has no hypervisor mode, so leaving that out is
    /// honoured too.
    pub(super) fn info(&self) -> EventInfo {
        let mut info = EventInfo::counter(self.name.clone())
            .honouring(Filter::LEVELS)
            .with_max_rate(self.max_rate);
        info.kind = self.kind;
        info
    }

    /// Its count or level on a CPU at a time.
    pub(super) fn value(&self, cpu: u32, select: SimSelect, time: u64) -> u64 {
        let own = self.on_cpu.iter().find(|(number, _)| *number == cpu);
        let script = own.map_or(&self.script, |(_, script)| script);
        if self.is_gauge() {
            script.level_as(select, time)
        } else {
            script.count_as(select, time)
        }
    }
}
