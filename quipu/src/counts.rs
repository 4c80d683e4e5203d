//! What an event set counted: readings in request order.

use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, Part, ReadBuf, Reading, Result, Scaled, Total};

use crate::SetEvent;
use crate::preset::{Evaluation, Preset, term_refused};

/// Where an event's readings are: in which [buffer](Counts::buffer), and of which member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The open group.
    pub group: usize,
    /// The member of the group.
    pub member: usize,
}

/// The readings of an [`EventSet`](crate::EventSet), event by event in request order.
///
/// Made by [`EventSet::counts`](crate::EventSet::counts) and filled by
/// [`EventSet::read`](crate::EventSet::read).
#[derive(Clone)]
pub struct Counts {
    events: Arc<[SetEvent]>,
    bufs: Vec<ReadBuf>,
    errors: Vec<Option<Error>>,
}

/// What was counted of one event.
#[derive(Clone, Copy)]
pub struct EventCount<'a> {
    event: &'a SetEvent,
    counts: &'a Counts,
}

impl Counts {
    pub(crate) fn new(events: Arc<[SetEvent]>, bufs: Vec<ReadBuf>) -> Self {
        Self {
            errors: bufs.iter().map(|_| None).collect(),
            events,
            bufs,
        }
    }

    #[inline]
    pub(crate) fn belongs_to(&self, events: &Arc<[SetEvent]>) -> bool {
        Arc::ptr_eq(&self.events, events)
    }

    #[inline]
    pub(crate) fn groups_mut(
        &mut self,
    ) -> impl Iterator<Item = (&mut ReadBuf, &mut Option<Error>)> {
        self.bufs.iter_mut().zip(&mut self.errors)
    }

    /// What a group was read into, as it came. This is the shortest way to many readings;
    /// [`event`](Self::event) is the convenient one.
    ///
    /// # Errors
    /// Why the group could not be read.
    ///
    /// # Panics
    /// When there are not so many groups, as indexing does.
    #[inline]
    pub fn buffer(&self, group: usize) -> Result<&ReadBuf, &Error> {
        match &self.errors[group] {
            Some(error) => Err(error),
            None => Ok(&self.bufs[group]),
        }
    }

    /// How many events were asked for.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether no event was asked for.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// One event, by its position in the request.
    ///
    /// # Panics
    /// When there are not so many events, as indexing does.
    #[inline]
    pub fn event(&self, index: usize) -> EventCount<'_> {
        EventCount {
            event: &self.events[index],
            counts: self,
        }
    }

    /// Every event, in request order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EventCount<'_>> {
        self.events.iter().map(|event| EventCount {
            event,
            counts: self,
        })
    }

    /// The first event of this name, as [`EventCount::name`] gives it.
    pub fn by_name(&self, name: &str) -> Option<EventCount<'_>> {
        self.events().find(|e| e.name() == name)
    }

    /// Turns the readings into what was counted since an earlier reading of the same set.
    ///
    /// Gauges keep their present value. An event that could not be read then or now has an error.
    ///
    /// # Panics
    /// When `earlier` is of another set.
    pub fn subtract(&mut self, earlier: &Self) {
        assert!(self.belongs_to(&earlier.events), "counts of another set");
        for (now, then) in self.errors.iter_mut().zip(&earlier.errors) {
            if now.is_none() {
                now.clone_from(then);
            }
        }
        for event in self.events.iter().flat_map(SetEvent::counted) {
            if let (Ok(place), false) = (event.place(), event.is_gauge()) {
                self.bufs[place.group].subtract(place.member, &earlier.bufs[place.group]);
            }
        }
    }
}

impl<'a> EventCount<'a> {
    /// The event as it was asked for, as text: `page-faults:u`.
    pub fn name(&self) -> &'a str {
        self.event.name()
    }

    /// What was asked for, and what became of it.
    pub fn event(&self) -> &'a SetEvent {
        self.event
    }

    /// The total over all parts, each scaled by its own times.
    ///
    /// That of a preset of several events is the value of its formula ([`Preset::evaluate`]).
    ///
    /// # Errors
    /// Why the event could not be opened, or its group not be read. A gauge has no total over
    /// several parts ([`UnsupportedFeature`](ErrorKind::UnsupportedFeature)).
    pub fn total(&self) -> Result<Total> {
        if let Some(evaluation) = self.evaluation() {
            return Ok(evaluation?.total);
        }
        let (buf, place) = self.read()?;
        if !self.event.is_gauge() {
            return Ok(buf.total(place.member));
        }
        match buf.parts().len() {
            1 => Ok(match buf.get(0, place.member) {
                reading if reading.scaled() == Scaled::NotCounted => Total::NotCounted,
                reading => Total::Exact(reading.value.into()),
            }),
            parts => Err(Error::new(
                ErrorKind::UnsupportedFeature,
                format!("add up {}", self.name()),
            )
            .with_reason(format!(
                "it is a gauge, read in {parts} parts; look at each"
            ))),
        }
    }

    /// What the formula of a preset of several events comes to, with the reason where it has no value;
    /// nothing for other events.
    ///
    /// # Errors
    /// Why the group of a term could not be read.
    pub fn evaluation(&self) -> Option<Result<Evaluation>> {
        let preset = self.event.preset()?;
        let readings = self.term_readings();
        Some(readings.map(|readings| preset.evaluate(&readings)))
    }

    /// The readings of each term, part by part; an event that is no preset is its own only term.
    ///
    /// # Errors
    /// Why the event could not be opened, or the group of a term not be read.
    pub fn term_readings(&self) -> Result<Vec<Vec<(&'a Part, &'a Reading)>>> {
        if self.event.preset().is_none() {
            return Ok(vec![self.parts()?.collect()]);
        }
        let terms = self.terms().map(|term| match term.parts() {
            Ok(parts) => Ok(parts.collect()),
            Err(error) => Err(term_refused(self.name(), term.name(), &error)),
        });
        terms.collect()
    }

    /// The terms of a preset of several events, each counted by itself; none for other events.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = EventCount<'a>> + use<'a> {
        let counts = self.counts;
        let terms = self.event.preset().map_or(&[][..], Preset::terms);
        terms.iter().map(move |event| EventCount { event, counts })
    }

    /// The readings, part by part.
    ///
    /// # Errors
    /// Why the event could not be opened, or its group not be read;
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) for a preset of several events, whose
    /// [terms](Self::terms) have readings.
    #[inline]
    pub fn parts(&self) -> Result<impl ExactSizeIterator<Item = (&'a Part, &'a Reading)>> {
        if self.event.preset().is_some() {
            let attempted = format!("give the readings of {}", self.name());
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it is a formula over several events; each of them has readings"));
        }
        let (buf, place) = self.read()?;
        Ok(buf.member(place.member))
    }

    #[inline]
    fn read(&self) -> Result<(&'a ReadBuf, Place)> {
        let place = self.event.place().map_err(Clone::clone)?;
        let buf = self.counts.buffer(place.group).map_err(Clone::clone)?;
        Ok((buf, place))
    }
}
