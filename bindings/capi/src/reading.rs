//! Reading a set into the caller's memory, and what is computed from readings.

use std::ffi::c_int;

use quipu::{Error, ErrorKind};
use quipu_hal::{Count, MaxRate, Reading, total};

use crate::boundary::{check_array, guarded};
use crate::failure::Failure;
use crate::quipu_status::{self, *};
use crate::set::{Form, OpenEvent, OpenSet, Run, quipu_set, with_open};

/// Kinds of values.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_state {
    /// There is no value: the event could not be opened or read, or its counter jumped; the status says why.
    QUIPU_NOT_READ = 0,
    /// Counted all the time: a fact.
    QUIPU_EXACT = 1,
    /// Counted a part of the time, and scaled up: value x enabled / running, rounded.
    QUIPU_ESTIMATED = 2,
    /// Some parts of the target were never counted; the value covers the others only.
    QUIPU_PARTIAL = 3,
    /// Enabled, but never on the PMU: there is no value.
    QUIPU_NOT_COUNTED = 4,
    /// A lower bound: a part of the time may not have been counted.
    QUIPU_AT_LEAST = 5,
}

/// Properties of a reading.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_reading_flag {
    /// A part of the time may not have been counted: the value is a lower bound (QUIPU_AT_LEAST).
    QUIPU_READING_AT_LEAST = 1,
}

/// Properties of a count; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_count_flag {
    /// The value has an estimate in it; so it is with every estimated and with some partial ones.
    QUIPU_COUNT_ESTIMATE = 1,
    /// The value does not fit in 64 bits and is the largest that does.
    QUIPU_COUNT_SATURATED = 2,
}

/// A count over all parts of a target or in one. The struct does not grow, so that arrays of it stay
/// what they are.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct quipu_count {
    /// The value, for the whole time enabled; 0 where there is none.
    pub value: u64,
    /// Nanoseconds enabled; over several parts, their sum.
    pub time_enabled: u64,
    /// Nanoseconds really counting; over several parts, their sum.
    pub time_running: u64,
    /// The kind of value: a quipu_state.
    pub state: u32,
    /// Sum of quipu_count_flag.
    pub flags: u32,
    /// The number of parts that have no value (QUIPU_PARTIAL).
    pub missing: u32,
    /// QUIPU_OK, or why there is no value (QUIPU_NOT_READ).
    pub status: c_int,
}

/// The value of a counter in one part of a target: not scaled, good for subtracting and adding. It does
/// not grow, so that arrays of it stay what they are.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct quipu_reading {
    /// The count as it stands.
    pub value: u64,
    /// Nanoseconds enabled since the last reset.
    pub time_enabled: u64,
    /// Nanoseconds really counting since the last reset.
    pub time_running: u64,
    /// QUIPU_OK, or why this could not be read; then the numbers are 0. With QUIPU_EJUMP the value is more than
    /// can have been counted: it means nothing, but what is counted from there on does
    /// (quipu_set_difference).
    pub status: c_int,
    /// Sum of quipu_reading_flag.
    pub flags: u32,
    /// The most that the event can occur in a second really counting, 0 where it is not known.
    pub max_rate: u64,
}

impl quipu_count {
    fn refused(status: quipu_status) -> Self {
        Self {
            status: status as c_int,
            ..Self::default()
        }
    }

    /// Returns the count that one reading means by itself.
    fn of(reading: &Reading) -> Self {
        Self::new(reading.count(), reading.time_enabled, reading.time_running)
    }

    fn new(total: Count, time_enabled: u64, time_running: u64) -> Self {
        let state = match total {
            Count::Jumped => return Self::refused(QUIPU_EJUMP),
            Count::Exact(_) => quipu_state::QUIPU_EXACT,
            Count::Estimated(_) => quipu_state::QUIPU_ESTIMATED,
            Count::AtLeast(_) => quipu_state::QUIPU_AT_LEAST,
            Count::Partial { .. } => quipu_state::QUIPU_PARTIAL,
            _ => quipu_state::QUIPU_NOT_COUNTED,
        };
        let whole = total.value().unwrap_or(0);
        let value = u64::try_from(whole);
        let mut flags = 0;
        if total.is_estimate() {
            flags |= quipu_count_flag::QUIPU_COUNT_ESTIMATE as u32;
        }
        if value.is_err() {
            flags |= quipu_count_flag::QUIPU_COUNT_SATURATED as u32;
        }
        Self {
            value: value.unwrap_or(u64::MAX),
            time_enabled,
            time_running,
            state: state as u32,
            flags,
            missing: total.missing() as u32,
            status: QUIPU_OK as c_int,
        }
    }
}

impl quipu_reading {
    fn refused(status: c_int) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    fn as_reading(&self) -> Reading {
        Reading::new(self.value, self.time_enabled, self.time_running)
            .with_max_rate(MaxRate::per_second(self.max_rate))
            .with_at_least(self.flags & quipu_reading_flag::QUIPU_READING_AT_LEAST as u32 != 0)
    }

    /// Returns true if there are numbers, whether they mean something or not.
    fn is_read(&self) -> bool {
        [QUIPU_OK as c_int, QUIPU_EJUMP as c_int].contains(&self.status)
    }

    /// Returns the difference to an earlier one. A counter does not run backwards: where it seems to, it was
    /// reset in between.
    fn since(&self, earlier: &Self) -> Self {
        for reading in [self, earlier] {
            if !reading.is_read() {
                return Self::refused(reading.status);
            }
        }
        match self.as_reading().checked_since(&earlier.as_reading()) {
            Some(difference) => (&difference).into(),
            None => Self::refused(QUIPU_EINVAL as c_int),
        }
    }

    /// Both together. What could not be read once stays so.
    fn plus(&self, more: &Self) -> Self {
        for reading in [self, more] {
            if reading.status != QUIPU_OK as c_int {
                return Self::refused(reading.status);
            }
        }
        Self {
            value: self.value.saturating_add(more.value),
            time_enabled: self.time_enabled.saturating_add(more.time_enabled),
            time_running: self.time_running.saturating_add(more.time_running),
            flags: self.flags | more.flags,
            max_rate: self.max_rate.max(more.max_rate),
            ..Self::default()
        }
    }
}

impl From<&Reading> for quipu_reading {
    fn from(reading: &Reading) -> Self {
        Self {
            value: reading.value,
            time_enabled: reading.time_enabled,
            time_running: reading.time_running,
            status: match reading.has_jumped() {
                true => QUIPU_EJUMP as c_int,
                false => QUIPU_OK as c_int,
            },
            flags: match reading.at_least {
                true => quipu_reading_flag::QUIPU_READING_AT_LEAST as u32,
                false => 0,
            },
            max_rate: reading.max_rate.increments_per_second().unwrap_or(0),
        }
    }
}

impl OpenSet {
    /// Writes the counts of all events as they were last read.
    ///
    /// # Safety
    /// `out` points to as many as the set has events.
    unsafe fn write_counts(&self, out: *mut quipu_count) {
        // SAFETY: positions are those of events, by the caller's promise.
        let write = |index, count| unsafe { out.add(index).write(count) };
        for run in &self.runs {
            let first = run.events.start;
            let readings = self.readings_of(run);
            for (at, reading) in readings.iter().enumerate() {
                write(first + at, quipu_count::of(reading));
            }
            if readings.is_empty() {
                (run.events.clone()).for_each(|index| write(index, self.composed(index)));
            }
        }
    }

    /// The readings of the events of a run, as they were last read; none of an event of another form, and where
    /// they could not be read.
    fn readings_of(&self, run: &Run) -> &[Reading] {
        let buffer = self.counts.buffer(run.group).and_then(Result::ok);
        let readings = buffer.and_then(|buffer| buffer[0].get(run.members.clone()));
        readings.unwrap_or_default()
    }

    /// The total of an event that is not one reading.
    fn composed(&self, index: usize) -> quipu_count {
        if let Some(status) = self.events[index].without_total() {
            return quipu_count::refused(status);
        }
        let composed = || {
            let counted = self.counts.get(index).ok_or_else(no_such_event)?;
            let total = counted.total()?;
            let (enabled, running) = match counted.event().preset() {
                Some(_) => {
                    let parts = counted.terms().flat_map(|term| term.parts().into_iter());
                    times(parts.flatten().map(|(_, reading)| reading))
                }
                None => times(counted.parts()?.map(|(_, reading)| reading)),
            };
            Ok(quipu_count::new(total, enabled, running))
        };
        composed().unwrap_or_else(|error: Error| quipu_count::refused(error.kind().into()))
    }

    /// Hands out every reading as it was last read, with its position.
    fn each_reading(&self, mut each: impl FnMut(usize, Form, quipu_reading)) {
        for (group, spans) in self.spans.iter().enumerate() {
            match self.counts.buffer(group) {
                None => {}
                Some(Ok(buffer)) => {
                    for part in 0..buffer.parts().len() {
                        let members = &buffer[part];
                        for span in spans {
                            each(span.first + part, span.form, (&members[span.member]).into());
                        }
                    }
                }
                Some(Err(error)) => {
                    let status: quipu_status = error.kind().into();
                    let refused = quipu_reading::refused(status as c_int);
                    for span in spans {
                        (0..span.parts)
                            .for_each(|part| each(span.first + part, span.form, refused));
                    }
                }
            }
        }
    }

    /// The total of an event from readings of the caller.
    ///
    /// # Safety
    /// `readings` points to as many as the set has.
    unsafe fn total(&self, index: usize, readings: *const quipu_reading) -> quipu_count {
        let event = &self.events[index];
        if let Some(status) = event.without_total() {
            return quipu_count::refused(status);
        }
        // SAFETY: the caller's promise; the event's readings are among the set's.
        let own = (0..event.readings).map(|at| unsafe { *readings.add(event.first_reading + at) });
        if let Some(failed) = own.clone().find(|reading| !reading.is_read()) {
            return quipu_count {
                status: failed.status,
                ..quipu_count::default()
            };
        }
        let own: Vec<Reading> = own.map(|reading| reading.as_reading()).collect();
        let (enabled, running) = times(own.iter());
        let total = match (self.set.events()[index].preset(), &own[..]) {
            (Some(preset), _) => {
                let of_term = |term: usize| {
                    let before = event.terms[..term].iter().map(Vec::len).sum::<usize>();
                    event.terms[term].iter().zip(&own[before..])
                };
                preset.evaluate(of_term).unwrap_or_else(|none| none.count())
            }
            (None, [reading]) if event.form == Form::Gauge => reading.level(),
            (None, _) => total(event.terms.iter().flatten().zip(&own)),
        };
        quipu_count::new(total, enabled, running)
    }

    pub(crate) fn check(&self, length: usize, wanted: usize, of: &str) -> Result<(), Failure> {
        match length == wanted {
            true => Ok(()),
            false => Err(wrong_length(length, wanted, of)),
        }
    }
}

impl OpenEvent {
    /// Why there can be no total, whatever is read.
    fn without_total(&self) -> Option<quipu_status> {
        match self.status {
            QUIPU_OK if self.form == Form::Gauge && self.readings > 1 => Some(QUIPU_EFEATURE),
            QUIPU_OK => None,
            refused => Some(refused),
        }
    }
}

fn no_such_event() -> Error {
    Error::new(ErrorKind::InvalidConfiguration, "read an event")
        .with_reason("the set has no event of that number")
}

fn wrong_length(length: usize, wanted: usize, of: &str) -> Failure {
    Failure::invalid(
        "use the array",
        format!("it has {length} elements, and the set has {wanted} {of} (quipu_set_size)"),
    )
}

/// The sums of both times.
fn times<'r>(readings: impl Iterator<Item = &'r Reading>) -> (u64, u64) {
    readings.fold((0, 0), |(enabled, running): (u64, u64), reading| {
        (
            enabled.saturating_add(reading.time_enabled),
            running.saturating_add(reading.time_running),
        )
    })
}

/// Reads the set: for each event, in the order of adding, the total over the parts of its target. It
/// takes no lock, makes one system call for each kernel group or less, and allocates nothing as long as
/// the counters can be read, but for a preset of several events.
///
/// `count` is the number of events (quipu_set_size). An event that cannot be read has the state
/// QUIPU_NOT_READ and a status, and does not sink the others: the call still returns QUIPU_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_read(
    set: *mut quipu_set,
    out: *mut quipu_count,
    count: usize,
) -> quipu_status {
    with_open(set, "read the counters", |open| {
        open.check(count, open.events.len(), "events")?;
        check_array(out, count, "out")?;
        open.set.read(&mut open.counts)?;
        // SAFETY: `out` has as many elements as there are events, by the caller's promise.
        unsafe { open.write_counts(out) };
        Ok(())
    })
}

/// Reads every event and writes its plain value: `values` has room for as many as quipu_set_size() says, in the
/// order of adding.
///
/// Returns QUIPU_EBUSY when an event had a counter for a part of the time only, or never, so that its value is an
/// estimate or there is none (quipu_set_read() has it); QUIPU_EJUMP when its counter jumped; and why an event could not
/// be opened or read. quipu_last_error() names the event, and nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_values(
    set: *mut quipu_set,
    values: *mut u64,
    length: usize,
) -> quipu_status {
    with_open(set, "read the counters", |open| {
        open.check(length, open.events.len(), "events")?;
        check_array(values, length, "values")?;
        open.set.read(&mut open.counts)?;
        // Nothing is written unless each has one.
        open.counts
            .events()
            .try_for_each(|event| event.value().map(drop))?;
        for (at, event) in open.counts.events().enumerate() {
            // SAFETY: `values` has `length` elements by the caller's promise, as many as there are events.
            unsafe { values.add(at).write(event.value()?) };
        }
        Ok(())
    })
}

/// Reads the set part by part and without scaling. The readings of an event's parts are together
/// (`first_reading` in quipu_event_info). It takes no lock, makes one system call for each kernel group or
/// less, and allocates nothing as long as the counters can be read.
///
/// `count` is the number of readings (quipu_set_size). A reading that fails has a status, and does not
/// sink the others: the call still returns QUIPU_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_read_parts(
    set: *mut quipu_set,
    out: *mut quipu_reading,
    count: usize,
) -> quipu_status {
    with_open(set, "read the counters", |open| {
        open.check(count, open.readings, "readings")?;
        check_array(out, count, "out")?;
        open.set.read(&mut open.counts)?;
        open.each_reading(|at, _, reading| {
            // SAFETY: positions are below `readings`, and `out` has as many elements.
            unsafe { out.add(at).write(reading) };
        });
        Ok(())
    })
}

/// Reads the set, and adds what was counted since `last` to `sum`; `last` becomes what was read.
///
/// Nothing is reset, so nothing is lost between reading and resetting. Begin with both zero, or with
/// `last` from quipu_set_read_parts(). `count` is the number of readings. A gauge's sum is its present
/// value. Where a counter was reset since `last`, its sum has the status QUIPU_EINVAL from then on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_accumulate(
    set: *mut quipu_set,
    sum: *mut quipu_reading,
    last: *mut quipu_reading,
    count: usize,
) -> quipu_status {
    with_open(set, "accumulate counts", |open| {
        open.check(count, open.readings, "readings")?;
        check_array(sum, count, "sum")?;
        check_array(last, count, "last")?;
        open.set.read(&mut open.counts)?;
        open.each_reading(|at, form, now| {
            // SAFETY: positions are below `readings`, and both arrays have as many elements.
            unsafe {
                let (sum, last) = (sum.add(at), last.add(at));
                *sum = match form == Form::Gauge {
                    true => now,
                    false => (*sum).plus(&now.since(&*last)),
                };
                *last = now;
            }
        });
        Ok(())
    })
}

/// Computes what was counted between two readings of the same set, `earlier` and `now`; `out` may be
/// either of them. It scales like any reading (quipu_set_total).
///
/// `count` is the number of readings. Gauges keep their present value. Where a counter was reset in
/// between, the difference has the status QUIPU_EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_difference(
    set: *mut quipu_set,
    now: *const quipu_reading,
    earlier: *const quipu_reading,
    out: *mut quipu_reading,
    count: usize,
) -> quipu_status {
    with_open(set, "subtract readings", |open| {
        open.check(count, open.readings, "readings")?;
        check_array(now, count, "now")?;
        check_array(earlier, count, "earlier")?;
        check_array(out, count, "out")?;
        for event in open.events.iter().filter(|event| event.status == QUIPU_OK) {
            for at in event.first_reading..event.first_reading + event.readings {
                // SAFETY: positions are below `readings`, and the arrays have as many elements. Each
                // is read before it is written, so that they may be the same.
                unsafe {
                    let now = *now.add(at);
                    let difference = match event.form == Form::Gauge {
                        true => now,
                        false => now.since(&*earlier.add(at)),
                    };
                    out.add(at).write(difference);
                }
            }
        }
        Ok(())
    })
}

/// Computes the totals of a set's events from readings of their parts: as read, as differences, or as
/// sums. Each part is scaled by its own times, then they are added.
///
/// `reading_count` is the number of readings, `count` the number of events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_set_total(
    set: *mut quipu_set,
    readings: *const quipu_reading,
    reading_count: usize,
    out: *mut quipu_count,
    count: usize,
) -> quipu_status {
    with_open(set, "add up readings", |open| {
        open.check(reading_count, open.readings, "readings")?;
        open.check(count, open.events.len(), "events")?;
        check_array(readings, reading_count, "readings")?;
        check_array(out, count, "out")?;
        for index in 0..count {
            // SAFETY: both arrays have as many elements as the set, by the caller's promise.
            unsafe { out.add(index).write(open.total(index, readings)) };
        }
        Ok(())
    })
}

/// Computes what one part's reading means for the whole time it was enabled. It is for counters; the
/// value of a gauge is what it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_scale(
    reading: *const quipu_reading,
    out: *mut quipu_count,
) -> quipu_status {
    guarded(|| {
        check_array(reading, 1, "reading")?;
        check_array(out, 1, "out")?;
        // SAFETY: not null, aligned, and the caller's promise.
        let reading = unsafe { *reading };
        let count = match reading.is_read() {
            true => quipu_count::of(&reading.as_reading()),
            false => quipu_count {
                status: reading.status,
                ..quipu_count::default()
            },
        };
        // SAFETY: not null, aligned, and the caller's promise.
        unsafe { out.write(count) };
        Ok(())
    })
}
