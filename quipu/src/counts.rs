//! The readings of an event set, in request order.

use std::fmt;
use std::sync::Arc;

use quipu_hal::{Count, Error, ErrorKind, Part, ReadBuf, Reading, Result};

use crate::SetEvent;
use crate::preset::{NoValue, Preset, term_refused};

/// The position of an event's readings: a group of the set, and a member of that group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MemberIndex {
    /// The open group, for [`Counts::buffer`].
    pub group: usize,
    /// The member of the group.
    pub member: usize,
}

/// An event of a builder, by which its counts are found ([`EventSetBuilder::event`](crate::EventSetBuilder::event)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId(pub(crate) usize);

/// The readings of an [`EventSet`](crate::EventSet), event by event in request order.
///
/// Made by [`EventSet::counts`](crate::EventSet::counts) and filled by
/// [`EventSet::read`](crate::EventSet::read). A clone keeps them; `clone_from` of counts of the same set allocates
/// nothing.
#[derive(Debug)]
pub struct Counts {
    events: Arc<[SetEvent]>,
    groups: Box<[GroupCounts]>,
}

/// The readings of a group, and the reason why it could not be read if it could not.
#[derive(Debug)]
pub(crate) struct GroupCounts {
    pub(crate) buf: ReadBuf,
    pub(crate) error: Option<Error>,
}

impl Clone for Counts {
    fn clone(&self) -> Self {
        Self {
            events: Arc::clone(&self.events),
            groups: self.groups.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.events.clone_from(&source.events);
        self.groups.clone_from(&source.groups);
    }
}

impl Clone for GroupCounts {
    fn clone(&self) -> Self {
        Self {
            buf: self.buf.clone(),
            error: self.error.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.buf.clone_from(&source.buf);
        self.error.clone_from(&source.error);
    }
}

/// The counts of one event.
#[derive(Clone, Copy)]
pub struct EventCount<'a> {
    event: &'a SetEvent,
    counts: &'a Counts,
}

impl Counts {
    pub(crate) fn new(events: Arc<[SetEvent]>, bufs: impl Iterator<Item = ReadBuf>) -> Self {
        Self {
            events,
            groups: bufs.map(|buf| GroupCounts { buf, error: None }).collect(),
        }
    }

    pub(crate) fn belongs_to(&self, events: &Arc<[SetEvent]>) -> bool {
        Arc::ptr_eq(&self.events, events)
    }

    /// Returns the buffers of all groups.
    pub(crate) fn groups_mut(&mut self) -> &mut [GroupCounts] {
        &mut self.groups
    }

    /// Returns the buffer that a group was read into, or the reason why it could not be read; `None` if
    /// there are not so many groups. [`events`](Self::events) is the convenient way to readings.
    pub fn buffer(&self, group: usize) -> Option<Result<&ReadBuf, &Error>> {
        let GroupCounts { buf, error } = self.groups.get(group)?;
        Some(error.as_ref().map_or(Ok(buf), Err))
    }

    /// Returns the number of events that were asked for.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns true if no event was asked for.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns one event, by its position in the request.
    pub fn get(&self, index: usize) -> Option<EventCount<'_>> {
        let event = self.events.get(index)?;
        Some(EventCount {
            event,
            counts: self,
        })
    }

    /// Returns the event that a builder gave this id.
    ///
    /// # Panics
    /// As an index does, if the set was opened by another builder and has not so many events.
    pub fn of(&self, event: EventId) -> EventCount<'_> {
        EventCount {
            event: &self.events[event.0],
            counts: self,
        }
    }

    /// Returns every event, in request order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EventCount<'_>> {
        self.events.iter().map(|event| EventCount {
            event,
            counts: self,
        })
    }

    /// Returns the first event of this name, as [`EventCount::name`] gives it.
    pub fn by_name(&self, name: &str) -> Option<EventCount<'_>> {
        self.events().find(|e| e.name() == name)
    }

    /// Returns the plain value of each event, in request order, if each was counted all the time.
    ///
    /// ```
    /// let m = quipu::measure("page-faults,task-clock", || vec![1u8; 1 << 20])?;
    /// let [faults, nanoseconds] = m.counts.values()?;
    /// println!("{faults} faults in {nanoseconds} ns");
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first event without such a value: the reason why it could not be opened or read;
    /// [`Busy`](ErrorKind::Busy) if it had a counter for a part of the time, or never, so that its value is an estimate or
    /// there is none ([`total`](EventCount::total) has it); [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if it is
    /// [a lower bound](Count::AtLeast); [`CounterJumped`](ErrorKind::CounterJumped).
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if the set has not `N` events.
    pub fn values<const N: usize>(&self) -> Result<[u64; N]> {
        if self.len() != N {
            let reason = format!("{N} are asked for, and the set has {} events", self.len());
            return Err(Error::new(
                ErrorKind::InvalidConfiguration,
                "return the values of a set",
            )
            .with_reason(reason));
        }
        let mut values = [0; N];
        for (event, value) in self.events().zip(&mut values) {
            *value = event.value()?;
        }
        Ok(values)
    }

    /// Puts the value of each event into `values`, in request order; false if one of them is no exact number of 64 bits.
    pub(crate) fn exact(&self, values: &mut [u64]) -> bool {
        self.events().zip(values).all(|(event, value)| {
            let exact = event.total().ok().and_then(Count::exact);
            let exact = exact.and_then(|exact| u64::try_from(exact).ok());
            *value = exact.unwrap_or_default();
            exact.is_some()
        })
    }

    /// Makes `out` the differences from an earlier reading of the same set. It allocates nothing if `out` is of that set,
    /// too.
    ///
    /// Gauges keep their present value. An event that could not be read then or now has an error.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if `earlier` is of another set.
    pub fn since(&self, earlier: &Self, out: &mut Self) -> Result<()> {
        out.clone_from(self);
        out.subtract(earlier)
    }

    /// Turns the readings into differences from an earlier reading, as [`since`](Self::since) does.
    ///
    /// # Errors
    /// As `since`.
    pub fn subtract(&mut self, earlier: &Self) -> Result<()> {
        if !self.belongs_to(&earlier.events) {
            return Err(of_another_set("subtract counts"));
        }
        for event in self.events.iter().flat_map(SetEvent::counted) {
            if let (Ok(at), false) = (event.index(), event.is_gauge())
                && let Some(now) = self.groups.get_mut(at.group)
                && let Some(then) = earlier.groups.get(at.group)
            {
                now.buf.subtract(at.member, &then.buf)?;
            }
        }
        for (now, then) in self.groups.iter_mut().zip(&earlier.groups) {
            if now.error.is_none() {
                now.error.clone_from(&then.error);
            }
        }
        Ok(())
    }

    /// Adds what was counted from an earlier reading to a later one, both of the set that these counts are of: so spans are
    /// summed up, each with its own times. It allocates nothing unless a group has failed.
    ///
    /// Gauges get their level at the end of the last span. An event that could not be read at an end of a span has an error.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut set = EventSet::builder().events("page-faults")?.open()?;
    /// let [mut before, mut after, mut sum] = [set.counts(), set.counts(), set.counts()];
    /// set.enable()?;
    /// for size in [10, 100] {
    ///     set.read(&mut before)?;
    ///     let touched = vec![1u8; size * 4096];
    ///     set.read(&mut after)?;
    ///     sum.add_since(&before, &after)?;
    ///     drop(touched);
    /// }
    /// println!("{:?} page faults in both", sum.by_name("page-faults").map(|event| event.total()));
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if one of them is of another set.
    pub fn add_since(&mut self, earlier: &Self, now: &Self) -> Result<()> {
        if !self.belongs_to(&earlier.events) || !self.belongs_to(&now.events) {
            return Err(of_another_set("add counts"));
        }
        for event in self.events.iter().flat_map(SetEvent::counted) {
            let Ok(at) = event.index() else {
                continue;
            };
            let (Some(sum), Some(then), Some(now)) = (
                self.groups.get_mut(at.group),
                earlier.groups.get(at.group),
                now.groups.get(at.group),
            ) else {
                continue;
            };
            if event.is_gauge() {
                for part in 0..sum.buf.parts().len() {
                    sum.buf[part][at.member] = now.buf[part][at.member];
                }
            } else {
                sum.buf.add_since(at.member, &then.buf, &now.buf)?;
            }
        }
        for ((sum, then), now) in self.groups.iter_mut().zip(&earlier.groups).zip(&now.groups) {
            if sum.error.is_none() && (then.error.is_some() || now.error.is_some()) {
                sum.error = then.error.clone().or_else(|| now.error.clone());
            }
        }
        Ok(())
    }
}

impl<'a> EventCount<'a> {
    /// Returns the event as it was asked for, as text: `page-faults:u`.
    pub fn name(&self) -> &'a str {
        self.event.name()
    }

    /// Returns the request, and the counter that was opened for it.
    pub fn event(&self) -> &'a SetEvent {
        self.event
    }

    /// Refuses a count that jumped. Only then is the name needed, which allocates when it is first asked for.
    fn checked(&self, count: Count) -> Result<Count> {
        match count {
            Count::Jumped => count.checked(self.name()),
            count => Ok(count),
        }
    }

    /// Returns the total over all parts, each scaled by its own times.
    ///
    /// That of a preset of several events is the value of its formula;
    /// [`no_value`](Self::no_value) has the reason why there is none.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or its group not be read;
    /// [`CounterJumped`](ErrorKind::CounterJumped) if the counter moved further than the event can have occurred. A gauge has no total over
    /// several parts ([`UnsupportedFeature`](ErrorKind::UnsupportedFeature)).
    pub fn total(&self) -> Result<Count> {
        if let Some(preset) = self.event.preset() {
            let value = self.evaluate(preset)?;
            return self.checked(value.unwrap_or_else(|none| none.count()));
        }
        let (buf, member) = self.read()?;
        if !self.event.is_gauge() {
            return self.checked(buf.total(member));
        }
        match buf.parts().len() {
            1 => Ok(buf[0][member].level()),
            parts => Err(Error::new(
                ErrorKind::UnsupportedFeature,
                format!("add up {}", self.name()),
            )
            .with_reason(format!(
                "it is a gauge, read in {parts} parts; look at each"
            ))),
        }
    }

    /// Returns the plain value, if the event was counted all the time.
    ///
    /// # Errors
    /// As [`Counts::values`].
    pub fn value(&self) -> Result<u64> {
        let refused = |kind, reason: String| {
            Error::new(kind, format!("return the plain value of {}", self.name()))
                .with_reason(reason)
        };
        let waited = |reason: String| {
            refused(ErrorKind::Busy, reason).with_hint(
                "count fewer events at the same time, or take the estimate that `total` has",
            )
        };
        match self.total()? {
            Count::Exact(value) => u64::try_from(value).map_err(|_| {
                let reason = format!("{value} has more than 64 bits");
                refused(ErrorKind::UnsupportedFeature, reason)
            }),
            Count::Estimated(value) => Err(waited(format!(
                "it had a counter for a part of the time, from which {value} is estimated"
            ))),
            Count::AtLeast(value) => Err(refused(
                ErrorKind::UnsupportedFeature,
                format!("it was at least {value}: a part of the time may not have been counted"),
            )
            .with_hint("take it as a lower bound: `total` has it")),
            Count::Partial { missing, .. } => Err(waited(format!(
                "{missing} parts of the target never had a counter for it"
            ))),
            _ => Err(waited("it never had a counter".to_owned())),
        }
    }

    /// Returns the reason why the formula of a preset of several events has no value; `None` if it has
    /// one, and for other events.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn no_value(&self) -> Result<Option<NoValue>> {
        let preset = self.event.preset();
        let value = preset.map(|preset| self.evaluate(preset)).transpose()?;
        Ok(value.and_then(Result::err))
    }

    /// Returns the value of the formula of a preset, which the event is.
    fn evaluate(&self, preset: &Preset) -> Result<Result<Count, NoValue>> {
        self.check_terms()?;
        let counts = self.counts;
        let parts = |term: usize| {
            let event = &preset.terms()[term];
            EventCount { event, counts }.parts()
        };
        Ok(preset.evaluate(|term| parts(term).into_iter().flatten()))
    }

    /// Returns the readings of each term, part by part; an event that is no preset is its own only term.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or the group of a term not be read.
    pub fn term_readings(&self) -> Result<Vec<Vec<(&'a Part, &'a Reading)>>> {
        if self.event.preset().is_none() {
            return Ok(vec![self.parts()?.collect()]);
        }
        self.check_terms()?;
        let terms = self.terms().map(|term| Ok(term.parts()?.collect()));
        terms.collect()
    }

    /// Returns the reason why a term has no readings.
    fn check_terms(&self) -> Result<()> {
        let refused = |term: EventCount<'_>| {
            let error = term.read().err()?;
            Some(term_refused(self.name(), term.name(), &error))
        };
        self.terms().find_map(refused).map_or(Ok(()), Err)
    }

    /// Returns the terms of a preset of several events, each counted by itself; none for other events.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = EventCount<'a>> + use<'a> {
        let counts = self.counts;
        let terms = self.event.preset().map_or(&[][..], Preset::terms);
        terms.iter().map(move |event| EventCount { event, counts })
    }

    /// Returns the readings, part by part.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or its group not be read;
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) for a preset of several events, whose
    /// [terms](Self::terms) have readings.
    pub fn parts(
        &self,
    ) -> Result<impl ExactSizeIterator<Item = (&'a Part, &'a Reading)> + use<'a>> {
        if self.event.preset().is_some() {
            let attempted = format!("give the readings of {}", self.name());
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it is a formula over several events; each of them has readings"));
        }
        let (buf, member) = self.read()?;
        buf.member(member).ok_or_else(no_such_member)
    }

    /// Returns the buffer of the event's group, and its member there.
    fn read(&self) -> Result<(&'a ReadBuf, usize)> {
        let at = self.event.index().map_err(Clone::clone)?;
        match self.counts.buffer(at.group) {
            Some(Ok(buf)) if at.member < buf.members() => Ok((buf, at.member)),
            Some(Err(error)) => Err(error.clone()),
            _ => Err(no_such_member()),
        }
    }
}

impl fmt::Debug for EventCount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCount")
            .field("name", &self.name())
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

/// The name of an event with its count and readings, or the reason why there are none.
#[cfg(feature = "serde")]
impl serde::Serialize for EventCount<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;

        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("event", self.name())?;
        match self.total() {
            Ok(count) => map.serialize_entry("count", &count)?,
            Err(error) => map.serialize_entry("error", &error.to_string())?,
        }
        if let Ok(parts) = self.parts() {
            map.serialize_entry("parts", &parts.collect::<Vec<_>>())?;
        }
        map.end()
    }
}

/// A sequence of its events.
#[cfg(feature = "serde")]
impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.events())
    }
}

fn no_such_member() -> Error {
    Error::new(ErrorKind::InvalidConfiguration, "read a group")
        .with_reason("the buffer that the backend made for it lacks members")
}

pub(crate) fn of_another_set(attempted: &str) -> Error {
    Error::new(ErrorKind::InvalidConfiguration, attempted)
        .with_reason("the buffer was made by another set")
}
