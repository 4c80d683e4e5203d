//! Details of events: `PAPI_event_info_t`.

use std::ffi::{c_int, c_uint};

use crate::abi::{EventInfo, MAX_INFO_TERMS, QualifiedEventInfo, V7_2};
use crate::boundary::call::done;
use crate::boundary::pointer::{put, write};
use crate::code::{EINVAL, ENOEVNT, ENOTPRESET, Outcome};
use crate::component::CPU;
use crate::event::name::code_of;
use crate::event::native::{Native, is_native, native};
use crate::event::preset::{is_preset, is_user_defined};
use crate::event::standard::PRESETS;
use crate::event::user_events::UserEvent;
use crate::event::{preset, user_events};
use crate::library::LIBRARY;

/// The longest text of `long_descr` that is also `short_descr`, with its NUL.
const SHORT: usize = 64;

fn describe(info: &mut EventInfo, description: &str) {
    put(&mut info.long_descr, description);
    match description.len() < SHORT {
        true => put(&mut info.short_descr, description),
        false => {
            let end = description.floor_char_boundary_before(SHORT - 4);
            put(
                &mut info.short_descr,
                &format!("{}...", &description[..end]),
            );
        }
    }
}

/// Cuts texts where a character begins.
trait Boundary {
    fn floor_char_boundary_before(&self, at: usize) -> usize;
}

impl Boundary for str {
    fn floor_char_boundary_before(&self, at: usize) -> usize {
        (0..=at.min(self.len()))
            .rev()
            .find(|at| self.is_char_boundary(*at))
            .unwrap_or(0)
    }
}

/// Lists the events that an event is derived from.
fn list(info: &mut EventInfo, terms: &[String]) {
    for (at, term) in terms.iter().take(MAX_INFO_TERMS).enumerate() {
        put(&mut info.name[at], term);
        info.code[at] = code_of(term).unwrap_or(0).cast_unsigned();
        info.count = (at + 1) as c_uint;
    }
}

fn of_preset(code: c_int) -> Outcome<EventInfo> {
    let (index, name) = preset::by_code(code)?;
    let mut info = EventInfo::zeroed();
    info.event_code = code.cast_unsigned();
    put(&mut info.symbol, name);
    describe(
        &mut info,
        quipu_events::counted_by(name).unwrap_or_default(),
    );
    info.component_index = CPU as c_int;
    info.event_type = PRESETS[index].1;
    let Some(formula) = preset::formula(index) else {
        put(&mut info.derived, "NOT_DERIVED");
        return Ok(info);
    };
    let derived = preset::derived(formula);
    put(&mut info.derived, derived);
    if derived == "DERIVED_POSTFIX" {
        put(&mut info.postfix, &preset::postfix(formula));
    }
    list(&mut info, formula.events());
    Ok(info)
}

fn of_user(code: c_int, event: &UserEvent) -> EventInfo {
    let mut info = EventInfo::zeroed();
    info.event_code = code.cast_unsigned();
    put(&mut info.symbol, &event.name);
    let [short, long, note] = &event.texts;
    put(&mut info.short_descr, short);
    put(&mut info.long_descr, long);
    put(&mut info.note, note);
    info.component_index = CPU as c_int;
    put(&mut info.derived, &event.derived);
    put(&mut info.postfix, &event.postfix);
    list(&mut info, &event.terms);
    info
}

fn of_native(code: c_int) -> Outcome<EventInfo> {
    let native = native(code, Native::clone)?;
    let mut info = EventInfo::zeroed();
    info.event_code = code.cast_unsigned();
    put(&mut info.symbol, &native.name);
    describe(&mut info, &native.description);
    info.component_index = native.component as c_int;
    let clock = quipu::Event::Software(quipu::Software::TaskClock);
    if native.spec.event == clock || native.spec.event == quipu::Software::CpuClock.into() {
        put(&mut info.units, "ns");
    }
    Ok(info)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_event_info(code: c_int, info: *mut EventInfo) -> c_int {
    done(|| {
        if info.is_null() {
            return Err(EINVAL);
        }
        let event_info = match (is_native(code), is_preset(code)) {
            (false, false) if is_user_defined(code) => {
                let event = user_events::by_code(code).ok_or(ENOEVNT)?;
                of_user(code, event)
            }
            (false, false) => return Err(ENOTPRESET),
            (is_native, _) => {
                LIBRARY.require()?;
                match is_native {
                    true => of_native(code)?,
                    false => of_preset(code)?,
                }
            }
        };
        if LIBRARY.version() < V7_2 {
            // SAFETY: not null, and the caller's to be written.
            return unsafe { write(info, event_info) };
        }
        let event_info = QualifiedEventInfo {
            event: EventInfo {
                // The bits of kinds are one further up.
                event_type: event_info.event_type << 1,
                ..event_info
            },
            ..QualifiedEventInfo::zeroed()
        };
        // SAFETY: not null, and the caller's to be written; its struct is that of the version it asked for.
        unsafe { write(info.cast::<QualifiedEventInfo>(), event_info) }
    })
}
