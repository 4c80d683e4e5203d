//! The readings of an event set, in request order.

use std::fmt;
use std::num::NonZero;
use std::slice;
use std::sync::Arc;

use quipu_hal::{Count, Error, ErrorKind, Part, ReadBuf, Reading, Result};

use crate::SetEvent;
use crate::open::OpenGroup;
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

/// The readings of an [`EventSet`](crate::EventSet), event by event in request order.
///
/// Made by [`EventSet::counts`](crate::EventSet::counts) and filled by
/// [`EventSet::read`](crate::EventSet::read). A clone keeps them; `clone_from` of counts of the same set allocates
/// nothing.
#[derive(Debug)]
pub struct Counts {
    events: Arc<[SetEvent]>,
    row: Row,
    /// A reading for each event: those of the only group where the events are a [row](Row), else ones that are not exact.
    in_a_row: GroupCounts,
    /// The groups where they are none.
    groups: Box<[GroupCounts]>,
}

/// Tells counts whose events are a row: each is one reading, and all are the members of one group in their order. Those of
/// one set are equal; no others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row(Option<NonZero<usize>>);

impl Row {
    /// Returns the row that these events are, or that they are none.
    pub(crate) fn of(events: &Arc<[SetEvent]>, is_row: bool) -> Self {
        // The events are where they are as long as a set or its counts have them.
        let place = NonZero::new(Arc::as_ptr(events).addr());
        Self(place.filter(|_| is_row))
    }

    /// Returns true for events that are a row.
    #[inline]
    fn is_there(self) -> bool {
        self.0.is_some()
    }
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
            row: self.row,
            in_a_row: self.in_a_row.clone(),
            groups: self.groups.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.events.clone_from(&source.events);
        self.row = source.row;
        self.in_a_row.clone_from(&source.in_a_row);
        self.groups.clone_from(&source.groups);
    }
}

impl GroupCounts {
    /// Reads a group into its buffer, or keeps the error.
    #[inline(always)]
    pub(crate) fn read(&mut self, open: &mut OpenGroup) {
        match open.group.read(&mut self.buf) {
            Ok(()) => {
                if self.error.is_some() {
                    self.forget();
                }
            }
            Err(error) => self.keep(error),
        }
    }

    // These two are apart, so that a read keeps no registers for them.
    #[cold]
    #[inline(never)]
    fn forget(&mut self) {
        self.error = None;
    }

    /// Keeps the error of a read, after which no reading is exact.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, error: Error) {
        for part in 0..self.buf.parts().len() {
            self.buf[part].fill(NO_READING);
        }
        self.error = Some(error);
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
    event: EventOf<'a>,
    counts: &'a Counts,
    /// Its reading, if the events are a [row](Row) and it could be read; else one that is not exact.
    reading: &'a Reading,
}

/// An event with counts.
#[derive(Clone, Copy)]
enum EventOf<'a> {
    /// The event at this position in the request.
    Request(usize),
    /// A term of one.
    Term(&'a SetEvent),
}

impl<'a> EventOf<'a> {
    /// Returns the event, which is one of the set with these counts.
    fn of(self, counts: &'a Counts) -> &'a SetEvent {
        match self {
            Self::Request(index) => &counts.events[index],
            Self::Term(event) => event,
        }
    }
}

/// Stands for no reading where an exact one is looked for.
static NO_READING: Reading = Reading::new(0, 1, 0);

impl Counts {
    pub(crate) fn new(
        events: Arc<[SetEvent]>,
        row: Row,
        bufs: impl Iterator<Item = ReadBuf>,
    ) -> Self {
        let mut groups = bufs.map(|buf| GroupCounts { buf, error: None });
        let in_a_row = match row.is_there() {
            true => groups.next(),
            false => None,
        };
        let in_a_row = in_a_row.unwrap_or_else(|| {
            let mut buf = ReadBuf::new(events.len(), [Part::whole()]);
            buf[0].fill(NO_READING);
            GroupCounts { buf, error: None }
        });
        Self {
            events,
            row,
            in_a_row,
            groups: groups.collect(),
        }
    }

    #[inline]
    pub(crate) fn belongs_to(&self, events: &Arc<[SetEvent]>) -> bool {
        Arc::ptr_eq(&self.events, events)
    }

    /// Returns the buffer of the only group of a set whose events are this row.
    #[inline(always)]
    pub(crate) fn in_row(&mut self, row: Row) -> Option<&mut GroupCounts> {
        (row.is_there() && self.row == row).then_some(&mut self.in_a_row)
    }

    /// Returns the buffers of all groups.
    pub(crate) fn groups_mut(&mut self) -> &mut [GroupCounts] {
        match self.row.is_there() {
            true => slice::from_mut(&mut self.in_a_row),
            false => &mut self.groups,
        }
    }

    /// Returns the buffers of all groups.
    #[inline]
    fn groups(&self) -> &[GroupCounts] {
        match self.row.is_there() {
            true => slice::from_ref(&self.in_a_row),
            false => &self.groups,
        }
    }

    /// Returns the buffer that a group was read into, or the reason why it could not be read; `None` if
    /// there are not so many groups. This is the shortest way to many readings; [`get`](Self::get) is the
    /// convenient one.
    #[inline]
    pub fn buffer(&self, group: usize) -> Option<Result<&ReadBuf, &Error>> {
        let GroupCounts { buf, error } = self.groups().get(group)?;
        Some(match error {
            Some(error) => Err(error),
            None => Ok(buf),
        })
    }

    /// Returns the readings of all events in request order, if each event is one reading, all are the members of one
    /// group, and that could be read: the shortest way to exact counts ([`Reading::exact`]). Where it gives none, or a
    /// reading is not exact, [`events`](Self::events) tells more.
    ///
    /// ```
    /// use quipu::{EventSet, Reading};
    ///
    /// let mut set = EventSet::builder().events("{task-clock,page-faults}")?.open()?;
    /// let mut counts = set.counts();
    /// set.read(&mut counts)?;
    /// if let Some([clock, faults]) = counts.readings() {
    ///     println!("{:?} ns, {:?} faults", clock.exact(), faults.exact());
    /// }
    /// # Ok::<(), quipu::Error>(())
    /// ```
    #[inline]
    pub fn readings(&self) -> Option<&[Reading]> {
        let GroupCounts { buf, error } = &self.in_a_row;
        (self.row.is_there() && error.is_none()).then(|| buf.readings())
    }

    /// Returns the counts of a term of an event of this set.
    pub(crate) fn of_term<'a>(&'a self, term: &'a SetEvent) -> EventCount<'a> {
        self.without_reading(EventOf::Term(term))
    }

    fn without_reading<'a>(&'a self, event: EventOf<'a>) -> EventCount<'a> {
        EventCount {
            event,
            counts: self,
            reading: &NO_READING,
        }
    }

    /// Returns the total of any event of this set, or of a term of one.
    // Takes the event and not its counts, so that the caller's need not be in memory.
    #[cold]
    #[inline(never)]
    fn any_total(&self, event: EventOf<'_>) -> Result<Count> {
        let count = self.without_reading(event);
        match count.only_reading().exact() {
            Some(value) => Ok(Count::Exact(value.into())),
            None => count.any_total(),
        }
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
    #[inline]
    pub fn get(&self, index: usize) -> Option<EventCount<'_>> {
        Some(EventCount {
            event: EventOf::Request(index),
            counts: self,
            reading: self.in_a_row.buf.readings().get(index)?,
        })
    }

    /// Returns every event, in request order.
    #[inline]
    pub fn events(&self) -> impl ExactSizeIterator<Item = EventCount<'_>> {
        let readings = self.in_a_row.buf.readings().iter();
        readings.enumerate().map(|(index, reading)| EventCount {
            event: EventOf::Request(index),
            counts: self,
            reading,
        })
    }

    /// Returns the first event of this name, as [`EventCount::name`] gives it.
    pub fn by_name(&self, name: &str) -> Option<EventCount<'_>> {
        self.events().find(|e| e.name() == name)
    }

    /// Turns the readings into differences from an earlier reading of the same set.
    ///
    /// Gauges keep their present value. An event that could not be read then or now has an error.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if `earlier` is of another set.
    pub fn subtract(&mut self, earlier: &Self) -> Result<()> {
        if !self.belongs_to(&earlier.events) {
            return Err(of_another_set("subtract counts"));
        }
        let events = Arc::clone(&self.events);
        for event in events.iter().flat_map(SetEvent::counted) {
            if let (Ok(at), false) = (event.index(), event.is_gauge())
                && let Some(now) = self.groups_mut().get_mut(at.group)
                && let Some(then) = earlier.groups().get(at.group)
            {
                now.buf.subtract(at.member, &then.buf)?;
            }
        }
        for (now, then) in self.groups_mut().iter_mut().zip(earlier.groups()) {
            if let Some(error) = now.error.take().or_else(|| then.error.clone()) {
                now.keep(error);
            }
        }
        Ok(())
    }
}

impl<'a> EventCount<'a> {
    /// Returns the event as it was asked for, as text: `page-faults:u`.
    pub fn name(&self) -> &'a str {
        self.event().name()
    }

    /// Returns the request, and the counter that was opened for it.
    pub fn event(&self) -> &'a SetEvent {
        self.event.of(self.counts)
    }

    /// Returns the total over all parts, each scaled by its own times.
    ///
    /// That of a preset of several events is the value of its formula;
    /// [`no_value`](Self::no_value) tells why there is none.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or its group not be read;
    /// [`CounterJumped`](ErrorKind::CounterJumped) if the counter moved further than the event can have occurred. A gauge has no total over
    /// several parts ([`UnsupportedFeature`](ErrorKind::UnsupportedFeature)).
    #[inline]
    pub fn total(&self) -> Result<Count> {
        // By far the most frequent: of one reading, which was counted all the time.
        match self.reading.exact() {
            Some(value) => Ok(Count::Exact(value.into())),
            None => self.counts.any_total(self.event),
        }
    }

    /// Returns the reading that is all there is of it, or [`NO_READING`].
    fn only_reading(&self) -> &'a Reading {
        let at = self.event().only_reading();
        match self.counts.buffer(at.group) {
            Some(Ok(buf)) => buf.get(0, at.member).unwrap_or(&NO_READING),
            _ => &NO_READING,
        }
    }

    fn any_total(&self) -> Result<Count> {
        if let Some(value) = self.evaluate() {
            return value?
                .unwrap_or_else(|none| none.count())
                .checked(self.name());
        }
        let (buf, member) = self.read()?;
        if !self.event().is_gauge() {
            return buf
                .total(member)
                .ok_or_else(no_such_member)?
                .checked(self.name());
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

    /// Returns the reason why the formula of a preset of several events has no value; `None` if it has
    /// one, and for other events.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn no_value(&self) -> Result<Option<NoValue>> {
        Ok(self.evaluate().transpose()?.and_then(Result::err))
    }

    /// Returns the value of the formula of a preset of several events; `None` for other events.
    fn evaluate(&self) -> Option<Result<Result<Count, NoValue>>> {
        Some(self.event().as_preset()?.value_of(self, self.counts))
    }

    /// Returns the readings of each term, part by part; an event that is no preset is its own only term.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or the group of a term not be read.
    pub fn term_readings(&self) -> Result<Vec<Vec<(&'a Part, &'a Reading)>>> {
        if self.event().preset().is_none() {
            return Ok(vec![self.parts()?.collect()]);
        }
        self.check_terms()?;
        let terms = self.terms().map(|term| Ok(term.parts()?.collect()));
        terms.collect()
    }

    /// Returns the reason why a term has no readings.
    pub(crate) fn check_terms(&self) -> Result<()> {
        let refused = |term: EventCount<'_>| {
            let error = term.read().err()?;
            Some(term_refused(self.name(), term.name(), &error))
        };
        self.terms().find_map(refused).map_or(Ok(()), Err)
    }

    /// Returns the terms of a preset of several events, each counted by itself; none for other events.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = EventCount<'a>> + use<'a> {
        let counts = self.counts;
        let terms = self.event().preset().map_or(&[][..], Preset::terms);
        terms.iter().map(move |term| counts.of_term(term))
    }

    /// Returns the readings, part by part.
    ///
    /// # Errors
    /// The reason why the event could not be opened, or its group not be read;
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) for a preset of several events, whose
    /// [terms](Self::terms) have readings.
    #[inline]
    pub fn parts(
        &self,
    ) -> Result<impl ExactSizeIterator<Item = (&'a Part, &'a Reading)> + use<'a>> {
        if self.event().preset().is_some() {
            let attempted = format!("give the readings of {}", self.name());
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it is a formula over several events; each of them has readings"));
        }
        let (buf, member) = self.read()?;
        buf.member(member).ok_or_else(no_such_member)
    }

    /// Returns the buffer of the event's group, and its member there.
    #[inline]
    fn read(&self) -> Result<(&'a ReadBuf, usize)> {
        let at = self.event().index().map_err(Clone::clone)?;
        match self.counts.buffer(at.group) {
            Some(Ok(buf)) => Ok((buf, at.member)),
            Some(Err(error)) => Err(error.clone()),
            None => Err(no_such_member()),
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

#[cold]
fn no_such_member() -> Error {
    Error::new(ErrorKind::InvalidConfiguration, "read a group")
        .with_reason("the buffer that the backend made for it lacks members")
}

#[cold]
pub(crate) fn of_another_set(attempted: &str) -> Error {
    Error::new(ErrorKind::InvalidConfiguration, attempted)
        .with_reason("the buffer was made by another set")
}
