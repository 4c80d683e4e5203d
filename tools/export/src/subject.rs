//! A subject of counting: what its series are about, the counters attached to it, and what they have counted so far.

use std::collections::BTreeMap;
use std::time::SystemTime;

use quipu::{Count, Part, Preset, Reading};
use quipu_hal::total;

use crate::attached::{Attached, Span};
use crate::events::EventMetric;
use crate::series::{Label, Labels, Point, Shape, Snapshot, Value};

/// Counts of one event of a subject over all the time it was counted.
///
/// Exact and estimated counts are summed up by themselves, and each sum is shown while it grows: so none of them
/// goes back, none stands still while the event is not counted, and both together are all that was counted.
#[derive(Debug, Clone)]
pub(crate) struct Total {
    exact: u128,
    estimated: u128,
    start: SystemTime,
    /// The last span.
    now: Now,
}

/// The span between the last two reads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Now {
    kind: Option<Kind>,
    /// The count of the span alone, or a level.
    count: u128,
    /// The share of the time that was counted, if there was any.
    ratio: Option<f64>,
    /// True if there was no read yet since counting began.
    is_fresh: bool,
}

impl Now {
    fn new(kind: Option<Kind>, count: u128, ratio: Option<f64>) -> Self {
        Self {
            kind,
            count,
            ratio,
            is_fresh: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    Estimated,
}

impl Total {
    /// Returns a total of nothing, from now on.
    pub(crate) fn new() -> Self {
        Self {
            exact: 0,
            estimated: 0,
            start: SystemTime::now(),
            now: Now::new(None, 0, None),
        }
    }

    /// Begins to count, or goes on: so far nothing has happened.
    pub(crate) fn begin(&mut self) {
        self.now = Now {
            is_fresh: true,
            ..Now::new(Some(Kind::Exact), 0, None)
        };
    }

    fn add(&mut self, count: Count, ratio: Option<f64>) {
        let (kind, count) = match count {
            Count::Exact(count) => (Some(Kind::Exact), count),
            Count::Estimated(count) => (Some(Kind::Estimated), count),
            // A part of a group or target that was not counted leaves no whole.
            _ => (None, 0),
        };
        match kind {
            Some(Kind::Exact) => self.exact = self.exact.saturating_add(count),
            Some(Kind::Estimated) => self.estimated = self.estimated.saturating_add(count),
            None => {}
        }
        self.now = Now::new(kind, count, ratio);
    }

    /// Takes note that the event could not be read.
    fn lose(&mut self) {
        self.now = Now::new(None, 0, Some(0.0));
    }
}

/// One of the things that a target stands for: a CPU, a control group, the processes of a name.
pub(crate) struct Subject {
    pub(crate) labels: Labels,
    pub(crate) attached: Vec<Attached>,
    /// By event.
    pub(crate) totals: Vec<Total>,
    /// True if counters could not be attached to all instances, so that nothing is known of the whole.
    pub(crate) is_partial: bool,
}

/// An event that could not be read, and the reason.
pub(crate) type Failed = (usize, quipu::Error);

impl Subject {
    /// Begins to count what could be opened.
    pub(crate) fn begin(&mut self) {
        for (event, total) in self.totals.iter_mut().enumerate() {
            let mut attached = self.attached.iter();
            let is_open = |attached: &Attached| attached.set.events()[event].error().is_none();
            if !self.is_partial && attached.all(is_open) {
                total.begin();
            }
        }
    }

    /// Reads all that is attached, and adds what happened since the read before.
    pub(crate) fn read(&mut self, metrics: &[Option<EventMetric>]) -> Vec<Failed> {
        let mut spans: Vec<Option<Span>> = vec![None; self.totals.len()];
        let mut failed = Vec::new();
        for attached in &mut self.attached {
            for (event, span) in attached.read().into_iter().enumerate() {
                match span {
                    Ok(span) => match &mut spans[event] {
                        Some(known) => join(known, span),
                        none => *none = Some(span),
                    },
                    Err(error) => failed.push((event, error)),
                }
            }
        }
        for (event, total) in self.totals.iter_mut().enumerate() {
            let has_failed = self.is_partial || failed.iter().any(|(at, _)| *at == event);
            match spans[event].take() {
                Some(span) if !has_failed => {
                    let first = self.attached.first();
                    let preset = first.and_then(|a| a.set.events()[event].preset());
                    let is_level = metrics[event].as_ref().is_some_and(|m| m.is_level);
                    let count = match is_level {
                        true => level(&span),
                        false => count(&span, preset),
                    };
                    total.add(count, ratio(&span));
                }
                _ if has_failed => total.lose(),
                // Nothing is attached, as of a name that no process has now: nothing happens.
                _ => total.add(Count::Exact(0), None),
            }
        }
        failed
    }

    /// Adds the series of one event to those of the others.
    pub(crate) fn put(&self, event: usize, metric: &EventMetric, into: &mut Snapshot) {
        let (total, labels) = (&self.totals[event], &self.labels);
        let with = |more: &[Label]| -> Labels {
            let modifiers = metric.modifiers.clone();
            let modifiers = modifiers.map(|letters| Label("modifiers", letters));
            labels
                .iter()
                .chain(&modifiers)
                .chain(more)
                .cloned()
                .collect()
        };
        let start = total.start;
        let has_value = metric.shape == Shape::Counter || !total.now.is_fresh;
        if let Some(kind) = total.now.kind.filter(|_| has_value) {
            let (word, sum) = match kind {
                Kind::Exact => ("exact", total.exact),
                Kind::Estimated => ("estimated", total.estimated),
            };
            let count = match metric.shape {
                Shape::Counter => sum,
                Shape::Gauge => total.now.count,
            };
            let point = Point {
                labels: with(&[Label::new("kind", word)]),
                value: Value::scaled(count, metric.factor),
                start,
            };
            let name = (metric.name.as_str(), metric.unit);
            into.put(name, &metric.help, metric.shape, point);
        }
        if let Some(ratio) = total.now.ratio {
            let point = Point {
                labels: with(&[Label("event", metric.event.clone())]),
                value: Value::Real(ratio),
                start,
            };
            let name = (RUNNING_RATIO, None);
            into.put(name, HELP_OF_RATIO, Shape::Gauge, point);
        }
    }
}

/// The name of the series that say how much of the time was counted.
pub(crate) const RUNNING_RATIO: &str = "quipu_event_running_ratio";
const HELP_OF_RATIO: &str =
    "Share of the time since the read before in which an event had a counter";

/// Adds the parts of another set of the same events.
fn join(known: &mut Span, more: Span) {
    for (known, more) in known.iter_mut().zip(more) {
        known.extend(more);
    }
}

/// Returns the count of all parts together.
fn count(span: &Span, preset: Option<&Preset>) -> Count {
    let parts = |term: usize| {
        let term = span.get(term).into_iter().flatten();
        term.map(|(part, reading)| (part, reading))
    };
    match preset {
        Some(preset) => preset
            .evaluate(parts)
            .unwrap_or_else(|reason| reason.count()),
        None => total(parts(0)),
    }
}

/// Returns a momentary value, which those of several parts have not together.
fn level(span: &Span) -> Count {
    match span.first().map(Vec::as_slice) {
        Some([(_, reading)]) => reading.level(),
        _ => Count::NotCounted,
    }
}

/// Returns the share of its time in which the term ran that ran least, if there was any.
fn ratio(span: &Span) -> Option<f64> {
    let of_term = |term: &Vec<(Part, Reading)>| {
        // The core PMUs of a hybrid take turns on the same CPU or thread, whose time is there once.
        let mut enabled: BTreeMap<(Option<u32>, Option<i32>, usize), u64> = BTreeMap::new();
        let mut running: u128 = 0;
        for (at, (part, reading)) in term.iter().enumerate() {
            let own = if part.core.is_some() { 0 } else { at + 1 };
            let time = enabled.entry((part.cpu, part.thread, own)).or_default();
            *time = (*time).max(reading.time_enabled);
            running += u128::from(reading.time_running);
        }
        let enabled: u128 = enabled.into_values().map(u128::from).sum();
        (enabled > 0).then(|| (running as f64 / enabled as f64).min(1.0))
    };
    let ratios = span.iter().filter_map(of_term);
    ratios.min_by(f64::total_cmp)
}
