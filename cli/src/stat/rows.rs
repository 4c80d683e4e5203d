//! The lines of a report, before anybody decides how they look.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quipu::hal::total;
use quipu::{Event, EventCount, EventInfo, EventSpec, Part, Preset, Reading, Scaled, Total};

use super::aggregate::{Aggregation, Place};
use super::metrics::{self, Metric};
use super::notes;
use super::repeat::Spread;
use super::sets::{Sets, Snapshot};

/// What was counted of one event in one place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) place: Place,
    /// How many CPUs share the line, where it is for a core or socket.
    pub(super) cpus: usize,
    pub(super) cgroup: Option<String>,
    pub(super) name: String,
    pub(super) spec: EventSpec,
    pub(super) unit: Unit,
    /// The backend that counts it.
    pub(super) backend: Option<&'static str>,
    pub(super) count: Count,
    /// Nanoseconds the target ran or the CPUs passed while the event was enabled.
    pub(super) time: u64,
    /// Nanoseconds enabled and running, of all counters together.
    pub(super) enabled: u64,
    pub(super) running: u64,
    /// The shares of the core types of a hybrid machine.
    pub(super) cores: Vec<(String, Count)>,
    /// What the value was made of, where the event is a preset of several.
    pub(super) formula: Option<Formula>,
    pub(super) spread: Option<Spread>,
    pub(super) metric: Option<Metric>,
    /// Why there is no count.
    pub(super) reason: Option<String>,
    /// How somebody else got in the way, so that a span of the time was not counted.
    pub(super) disturbance: Option<String>,
    /// How long it counted at a time, where it took turns with others and its backend says so.
    pub(super) turn: Option<Duration>,
}

/// The formula of a preset of several events, and what was counted of each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Formula {
    pub(super) text: String,
    pub(super) in_one_group: bool,
    pub(super) terms: Vec<Term>,
}

/// What was counted of one event of a formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) count: Count,
}

/// The outcome of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Value {
        value: u128,
        /// Scaled up from a part of the time.
        estimated: bool,
        /// Parts of the target that were never counted, of how many.
        missing: usize,
        parts: usize,
    },
    NotCounted,
    NotSupported,
}

impl Count {
    pub(super) const fn exact(value: u128) -> Self {
        Self::Value {
            value,
            estimated: false,
            missing: 0,
            parts: 1,
        }
    }

    pub(super) fn of(total: Total, parts: usize) -> Self {
        let Some(value) = total.value() else {
            return Self::NotCounted;
        };
        let missing = match total {
            Total::Partial { missing, .. } => missing,
            _ => 0,
        };
        Self::Value {
            value,
            estimated: total.is_estimate(),
            missing,
            parts,
        }
    }

    pub(super) const fn value(self) -> Option<u128> {
        match self {
            Self::Value { value, .. } => Some(value),
            _ => None,
        }
    }

    pub(super) const fn is_estimate(self) -> bool {
        matches!(
            self,
            Self::Value {
                estimated: true,
                ..
            }
        )
    }

    /// Whether the value is not the whole truth: scaled up, or parts are missing.
    pub(super) const fn is_uncertain(self) -> bool {
        match self {
            Self::Value {
                estimated, missing, ..
            } => estimated || missing > 0,
            _ => false,
        }
    }
}

/// The unit a value is shown in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    pub(super) name: String,
    /// What a raw value is multiplied by.
    pub(super) factor: f64,
}

impl Unit {
    pub(super) fn none() -> Self {
        Self {
            name: String::new(),
            factor: 1.0,
        }
    }

    /// The unit of an event that is open.
    pub(super) fn of(info: &EventInfo) -> Self {
        Self::new(&info.unit, info.scale)
    }

    /// An event's own unit; nanoseconds are shown as milliseconds.
    pub(super) fn new(name: &str, scale: f64) -> Self {
        match name {
            "ns" => Self {
                name: "msec".into(),
                factor: scale * 1e-6,
            },
            name => Self {
                name: name.into(),
                factor: scale,
            },
        }
    }

    /// Whether values are shown as whole numbers.
    pub(super) fn is_plain(&self) -> bool {
        self.factor == 1.0
    }

    /// Decimals that values have which are no whole numbers: those of a formula are in millionths.
    pub(super) fn decimals(&self) -> usize {
        if self.name.is_empty() { 6 } else { 2 }
    }

    pub(super) fn scale(&self, value: f64) -> f64 {
        value * self.factor
    }
}

impl Row {
    /// The value in the row's unit, the mean where there were several runs.
    pub(super) fn amount(&self) -> Option<f64> {
        let value = self.count.value()?;
        let value = self.spread.map_or(value as f64, |spread| spread.mean);
        Some(self.unit.scale(value))
    }

    /// The share of the time that the counters ran, in percent.
    pub(super) fn percent_running(&self) -> f64 {
        match (self.count, self.enabled) {
            (Count::Value { .. }, 0) => 100.0,
            (_, 0) => 0.0,
            (_, enabled) => (self.running as f64 / enabled as f64 * 100.0).min(100.0),
        }
    }

    /// Corrects a count of a command that has ended. A pinned counter for which there was no room is
    /// in an error state, which the kernel forgets when the task exits: then it looks as if it had
    /// never been started, with a count of zero. But executing the command started it.
    pub(super) fn command_has_ended(&mut self) {
        if self.enabled == 0 && self.count.value().is_some() {
            self.count = Count::NotCounted;
            self.metric = None;
        }
    }

    pub(super) fn event(&self) -> &Event {
        &self.spec.event
    }
}

/// The rows of a snapshot, with their metrics: event by event, place by place, or the other way
/// round where places are few and large.
pub(super) fn rows(
    sets: &Sets,
    snapshot: &Snapshot,
    aggregation: &Aggregation,
    elapsed: f64,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (cgroup, members) in sets.by_cgroup() {
        let places = places(sets, &members, aggregation);
        for index in 0..sets.events() {
            if sets.is_hidden(index) {
                continue;
            }
            let counted = Counted::gather(snapshot, &members, index, aggregation);
            for place in &places {
                rows.extend(counted.row(sets, snapshot, place, cgroup, index));
            }
        }
    }
    if rows
        .iter()
        .any(|row| matches!(row.place, Place::Core { .. } | Place::Socket(_)))
    {
        rows.sort_by(|a, b| a.place.cmp(&b.place));
    }
    for row in rows.iter_mut().filter(|row| row.cgroup.is_some()) {
        // When nobody has counted a control group for a while, the kernel may date its first
        // counter's times back to then.
        row.time = row.time.min((elapsed * 1e9) as u64 * row.cpus as u64);
    }
    metrics::attach(&mut rows, elapsed);
    rows
}

/// The places that some event was counted in, each with its number of CPUs.
fn places(sets: &Sets, members: &[usize], aggregation: &Aggregation) -> Vec<(Place, usize)> {
    let mut places: BTreeMap<Place, BTreeSet<u32>> = BTreeMap::new();
    for part in sets.parts(members) {
        let cpus = places.entry(aggregation.place(part)).or_default();
        cpus.extend(part.cpu);
    }
    if places.is_empty() {
        return vec![(Place::Whole, 0)];
    }
    places
        .into_iter()
        .map(|(place, cpus)| (place, cpus.len()))
        .collect()
}

/// Readings of one event, part by part.
type Readings<'a> = Vec<(&'a Part, &'a Reading)>;

/// The readings of one event, by place; those of a preset of several events term by term.
struct Counted<'a> {
    readings: BTreeMap<Place, Vec<Readings<'a>>>,
    preset: Option<&'a Preset>,
    failed: Option<(Count, String)>,
}

impl<'a> Counted<'a> {
    fn gather(
        snapshot: &'a Snapshot,
        members: &[usize],
        index: usize,
        aggregation: &Aggregation,
    ) -> Self {
        let mut counted = Self {
            readings: BTreeMap::new(),
            preset: None,
            failed: None,
        };
        for member in members {
            let event = snapshot.counts(*member).event(index);
            if let Err(error) = counted.add(event, aggregation) {
                let reason = notes::why(&event.event().spec().event, &error);
                counted.failed = Some((notes::outcome(&error), reason));
            }
        }
        counted
    }

    /// Adds the readings of one target, of every term or of none.
    fn add(&mut self, event: EventCount<'a>, aggregation: &Aggregation) -> quipu::Result<()> {
        let terms = event.term_readings()?;
        self.preset = event.event().preset();
        let width = terms.len();
        for (term, readings) in terms.into_iter().enumerate() {
            for (part, reading) in readings {
                let place = self.readings.entry(aggregation.place(part));
                place.or_insert_with(|| vec![Vec::new(); width])[term].push((part, reading));
            }
        }
        Ok(())
    }

    /// No row where the event is counted, but not in this place.
    fn row(
        &self,
        sets: &Sets,
        snapshot: &Snapshot,
        (place, cpus): &(Place, usize),
        cgroup: Option<&str>,
        index: usize,
    ) -> Option<Row> {
        let subject = sets.subject(index);
        let mut row = Row {
            place: place.clone(),
            cpus: *cpus,
            cgroup: cgroup.map(str::to_owned),
            name: subject.name.clone(),
            spec: subject.spec.clone(),
            unit: subject.unit.clone(),
            backend: subject.backend,
            count: Count::NotCounted,
            time: 0,
            enabled: 0,
            running: 0,
            cores: Vec::new(),
            formula: None,
            spread: None,
            metric: None,
            reason: None,
            disturbance: None,
            turn: None,
        };
        match (self.readings.get(place), &self.failed) {
            (Some(terms), _) => {
                match self.preset {
                    Some(preset) => row.evaluate(preset, terms),
                    None => row.fill(&terms[0], subject.is_gauge),
                }
                row.qualify(snapshot.disturbance(index), sets.rotation_interval(index));
                Some(row)
            }
            (None, Some((count, reason))) => {
                row.count = *count;
                row.reason = Some(reason.clone());
                Some(row)
            }
            (None, None) => None,
        }
    }
}

impl Row {
    /// Says why it was counted for a part of the time only, or not at all.
    fn qualify(&mut self, disturbance: Option<&str>, turn: Option<Duration>) {
        let disturbance = disturbance.map(str::to_owned);
        match self.count {
            Count::NotCounted if self.reason.is_none() => self.reason = disturbance,
            Count::Value { estimated, .. } => {
                self.turn = turn.filter(|_| estimated && disturbance.is_none());
                self.disturbance = disturbance;
            }
            _ => {}
        }
    }

    /// The value of a preset's formula. The times are those of the term that ran least.
    fn evaluate(&mut self, preset: &Preset, terms: &[Readings<'_>]) {
        let evaluation = preset.evaluate(terms);
        let parts = terms.iter().map(Vec::len).max().unwrap_or(0);
        self.count = Count::of(evaluation.total, parts);
        self.reason = evaluation.reason;
        let running = |readings: &&Readings<'_>| -> u128 {
            readings
                .iter()
                .map(|(_, r)| u128::from(r.time_running))
                .sum()
        };
        if let Some(least) = terms.iter().min_by_key(running) {
            self.fill_times(least);
        }
        let counted = preset.terms().iter().zip(terms);
        self.formula = Some(Formula {
            text: preset.formula().to_string(),
            in_one_group: preset.is_in_one_group(),
            terms: counted
                .map(|(event, readings)| Term {
                    name: event.name().to_owned(),
                    unit: event.info().map_or_else(Unit::none, Unit::of),
                    count: Count::of(total(readings.iter().copied()), readings.len()),
                })
                .collect(),
        });
    }

    fn fill_times(&mut self, readings: &[(&Part, &Reading)]) {
        self.time = time_of_target(readings);
        for (_, reading) in readings {
            self.enabled = self.enabled.saturating_add(reading.time_enabled);
            self.running = self.running.saturating_add(reading.time_running);
        }
        if readings.iter().any(|(part, _)| part.core.is_some()) {
            // A hybrid target is enabled once, whatever the number of its core types.
            self.enabled = self.time;
            self.running = self.running.min(self.time);
        }
    }

    fn fill(&mut self, readings: &[(&Part, &Reading)], is_gauge: bool) {
        self.fill_times(readings);
        if is_gauge {
            match readings {
                [(_, reading)] if reading.scaled() == Scaled::NotCounted => {
                    self.reason = Some("there is no reading of it for this run".into());
                }
                [(_, reading)] => self.count = Count::exact(reading.value.into()),
                _ => {
                    self.reason = Some(
                        "it is a gauge, and gauges of several CPUs do not add up; add -A".into(),
                    );
                }
            }
            return;
        }
        self.count = Count::of(total(readings.iter().copied()), readings.len());
        if self.count == Count::NotCounted && self.backend == Some("posix") {
            self.reason = Some("wait4(2) tells of a command only when it has ended".into());
        }
        let cores: BTreeSet<&str> = readings
            .iter()
            .filter_map(|(part, _)| part.core.as_deref())
            .collect();
        for core in cores {
            let of_core: Vec<_> = readings
                .iter()
                .filter(|(part, _)| part.core.as_deref() == Some(core))
                .copied()
                .collect();
            // What a core type counted is a fact about that type, however long it waited for its
            // turn: the sum of the raw values.
            let value = of_core.iter().map(|(_, r)| u128::from(r.value)).sum();
            self.cores.push((core.to_owned(), Count::exact(value)));
        }
    }
}

/// The time that threads ran or CPUs passed: that of each thread or CPU once, although it is watched
/// by several core PMUs.
fn time_of_target(readings: &[(&Part, &Reading)]) -> u64 {
    let mut times: BTreeMap<(Option<u32>, Option<i32>), u64> = BTreeMap::new();
    let mut sum: u64 = 0;
    for (part, reading) in readings {
        if part.core.is_none() {
            sum = sum.saturating_add(reading.time_enabled);
        } else {
            let time = times.entry((part.cpu, part.thread)).or_default();
            *time = (*time).max(reading.time_enabled);
        }
    }
    times
        .values()
        .fold(sum, |sum, time| sum.saturating_add(*time))
}

#[cfg(test)]
mod tests {
    use super::super::report::sample;
    use super::*;
    use quipu::Hardware;

    #[test]
    fn a_counter_that_the_command_never_started_has_no_count() {
        let after = |value, time| {
            let mut row = sample::row(Hardware::Cycles.into(), value, time);
            row.command_has_ended();
            row.count
        };
        assert_eq!(after(0, 0), Count::NotCounted);
        assert_eq!(after(0, 1), Count::exact(0));
    }
}
