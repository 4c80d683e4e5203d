//! The events of a CPU by name, described for C: native, generalized, presets.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use quipu::{Event, Filter};
use quipu_events::{CpuTable, EventDetails, Interface};
use quipu_hal::{EventMap, SlotClass, SlotSet};
use quipu_text::{Generalized, generalized};

use crate::boundary::{self, Versioned};
use crate::failure::{Failure, pointer, text};

/// Which list of a CPU's events.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_event_kind {
    /// The vendor's: every event, and every event with one of its unit masks ("EVENT.MASK").
    QUIPU_NATIVE = 0,
    /// The portable names: hardware, software and cache events.
    QUIPU_GENERALIZED = 1,
    /// PAPI's names and the formulas they are here.
    QUIPU_PRESET = 2,
}

/// Properties of an event of a CPU; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_name_flag {
    /// It cannot be counted without a unit mask.
    QUIPU_NEEDS_MASK = 1,
    /// This unit mask is taken when none is named.
    QUIPU_DEFAULT_MASK = 2,
    /// The vendor advises against it.
    QUIPU_DEPRECATED = 4,
    /// The operating system counts it; the CPU has no part in it.
    QUIPU_SOFTWARE = 8,
    /// This unit mask may be put together with others of its event ("EVENT.ONE:OTHER").
    QUIPU_MASK_COMBINES = 16,
    /// It counts rising edges.
    QUIPU_EDGE = 32,
    /// Its comparison with the counter mask is inverted.
    QUIPU_INVERT = 64,
    /// It counts on all threads of the core.
    QUIPU_ANY_THREAD = 128,
    /// It counts in transactional regions.
    QUIPU_IN_TX = 256,
    /// It leaves out what aborted transactions counted.
    QUIPU_IN_TX_CHECKPOINTED = 512,
    /// It is compared with the counter mask for equality.
    QUIPU_EQUAL = 1024,
    /// Pentium: it counts clocks, not events.
    QUIPU_CLOCKS = 2048,
}

/// An event of a CPU. Set `size` first (QUIPU_INIT). Texts stay until the CPU is closed; those that
/// there are none of are null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_name_info {
    /// sizeof (quipu_name_info).
    pub size: usize,
    /// Its name, as quipu_set_add() takes it.
    pub name: *const c_char,
    /// Native: the event's part of the name.
    pub event: *const c_char,
    /// Native: the unit mask's part of the name.
    pub mask: *const c_char,
    /// A sentence that says what it counts, where its source has one; for a preset its formula too, after a colon.
    pub description: *const c_char,
    /// The unit of its values; empty for a plain count.
    pub unit: *const c_char,
    /// Generalized: the native event it is here. Preset: its events, with commas between them.
    pub stands_for: *const c_char,
    /// Why this CPU has no such generalized event or preset.
    pub reason: *const c_char,
    /// Native: what to use instead of one that is deprecated.
    pub instead: *const c_char,
    /// Native: the numbers of its errata, with commas between them.
    pub errata: *const c_char,
    /// Sum of quipu_name_flag.
    pub flags: u32,
    /// Native: the event number.
    pub code: u32,
    /// Native: the unit mask.
    pub unit_mask: u32,
    /// Native: the counter mask.
    pub counter_mask: u32,
    /// Native: which general counters can count it, a bit each; all ones when any can.
    pub general_counters: u64,
    /// Native: which fixed counters can count it, a bit each.
    pub fixed_counters: u64,
    /// Native: the value of the extra register it needs; without one, the event number if that is above 32 bits.
    pub extra_value: u64,
    /// Native: the extra register it needs, or 0.
    pub extra_register: u32,
    /// Native: the second unit mask (Intel).
    pub second_mask: u32,
    /// Native: the group of the unit mask, from 1, in an event where one of each group makes up the whole;
    /// 0 for none.
    pub mask_group: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_name_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// An event of a list, with its texts: name, event, mask, description, unit, stands_for, reason,
/// instead, errata.
pub(crate) struct Listed {
    pub(crate) info: quipu_name_info,
    texts: [Option<CString>; 9],
}

// SAFETY: its pointers are to its own texts, which are never changed.
unsafe impl Send for Listed {}
// SAFETY: as above.
unsafe impl Sync for Listed {}

impl Listed {
    fn new(mut info: quipu_name_info, texts: [Option<&str>; 9]) -> Self {
        let texts = texts.map(|line| line.map(text));
        [
            info.name,
            info.event,
            info.mask,
            info.description,
            info.unit,
            info.stands_for,
            info.reason,
            info.instead,
            info.errata,
        ] = texts.each_ref().map(|text| pointer(text.as_ref()));
        Self { info, texts }
    }

    fn native(cpu: &CpuTable, event: &EventDetails) -> Self {
        let mut info: quipu_name_info = boundary::zeroed();
        let flag = |set: bool, flag: quipu_name_flag| if set { flag as u32 } else { 0 };
        info.flags = flag(event.needs_mask, quipu_name_flag::QUIPU_NEEDS_MASK)
            | flag(event.is_default, quipu_name_flag::QUIPU_DEFAULT_MASK)
            | flag(event.is_deprecated, quipu_name_flag::QUIPU_DEPRECATED)
            | event
                .flags
                .iter()
                .fold(0, |bits, word| bits | word_flag(word));
        info.code = event.code as u32;
        info.unit_mask = event.unit_mask.into();
        info.second_mask = event.second_mask.into();
        info.mask_group = event.group.into();
        info.counter_mask = event.counter_mask.into();
        (info.general_counters, info.fixed_counters) = counters(event.slots);
        if let Some((register, value)) = event.register {
            (info.extra_register, info.extra_value) = (register, value);
        } else if event.code > u32::MAX.into() {
            info.extra_value = event.code;
        }
        let named = Event::Named(event.name.clone());
        let resolved = cpu
            .events_for(Interface::Msr)
            .resolve(&named, Filter::default());
        let errata = event.errata.join(",");
        let texts = [
            Some(&*event.name),
            Some(&*event.event),
            Some(&*event.mask).filter(|mask| !mask.is_empty()),
            event.description(),
            Some(resolved.as_ref().map_or("", |event| &event.info.unit)),
            None,
            None,
            event.instead.as_deref(),
            Some(&*errata).filter(|errata| !errata.is_empty()),
        ];
        Self::new(info, texts)
    }

    /// A name that stands for native events, or the reason why it does not.
    fn named(
        name: &str,
        description: Option<&str>,
        unit: Option<&str>,
        flags: u32,
        stands_for: Option<Result<&str, &str>>,
    ) -> Self {
        let info = quipu_name_info {
            flags,
            ..boundary::zeroed()
        };
        let mut texts = [None; 9];
        (texts[0], texts[3], texts[4]) = (Some(name), description, unit);
        match stands_for {
            Some(Ok(events)) => texts[5] = Some(events),
            Some(Err(reason)) => texts[6] = Some(reason),
            None => {}
        }
        Self::new(info, texts)
    }

    /// Returns true if this is its name, in any letter case.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let own = self.texts[0].as_ref().and_then(|own| own.to_str().ok());
        own.is_some_and(|own| own.eq_ignore_ascii_case(name))
    }
}

/// The flag that a property of an event is here; 0 for one that this version of the header has no flag for.
fn word_flag(word: &str) -> u32 {
    use quipu_name_flag::*;

    match word {
        "combines" => QUIPU_MASK_COMBINES as u32,
        "edge" => QUIPU_EDGE as u32,
        "invert" => QUIPU_INVERT as u32,
        "any-thread" => QUIPU_ANY_THREAD as u32,
        "in-tx" => QUIPU_IN_TX as u32,
        "in-tx-cp" => QUIPU_IN_TX_CHECKPOINTED as u32,
        "equal" => QUIPU_EQUAL as u32,
        "clocks" => QUIPU_CLOCKS as u32,
        _ => 0,
    }
}

/// The counters of a set: general ones, all ones for any, and fixed ones.
pub(crate) fn counters(slots: SlotSet) -> (u64, u64) {
    let mask = |class| {
        let numbers = (0..64).filter(|&number| slots.contains(class, number));
        numbers.fold(0, |mask, number| mask | 1 << number)
    };
    (mask(SlotClass::General), mask(SlotClass::Fixed))
}

/// The events of each quipu_event_kind, listed when they are first asked for.
#[derive(Default)]
pub(crate) struct Lists([OnceLock<Vec<Listed>>; 3]);

impl Lists {
    /// Returns the events of a kind on a CPU.
    pub(crate) fn list(&self, kind: u32, cpu: &CpuTable) -> Result<&[Listed], Failure> {
        let [natives, portable, formulas] = &self.0;
        let (make, list): (fn(&CpuTable) -> Vec<Listed>, _) = match kind {
            0 => (native, natives),
            1 => (generalized_of, portable),
            2 => (presets, formulas),
            other => {
                let reason = format!("there is no kind {other}");
                return Err(Failure::invalid("list events", reason));
            }
        };
        Ok(list.get_or_init(|| make(cpu)))
    }
}

fn native(table: &CpuTable) -> Vec<Listed> {
    let events = table.events();
    events
        .iter()
        .map(|event| Listed::native(table, event))
        .collect()
}

fn generalized_of(table: &CpuTable) -> Vec<Listed> {
    let known = table.generalized();
    let one = |event: Generalized| {
        let description = quipu_text::describe(&event.event);
        let description = description.as_deref();
        if let Event::Software(software) = event.event {
            let (unit, flag) = (Some(software.unit()), quipu_name_flag::QUIPU_SOFTWARE);
            return Listed::named(&event.name, description, unit, flag as u32, None);
        }
        let here = known.iter().find(|known| known.name == event.name);
        let stands_for = here.map_or(Err("this CPU has no event that counts it"), |here| {
            here.event.as_deref().map_err(String::as_str)
        });
        Listed::named(&event.name, description, Some(""), 0, Some(stands_for))
    };
    generalized().map(one).collect()
}

fn presets(table: &CpuTable) -> Vec<Listed> {
    let presets = table.presets();
    let one = |preset: &quipu_events::PresetEvent| {
        let events = preset.formula.as_ref().map(|f| f.events().join(","));
        let stands_for = events.as_deref().map_err(|reason| reason.as_str());
        let formula = preset.formula.as_ref().ok().map(ToString::to_string);
        let words = preset.description().map(str::to_owned);
        let parts: Vec<String> = words.into_iter().chain(formula).collect();
        let description = Some(parts.join(": ")).filter(|text| !text.is_empty());
        Listed::named(
            &preset.name,
            description.as_deref(),
            None,
            0,
            Some(stands_for),
        )
    };
    presets.iter().map(one).collect()
}
