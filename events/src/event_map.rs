//! A CPU's table as backends take it: [`EventMap`] for one interface.

use std::borrow::Cow;

use quipu_events_format::name::{NameError, SelectedEvent, ends_in_mask};
use quipu_events_format::packed::EntryView;
use quipu_events_format::{Bits, Formula, cache_key, flag, is_software, shortened};
use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, ExtraRegister,
    Filter, MaxRate, P5Function, PerfConfig, RawEvent, ResolvedEvent, Result, Scheme, SlotSet,
    UncoreEvent, X86Select,
};
use quipu_text::{EventNames, libpfm4};

use crate::cpu_table::CpuTable;
use crate::encode::{Interface, PERF_TYPE_RAW, encode, slots};
use crate::increment::AMD_FLOPS;

/// The unit mask bits for the states of a cache line: modified, exclusive, shared, invalid.
const CACHE_STATES: u8 = 0x0f;

/// A CPU's table for one interface.
#[derive(Debug, Clone)]
pub struct CpuEvents {
    table: CpuTable,
    interface: Interface,
}

impl CpuTable {
    /// Returns the CPU's events encoded for an interface: the event map of a backend.
    pub fn events_for(&self, interface: Interface) -> CpuEvents {
        CpuEvents {
            table: self.clone(),
            interface,
        }
    }
}

impl CpuEvents {
    /// Returns the table.
    pub fn table(&self) -> &CpuTable {
        &self.table
    }

    /// Returns the interface.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::UnsupportedEvent,
            format!("resolve {} on {}", shortened(what), self.table.id()),
        )
    }

    fn generalized(&self, name: &str, filter: Filter) -> Result<ResolvedEvent> {
        match self.table.generalized_event(name) {
            Some(Ok(event)) => self.native(event, filter),
            Some(Err(reason)) => Err(self.unsupported(name).with_reason(reason)),
            None => Err(self
                .unsupported(name)
                .with_reason("this CPU has no event that counts it")),
        }
    }

    fn named(&self, name: &str, filter: Filter) -> Result<ResolvedEvent> {
        let error = match self.table.select(name) {
            Ok(selection) => return self.selected(name, &selection, filter),
            Err(error) => error,
        };
        if let Some(preset) = self.table.preset(name) {
            return self.preset(name, preset.formula, filter);
        }
        if let Some((pmu, _)) = name.split_once("::")
            && !pmu.is_empty()
            && !self.table.has_pmu(pmu)
            && self.table.architectural(name).is_none()
        {
            let own = self.table.pmu_names().last();
            let own = own.copied().unwrap_or(self.table.id());
            return Err(self.unsupported(name).with_reason(format!(
                "the PMU of this CPU is {own}, and not {}",
                shortened(pmu)
            )));
        }
        Err(self.name_error(name, &error))
    }

    /// Resolves a preset: one that is a single event counts like it; a formula has to be counted event by event.
    fn preset(
        &self,
        name: &str,
        formula: Result<Formula, String>,
        filter: Filter,
    ) -> Result<ResolvedEvent> {
        match formula {
            Ok(formula) => match formula.single() {
                Some(event) if self.table.generalized_event(event).is_some() => {
                    self.generalized(event, filter)
                }
                Some(event) if is_software(event) => Err(self
                    .unsupported(name)
                    .with_reason(format!("the operating system counts {event} without a PMU"))),
                Some(event) => self.native(event, filter),
                None => Err(Error::new(
                    ErrorKind::UnsupportedFeature,
                    format!("count {name} with one counter"),
                )
                .with_reason("it is a formula over several events")
                .with_hint(format!("count {}", formula.events().join(", ")))),
            },
            Err(reason) => Err(self.unsupported(name).with_reason(reason)),
        }
    }

    fn native(&self, name: &str, filter: Filter) -> Result<ResolvedEvent> {
        let selection = self
            .table
            .select(name)
            .map_err(|error| self.name_error(name, &error))?;
        self.selected(name, &selection, filter)
    }

    /// Resolves a native event whose name has been looked up.
    fn selected(
        &self,
        name: &str,
        selection: &SelectedEvent,
        filter: Filter,
    ) -> Result<ResolvedEvent> {
        let filter = match selection.levels {
            Some(levels) if self.interface != Interface::Linux => {
                filter.with_levels(filter & levels)
            }
            Some(levels) if filter.intersection(Filter::LEVELS) != levels => {
                return Err(levels_differ(name, levels, filter));
            }
            _ => filter,
        };
        let bits = selection.bits;
        let without_masks =
            [Scheme::P5, Scheme::Armv8, Scheme::Perf].contains(&self.table.scheme());
        if without_masks && bits.unit_mask != 0 {
            return Err(self
                .unsupported(name)
                .with_reason("the events of this CPU take no unit mask as a number"));
        }
        if let Some(reason) = self.table.refusal(bits, self.interface) {
            return Err(self.unsupported(name).with_reason(reason));
        }
        let encoding = encode(self.table.scheme(), bits, filter, self.interface, name)?;
        let mut info = EventInfo::counter(name.to_owned()).honouring(self.honoured());
        if bits.flags & flag::HAS_WORDS != 0 {
            self.add_words(name, &mut info);
        }
        Ok(ResolvedEvent::new(
            encoding,
            slots(bits, self.interface),
            info,
        ))
    }

    /// Adds unit and errata, which few entries have.
    fn add_words(&self, name: &str, info: &mut EventInfo) {
        let name = self.table.without_pmu(name);
        let head = name.split(':').next().unwrap_or(name);
        let (event, mask) = head.split_once('.').unwrap_or((head, ""));
        let first = name.split(':').nth(1).unwrap_or_default();
        let entry = self
            .table
            .entry(event, if mask.is_empty() { first } else { mask })
            .or_else(|| self.table.entry(event, ""));
        if let Some(entry) = entry {
            info.unit = Cow::Owned(entry.unit().to_owned());
            info.errata = entry
                .errata()
                .map(|erratum| format!("erratum {erratum} affects this event"))
                .collect();
        }
    }

    /// Returns the parts of a filter that the encoding, or Linux beside it, takes into account.
    fn honoured(&self) -> Filter {
        // x86 has no third level: a hypervisor on the host runs in kernel mode, and one below is
        // never counted.
        match (self.interface, self.table.scheme()) {
            (Interface::Linux, _) => Filter::all(),
            (_, Scheme::Amd10h) => Filter::LEVELS | Filter::WORLDS,
            _ => Filter::LEVELS,
        }
    }

    fn name_error(&self, name: &str, error: &NameError) -> Error {
        let refused = self.unsupported(name).with_reason(error.reason());
        let masks_of = match error {
            NameError::NeedsMask { event } => Some((event, "")),
            NameError::UnknownMask { event, part } => Some((event, part.as_str())),
            _ => None,
        };
        if let Some((event, part)) = masks_of {
            let masks = self.masks(event, part);
            if masks.is_empty() {
                return refused.with_hint(format!("{event} has no unit masks"));
            }
            return refused.with_hint(format!("{event} has {}", masks.join(", ")));
        }
        let mut names: Vec<String> = self
            .table
            .entries()
            .map(|(_, entry)| entry.name().to_owned())
            .collect();
        names.extend(self.table.aliases().map(str::to_owned));
        names.extend(self.table.presets().into_iter().map(|preset| preset.name));
        let near = quipu_text::nearest(name, names.iter().map(String::as_str));
        if near.is_empty() {
            return refused.with_hint("`quipu list native` shows the events of this CPU");
        }
        refused.with_hint(format!("did you mean {}?", near.join(", ")))
    }

    /// Returns the names of an event's masks, the first few: those that begin as what was written, if any do.
    fn masks(&self, event: &str, written: &str) -> Vec<String> {
        const SHOWN: usize = 24;
        let mut masks: Vec<String> = self
            .table
            .entries()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.event().eq_ignore_ascii_case(event) && !entry.mask().is_empty())
            .map(|entry| entry.mask().to_owned())
            .collect();
        let begins = |mask: &String| {
            let start = mask.get(..written.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(written))
        };
        if masks.iter().any(begins) {
            masks.retain(begins);
        }
        let count = masks.len();
        if count > SHOWN {
            masks.truncate(SHOWN);
            masks.push(format!("and {} more", count - SHOWN));
        }
        masks
    }

    /// Bits given as they are: passed on, with what the filter adds, to the counters that count them.
    fn raw(&self, raw: RawEvent, filter: Filter) -> Result<ResolvedEvent> {
        let what = format!("r{:x}", raw.config);
        let refuse = |reason: &str| {
            Error::new(ErrorKind::UnsupportedFeature, format!("encode {what}")).with_reason(reason)
        };
        let mut default = None;
        let encoding = match (self.table.scheme(), self.interface) {
            (Scheme::P5, _) => {
                let levels = encode(Scheme::P5, Bits::default(), filter, self.interface, &what)?;
                let Encoding::P5(levels) = levels else {
                    return Err(refuse("it is no Pentium function"));
                };
                if raw.config & !0x1ff != 0 || raw.config1 != 0 {
                    return Err(refuse("a Pentium function has nine bits"));
                }
                Encoding::P5(P5Function(levels.0 | raw.config as u16 & 0x13f))
            }
            (_, Interface::Linux) => Encoding::Perf(
                PerfConfig::new(PERF_TYPE_RAW, raw.config)
                    .with_config1(raw.config1)
                    .with_config2(raw.config2)
                    .with_config3(raw.config3),
            ),
            (Scheme::Armv8, _) => return Err(refuse("raw ARM events are for Linux")),
            (scheme, interface) => {
                let levels = encode(scheme, Bits::default(), filter, interface, &what)?;
                let Encoding::X86(mut word) = levels else {
                    return Err(refuse("it is no event select word"));
                };
                word.select |= raw.config & !of_the_filter(scheme);
                default = self.default_mask(&word);
                word.select |= default
                    .as_ref()
                    .map_or(0, |(_, mask)| u64::from(*mask) << 8);
                if raw.config1 != 0 {
                    let register = self.register_of(&word);
                    let address = register
                        .ok_or_else(|| refuse("it is not known which register config1 is for"))?;
                    word.extra.push(ExtraRegister {
                        address,
                        value: raw.config1,
                    });
                }
                Encoding::X86(word)
            }
        };
        let slots = match numbers(&encoding) {
            Some((number, unit_mask)) if !self.table.is_fallback() => self
                .slots_of_number(number, unit_mask)
                .intersection(SlotSet::ANY_GENERAL),
            _ => SlotSet::EMPTY,
        };
        // What the table has for fixed counters alone, or for none, may be tried on any.
        let slots = if slots.is_empty() {
            SlotSet::ANY_GENERAL
        } else {
            slots
        };
        let mut info = EventInfo::counter(what).honouring(self.honoured());
        info.errata.extend(default.map(|(event, mask)| {
            format!(
                "without a unit mask it counts nothing: counted as {event}, with mask {mask:#04x}"
            )
        }));
        Ok(ResolvedEvent::new(encoding, slots, info))
    }

    /// Returns the event that bits select and the unit mask that its name alone stands for, where the bits have none
    /// and would count nothing.
    fn default_mask(&self, word: &X86Select) -> Option<(String, u8)> {
        if word.unit_mask() != 0 || self.table.is_fallback() {
            return None;
        }
        let event = self.needing_mask(word.event())?;
        let bits = self.table.select(&event).ok()?.bits;
        let same = bits.code == word.event()
            && (bits.counter_mask, bits.second_mask, bits.register) == (0, 0, 0)
            && bits.flags & flag::ENCODED == 0;
        (same && bits.unit_mask != 0).then_some((event, bits.unit_mask))
    }

    /// Returns true if the CPU counts some events by two counters that are merged for it.
    fn merges_counters(&self) -> bool {
        let zen = matches!(
            self.table.model().identity,
            CpuIdentity::X86 { family: 0x17.., .. }
        );
        zen && self.table.scheme() == Scheme::Amd10h
    }

    /// Returns true if the event with a number has a unit mask bit for each cache state.
    fn counts_by_cache_state(&self, number: u16) -> bool {
        let states = |entry: &EntryView<'_>| {
            let bits = entry.bits();
            (bits.code, bits.unit_mask, entry.mask()) == (number, CACHE_STATES, "MESI")
        };
        self.table.find_entry(states).is_some()
    }

    /// Returns the event with a number that counts nothing with the unit mask 0: no entry has both.
    fn needing_mask(&self, number: u16) -> Option<String> {
        let mut event = None;
        for (_, entry) in self.table.entries() {
            let bits = entry.bits();
            if bits.code == number && bits.fixed == 0 {
                if bits.unit_mask == 0 && bits.flags & flag::NEEDS_MASK == 0 {
                    return None;
                }
                event.get_or_insert_with(|| entry.event().to_owned());
            }
        }
        event
    }

    /// Returns the counters for a number and unit mask: those of the entries that have both, or else of all that
    /// have the number.
    fn slots_of_number(&self, number: u16, unit_mask: u8) -> SlotSet {
        let mut exact = SlotSet::EMPTY;
        let mut any = SlotSet::EMPTY;
        for (_, entry) in self.table.entries() {
            let bits = entry.bits();
            if bits.code == number {
                let slots = slots(bits, self.interface);
                any = any.union(slots);
                if bits.unit_mask == unit_mask && bits.flags & flag::NEEDS_MASK == 0 {
                    exact = exact.union(slots);
                }
            }
        }
        match (exact.is_empty(), any.is_empty()) {
            (false, _) => exact,
            (true, false) => any,
            (true, true) => SlotSet::ANY_GENERAL,
        }
    }

    /// Returns the extra register that events with this number use.
    fn register_of(&self, word: &X86Select) -> Option<u32> {
        let entry = self.table.find_entry(|entry| {
            let bits = entry.bits();
            bits.code == word.event() && bits.unit_mask == word.unit_mask() && bits.register != 0
        })?;
        Some(entry.bits().register)
    }
}

/// Returns the number and the unit mask of an encoding for registers.
fn numbers(encoding: &Encoding) -> Option<(u16, u8)> {
    match encoding {
        Encoding::X86(word) => Some((word.event(), word.unit_mask())),
        Encoding::P5(function) => Some((function.event().into(), 0)),
        _ => None,
    }
}

/// Returns the select bits that say where an event counts, that it does, and that it interrupts, often found in
/// words from a manual (`0x5300c0`): the filter has the first, as Linux (`x86_pmu_hw_config`) leaves all of
/// them out of raw bits.
const fn of_the_filter(scheme: Scheme) -> u64 {
    let levels = X86Select::USER | X86Select::KERNEL | X86Select::ENABLE | X86Select::INTERRUPT;
    match scheme {
        Scheme::Amd10h => levels | X86Select::GUEST_ONLY | X86Select::HOST_ONLY,
        _ => levels,
    }
}

/// Returns the error for levels of a name that differ from those of the filter, which Linux keeps beside
/// the bits.
fn levels_differ(name: &str, levels: Filter, filter: Filter) -> Error {
    let letters = |levels: Filter| -> String {
        let all = [
            (Filter::USER, 'u'),
            (Filter::KERNEL, 'k'),
            (Filter::HYPERVISOR, 'h'),
        ];
        let named = all.iter().filter(|(level, _)| levels.contains(*level));
        named.map(|(_, letter)| letter).collect()
    };
    Error::new(ErrorKind::InvalidConfiguration, format!("resolve {name}"))
        .with_reason(format!(
            "its name says :{}, and the filter it is counted with :{}",
            letters(levels),
            letters(filter)
        ))
        .with_hint("leave the levels out of the name, and set the filter")
}

impl EventMap for CpuEvents {
    fn cpu(&self) -> &CpuModel {
        self.table.model()
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        match event {
            Event::Hardware(hardware) => self.generalized(hardware.name(), filter),
            Event::Cache(cache) => self.generalized(&cache_key(*cache), filter),
            Event::Named(name) => self.named(name, filter),
            Event::Raw(raw) => self.raw(*raw, filter),
            Event::Software(software) => Err(self
                .unsupported(software.name())
                .with_reason("the operating system counts it without a PMU")),
            other => Err(self
                .unsupported(&other.to_string())
                .with_reason("it is no event of a CPU's counters")),
        }
    }

    fn slots_of(&self, encoding: &Encoding) -> Result<SlotSet> {
        let Some((number, unit_mask)) = numbers(encoding) else {
            return Ok(SlotSet::ANY_GENERAL);
        };
        if self.table.is_fallback() {
            return Ok(SlotSet::ANY_GENERAL);
        }
        let what = format!("event {number:#x}");
        let refuse = |reason: &str| Err(self.unsupported(&what).with_reason(reason));
        let unknown = |e: &Error| e.kind() == ErrorKind::UnsupportedEvent;
        if self.table.decode(encoding).is_err_and(|e| unknown(&e)) {
            return refuse("the CPU has no such event");
        }
        if self.merges_counters() && number == AMD_FLOPS {
            return refuse(
                "it may grow by more than 15 in a cycle, which takes two counters, merged",
            );
        }
        if unit_mask & CACHE_STATES == 0 && self.counts_by_cache_state(number) {
            return refuse(
                "this event counts accesses by cache state, and no state (M, E, S, I) is asked for",
            );
        }
        if unit_mask == 0
            && let Some(event) = self.needing_mask(number)
        {
            return Err(self.name_error(&what, &NameError::NeedsMask { event }));
        }
        Ok(self.slots_of_number(number, unit_mask))
    }

    fn max_rate(&self, encoding: &Encoding) -> MaxRate {
        self.table.max_rate(encoding)
    }

    fn uncore(&self, name: &str) -> Option<UncoreEvent> {
        self.table.uncore_event(name)?.event()
    }

    fn has_event(&self, name: &str) -> bool {
        let name = self.table.without_pmu(name);
        let head = name.split(':').next().unwrap_or(name);
        let event = head.split('.').next().unwrap_or(head);
        [head, event]
            .iter()
            .any(|event| self.table.entry(event, "").is_some())
    }
}

impl EventNames for CpuEvents {
    fn ends_in_mask(&self, name: &str) -> bool {
        ends_in_mask(&self.table, self.table.without_pmu(name))
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        libpfm4::in_any_case(name).filter(|_| !self.has_event(name))
    }
}
