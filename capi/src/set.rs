//! Event sets.

use std::ffi::{CString, c_char, c_int};
use std::slice;

use quipu::hal::{Simultaneity, ValueKind};
use quipu::{Counts, EventCount, EventSet, GroupSpec, IntoGroups, Part, Place, SetEvent};

use crate::boundary::{self, Versioned, guarded, hold};
use crate::config::{Config, quipu_config};
use crate::handle::Table;
use crate::last_error::{self, Failure, pointer, quipu_error, text};
use crate::quipu_status;

/// An event set: several events and groups on one target, possibly on several backends. A handle, not
/// an address. One thread at a time may use it, any thread; a second meanwhile gets QUIPU_EINUSE.
pub struct quipu_set {
    _opaque: (),
}

pub(crate) static SETS: Table<Set> = Table::new(1, "event set");

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

/// A set that counts, what it was last read into, and what C asks of its events.
pub(crate) struct OpenSet {
    pub(crate) set: EventSet,
    pub(crate) counts: Counts,
    pub(crate) events: Vec<OpenEvent>,
    /// Where each reading comes from: a list for each group that is read.
    pub(crate) spans: Vec<Vec<Span>>,
    /// How many readings there are: one for each part of each event.
    pub(crate) readings: usize,
}

/// The readings of one thing that is counted: an event, or a term of a preset.
pub(crate) struct Span {
    /// Which member of its group it is.
    pub(crate) member: usize,
    pub(crate) form: Form,
    /// The position of the first among the set's, and how many there are: one for each part.
    pub(crate) first: usize,
    pub(crate) parts: usize,
}

/// An event of an open set: where its readings are, and its texts as C reads them.
pub(crate) struct OpenEvent {
    /// Why it was refused, or [`QUIPU_OK`](quipu_status::QUIPU_OK).
    pub(crate) status: quipu_status,
    pub(crate) form: Form,
    pub(crate) first_reading: usize,
    /// The parts of each thing that is counted for it: itself, or the terms of a preset.
    pub(crate) terms: Vec<Vec<Part>>,
    /// How many parts that is in all.
    pub(crate) readings: usize,
    /// Where its only reading is, if it is one.
    pub(crate) place: Option<Place>,
    name: CString,
    opened_as: Option<CString>,
    backend: Option<CString>,
    unit: Option<CString>,
    errata: Option<CString>,
    term_names: Vec<CString>,
    /// For each reading.
    cores: Vec<Option<CString>>,
}

/// How the total of an event comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It could not be opened.
    Refused,
    /// One part, whose reading is the total.
    OnePart,
    /// Parts that are scaled and added.
    Parts,
    /// A momentary value.
    Gauge,
    /// A formula over several events.
    Preset,
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

impl OpenSet {
    fn new(set: EventSet) -> Self {
        let counts = set.counts();
        let mut events = Vec::new();
        let mut spans: Vec<Vec<Span>> = Vec::new();
        let mut readings = 0;
        for (index, asked) in set.events().iter().enumerate() {
            let event = OpenEvent::new(asked, readings, &counts.event(index));
            let counted = match asked.preset() {
                Some(preset) => preset.terms(),
                None => slice::from_ref(asked),
            };
            for (term, parts) in counted.iter().zip(&event.terms) {
                if let Ok(place) = term.place() {
                    if spans.len() <= place.group {
                        spans.resize_with(place.group + 1, Vec::new);
                    }
                    spans[place.group].push(Span {
                        member: place.member,
                        form: event.form,
                        first: readings,
                        parts: parts.len(),
                    });
                    readings += parts.len();
                }
            }
            events.push(event);
        }
        Self {
            counts,
            events,
            spans,
            readings,
            set,
        }
    }

    fn event(&self, index: usize) -> Result<(&OpenEvent, &SetEvent), Failure> {
        let event = self.events.get(index).zip(self.set.events().get(index));
        event.ok_or_else(|| {
            Failure::invalid(
                &format!("look at event {index}"),
                format!("the set has {}, numbered from 0", self.events.len()),
            )
        })
    }
}

impl OpenEvent {
    fn new(event: &SetEvent, first_reading: usize, count: &EventCount<'_>) -> Self {
        let info = event.info();
        let errata = info.map_or(&[][..], |info| &info.errata);
        let parts_of = |count: &EventCount<'_>| match count.parts() {
            Ok(parts) => parts.map(|(part, _)| part.clone()).collect(),
            Err(_) => Vec::new(),
        };
        let (terms, term_names): (Vec<Vec<Part>>, Vec<CString>) = match event.preset() {
            Some(_) => count
                .terms()
                .map(|t| (parts_of(&t), text(t.name())))
                .unzip(),
            None => (vec![parts_of(count)], vec![text(event.name())]),
        };
        let cores = terms.iter().flatten().map(|part| part.core.as_deref());
        let cores: Vec<_> = cores.map(|core| core.map(text)).collect();
        let form = match (info, event.preset(), &*cores) {
            (None, ..) => Form::Refused,
            (_, Some(_), _) => Form::Preset,
            (Some(info), ..) if info.kind == ValueKind::Gauge => Form::Gauge,
            (_, _, [None]) => Form::OnePart,
            _ => Form::Parts,
        };
        Self {
            status: event
                .error()
                .map_or(quipu_status::QUIPU_OK, |error| error.kind().into()),
            form,
            first_reading,
            readings: cores.len(),
            place: event.place().ok().filter(|_| form == Form::OnePart),
            terms,
            name: text(event.name()),
            opened_as: info.map(|info| text(&info.name)),
            backend: event.backend().map(text),
            unit: info.map(|info| text(&info.unit)),
            errata: (!errata.is_empty()).then(|| text(&errata.join("; "))),
            term_names,
            cores,
        }
    }
}

/// Makes an event set that has no events yet; a null `config` is the calling thread, counted by the
/// backends of this machine. quipu_set_close() gives it back.
///
/// Returns QUIPU_OK and the handle in `out`, or QUIPU_EINVAL for a wrong argument, or why the backend
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
        unsafe { boundary::give_out(&SETS, set, out) }
    })
}

/// Adds events, in any spelling that `quipu stat -e` takes: one ("page-faults:u"), several with commas
/// between them, and groups in braces ("{cycles,instructions}:u"), whose members are counted at the
/// same time or not at all. May be called again until the set is opened.
///
/// Returns QUIPU_EINVAL when the text is malformed (nothing of it is added then) or the set is open.
/// Whether an event exists here is found out by quipu_set_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_add(set: *mut quipu_set, events: *const c_char) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let events = unsafe { boundary::text(events, "events") }?;
        match &mut *hold(&SETS, set)? {
            Set::Described { groups, .. } => groups.extend(events.groups()?),
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
        match &mut *hold(&SETS, set)? {
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
/// quipu_set_event_error() tells, and the call still returns QUIPU_OK as long as any event is open.
/// When there is none, it returns the status of the first; the set is open all the same. One that nothing was
/// added to is QUIPU_EINVAL, and is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_open(set: *mut quipu_set) -> quipu_status {
    guarded(|| {
        let mut held = hold(&SETS, set)?;
        let Set::Described {
            config,
            groups,
            presets,
        } = &*held
        else {
            return Err(is_open("open it"));
        };
        if groups.is_empty() {
            let reason = "the event set has no events yet (quipu_set_add)";
            return Err(Failure::invalid("open it", reason));
        }
        let mut builder = EventSet::builder()
            .events(groups)?
            .target(config.target.clone())
            .attributes(config.attributes)
            .user_mode_fallback(config.user_mode_fallback);
        for (name, formula) in presets {
            builder = builder.preset(name, formula)?;
        }
        if let Some(backend) = &config.backend {
            builder = builder.backends([backend.clone()]);
        }
        let open = OpenSet::new(builder.open()?);
        let errors = open.set.events().iter().map(SetEvent::error);
        let all: Option<Vec<_>> = errors.collect();
        let refused = all.and_then(|all| all.first().map(|first| (*first).clone()));
        *held = Set::Open(open);
        refused.map_or(Ok(()), |error| Err(error.into()))
    })
}

#[cold]
fn is_open(attempted: &str) -> Failure {
    Failure::invalid(attempted, "the event set is open already")
}

/// Starts counting, group by group. Values and times go on from where they are.
///
/// Returns the first refusal of a backend; the groups after it are still told to start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_start(set: *mut quipu_set) -> quipu_status {
    with_open(set, "start counting", |open| Ok(open.set.enable()?))
}

/// Stops counting, group by group. Values and times are kept.
///
/// Returns the first refusal of a backend; the groups after it are still told to stop.
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

#[inline(always)]
pub(crate) fn with_open(
    set: *mut quipu_set,
    attempted: &str,
    call: impl FnOnce(&mut OpenSet) -> Result<(), Failure>,
) -> quipu_status {
    guarded(|| call(hold(&SETS, set)?.open_mut(attempted)?))
}

/// How many events an open set has, and how many readings: for each event that could be opened one for
/// each part of its target, for a preset that for each of its events. Either pointer may be null.
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

/// What there is to say of an event besides.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_event_flag {
    /// It counts user mode only because kernel mode is not permitted (QUIPU_USER_FALLBACK).
    QUIPU_EVENT_USER_ONLY = 1,
    /// A momentary value (a temperature): it is never scaled, added or subtracted.
    QUIPU_EVENT_GAUGE = 2,
    /// A preset: a formula over several events, each counted by itself.
    QUIPU_EVENT_PRESET = 4,
}

/// How simultaneous the events of a group are read.
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
    /// What a value is multiplied by to be in that unit; 1 for almost all events, a millionth for presets
    /// that may have fractions.
    pub scale: f64,
    /// The group or lone event it was asked for in, numbered from 0.
    pub group: u32,
    /// How its group is read: a quipu_simultaneity.
    pub simultaneity: u32,
    /// How many readings it has: one for each part its target fanned out into, and that for each event
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

/// What one reading is of: a part of the target, a kernel group or register set of its own. Set `size`
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
