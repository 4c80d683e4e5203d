//! Enumeration: the events of each component in order, and the masks and modifiers of each.

use std::ffi::c_int;

use crate::abi::{NATIVE_MASK, PRESET_MASK, V7_2};
use crate::boundary::call::call;
use crate::boundary::pointer::{read, write};
use crate::code::{EINVAL, ENOCMP, ENOEVNT, OK, Outcome};
use crate::component::CPU;
use crate::component::disabled::disabled;
use crate::event::list::listed;
use crate::event::name::{code_of, parse};
use crate::event::native::{Native, Position, is_native, native, register};
use crate::event::preset::is_preset;
use crate::event::{preset, user_events};
use crate::library::LIBRARY;

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

/// Returns the code of the event at a position, which has one from then on.
fn code_at(component: usize, position: Position) -> Outcome<c_int> {
    let listed = listed(component).get(position.event).ok_or(ENOEVNT)?;
    let (name, description) = match position.mask {
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
    let is_modified = position.mask.is_some_and(|at| at >= listed.masks.len());
    let known = match is_modified {
        true => parse(&name),
        false => code_of(&name).and_then(|code| native(code, Native::clone)),
    };
    let unknown = || Native::new(quipu::Event::Named(name.clone()));
    Ok(register(Native {
        name: name.clone(),
        component,
        description,
        position: Some(position),
        ..known.unwrap_or_else(|_| unknown())
    }))
}

/// Returns the code of the next event of a component.
fn next(code: c_int, modifier: Modifier, component: usize) -> Outcome<c_int> {
    if modifier == Modifier::First {
        return code_at(
            component,
            Position {
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
        Some(Position { event, mask: None })
    };
    let position = native.position.or_else(named).ok_or(EINVAL)?;
    let next = match (modifier, position.mask) {
        (Modifier::Events, _) => Position {
            event: position.event + 1,
            mask: None,
        },
        (Modifier::Masks, mask) => Position {
            event: position.event,
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
                let position = match modifier {
                    ENUM_FIRST => 0,
                    _ => (from & !(PRESET_MASK | NATIVE_MASK)) as usize + 1,
                };
                return match user_events::code_at(position) {
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
