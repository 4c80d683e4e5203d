//! Native events: names to codes and back. A code is given to a name when it is first used, and stays.

use std::ffi::{c_char, c_int};
use std::sync::PoisonError;

use quipu::text::{EventNames, parse_event};
use quipu::{ErrorKind, Event, EventSpec, Filter, NativeEvents, Target};
use quipu_events::{CpuTable, Interface};
use quipu_hal::EventMap as _;

use crate::abi::{MAX_STR_LEN, NATIVE_MASK, PRESET_MASK};
use crate::code::{EINVAL, ENOEVNT, Outcome, caller_text, done, write};
use crate::component::{CPU, UNCORE, component_of_prefix};
use crate::enumerate::Place;
use crate::event_set::counted_here;
use crate::event_set::cpus::registers;
use crate::library::LIBRARY;
use crate::pmu_names::pmu_names;
use crate::{generalized, preset, user_events};

/// An event with a code.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    /// The name as it was first written.
    pub(crate) name: String,
    pub(crate) component: usize,
    pub(crate) spec: EventSpec,
    /// True if its name says where it counts, so that the set's domain does not.
    pub(crate) has_levels: bool,
    /// True if it is to be on a counter always, or alone on the PMU; the kernel does so with all of its group.
    pub(crate) pinned: bool,
    pub(crate) exclusive: bool,
    /// The CPU it is counted on, where its name says so.
    pub(crate) cpu: Option<u32>,
    pub(crate) description: String,
    /// Its place in the list of its component, if it was enumerated.
    pub(crate) place: Option<Place>,
}

impl Native {
    /// Returns an event of the CPU without a name, counted where its set says.
    pub(crate) fn new(event: Event) -> Self {
        Self {
            name: String::new(),
            component: CPU,
            spec: EventSpec::new(event),
            has_levels: false,
            pinned: false,
            exclusive: false,
            cpu: None,
            description: String::new(),
            place: None,
        }
    }
}

/// All native events with a code.
pub(crate) struct Natives {
    known: Vec<Native>,
}

impl Natives {
    pub(crate) const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// Returns an event by its code.
    pub(crate) fn get(&self, code: c_int) -> Option<&Native> {
        self.known.get((code & !NATIVE_MASK) as usize)
    }

    fn code_at(at: usize) -> c_int {
        c_int::try_from(at).unwrap_or(c_int::MAX) | NATIVE_MASK
    }

    fn find(&self, name: &str) -> Option<c_int> {
        let same = |native: &Native| native.name.eq_ignore_ascii_case(name);
        self.known.iter().position(same).map(Self::code_at)
    }

    fn insert(&mut self, native: Native) -> c_int {
        if let Some(code) = self.find(&native.name) {
            let known = &mut self.known[(code & !NATIVE_MASK) as usize];
            if known.place.is_none() && native.place.is_some() {
                known.place = native.place;
                known.description = native.description;
            }
            return code;
        }
        self.known.push(native);
        Self::code_at(self.known.len() - 1)
    }
}

/// Returns true if a code is that of a native event.
pub(crate) fn is_native(code: c_int) -> bool {
    code & NATIVE_MASK != 0 && code & PRESET_MASK == 0
}

/// Returns what is asked of a native event by its code.
pub(crate) fn native<T>(code: c_int, tell: impl FnOnce(&Native) -> T) -> Outcome<T> {
    let natives = LIBRARY
        .natives
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    natives.get(code).map(tell).ok_or(ENOEVNT)
}

/// The words of names that hold for all events which are counted together.
#[derive(Default)]
pub(crate) struct Together {
    /// True if they are to be on counters always.
    pub(crate) pinned: bool,
    /// True if they are to be alone on the PMU.
    pub(crate) exclusive: bool,
    /// The CPU they are counted on.
    pub(crate) cpu: Option<u32>,
}

impl Together {
    /// Returns what the names of these events say.
    pub(crate) fn of(codes: &[c_int]) -> Self {
        let natives = LIBRARY
            .natives
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let codes = codes.iter().filter(|code| is_native(**code));
        codes
            .filter_map(|code| natives.get(*code))
            .fold(Self::default(), |all, native| Self {
                pinned: all.pinned || native.pinned,
                exclusive: all.exclusive || native.exclusive,
                cpu: all.cpu.or(native.cpu),
            })
    }
}

/// Gives an event a code.
pub(crate) fn register(native: Native) -> c_int {
    let mut natives = LIBRARY
        .natives
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    natives.insert(native)
}

/// Returns the code of a native event by its name: libpfm4's, Quipu's or perf's.
pub(crate) fn code_of(name: &str) -> Outcome<c_int> {
    let known = {
        let natives = LIBRARY
            .natives
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        natives.find(name)
    };
    if let Some(code) = known {
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

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_event_name_to_code(name: *const c_char, code: *mut c_int) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        if code.is_null() {
            return Err(EINVAL);
        }
        LIBRARY.require()?;
        let found = any_code_of(&name)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe { write(code, found) }
    })
}

/// Returns the code of a preset, an event of the user's own or a native event by its name.
pub(crate) fn any_code_of(name: &str) -> Outcome<c_int> {
    match preset::code_of(name).or_else(|| user_events::code_of(name)) {
        Some(code) => Ok(code),
        None => code_of(name),
    }
}

/// Returns the name of an event by its code.
pub(crate) fn name_of(code: c_int) -> Outcome<String> {
    match is_native(code) {
        true => native(code, |native| native.name.clone()),
        false => match user_events::by_code(code) {
            Some(event) => Ok(event.name.clone()),
            None => preset::by_code(code).map(|(_, preset)| preset.to_owned()),
        },
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_event_code_to_name(code: c_int, out: *mut c_char) -> c_int {
    done(|| {
        if out.is_null() {
            return Err(EINVAL);
        }
        let name = name_of(code)?;
        let mut text = [0; MAX_STR_LEN];
        crate::code::put(&mut text, &name);
        let length = text.iter().position(|c| *c == 0).unwrap_or(MAX_STR_LEN - 1) + 1;
        // SAFETY: the caller's buffer takes a name and its NUL, of `PAPI_MAX_STR_LEN` at most.
        unsafe { out.copy_from_nonoverlapping(text.as_ptr(), length) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_event_component(code: c_int) -> c_int {
    crate::code::call(|| {
        let component = match preset::is_preset(code) || preset::is_user_defined(code) {
            true => CPU,
            false => native(code, |native| native.component)?,
        };
        Ok(component as c_int)
    })
}

/// Returns a code if there is no such event here.
pub(crate) fn query(code: c_int) -> Outcome {
    match is_native(code) {
        true => native(code, |_| ()),
        false if user_events::by_code(code).is_some() => Ok(()),
        false => match preset::by_code(code) {
            Ok((index, _)) => preset::query(index),
            Err(code) => Err(code),
        },
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_query_event(code: c_int) -> c_int {
    done(|| query(code))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_query_named_event(name: *const c_char) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        LIBRARY.require()?;
        query(any_code_of(&name)?)
    })
}
