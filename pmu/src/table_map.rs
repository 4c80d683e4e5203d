//! An event map from a table: for the simulated PMU, for tests, and for a backend with few events.

use std::collections::HashMap;

use quipu_text::nearest_of;

use crate::SimSelect;
use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter,
    ResolvedEvent, Result, Scheme, SlotSet,
};

/// An [`EventMap`] of simulated events, or of those of a [scheme](Self::scheme) of the caller's.
///
/// An event is entered under its native name with its number, and is found by that name, by that
/// number as a raw event, and by every event it is [also](Self::also) entered as.
///
/// ```
/// use quipu_hal::{Event, EventInfo, EventMap, Filter, Hardware, SlotSet};
/// use quipu_pmu::TableMap;
///
/// let map = TableMap::new()
///     .event(7, EventInfo::counter("DIV_BUSY"), SlotSet::general(0b1))
///     .also(Hardware::StalledCyclesBackend);
/// let by_name = map.resolve(&Event::Named("DIV_BUSY".into()), Filter::default())?;
/// let by_kind = map.resolve(&Hardware::StalledCyclesBackend.into(), Filter::default())?;
/// assert_eq!(by_name, by_kind);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TableMap {
    cpu: CpuModel,
    scheme: Option<&'static str>,
    entries: Vec<Entry>,
    index: HashMap<Event, usize>,
}

#[derive(Debug, Clone)]
struct Entry {
    number: u32,
    info: EventInfo,
    slots: SlotSet,
}

impl TableMap {
    /// Returns a map without events, for a simulated CPU.
    pub fn new() -> Self {
        Self {
            cpu: CpuModel::new(
                CpuIdentity::X86 {
                    vendor: "QuipuSimPmu".into(),
                    family: 0,
                    model: 0,
                    stepping: 0,
                },
                Scheme::Simulated,
                Vec::new(),
            ),
            scheme: None,
            entries: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// Has events encoded as [`Encoding::Other`] of this scheme: the first word is the event's number, the second the
    /// levels, 1 for user mode and 2 for the kernel.
    ///
    /// ```
    /// use quipu_hal::{Encoding, Event, EventInfo, EventMap, Filter, SlotSet};
    /// use quipu_pmu::TableMap;
    ///
    /// let info = EventInfo::counter("DIV_BUSY").honouring(Filter::LEVELS);
    /// let map = TableMap::new().scheme("kpc").event(7, info, SlotSet::general(0b1));
    /// let found = map.resolve(&Event::Named("DIV_BUSY".into()), Filter::USER_ONLY)?;
    /// assert_eq!(found.encoding, Encoding::Other { scheme: "kpc", words: [7, 1, 0, 0] });
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    #[must_use]
    pub fn scheme(mut self, scheme: &'static str) -> Self {
        self.scheme = Some(scheme);
        self
    }

    /// Sets the description of the CPU.
    #[must_use]
    pub fn for_cpu(mut self, cpu: CpuModel) -> Self {
        self.cpu = cpu;
        self
    }

    /// Adds an event: its number on the simulated PMU, its description, and the slots that can count
    /// it. An event entered later under the same name or number hides the earlier.
    #[must_use]
    pub fn event(mut self, number: u32, info: EventInfo, slots: SlotSet) -> Self {
        let entry = self.entries.len();
        self.index
            .insert(Event::Named(info.name.clone().into_owned()), entry);
        let raw = quipu_hal::RawEvent::new(number.into());
        self.index.insert(raw.into(), entry);
        self.entries.push(Entry {
            number,
            info,
            slots,
        });
        self
    }

    /// Makes the event that was entered last available as another event too. Does nothing while there
    /// is none.
    #[must_use]
    pub fn also(mut self, event: impl Into<Event>) -> Self {
        if let Some(last) = self.entries.len().checked_sub(1) {
            self.index.insert(event.into(), last);
        }
        self
    }
}

impl Default for TableMap {
    fn default() -> Self {
        Self::new()
    }
}

impl EventMap for TableMap {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let Some(&entry) = self.index.get(event) else {
            return Err(self.unknown(event));
        };
        let entry = &self.entries[entry];
        let ignored = Filter::all() - filter - entry.info.honours;
        if !ignored.is_empty() {
            let attempted = format!("filter {}", entry.info.name);
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("only user and kernel mode are distinguished"));
        }
        let [user, kernel] = [Filter::USER, Filter::KERNEL].map(|level| filter.contains(level));
        let encoding = match self.scheme {
            Some(scheme) => {
                let levels = u64::from(user) | u64::from(kernel) << 1;
                let words = [entry.number.into(), levels, 0, 0];
                Encoding::Other { scheme, words }
            }
            None => {
                let mut select = SimSelect::new(entry.number);
                (select.user, select.kernel) = (user, kernel);
                Encoding::Simulated(select.bits())
            }
        };
        Ok(ResolvedEvent::new(
            encoding,
            entry.slots,
            entry.info.clone(),
        ))
    }
}

impl TableMap {
    fn unknown(&self, event: &Event) -> Error {
        let name = event.to_string();
        let reason = match self.scheme {
            None => "the simulated PMU has no such event",
            Some(_) => "there is no such event",
        };
        let error =
            Error::new(ErrorKind::UnsupportedEvent, format!("count {name}")).with_reason(reason);
        let names = self.entries.iter().map(|entry| &*entry.info.name);
        match nearest_of(&name, names).first() {
            Some(nearest) => error.with_hint(format!("the nearest name is {nearest}")),
            None => error,
        }
    }
}
