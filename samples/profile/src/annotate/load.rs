//! Reading a recording: its samples, added up by instruction.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use quipu_perf_data::{Error, Losses, Periods, RawRecord, Record, RecordedEvent, Sample};

use quipu_symbols::ReadFile;

use crate::recording::{Places, Replay, SampleSelection, Visit, owner};
use crate::report::Weight;

/// A function: the file it is in, the offset of its start there, its name. All code of a file that has no name is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SampledFunction {
    pub(crate) object: Arc<str>,
    /// The file that was read for that.
    pub(crate) read: Option<Arc<ReadFile>>,
    pub(crate) start: u64,
    pub(crate) name: Option<Arc<str>>,
}

/// The samples of a function, by the distance of their instructions from its start.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    pub(crate) total: Weight,
    pub(crate) at: BTreeMap<u64, Weight>,
}

/// The samples of an event.
#[derive(Debug, Default)]
pub(crate) struct EventHits {
    pub(crate) name: String,
    pub(crate) total: Weight,
    pub(crate) functions: HashMap<SampledFunction, Hits>,
    /// Samples of which the period is impossible.
    pub(crate) jumped: u64,
    pub(crate) lost: u64,
}

/// State of reading a recording.
pub(crate) struct Loading {
    selection: SampleSelection,
    /// True if samples that names leave out are in the totals.
    counts_all: bool,
    periods: Vec<Periods>,
    losses: Losses,
    places: Places,
    events: Vec<EventHits>,
}

impl Loading {
    pub(crate) fn new(
        selection: SampleSelection,
        events: &[RecordedEvent],
        names: &[String],
    ) -> Self {
        let named = names.iter().map(|name| EventHits {
            name: name.clone(),
            ..EventHits::default()
        });
        Self {
            selection,
            counts_all: false,
            periods: events.iter().map(|e| Periods::new(e.attr())).collect(),
            losses: Losses::new(events),
            places: Places::default(),
            events: named.collect(),
        }
    }

    /// Counts samples that names leave out in the totals, of which shares are taken.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn counting_all(self) -> Self {
        Self {
            counts_all: true,
            ..self
        }
    }

    /// Returns all events as they are by now.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn events(&self) -> &[EventHits] {
        &self.events
    }

    /// Has what was sampled so far weigh less, or nothing, and forgets what has no weight.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn age(&mut self, zero: bool) {
        for event in &mut self.events {
            event.total.age(zero);
            let least = event.total.least_remembered();
            event.functions.retain(|_, hits| {
                hits.total.age(zero);
                hits.at.retain(|_, weight| {
                    weight.age(zero);
                    weight.period > 0
                });
                hits.total.period >= least
            });
        }
    }

    /// Returns the events that have samples.
    pub(crate) fn finish(mut self) -> Vec<EventHits> {
        for (at, event) in self.events.iter_mut().enumerate() {
            event.lost = self.losses.of(at);
        }
        self.events.retain(|event| event.total.samples > 0);
        self.events
    }
}

impl Visit for Loading {
    fn record(
        &mut self,
        replay: &Replay,
        event: usize,
        raw: &RawRecord<'_>,
        _: &Record<'_>,
    ) -> Result<(), Error> {
        self.losses.note(raw, replay.layout(event))
    }

    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let thread = sample.thread();
        let Some(ip) = sample.ip() else {
            return ControlFlow::Continue(());
        };
        let mode = sample.misc().cpu_mode();
        let is_of_thread = self.selection.has(sample, &replay.command_of(sample));
        if self.selection.hides(mode) || !(is_of_thread || self.counts_all) {
            return ControlFlow::Continue(());
        }
        let own = owner(mode, thread.map_or(-1, |thread| thread.pid));
        let place = self.places.at(replay, own, ip);
        let selection = &self.selection;
        let is_chosen = is_of_thread
            && selection.has_function(&place.code.object, place.code.symbol.as_deref());
        if !is_chosen && !self.counts_all {
            return ControlFlow::Continue(());
        }
        let excess = self.periods[event].check_sample(sample);
        let event = &mut self.events[event];
        if excess.is_some_and(|excess| excess.is_beyond(replay.begun)) {
            event.jumped += 1;
            return ControlFlow::Continue(());
        }
        let weight = Weight::of_sample(sample.period().unwrap_or(1));
        event.total.add(weight);
        if !is_chosen {
            return ControlFlow::Continue(());
        }
        let is_named = place.code.symbol.is_some();
        let function = SampledFunction {
            object: place.code.object.clone(),
            read: place.code.read.clone(),
            start: place.in_file.wrapping_sub(place.offset) * u64::from(is_named),
            name: place.code.symbol.clone(),
        };
        let hits = event.functions.entry(function).or_default();
        hits.total.add(weight);
        if is_named {
            hits.at.entry(place.offset).or_default().add(weight);
        }
        ControlFlow::Continue(())
    }
}
