//! Resolution of events to encodings: the trait a database implements, and the description of an event.

use std::borrow::Cow;

use crate::{CpuModel, Encoding, Event, Filter, MaxRate, PmuEvent, Result, SlotClass};

/// Resolves events to encodings for one CPU.
///
/// The database implements it from its tables; backends hold one and know nothing else of it.
///
/// ```
/// use quipu_hal::{
///     CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter, ResolvedEvent, Result,
///     SlotSet, X86Select,
/// };
///
/// /// A map of one event, which counters 0 and 1 can count.
/// struct Retired(CpuModel);
///
/// impl EventMap for Retired {
///     fn cpu(&self) -> &CpuModel {
///         &self.0
///     }
///
///     fn resolve(&self, event: &Event, _: Filter) -> Result<ResolvedEvent> {
///         if *event != Event::Named("INST_RETIRED".into()) {
///             return Err(Error::new(ErrorKind::UnsupportedEvent, format!("count {event}")));
///         }
///         let select = X86Select::new(0xc0, 0).with_flags(X86Select::USER | X86Select::KERNEL);
///         let info = EventInfo::counter("INST_RETIRED").honouring(Filter::empty());
///         Ok(ResolvedEvent::new(Encoding::X86(select), SlotSet::general(0b11), info))
///     }
/// }
/// ```
pub trait EventMap: Send + Sync {
    /// The CPU the encodings are for.
    fn cpu(&self) -> &CpuModel;

    /// The encoding of an event counted where `filter` says.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](crate::ErrorKind::UnsupportedEvent) when the CPU has no such event, with
    /// the nearest names as the hint; [`UnsupportedFeature`](crate::ErrorKind::UnsupportedFeature)
    /// when the event cannot be filtered so.
    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent>;

    /// The counters that can count what an encoding selects, which raw bits may be. A map that does not
    /// have all events of its CPU takes any number for one that every general counter can count; so
    /// does the default.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](crate::ErrorKind::UnsupportedEvent) when the CPU has no such event, or it
    /// counts nothing with this unit mask.
    fn slots_of(&self, encoding: &Encoding) -> Result<SlotSet> {
        let _ = encoding;
        Ok(SlotSet::ANY_GENERAL)
    }

    /// Returns the most that a counter of what an encoding selects can count in a time. By default it is what the
    /// bits alone tell.
    fn max_rate(&self, encoding: &Encoding) -> MaxRate {
        MaxRate::of(encoding)
    }

    /// Returns the event of a unit outside of the cores (memory controller, interconnect, power control) that has this
    /// name. By default none has.
    fn uncore(&self, name: &str) -> Option<UncoreEvent> {
        let _ = name;
        None
    }

    /// Returns true if a name begins with that of an event of this CPU, whatever masks and modifiers
    /// follow: the error of [`resolve`](Self::resolve) is then authoritative. By default no name does.
    fn has_event(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

/// An event of a unit outside of the cores, as the operating system's PMU of the unit takes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UncoreEvent {
    /// The PMU and its terms. There may be several instances of the PMU, `uncore_imc_0`, `uncore_imc_1` and so on for
    /// `uncore_imc`: the count of the event is the sum over them.
    pub event: PmuEvent,
    /// The unit of its scaled values (`Bytes`); empty for a plain count.
    pub unit: Cow<'static, str>,
    /// The factor from a value to that unit.
    pub scale: f64,
}

impl UncoreEvent {
    /// Returns an event whose values are plain counts.
    pub const fn new(event: PmuEvent) -> Self {
        Self {
            event,
            unit: Cow::Borrowed(""),
            scale: 1.0,
        }
    }

    /// Sets the unit, and the factor from a value to it.
    #[must_use]
    pub fn with_unit(mut self, unit: impl Into<Cow<'static, str>>, scale: f64) -> Self {
        self.unit = unit.into();
        self.scale = scale;
        self
    }
}

/// An event as an [`EventMap`] resolved it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedEvent {
    /// The bits to program.
    pub encoding: Encoding,
    /// The counters that can count it.
    pub slots: SlotSet,
    /// Description of the event, which includes the native name it was resolved to.
    pub info: EventInfo,
}

impl ResolvedEvent {
    /// Returns an event with its encoding, the counters that can count it, and what is known of it.
    pub const fn new(encoding: Encoding, slots: SlotSet, info: EventInfo) -> Self {
        Self {
            encoding,
            slots,
            info,
        }
    }
}

/// A set of physical counters, by class and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SlotSet {
    general: u64,
    fixed: u64,
    free_running: u64,
}

impl SlotSet {
    /// No counter at all.
    pub const EMPTY: Self = Self {
        general: 0,
        fixed: 0,
        free_running: 0,
    };

    /// Every general counter, however many the CPU has.
    pub const ANY_GENERAL: Self = Self {
        general: u64::MAX,
        fixed: 0,
        free_running: 0,
    };

    /// One counter.
    pub const fn one(class: SlotClass, number: u8) -> Self {
        Self::EMPTY.with(class, number)
    }

    /// The general counters whose bits are set in `mask`.
    pub const fn general(mask: u64) -> Self {
        Self {
            general: mask,
            fixed: 0,
            free_running: 0,
        }
    }

    /// Adds a counter; numbers from 64 on are not held.
    #[must_use]
    pub const fn with(mut self, class: SlotClass, number: u8) -> Self {
        if number < 64 {
            let bit = 1 << number;
            match class {
                SlotClass::General => self.general |= bit,
                SlotClass::Fixed => self.fixed |= bit,
                SlotClass::FreeRunning => self.free_running |= bit,
            }
        }
        self
    }

    /// Returns true if the set holds a counter.
    pub const fn contains(&self, class: SlotClass, number: u8) -> bool {
        let mask = match class {
            SlotClass::General => self.general,
            SlotClass::Fixed => self.fixed,
            SlotClass::FreeRunning => self.free_running,
        };
        number < 64 && mask >> number & 1 == 1
    }

    /// The counters in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            general: self.general | other.general,
            fixed: self.fixed | other.fixed,
            free_running: self.free_running | other.free_running,
        }
    }

    /// The counters in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            general: self.general & other.general,
            fixed: self.fixed & other.fixed,
            free_running: self.free_running & other.free_running,
        }
    }

    /// Returns true if the set holds no counter.
    pub const fn is_empty(&self) -> bool {
        self.general | self.fixed | self.free_running == 0
    }
}

/// Description of an event that is being counted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventInfo {
    /// The name it was opened under: the event's own, or the native one it was resolved to.
    pub name: Cow<'static, str>,
    /// The unit of its values.
    pub unit: Cow<'static, str>,
    /// Factor from values to that unit; 1 for almost all events.
    pub scale: f64,
    /// Kind of the values.
    pub kind: ValueKind,
    /// The parts of a [`Filter`] that this event honours. An event may ignore filters (clocks count
    /// in every mode whatever is asked), and a report has to say so.
    pub honours: Filter,
    /// The privilege levels at which the event can occur at all. A context switch occurs in the kernel
    /// only: counted in user mode it would read an exact-looking 0.
    pub occurs_in: Filter,
    /// The most events a second, where it is known; it bounds the time in which a narrow counter can
    /// wrap.
    pub max_rate: Option<u64>,
    /// Known errata, one sentence each.
    pub errata: Vec<String>,
}

impl EventInfo {
    /// A plain counter of events that honours every filter.
    pub fn counter(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            unit: Cow::Borrowed(""),
            scale: 1.0,
            kind: ValueKind::Counter,
            honours: Filter::all(),
            occurs_in: Filter::LEVELS,
            max_rate: None,
            errata: Vec::new(),
        }
    }

    /// Sets the unit.
    #[must_use]
    pub fn with_unit(mut self, unit: impl Into<Cow<'static, str>>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Makes it a gauge.
    #[must_use]
    pub fn as_gauge(mut self) -> Self {
        self.kind = ValueKind::Gauge;
        self
    }

    /// Sets the most events a second.
    #[must_use]
    pub fn with_max_rate(mut self, max_rate: Option<u64>) -> Self {
        self.max_rate = max_rate;
        self
    }

    /// Sets the privilege levels at which it occurs.
    #[must_use]
    pub fn occurring_in(mut self, levels: Filter) -> Self {
        self.occurs_in = levels;
        self
    }

    /// Sets the parts of a filter that it honours.
    #[must_use]
    pub fn honouring(mut self, filter: Filter) -> Self {
        self.honours = filter;
        self
    }
}

/// Kind of an event's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ValueKind {
    /// A running count: differences, sums and scaling make sense.
    #[default]
    Counter,
    /// A momentary value (a temperature): never scaled, summed or differenced.
    Gauge,
}
