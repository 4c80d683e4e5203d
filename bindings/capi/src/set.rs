//! Event sets: described, opened, counting, closed.

mod events;
mod open;
mod overhead;

use std::ffi::c_char;

use quipu::{EventSet, EventSetBuilder, GroupSpec, IntoGroups, SetEvent};

use crate::boundary::{self, borrow, guarded};
use crate::config::{Config, quipu_config};
use crate::failure::Failure;
use crate::handle::HandleTable;
use crate::quipu_status;

pub use events::*;
pub(crate) use open::{Form, OpenEvent, OpenSet, Run};
pub use overhead::*;

/// An event set: several events and groups on one target, possibly on several backends. A handle, not
/// an address. One thread at a time may use it, any thread; a second meanwhile gets QUIPU_EINUSE.
pub struct quipu_set {
    _opaque: (),
}

pub(crate) static SETS: HandleTable<Set> = HandleTable::new(1, "event set");

/// A set before it is opened, and after.
pub(crate) enum Set {
    Described {
        config: Config,
        groups: Vec<GroupSpec>,
        /// Names and formulas.
        presets: Vec<(String, String)>,
    },
    Open(OpenSet),
}

impl Set {
    pub(crate) fn open_mut(&mut self, attempted: &str) -> Result<&mut OpenSet, Failure> {
        match self {
            Self::Open(open) => Ok(open),
            Self::Described { .. } => Err(Failure::invalid(
                attempted,
                "the event set is not open yet (quipu_set_open)",
            )),
        }
    }
}

/// Makes an event set that has no events yet; a null `config` is the calling thread, counted by the
/// backends of this machine. quipu_set_close() closes it.
///
/// Returns QUIPU_OK and the handle in `out`, or QUIPU_EINVAL for a wrong argument, or why a backend, file or CPU
/// that `config` names cannot be used here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_create(
    config: *const quipu_config,
    out: *mut *mut quipu_set,
) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { Config::read(config) }?;
        let set = Set::Described {
            config,
            groups: Vec::new(),
            presets: Vec::new(),
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::export(&SETS, set, out) }
    })
}

/// Adds events, in any spelling that `quipu stat -e` takes: one ("page-faults:u"), several with commas
/// between them, and groups in braces ("{cycles,instructions}:u"), whose members are counted at the
/// same time or not at all. May be called again until the set is opened.
///
/// Returns QUIPU_EINVAL when the text is malformed (nothing of it is added then) or the set is open.
/// Only quipu_set_open() finds out if an event exists here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_add(set: *mut quipu_set, events: *const c_char) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let events = unsafe { boundary::text(events, "events") }?;
        match &mut *borrow(&SETS, set)? {
            Set::Described { config, groups, .. } => {
                groups.extend(events.into_groups(config.native_events())?);
            }
            Set::Open(_) => return Err(is_open("add events")),
        }
        Ok(())
    })
}

/// Makes a name stand for a formula over events in this set: numbers, names, + - * / and parentheses, as
/// in "branches - branch-misses" (with spaces around an operator). It hides what else has the name; the
/// event that is added under it is counted term by term. A preset of several events is no term.
///
/// Returns QUIPU_EINVAL when the formula is malformed or the set is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_define(
    set: *mut quipu_set,
    name: *const c_char,
    formula: *const c_char,
) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "name") }?;
        // SAFETY: the caller's promise.
        let formula = unsafe { boundary::text(formula, "formula") }?;
        match &mut *borrow(&SETS, set)? {
            Set::Described { presets, .. } => {
                // Only to find out now whether it is one.
                EventSet::builder().preset(name, formula)?;
                presets.push((name.to_owned(), formula.to_owned()));
            }
            Set::Open(_) => return Err(is_open("define a preset")),
        }
        Ok(())
    })
}

/// Opens the set: every group on the first backend that can count it. Nothing counts yet.
///
/// A group that cannot be counted does not sink the others: its events keep their error, which
/// quipu_set_event_error() returns, and the call still returns QUIPU_OK as long as any event is open.
/// When there is none, it returns the status of the first; the set is open all the same. One that nothing was
/// added to is QUIPU_EINVAL, and is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_open(set: *mut quipu_set) -> quipu_status {
    guarded(|| {
        let mut borrowed = borrow(&SETS, set)?;
        let open = OpenSet::new(builder(&borrowed)?.open()?);
        let errors = open.set.events().iter().map(SetEvent::error);
        let all: Option<Vec<_>> = errors.collect();
        let refused = all.and_then(|all| all.first().map(|first| (*first).clone()));
        *borrowed = Set::Open(open);
        refused.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// Opens the set as quipu_set_open() does, if each event of it can be counted.
///
/// Returns the status of the first event that cannot; quipu_last_error() says which and why. Nothing is open then, and
/// the set is as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_open_all(set: *mut quipu_set) -> quipu_status {
    guarded(|| {
        let mut borrowed = borrow(&SETS, set)?;
        let open = builder(&borrowed)?.open_all()?;
        *borrowed = Set::Open(OpenSet::new(open));
        Ok(())
    })
}

/// Returns the description of a set that is not open yet.
fn builder(set: &Set) -> Result<EventSetBuilder, Failure> {
    let Set::Described {
        config,
        groups,
        presets,
    } = set
    else {
        return Err(is_open("open it"));
    };
    if groups.is_empty() {
        let reason = "the event set has no events yet (quipu_set_add)";
        return Err(Failure::invalid("open it", reason));
    }
    let mut builder = EventSet::builder();
    builder
        .events(groups)?
        .target(config.target.clone())
        .inherit(config.attributes.inherit)
        .inherit_thread(config.attributes.inherit_thread)
        .pinned(config.attributes.pinned)
        .exclusive(config.attributes.exclusive)
        .enable_on_exec(config.attributes.enable_on_exec)
        .remove_on_exec(config.attributes.remove_on_exec)
        .user_mode_fallback(config.user_mode_fallback);
    for (name, formula) in presets {
        builder.preset(name, formula)?;
    }
    if let Some(machine) = &config.machine {
        builder.machine(machine.clone());
    }
    if let Some(backends) = &config.backends {
        builder.backends(backends.iter().cloned());
    }
    Ok(builder)
}

fn is_open(attempted: &str) -> Failure {
    Failure::invalid(attempted, "the event set is open already")
}

/// Starts counting, group by group. Values and times go on from where they are.
///
/// Returns the first refusal of a backend; the groups after it are still started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_start(set: *mut quipu_set) -> quipu_status {
    with_open(set, "start counting", |open| Ok(open.set.enable()?))
}

/// Stops counting, group by group. Values and times are kept.
///
/// Returns the first refusal of a backend; the groups after it are still stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_stop(set: *mut quipu_set) -> quipu_status {
    with_open(set, "stop counting", |open| Ok(open.set.disable()?))
}

/// Sets all values to zero, counting or not; times start over with them.
///
/// Returns the first refusal of a backend; the groups after it are still reset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_reset(set: *mut quipu_set) -> quipu_status {
    with_open(set, "reset the counters", |open| Ok(open.set.reset()?))
}

/// Closes a set, open or not, and gives everything back. A null `set` is nothing to close.
///
/// Returns QUIPU_EHANDLE when it was closed before, QUIPU_EINUSE while another thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_close(set: *mut quipu_set) -> quipu_status {
    boundary::close(&SETS, set)
}

pub(crate) fn with_open(
    set: *mut quipu_set,
    attempted: &str,
    call: impl FnOnce(&mut OpenSet) -> Result<(), Failure>,
) -> quipu_status {
    guarded(|| call(borrow(&SETS, set)?.open_mut(attempted)?))
}
