//! The lines of a report, in any format.

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use quipu::{Count, Event, EventCount, EventInfo, EventSpec, Part, Preset, Reading};
use quipu_events::Formula;
use quipu_hal::total;

use super::aggregate::{AggregateId, Aggregation};
use super::derived::Derived;
use super::metrics::{self, Metric};
use super::notes::{self, Note};
use super::repeat::Spread;
use super::sets::{Sets, Snapshot};

/// The count of one event in one part of the target.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub place: AggregateId,
    /// The number of CPUs of a core or socket.
    pub cpus: usize,
    pub cgroup: Option<String>,
    pub name: Rc<str>,
    pub spec: Rc<EventSpec>,
    pub unit: Unit,
    /// The backend that counts it.
    pub backend: Option<&'static str>,
    pub count: Count,
    /// True if the event is not supported here, and not only uncounted.
    pub is_unsupported: bool,
    /// Nanoseconds the target ran or the CPUs passed while the event was enabled.
    pub time: u64,
    /// Nanoseconds enabled and running, of all counters together.
    pub enabled: u64,
    pub running: u64,
    /// The shares of the core types of a hybrid machine.
    pub cores: Vec<(String, Count)>,
    /// The terms of a preset of several events.
    pub preset: Option<PresetCounts>,
    pub spread: Option<Spread>,
    pub metric: Option<Metric>,
    /// The metric that the row is, where it is no count.
    pub derived: Option<Derived>,
    /// Why there is no count.
    pub reason: Option<String>,
    /// The reason why another program kept a part of the time from being counted.
    pub disturbance: Option<String>,
    /// The time it counted at a time, if it took turns with others and its backend says so.
    pub turn: Option<Duration>,
}

/// A preset of several events, with the count of each.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetCounts {
    pub formula: Formula,
    pub in_one_group: bool,
    pub terms: Vec<TermCount>,
}

/// The count of one event of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct TermCount {
    pub name: String,
    pub unit: Unit,
    pub count: Count,
}

/// The unit a value is shown in.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    pub name: Cow<'static, str>,
    /// The factor of raw values.
    pub factor: f64,
}

impl Unit {
    pub fn none() -> Self {
        Self {
            name: "".into(),
            factor: 1.0,
        }
    }

    /// Returns the unit of an event that is open.
    pub fn of(info: &EventInfo) -> Self {
        Self::new(&info.unit, info.scale)
    }

    /// Returns an event's own unit; nanoseconds are shown as milliseconds.
    pub fn new(name: &str, scale: f64) -> Self {
        match name {
            "ns" => Self {
                name: "msec".into(),
                factor: scale * 1e-6,
            },
            "" => Self {
                name: "".into(),
                factor: scale,
            },
            name => Self {
                name: name.to_owned().into(),
                factor: scale,
            },
        }
    }

    /// Returns true if values are shown as whole numbers.
    pub fn is_plain(&self) -> bool {
        self.factor == 1.0
    }

    /// Decimals that values have which are no whole numbers: those of a formula are in millionths.
    pub fn decimals(&self) -> usize {
        if self.name.is_empty() { 6 } else { 2 }
    }

    pub fn scale(&self, value: f64) -> f64 {
        value * self.factor
    }
}

impl Row {
    /// Returns the row of an event of the whole target, of which nothing is known yet.
    pub fn uncounted(name: Rc<str>, spec: Rc<EventSpec>, unit: Unit) -> Self {
        Self {
            place: AggregateId::Whole,
            cpus: 0,
            cgroup: None,
            name,
            spec,
            unit,
            backend: None,
            count: Count::NotCounted,
            is_unsupported: false,
            time: 0,
            enabled: 0,
            running: 0,
            cores: Vec::new(),
            preset: None,
            spread: None,
            metric: None,
            derived: None,
            reason: None,
            disturbance: None,
            turn: None,
        }
    }

    /// Returns the value in the row's unit, the mean where there were several runs.
    pub fn amount(&self) -> Option<f64> {
        let value = self.count.value()?;
        let value = self.spread.map_or(value as f64, |spread| spread.mean);
        Some(self.unit.scale(value))
    }

    /// Returns the share of the time that the counters ran, in percent; all of it where there was none, as perf
    /// has it.
    pub fn percent_running(&self) -> f64 {
        match self.enabled {
            0 => 100.0,
            enabled => (self.running as f64 / enabled as f64 * 100.0).min(100.0),
        }
    }

    /// Corrects a count of a command that has ended. A pinned counter for which there was no room is
    /// in an error state, which the kernel forgets when the task exits: then it looks as if it had
    /// never been started, with a count of zero. But executing the command started it.
    pub fn command_has_ended(&mut self) {
        if self.enabled == 0 && self.count.value().is_some() {
            self.count = Count::NotCounted;
            self.metric = None;
        }
    }

    /// Returns the reason in two words if there is no value.
    pub fn no_value(&self) -> Option<&'static str> {
        match self.count {
            Count::NotCounted if self.is_unsupported => Some("not supported"),
            Count::NotCounted | Count::Jumped => Some("not counted"),
            _ => None,
        }
    }

    /// Returns the remark without which a count would pass as one of everything.
    pub fn warning(&self) -> Option<Note> {
        let (about, text) = match self.count {
            Count::Jumped => ("not counted", self.reason.clone().unwrap_or_default()),
            Count::Partial { missing, parts, .. } => {
                let text = format!("{missing} of {parts} parts have no count");
                ("incomplete", text)
            }
            _ => return None,
        };
        Some(Note {
            about: about.into(),
            events: vec![self.name.to_string()],
            text,
        })
    }

    /// Returns true if the value is scaled up or parts are missing.
    pub fn is_uncertain(&self) -> bool {
        self.count.exact().is_none() && self.count.value().is_some()
    }

    /// Returns true if it is the line of the same event in the same place, in another report.
    pub fn is_line_of(&self, other: &Self) -> bool {
        (&self.name, &self.place, &self.cgroup) == (&other.name, &other.place, &other.cgroup)
    }

    pub fn event(&self) -> &Event {
        &self.spec.event
    }
}

/// Returns the rows of a snapshot, with their metrics: event by event, place by place, or the other way
/// round where places are few and large.
pub fn rows(sets: &Sets, snapshot: &Snapshot, aggregation: &Aggregation, elapsed: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut cgroups = sets.by_cgroup();
    if cgroups.is_empty() {
        cgroups.push((None, Vec::new()));
    }
    for (at, (cgroup, members)) in cgroups.into_iter().enumerate() {
        let mut places = places(sets.parts(&members), aggregation);
        if places.is_empty() {
            places.insert(AggregateId::Whole, BTreeSet::new());
        }
        for index in 0..=sets.len() {
            // Those of the whole run are told once.
            rows.extend(sets.tools(index).filter(|_| at == 0));
            if index == sets.len() || sets.is_hidden(index) {
                continue;
            }
            let counted = Counted::gather(snapshot, &members, index, aggregation);
            for (place, cpus) in &places {
                for unit in counted.units(place) {
                    let at = (place, cpus.len(), unit);
                    rows.extend(counted.row(sets, snapshot, at, cgroup, index));
                }
            }
        }
    }
    if aggregation.every_thread {
        rows = most_active(&rows);
    }
    sort_by_large_places(&mut rows);
    for row in rows.iter_mut().filter(|row| row.cgroup.is_some()) {
        // When a control group has not been counted for a while, the kernel may date its first
        // counter's times back to then.
        let time_of_cpus = (elapsed * 1e9) as u64 * row.cpus as u64;
        // Every task is in the root group, and the kernel dates nothing on a CPU that switches to none.
        let is_root = |name: &String| name.trim_matches('/').is_empty();
        row.time = match row.cgroup.as_ref().is_some_and(is_root) {
            true => time_of_cpus,
            false => row.time.min(time_of_cpus),
        };
    }
    metrics::attach(&mut rows, elapsed);
    rows
}

/// Returns the rows of threads that counted something, event by event, the highest count first, and one row of an
/// event that has no count in any.
fn most_active(rows: &[Row]) -> Vec<Row> {
    let mut active: Vec<Row> = Vec::new();
    for mut of_event in rows.chunk_by(|a, b| a.name == b.name).map(<[Row]>::to_vec) {
        let value = |row: &Row| row.count.value();
        if of_event.iter().all(|row| value(row).is_none()) {
            of_event.truncate(1);
            of_event[0].place = AggregateId::Whole;
        } else {
            of_event.retain(|row| value(row).is_some_and(|value| value > 0));
            of_event.sort_by_key(|row| Reverse(value(row)));
        }
        active.extend(of_event);
    }
    active
}

/// Sorts rows place by place, where places are cores or larger.
pub(super) fn sort_by_large_places(rows: &mut [Row]) {
    if rows.iter().any(|row| row.place.is_of_cpus()) {
        rows.sort_by(|a, b| a.place.cmp(&b.place));
    }
}

/// Returns the places of parts, each with its CPUs.
pub(super) fn places(
    parts: impl IntoIterator<Item = impl Borrow<Part>>,
    aggregation: &Aggregation,
) -> BTreeMap<AggregateId, BTreeSet<u32>> {
    let mut places: BTreeMap<AggregateId, BTreeSet<u32>> = BTreeMap::new();
    for part in parts {
        let part = part.borrow();
        let cpus = places.entry(aggregation.id(part)).or_default();
        cpus.extend(part.cpu);
    }
    places
}

/// Readings of one event, part by part.
type Readings<'a> = Vec<(&'a Part, &'a Reading)>;

/// The readings of one event, by place; those of a preset of several events term by term.
struct Counted<'a> {
    readings: BTreeMap<(AggregateId, Option<&'a str>), Vec<Readings<'a>>>,
    preset: Option<&'a Preset>,
    /// The last failure: whether the event is unsupported, and the reason.
    failed: Option<(bool, String)>,
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
            let Some(event) = snapshot.counts(*member).get(index) else {
                continue;
            };
            if let Err(error) = counted.add(event, aggregation) {
                let reason = notes::why(&event.event().spec().event, &error);
                counted.failed = Some((notes::is_unsupported(&error), reason));
            }
        }
        counted
    }

    /// Adds the readings of one target, of every term or of none.
    fn add(&mut self, event: EventCount<'a>, aggregation: &Aggregation) -> quipu::Result<()> {
        self.preset = event.event().preset();
        let width = self.preset.map_or(1, |preset| preset.terms().len());
        let mut add = |term: usize, (part, reading): (&'a Part, &'a Reading)| {
            let line = (aggregation.id(part), aggregation.unit(part));
            let line = self.readings.entry(line);
            line.or_insert_with(|| vec![Vec::new(); width])[term].push((part, reading));
        };
        if self.preset.is_none() {
            event.parts()?.for_each(|reading| add(0, reading));
            return Ok(());
        }
        for (term, readings) in event.term_readings()?.into_iter().enumerate() {
            readings.into_iter().for_each(|reading| add(term, reading));
        }
        Ok(())
    }

    /// Returns the instances of a unit that have lines of their own in a place; `None` for the line of all.
    fn units(&self, place: &AggregateId) -> Vec<Option<&'a str>> {
        let here = self.readings.keys().filter(|(id, _)| id == place);
        let mut units: Vec<_> = here.map(|(_, unit)| *unit).collect();
        // By number: `uncore_imc_2` before `uncore_imc_10`.
        units.sort_by_key(|unit| unit.map(|name| (name.len(), name)));
        if units.is_empty() {
            units.push(None);
        }
        units
    }

    /// Returns the row of an event, or `None` if the event is counted in other places only.
    fn row(
        &self,
        sets: &Sets,
        snapshot: &Snapshot,
        (place, cpus, unit): (&AggregateId, usize, Option<&'a str>),
        cgroup: Option<&str>,
        index: usize,
    ) -> Option<Row> {
        let event = sets.event(index);
        let name = match unit {
            Some(unit) => format!("{} [{unit}]", event.name).into(),
            None => Rc::clone(&event.name),
        };
        let mut row = Row {
            place: place.clone(),
            cpus,
            cgroup: cgroup.map(str::to_owned),
            backend: event.backend,
            derived: event.metric.clone(),
            ..Row::uncounted(name, Rc::clone(&event.spec), event.unit.clone())
        };
        match (self.readings.get(&(place.clone(), unit)), &self.failed) {
            (Some(terms), _) => {
                match self.preset {
                    Some(preset) => row.evaluate(preset, terms),
                    None => row.fill(&terms[0], event.is_gauge),
                }
                row.qualify(snapshot.disturbance(index), sets.rotation_interval(index));
                Some(row)
            }
            (None, Some((is_unsupported, reason))) => {
                row.is_unsupported = *is_unsupported;
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
        let disturbance = disturbance.map(str::to_owned).or(self.disturbance.take());
        match self.count {
            Count::NotCounted if self.reason.is_none() => self.reason = disturbance,
            Count::NotCounted | Count::Jumped => {}
            count => {
                self.turn = turn.filter(|_| count.is_estimate() && disturbance.is_none());
                self.disturbance = disturbance;
            }
        }
    }

    /// Sets the value of a preset's formula. The times are those of the term that ran least.
    fn evaluate(&mut self, preset: &Preset, terms: &[Readings<'_>]) {
        match preset.evaluate(|term| terms[term].iter().copied()) {
            Ok(count) => self.count = count,
            Err(reason) => {
                self.count = reason.count();
                self.reason = Some(reason.to_string());
            }
        }
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
        self.preset = Some(PresetCounts {
            formula: preset.formula().clone(),
            in_one_group: preset.is_in_one_group(),
            terms: counted
                .map(|(event, readings)| TermCount {
                    name: event.name().to_owned(),
                    unit: event.info().map_or_else(Unit::none, Unit::of),
                    count: total(readings.iter().copied()),
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

    pub(super) fn fill(&mut self, readings: &[(&Part, &Reading)], is_gauge: bool) {
        self.fill_times(readings);
        if is_gauge {
            match readings {
                [(_, reading)] if reading.scaled() == Count::NotCounted => {
                    self.reason = Some("it was not read in this run".into());
                }
                [(_, reading)] => self.count = Count::Exact(reading.value.into()),
                _ => {
                    self.reason = Some(
                        "it is a gauge, and gauges of several CPUs cannot be added up; add -A"
                            .into(),
                    );
                }
            }
            return;
        }
        self.count = total(readings.iter().copied());
        if let Err(jumped) = self.count.checked(&self.name) {
            self.reason = Some(notes::why(self.event(), &jumped));
            return;
        }
        if readings.iter().any(|(_, reading)| reading.has_jumped()) {
            self.disturbance = Some("the counter of a part jumped".into());
        }
        if self.count == Count::NotCounted && self.backend == Some("posix") {
            self.reason = Some("wait4(2) reports on a command only when it has ended".into());
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
            self.cores.push((core.to_owned(), Count::Exact(value)));
        }
    }
}

/// Returns the time that threads ran or CPUs passed: that of each thread or CPU once, although it is
/// watched by several core PMUs.
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
