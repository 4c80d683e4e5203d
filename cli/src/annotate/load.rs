//! Reading a recording: its samples, added up by instruction.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use quipu_perf_data::{Error, Losses, Periods, RawRecord, Record, RecordedEvent, Sample};

use crate::recording::{Places, Replay, Selection, Visit, owner};

/// Samples, and the events that they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) samples: u64,
    pub(super) period: u64,
}

impl Weight {
    fn add(&mut self, period: u64) {
        self.samples += 1;
        self.period += period;
    }

    /// Returns its share of a whole, in percent.
    pub(super) fn percent_of(self, whole: Self) -> f64 {
        match whole.period {
            0 => 0.0,
            whole => 100.0 * self.period as f64 / whole as f64,
        }
    }
}

/// A function: the file it is in, the offset of its start there, its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) object: Arc<str>,
    pub(super) start: u64,
    pub(super) name: Arc<str>,
}

/// The samples of a function, by the distance of their instructions from its start.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub(super) total: Weight,
    pub(super) at: BTreeMap<u64, Weight>,
}

/// The samples of an event.
#[derive(Debug, Default)]
pub(super) struct EventHits {
    pub(super) name: String,
    pub(super) total: Weight,
    pub(super) functions: HashMap<Function, Hits>,
    /// Samples of which the period is impossible.
    pub(super) jumped: u64,
    pub(super) lost: u64,
}

/// State of reading a recording.
pub(super) struct Loading {
    selection: Selection,
    periods: Vec<Periods>,
    losses: Losses,
    places: Places,
    events: Vec<EventHits>,
}

impl Loading {
    pub(super) fn new(selection: Selection, events: &[RecordedEvent], names: &[String]) -> Self {
        let named = names.iter().map(|name| EventHits {
            name: name.clone(),
            ..EventHits::default()
        });
        Self {
            selection,
            periods: events.iter().map(|e| Periods::new(e.attr())).collect(),
            losses: Losses::new(events),
            places: Places::default(),
            events: named.collect(),
        }
    }

    /// Returns the events that have samples.
    pub(super) fn finish(mut self) -> Vec<EventHits> {
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
        let name = thread.and_then(|thread| replay.thread_name(thread.tid).cloned());
        let Some(ip) = sample.ip() else {
            return ControlFlow::Continue(());
        };
        if !self
            .selection
            .has(sample, name.as_deref().unwrap_or("[unknown]"))
        {
            return ControlFlow::Continue(());
        }
        let own = owner(
            sample.misc().cpu_mode(),
            thread.map_or(-1, |thread| thread.pid),
        );
        let place = self.places.at(replay, own, ip);
        if !self
            .selection
            .has_function(&place.object, place.symbol.as_deref())
        {
            return ControlFlow::Continue(());
        }
        let excess = self.periods[event].check_sample(sample);
        let event = &mut self.events[event];
        if excess.is_some_and(|excess| excess.is_beyond(replay.begun)) {
            event.jumped += 1;
            return ControlFlow::Continue(());
        }
        let period = sample.period().unwrap_or(1);
        event.total.add(period);
        if let Some(name) = &place.symbol {
            let function = Function {
                object: place.object.clone(),
                start: place.in_file.wrapping_sub(place.offset),
                name: name.clone(),
            };
            let hits = event.functions.entry(function).or_default();
            hits.total.add(period);
            hits.at.entry(place.offset).or_default().add(period);
        }
        ControlFlow::Continue(())
    }

    fn forget(&mut self, pid: i32) {
        self.places.forget(pid);
    }
}
