//! Enumeration: the events of each component in order, and the masks and modifiers of each.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::OnceLock;

use quipu::NativeEvents;

use crate::abi::{NATIVE_MASK, PRESET_MASK, V7_2};
use crate::code::{EINVAL, ENOCMP, ENOEVNT, OK, Outcome, call, read, write};
use crate::component::{CPU, UNCORE, disabled};
use crate::generalized::{self, CACHES, HARDWARE, OPERATIONS, RESULTS, SOFTWARE};
use crate::library::LIBRARY;
use crate::native::{Native, code_of, is_native, native, parse, register};
use crate::pmu_names::pmu_names;
use crate::preset::{self, has_counters, is_preset};
use crate::user_events;

/// The way that asks for the first event, in every version.
const ENUM_FIRST: c_int = 1;

/// A way to enumerate events: the `modifier` of `PAPI_enum_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modifier {
    /// Every event.
    Events,
    First,
    /// The first preset that belongs to a component other than that of the CPU; there are none.
    FirstOfComponent,
    /// Presets that can be counted.
    Available,
    /// Presets of a kind that can be counted, by the bit of the kind.
    Kind(u32),
    Masks,
    /// Another, which of presets may have those that can be counted.
    Other {
        available: bool,
    },
}

impl Modifier {
    /// Returns the one that a number stands for. Version 7.2 put one behind the second, and two behind the kinds.
    fn new(number: c_int, version: c_int) -> Outcome<Self> {
        Ok(match (number, version >= V7_2) {
            (0, _) => Self::Events,
            (ENUM_FIRST, _) => Self::First,
            (2, false) | (3, true) => Self::Available,
            (2, true) => Self::FirstOfComponent,
            (3..=14, false) => Self::Kind(1 << number),
            // Of the CPU, whose the presets are.
            (16, true) => Self::Events,
            (17, true) => Self::Available,
            (15, false) | (18, true) => Self::Masks,
            (_, true) => return Err(EINVAL),
            _ => Self::Other {
                available: number & 2 != 0,
            },
        })
    }
}

/// The place of an event in the list of its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    event: usize,
    mask: Option<usize>,
}

/// An event in the list of a component.
struct Listed {
    /// The name with its PMU.
    name: String,
    description: String,
    masks: Vec<(String, String)>,
    modifiers: &'static [(&'static str, &'static str)],
}

/// The modifiers of events of the CPU; those of software have all but the first two.
const MODIFIERS: [(&str, &str); 11] = [
    ("h=0", "counted in the hypervisor"),
    ("precise=0", "how precise the address of a sample is"),
    ("u=0", "counted in user mode"),
    ("k=0", "counted in the kernel"),
    ("period=0", "sampled after so many"),
    ("freq=0", "sampled so often in a second"),
    ("excl=0", "alone on the PMU"),
    ("mg=0", "counted in guests"),
    ("mh=0", "counted on the host"),
    ("cpu=0", "counted on this CPU"),
    ("pinned=0", "on a counter always"),
];

impl Listed {
    fn new(name: String, description: &str, modifiers: &'static [(&str, &str)]) -> Self {
        Self {
            name,
            description: description.to_owned(),
            masks: Vec::new(),
            modifiers,
        }
    }

    /// Returns a mask or modifier with its description: masks are first.
    fn mask(&self, at: usize) -> Option<(&str, &str)> {
        let masks = self.masks.iter().map(|(mask, what)| (&**mask, &**what));
        masks.chain(self.modifiers.iter().copied()).nth(at)
    }

    /// Returns true if a name is this event's, be it without its PMU, in another form, or with masks.
    fn is_named(&self, native: &Native) -> bool {
        let plain = |name: &str| {
            let event = name.rsplit("::").next().unwrap_or(name);
            event
                .split(':')
                .next()
                .unwrap_or(event)
                .to_ascii_uppercase()
        };
        let own = plain(&self.name);
        let generalized = generalized::named(&own);
        own == plain(&native.name)
            || generalized.is_some_and(|(event, _)| event == native.spec.event)
    }
}

/// Returns the events of a component.
fn listed(component: usize) -> &'static [Listed] {
    static CPU_EVENTS: OnceLock<Vec<Listed>> = OnceLock::new();
    static UNCORE_EVENTS: OnceLock<Vec<Listed>> = OnceLock::new();
    match component {
        CPU => CPU_EVENTS.get_or_init(cpu_events),
        UNCORE => UNCORE_EVENTS.get_or_init(uncore_events),
        _ => &[],
    }
}

/// Returns the number of native events of a component.
pub(crate) fn number_listed(component: usize) -> usize {
    listed(component).len()
}

/// Returns what can be counted without asking for it by a name of another form: software events, and where
/// there are counters, those of the hardware.
fn cpu_events() -> Vec<Listed> {
    let named = |name: &str, what: &str, modifiers| {
        Listed::new(format!("{}::{name}", generalized::PMU), what, modifiers)
    };
    let mut all: Vec<Listed> = Vec::new();
    if has_counters() {
        let hardware = HARDWARE.iter();
        all.extend(hardware.map(|(name, .., what)| named(name, what, &MODIFIERS)));
    }
    let software = SOFTWARE.iter();
    all.extend(software.map(|(name, .., what)| named(name, what, &MODIFIERS[2..])));
    all.retain(|listed| code_of(&listed.name).is_ok());
    if !has_counters() {
        return all;
    }
    all.extend(CACHES.iter().map(|(name, _, what)| {
        let mut listed = named(name, what, &MODIFIERS);
        let operations = OPERATIONS.iter().map(|(mask, _, what)| (*mask, *what));
        let results = RESULTS.iter().map(|(mask, _, what)| (*mask, *what));
        let masks = operations.chain(results);
        listed.masks = masks
            .map(|(mask, what)| (mask.to_owned(), what.to_owned()))
            .collect();
        listed
    }));
    for table in NativeEvents::this().tables().unwrap_or_default() {
        let pmu = pmu_names(table.id()).last().copied().unwrap_or(table.id());
        let mut events: BTreeMap<String, Listed> = BTreeMap::new();
        for details in table.events() {
            let name = format!("{pmu}::{}", details.event.to_ascii_uppercase());
            let description = details.description().unwrap_or_default().to_owned();
            let listed = events
                .entry(name.clone())
                .or_insert_with(|| Listed::new(name, "", &MODIFIERS));
            match details.mask.is_empty() {
                true => listed.description = description,
                false => {
                    let mask = details.mask.to_ascii_uppercase();
                    listed.masks.push((mask, description));
                }
            }
        }
        all.extend(events.into_values());
    }
    all
}

/// Returns the events of units outside of the cores that this kernel has.
fn uncore_events() -> Vec<Listed> {
    let units: Vec<String> = std::fs::read_dir("/sys/bus/event_source/devices")
        .map(|entries| {
            entries
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into())
                .collect()
        })
        .unwrap_or_default();
    let is_there = |pmu: &str| {
        let instance = |unit: &String| {
            let rest = unit.strip_prefix(pmu);
            rest.is_some_and(|rest| {
                rest.trim_start_matches('_')
                    .chars()
                    .all(|c| c.is_ascii_digit())
            })
        };
        units.iter().any(instance)
    };
    let mut all = Vec::new();
    for table in NativeEvents::this().tables().unwrap_or_default() {
        for details in table.uncore_events() {
            if is_there(details.pmu) {
                all.push(Listed::new(details.name.clone(), &details.encoded(), &[]));
            }
        }
    }
    all
}

/// Returns the code of the event at a place, which has one from then on.
fn code_at(component: usize, place: Place) -> Outcome<c_int> {
    let listed = listed(component).get(place.event).ok_or(ENOEVNT)?;
    let (name, description) = match place.mask {
        None => (listed.name.clone(), listed.description.clone()),
        Some(mask) => {
            let (mask, what) = listed.mask(mask).ok_or(ENOEVNT)?;
            // PAPI's utilities print what is behind the colon.
            let what = if what.is_empty() { mask } else { what };
            let description = format!("{}, masks:{what}", listed.description);
            (format!("{}:{mask}", listed.name), description)
        }
    };
    // An event that needs a mask has a code without one, too; counting it is refused.
    let is_modified = place.mask.is_some_and(|at| at >= listed.masks.len());
    let known = match is_modified {
        true => parse(&name),
        false => code_of(&name).and_then(|code| native(code, Native::clone)),
    };
    let unknown = || Native::new(quipu::Event::Named(name.clone()));
    Ok(register(Native {
        name: name.clone(),
        component,
        description,
        place: Some(place),
        ..known.unwrap_or_else(|_| unknown())
    }))
}

/// Returns the code of the next event of a component.
fn next(code: c_int, modifier: Modifier, component: usize) -> Outcome<c_int> {
    if modifier == Modifier::First {
        return code_at(
            component,
            Place {
                event: 0,
                mask: None,
            },
        )
        .map_err(|_| EINVAL);
    }
    let native = native(code, Native::clone).map_err(|_| EINVAL)?;
    let named = || {
        let mut events = listed(component).iter();
        let event = events.position(|listed| listed.is_named(&native))?;
        Some(Place { event, mask: None })
    };
    let place = native.place.or_else(named).ok_or(EINVAL)?;
    let next = match (modifier, place.mask) {
        (Modifier::Events, _) => Place {
            event: place.event + 1,
            mask: None,
        },
        (Modifier::Masks, mask) => Place {
            event: place.event,
            mask: Some(mask.map_or(0, |at| at + 1)),
        },
        _ => return Err(EINVAL),
    };
    code_at(component, next).map_err(|_| EINVAL)
}

/// Returns the code of the next preset that a modifier asks for.
fn next_preset(code: c_int, modifier: Modifier) -> Outcome<c_int> {
    match modifier {
        Modifier::First => return Ok(PRESET_MASK),
        Modifier::FirstOfComponent => return Err(ENOEVNT),
        Modifier::Masks if LIBRARY.version() >= V7_2 => return Err(EINVAL),
        _ => {}
    }
    let (presets, from) = (preset::known(), (code & !PRESET_MASK) as usize + 1);
    if from >= preset::CODES {
        return Err(EINVAL);
    }
    let wanted = |at: &usize| match modifier {
        Modifier::Events | Modifier::Other { available: false } => true,
        Modifier::Kind(bit) => presets[*at].1 & bit != 0 && preset::formula(*at).is_some(),
        _ => preset::formula(*at).is_some(),
    };
    let found = (from..presets.len()).find(wanted).ok_or(ENOEVNT)?;
    Ok(c_int::try_from(found).map_err(|_| EINVAL)? | PRESET_MASK)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_enum_event(code: *mut c_int, modifier: c_int) -> c_int {
    call(|| {
        // SAFETY: null, or the caller's code.
        let from = unsafe { read(code) }?;
        let component = match native(from, |native| native.component) {
            _ if preset::is_user_defined(from) => {
                let place = match modifier {
                    ENUM_FIRST => 0,
                    _ => (from & !(PRESET_MASK | NATIVE_MASK)) as usize + 1,
                };
                return match user_events::code_at(place) {
                    // SAFETY: as it was read.
                    Some(next) => unsafe { write(code, next) }.map(|()| OK),
                    None => Ok(ENOEVNT.number()),
                };
            }
            _ if is_preset(from) => CPU,
            Ok(component) => component,
            // The first may be asked for before any has a code.
            Err(_) if from == NATIVE_MASK && modifier == ENUM_FIRST => CPU,
            _ => return Err(ENOCMP),
        };
        // SAFETY: as it was read.
        unsafe { enumerate(code, from, modifier, component) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_enum_cmp_event(
    code: *mut c_int,
    modifier: c_int,
    component: c_int,
) -> c_int {
    call(|| {
        // SAFETY: null, or the caller's code.
        let from = unsafe { read(code) }?;
        let component = crate::component::valid(component)?;
        if disabled(component).is_some() || (is_preset(from) && component != CPU) {
            return Err(ENOCMP);
        }
        // SAFETY: as it was read.
        unsafe { enumerate(code, from, modifier, component) }
    })
}

/// Writes the next code, and returns what to return: the end of a list is not reported as an error.
///
/// # Safety
/// `code` may be written.
unsafe fn enumerate(
    code: *mut c_int,
    from: c_int,
    modifier: c_int,
    component: usize,
) -> Outcome<c_int> {
    if is_preset(from) || is_native(from) {
        LIBRARY.require()?;
    }
    let modifier = Modifier::new(modifier, LIBRARY.version())?;
    let next = match (is_preset(from), is_native(from)) {
        (true, _) => next_preset(from, modifier),
        (_, true) => next(from, modifier, component),
        _ => return Err(EINVAL),
    };
    match next {
        Ok(next) => {
            // SAFETY: the caller's promise.
            unsafe { write(code, next) }?;
            Ok(OK)
        }
        Err(end) => Ok(end.number()),
    }
}
