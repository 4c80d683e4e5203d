//! Reading a recording: its samples, added up by instruction.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use quipu_perf_data::{Error, Losses, Periods, RawRecord, Record, RecordedEvent, Sample};

use crate::recording::{Places, Replay, Selection, Visit, owner};

/// Eighths that are left of what was sampled before, when it ages (`hists__decay_entry`, `tools/perf/util/hist.c`).
#[cfg(target_os = "linux")]
const AGED: u64 = 7;
/// Functions with less of an event than one in so many are forgotten when they age.
#[cfg(target_os = "linux")]
const FORGOTTEN: u64 = 100_000;

/// Samples, and the events that they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

impl Weight {
    pub(crate) fn add(&mut self, period: u64) {
        self.samples += 1;
        self.period += period;
    }

    /// Has what was before weigh less, or nothing.
    #[cfg(target_os = "linux")]
    fn age(&mut self, zero: bool) {
        let left = if zero { 0 } else { AGED };
        self.samples = self.samples * left / 8;
        self.period = (u128::from(self.period) * u128::from(left) / 8) as u64;
    }

    /// Returns its share of a whole, in percent.
    pub(crate) fn percent_of(self, whole: Self) -> f64 {
        match whole.period {
            0 => 0.0,
            whole => 100.0 * self.period as f64 / whole as f64,
        }
    }
}

/// A function: the file it is in, the offset of its start there, its name. All code of a file that has no name is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Function {
    pub(crate) object: Arc<str>,
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
    pub(crate) functions: HashMap<Function, Hits>,
    /// Samples of which the period is impossible.
    pub(crate) jumped: u64,
    pub(crate) lost: u64,
}

/// State of reading a recording.
pub(crate) struct Loading {
    selection: Selection,
    /// True if samples that names leave out are in the totals.
    counts_all: bool,
    periods: Vec<Periods>,
    losses: Losses,
    places: Places,
    events: Vec<EventHits>,
}

impl Loading {
    pub(crate) fn new(selection: Selection, events: &[RecordedEvent], names: &[String]) -> Self {
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
    #[cfg(target_os = "linux")]
    pub(crate) fn counting_all(self) -> Self {
        Self {
            counts_all: true,
            ..self
        }
    }

    /// Returns all events as they are by now.
    #[cfg(target_os = "linux")]
    pub(crate) fn events(&self) -> &[EventHits] {
        &self.events
    }

    /// Has what was sampled so far weigh less, or nothing, and forgets what has no weight.
    #[cfg(target_os = "linux")]
    pub(crate) fn age(&mut self, zero: bool) {
        for event in &mut self.events {
            event.total.age(zero);
            let least = (event.total.period / FORGOTTEN).max(1);
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
        let name = thread.and_then(|thread| replay.thread_name(thread.tid).cloned());
        let Some(ip) = sample.ip() else {
            return ControlFlow::Continue(());
        };
        let mode = sample.misc().cpu_mode();
        let is_of_thread = self
            .selection
            .has(sample, name.as_deref().unwrap_or("[unknown]"));
        if self.selection.hides(mode) || !(is_of_thread || self.counts_all) {
            return ControlFlow::Continue(());
        }
        let own = owner(mode, thread.map_or(-1, |thread| thread.pid));
        let place = self.places.at(replay, own, ip);
        let selection = &self.selection;
        let is_chosen =
            is_of_thread && selection.has_function(&place.object, place.symbol.as_deref());
        if !is_chosen && !self.counts_all {
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
        if !is_chosen {
            return ControlFlow::Continue(());
        }
        let is_named = place.symbol.is_some();
        let function = Function {
            object: place.object.clone(),
            start: place.in_file.wrapping_sub(place.offset) * u64::from(is_named),
            name: place.symbol.clone(),
        };
        let hits = event.functions.entry(function).or_default();
        hits.total.add(period);
        if is_named {
            hits.at.entry(place.offset).or_default().add(period);
        }
        ControlFlow::Continue(())
    }

    fn forget(&mut self, pid: i32) {
        self.places.forget(pid);
    }
}
