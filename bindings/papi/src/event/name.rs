//! Names of native events: libpfm4's, Quipu's and perf's.

use std::ffi::c_int;

use quipu::text::{EventNames, parse_event};
use quipu::{ErrorKind, Event, EventSpec, Filter, NativeEvents, Target};
use quipu_events::{CpuTable, Interface};
use quipu_hal::EventMap as _;

use crate::code::{ENOEVNT, Outcome};
use crate::component::{CPU, UNCORE, component_of_prefix};
use crate::event::generalized;
use crate::event::native::{Native, known_code_of, register};
use crate::event::pmu_names::pmu_names;
use crate::event_set::builder::{counted_here, registers};

/// Returns the code of a native event by its name: libpfm4's, Quipu's or perf's.
pub(crate) fn code_of(name: &str) -> Outcome<c_int> {
    if let Some(code) = known_code_of(name) {
        return Ok(code);
    }
    let native = parse(name)?;
    if !exists(&native) {
        return Err(ENOEVNT);
    }
    Ok(register(native))
}

/// Returns true if the machine knows the event, be it that it may not be counted now.
fn exists(native: &Native) -> bool {
    let target = match native.component {
        UNCORE => Target::AllCpus,
        _ => Target::CurrentThread,
    };
    let mut builder = counted_here(target);
    let spec = native
        .spec
        .clone()
        .with_filter(Filter::default().with_levels(Filter::USER));
    let opened = builder.events(spec).and_then(|builder| builder.open());
    let error = match &opened {
        Ok(set) => set.events().first().and_then(|event| event.error()),
        Err(error) => Some(error),
    };
    let unknown = [
        ErrorKind::UnsupportedEvent,
        ErrorKind::NoSuchDevice,
        ErrorKind::InvalidConfiguration,
    ];
    let is_software = matches!(native.spec.event, Event::Software(_));
    match (error, registers()) {
        (None, _) => true,
        // Events of the CPU are refused for another reason there, whether there are such or not.
        (Some(_), Some(_)) if !is_software => have_registers(&native.spec),
        (Some(error), _) => !unknown.contains(&error.kind()),
    }
}

/// Returns true if the registers of this CPU count an event.
fn have_registers(spec: &EventSpec) -> bool {
    let knows = |table: &CpuTable| {
        let map = table.events_for(Interface::Msr);
        map.resolve(&spec.event, spec.filter).is_ok()
    };
    let tables = NativeEvents::this().tables().unwrap_or_default();
    tables.iter().any(knows)
}

/// Levels and worlds that a name ends with, as libpfm4 writes them.
#[derive(Default)]
struct Modifiers {
    levels: Filter0,
    worlds: Filter0,
    pinned: bool,
    exclusive: bool,
    cpu: Option<u32>,
}

/// A filter that begins empty.
struct Filter0(Filter);

impl Default for Filter0 {
    fn default() -> Self {
        Self(Filter::empty())
    }
}

impl Modifiers {
    /// Takes a word that is a modifier; `false` for one that belongs to the name.
    fn take(&mut self, word: &str) -> Outcome<bool> {
        let (key, value) = match word.split_once('=') {
            None if word.eq_ignore_ascii_case("cpu") => return Err(ENOEVNT),
            None => (word, "1"),
            Some(both) => both,
        };
        let is_on = |value| match value {
            "1" | "y" => Ok(true),
            "0" | "n" => Ok(false),
            _ => Err(ENOEVNT),
        };
        let flag = match &*key.to_ascii_lowercase() {
            "u" => (&mut self.levels, Filter::USER),
            "k" => (&mut self.levels, Filter::KERNEL),
            "h" => (&mut self.levels, Filter::HYPERVISOR),
            "mg" => (&mut self.worlds, Filter::GUEST),
            "mh" => (&mut self.worlds, Filter::HOST),
            "pinned" => {
                self.pinned = is_on(value)?;
                return Ok(true);
            }
            "excl" => {
                self.exclusive = is_on(value)?;
                return Ok(true);
            }
            // They say how to sample, and change no count.
            "period" | "freq" | "precise" => {
                return value.parse::<u64>().map(|_| true).map_err(|_| ENOEVNT);
            }
            "cpu" => {
                self.cpu = Some(value.parse().map_err(|_| ENOEVNT)?);
                return Ok(true);
            }
            "hw_smpl" => return Err(ENOEVNT),
            _ => return Ok(false),
        };
        match is_on(value)? {
            true => flag.0.0 |= flag.1,
            false => flag.0.0 -= flag.1,
        }
        Ok(true)
    }

    fn filter(&self) -> Filter {
        let mut filter = Filter::default();
        if !self.levels.0.is_empty() {
            filter = filter.with_levels(self.levels.0);
        }
        if !self.worlds.0.is_empty() {
            filter = filter.difference(Filter::WORLDS).union(self.worlds.0);
        }
        filter
    }
}

/// Returns what a name stands for, which may be an event that this machine lacks.
pub(crate) fn parse(name: &str) -> Outcome<Native> {
    let (component, text) = match name.split_once(":::") {
        Some((prefix, rest)) => (Some(component_of_prefix(prefix).ok_or(ENOEVNT)?), rest),
        None => (None, name),
    };
    let (pmu, text) = match text.split_once("::") {
        Some((pmu, rest)) => (Some(pmu), rest),
        None => (None, text),
    };
    let mut modifiers = Modifiers::default();
    let mut words: Vec<&str> = Vec::new();
    for (at, word) in text.split(':').enumerate() {
        let is_mask = |words: &[&str]| {
            let whole = format!("{}:{word}", words.join(":"));
            !word.contains('=') && NativeEvents::this().ends_in_mask(&whole)
        };
        if at == 0 || is_mask(&words) || !modifiers.take(word)? {
            words.push(word);
        }
    }
    let (event, description, found_in) = event(pmu, &words.join(":")).ok_or(ENOEVNT)?;
    if component.is_some_and(|component| component != found_in) {
        return Err(ENOEVNT);
    }
    let plain = Native::new(event);
    Ok(Native {
        name: name.to_owned(),
        component: found_in,
        has_levels: !modifiers.levels.0.is_empty(),
        pinned: modifiers.pinned,
        exclusive: modifiers.exclusive,
        cpu: modifiers.cpu,
        description,
        spec: plain.spec.clone().with_filter(modifiers.filter()),
        ..plain
    })
}

/// Returns an event by its PMU, where that is named, and its name.
fn event(pmu: Option<&str>, name: &str) -> Option<(Event, String, usize)> {
    let is_generalized = pmu.is_none_or(|pmu| pmu.eq_ignore_ascii_case(generalized::PMU));
    if is_generalized && let Some((event, description)) = generalized::named(name) {
        return Some((event, description, CPU));
    }
    if pmu.is_some_and(|pmu| pmu == generalized::PMU) {
        let (system, name) = name.split_once(':')?;
        let tracepoint = Event::tracepoint(system, name);
        return Some((
            tracepoint,
            format!("the tracepoint {name} of {system}"),
            CPU,
        ));
    }
    if pmu == Some("perf_raw") {
        return parse_event(name)
            .ok()
            .map(|event| (event, "the bits as given".to_owned(), CPU));
    }
    for table in NativeEvents::this().tables().unwrap_or_default() {
        let names = pmu_names(table.id());
        if pmu.is_none_or(|pmu| names.contains(&pmu) || pmu == table.id()) {
            let named = Event::Named(name.to_owned());
            let map = table.events_for(Interface::Linux);
            if map.resolve(&named, Filter::default()).is_ok() {
                let details = table
                    .event(name)
                    .and_then(|details| details.description().map(str::to_owned));
                return Some((named, details.unwrap_or_default(), CPU));
            }
        }
        if let Some(details) = table.uncore_event(name) {
            let named = Event::Named(details.name.clone());
            return Some((named, format!("counted by {}", details.encoded()), UNCORE));
        }
    }
    // What perf takes, too: `sched:sched_switch`, `r01c0`, `cpu/event=0xc0/`.
    match pmu {
        Some(_) => None,
        None => Some((parse_event(name).ok()?, String::new(), CPU)),
    }
}
