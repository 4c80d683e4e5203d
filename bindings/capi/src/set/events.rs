//! Descriptions of the events of an open set, and of their readings.

use std::ffi::{c_char, c_int};

use quipu_hal::Simultaneity;

use super::{Form, quipu_set, with_open};
use crate::boundary::{self, Versioned};
use crate::failure::{Failure, pointer};
use crate::last_error::{self, quipu_error};
use crate::quipu_status;

/// Returns the numbers of events and readings of an open set: for each event that could be opened one
/// reading for each part of its target, for a preset that for each of its events. Either pointer may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_size(
    set: *mut quipu_set,
    events: *mut usize,
    readings: *mut usize,
) -> quipu_status {
    with_open(set, "say how large it is", |open| {
        for (out, value, name) in [
            (events, open.events.len(), "events"),
            (readings, open.readings, "readings"),
        ] {
            if !out.is_null() {
                // SAFETY: the caller's promise.
                unsafe { boundary::write(out, value, name) }?;
            }
        }
        Ok(())
    })
}

/// Properties of an event; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_event_flag {
    /// It counts user mode only because kernel mode is not permitted (QUIPU_USER_FALLBACK).
    QUIPU_EVENT_USER_ONLY = 1,
    /// A momentary value (a temperature): it is never scaled, added or subtracted.
    QUIPU_EVENT_GAUGE = 2,
    /// A preset: a formula over several events, each counted by itself.
    QUIPU_EVENT_PRESET = 4,
    /// Its group is read in user space, without a system call, whenever that is possible: by the thread that is counted,
    /// while the events have their counters. Such a read is not ordered with the instructions around it: to count a few of
    /// them, put a fence around it (LFENCE of x86, ISB of ARM).
    QUIPU_EVENT_USER_READ = 8,
}

/// The simultaneity with which the events of a group are read.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_simultaneity {
    /// No relation between the members.
    QUIPU_UNRELATED = 0,
    /// One after the other: skewed by the time the read itself takes.
    QUIPU_SEQUENTIAL = 1,
    /// One snapshot; members share both times.
    QUIPU_ATOMIC = 2,
}

pub(crate) fn simultaneity(simultaneity: Simultaneity) -> u32 {
    let simultaneity = match simultaneity {
        Simultaneity::None => quipu_simultaneity::QUIPU_UNRELATED,
        Simultaneity::Sequential => quipu_simultaneity::QUIPU_SEQUENTIAL,
        Simultaneity::Atomic => quipu_simultaneity::QUIPU_ATOMIC,
    };
    simultaneity as u32
}

/// An event of an open set. Set `size` first (QUIPU_INIT). Texts stay until the set is closed; those of
/// an event that could not be opened are null, but for its name.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_event_info {
    /// sizeof (quipu_event_info).
    pub size: usize,
    /// QUIPU_OK when it is open, else why it is not; quipu_set_event_error() has the details.
    pub status: c_int,
    /// Sum of quipu_event_flag.
    pub flags: u32,
    /// As it was asked for: "page-faults:u".
    pub name: *const c_char,
    /// The name it was opened under: its own, or the native one it was resolved to.
    pub opened_as: *const c_char,
    /// The backend that counts it: "linux".
    pub backend: *const c_char,
    /// The unit of its values; empty for a plain count.
    pub unit: *const c_char,
    /// Known errata, or null.
    pub errata: *const c_char,
    /// The factor that turns a value into that unit; 1 for almost all events, a millionth for presets
    /// that may have fractions.
    pub scale: f64,
    /// The group or lone event it was asked for in, numbered from 0.
    pub group: u32,
    /// The simultaneity its group is read with: a quipu_simultaneity.
    pub simultaneity: u32,
    /// The number of its readings: one for each part its target fanned out into, and that for each event
    /// of a preset; 0 when it is not open.
    pub readings: usize,
    /// The position of its first reading in an array of readings; the others follow.
    pub first_reading: usize,
}

// SAFETY: numbers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_event_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// Describes an event of an open set, by its position in the order of adding, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_event_info(
    set: *mut quipu_set,
    event: usize,
    out: *mut quipu_event_info,
) -> quipu_status {
    with_open(set, "describe an event", |open| {
        open.event(event)?;
        let is_open = open.set.events()[event].error().is_none();
        let user_read = is_open && open.set.user_read_obstacle(event).is_none();
        let (known, event) = open.event(event)?;
        let user_only = event.fell_back_to_user();
        let flag = |set: bool, flag: quipu_event_flag| if set { flag as u32 } else { 0 };
        let info = quipu_event_info {
            size: 0,
            status: known.status as c_int,
            flags: flag(user_only, quipu_event_flag::QUIPU_EVENT_USER_ONLY)
                | flag(
                    known.form == Form::Gauge,
                    quipu_event_flag::QUIPU_EVENT_GAUGE,
                )
                | flag(
                    known.form == Form::Preset,
                    quipu_event_flag::QUIPU_EVENT_PRESET,
                )
                | flag(
                    user_read && known.form != Form::Preset,
                    quipu_event_flag::QUIPU_EVENT_USER_READ,
                ),
            name: known.name.as_ptr(),
            opened_as: pointer(known.opened_as.as_ref()),
            backend: pointer(known.backend.as_ref()),
            unit: pointer(known.unit.as_ref()),
            errata: pointer(known.errata.as_ref()),
            scale: event.info().map_or(1.0, |info| info.scale),
            group: event.request() as u32,
            simultaneity: event.simultaneity().map_or(0, simultaneity),
            readings: known.readings,
            first_reading: known.first_reading,
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, info, "out") }
    })
}

/// Says why an event of an open set could not be opened; the status in `out` is QUIPU_OK when it
/// could.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_event_error(
    set: *mut quipu_set,
    event: usize,
    out: *mut quipu_error,
) -> quipu_status {
    with_open(set, "say why an event is refused", |open| {
        let (_, event) = open.event(event)?;
        // SAFETY: the caller's promise.
        unsafe { last_error::report(event.error(), out) }
    })
}

/// The subject of one reading: a part of the target, a kernel group or register set of its own. Set `size`
/// first (QUIPU_INIT). Texts stay until the set is closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_part_info {
    /// sizeof (quipu_part_info).
    pub size: usize,
    /// The CPU it counts on, or -1 when it counts on no one CPU.
    pub cpu: c_int,
    /// The thread it counts, or -1 when it counts no one thread.
    pub thread: c_int,
    /// The core PMU on a machine with several core types, or null.
    pub core: *const c_char,
    /// The event that is counted: itself, or one of a preset.
    pub term: *const c_char,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_part_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// Describes what a reading of an event of an open set is of, both numbered from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_part_info(
    set: *mut quipu_set,
    event: usize,
    reading: usize,
    out: *mut quipu_part_info,
) -> quipu_status {
    with_open(set, "describe a reading", |open| {
        let (known, _) = open.event(event)?;
        let terms = known.terms.iter().zip(&known.term_names);
        let mut all = terms.flat_map(|(parts, term)| parts.iter().map(move |part| (part, term)));
        let (Some((part, term)), Some(core)) = (all.nth(reading), known.cores.get(reading)) else {
            return Err(Failure::invalid(
                &format!("look at reading {reading}"),
                format!("the event has {}, numbered from 0", known.readings),
            ));
        };
        let number = |n: Option<i64>| n.and_then(|n| c_int::try_from(n).ok()).unwrap_or(-1);
        let info = quipu_part_info {
            size: 0,
            cpu: number(part.cpu.map(i64::from)),
            thread: number(part.thread.map(i64::from)),
            core: pointer(core.as_ref()),
            term: term.as_ptr(),
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, info, "out") }
    })
}
