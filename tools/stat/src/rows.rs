//! The lines of a report, in any format.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use quipu::{Count, Event, EventInfo, EventSpec, Part, Preset, Reading, Software};
use quipu_events::Formula;
use quipu_hal::total;

use super::aggregate::AggregateId;
use super::derived::Derived;
use quipu_shell::reasons::why;

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
    pub spread: Option<MeanOfRuns>,
    pub metric: Option<Metric>,
    /// The metric that the row is, where it is no count.
    pub derived: Option<Derived>,
    /// Why there is no count.
    pub reason: Option<String>,
    /// The reason why another program kept a part of the time from being counted.
    pub disturbance: Option<String>,
    /// The time it counted at a time, if it took turns with others and its backend says so.
    pub turn: Option<Duration>,
    /// True if the value is one of a moment, not a sum.
    pub is_gauge: bool,
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

/// A mean over runs, and how far it spreads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanOfRuns {
    /// The mean, in the event's raw unit.
    pub mean: f64,
    /// The standard error of the mean as a percentage of it.
    pub percent: f64,
}

/// A number made of counts, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub value: f64,
    pub unit: Cow<'static, str>,
    /// True if the value is in percent.
    pub percent: bool,
    /// Decimals worth printing.
    pub decimals: usize,
    /// True if a count it was made of is an estimate or incomplete.
    pub uncertain: bool,
    /// True if the value deserves attention, false if not; `None` where that is not known.
    pub attention: Option<bool>,
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

    /// Returns a value in the unit.
    pub fn scale(&self, value: u128) -> f64 {
        // In halves, which takes a fifth of the time of converting 128 bits, and is as exact up to 2^64.
        let [high, low] = [(value >> 64) as u64, value as u64].map(|half| half as f64);
        self.factor * (high * 2_f64.powi(64) + low)
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
            is_gauge: false,
        }
    }

    /// Forgets what was counted, so that it can be filled again.
    pub(super) fn clear(&mut self) {
        self.count = Count::NotCounted;
        self.is_unsupported = false;
        (self.time, self.enabled, self.running) = (0, 0, 0);
        self.cores.clear();
        self.preset = None;
        self.metric = None;
        self.reason = None;
        self.disturbance = None;
        self.turn = None;
    }

    /// Returns the value in the row's unit, the mean where there were several runs.
    pub fn amount(&self) -> Option<f64> {
        let value = self.count.value()?;
        Some(match self.spread {
            Some(spread) => spread.mean * self.unit.factor,
            None => self.unit.scale(value),
        })
    }

    /// Limits the time of a control group to what its CPUs passed.
    pub(super) fn limit_time_of_cgroup(&mut self, elapsed: f64) {
        let Some(cgroup) = &self.cgroup else { return };
        // When a control group has not been counted for a while, the kernel may date its first
        // counter's times back to then.
        let time_of_cpus = (elapsed * 1e9) as u64 * self.cpus as u64;
        // Every task is in the root group, and the kernel dates nothing on a CPU that switches to none.
        self.time = match cgroup.trim_matches('/').is_empty() {
            true => time_of_cpus,
            false => self.time.min(time_of_cpus),
        };
    }

    /// Returns the share of the time that the counters ran, in percent; all of it where there was none, as perf
    /// has it. Less than all of it is no more than 99.99, so that it does not look like all when it is rounded.
    pub fn percent_running(&self) -> f64 {
        match self.enabled {
            enabled if self.running >= enabled => 100.0,
            enabled => (self.running as f64 / enabled as f64 * 100.0).min(99.99),
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

    /// Has the clock of a command begin when its program was executed, as the time elapsed does. wait4(2) has it from
    /// the fork on, of which this much was before.
    pub fn begins_when_executed(&mut self, time_before: Duration) {
        let is_clock = *self.event() == Event::Software(Software::TaskClock);
        if let (Count::Exact(value), true) = (self.count, is_clock && self.backend == Some("posix"))
        {
            self.count = Count::Exact(value.saturating_sub(time_before.as_nanos()));
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

/// Readings of one event, part by part.
pub(super) type Readings<'a> = Vec<(&'a Part, &'a Reading)>;

impl Row {
    /// Says why it was counted for a part of the time only, or not at all. What is left after a disturbance is too
    /// little to estimate the rest from if it is less than a quarter.
    pub(super) fn qualify(&mut self, disturbance: Option<&str>, turn: Option<Duration>) {
        let disturbance = disturbance.map(str::to_owned).or(self.disturbance.take());
        match (self.count, disturbance) {
            (Count::NotCounted, how) if self.reason.is_none() => self.reason = how,
            (Count::NotCounted | Count::Jumped, _) => {}
            (_, Some(how)) if self.running.saturating_mul(4) < self.enabled => {
                self.count = Count::NotCounted;
                let share = self.percent_running();
                self.reason = Some(format!("{how}; only {share:.2} % of the time was counted"));
            }
            (count, how) => {
                self.turn = turn.filter(|_| count.is_estimate() && how.is_none());
                self.disturbance = how;
            }
        }
    }

    /// Sets the value of a preset's formula. The times are those of the term that ran least.
    pub(super) fn evaluate(&mut self, preset: &Preset, terms: &[Readings<'_>]) {
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

    /// Enters the times, and returns true if they are of several core types.
    fn fill_times(&mut self, readings: &[(&Part, &Reading)]) -> bool {
        if let [(Part { core: None, .. }, reading)] = readings {
            (self.enabled, self.running) = (reading.time_enabled, reading.time_running);
            self.time = self.enabled;
            return false;
        }
        let is_hybrid = readings.iter().any(|(part, _)| part.core.is_some());
        for (_, reading) in readings {
            self.enabled = self.enabled.saturating_add(reading.time_enabled);
            self.running = self.running.saturating_add(reading.time_running);
        }
        self.time = self.enabled;
        if is_hybrid {
            // A hybrid target is enabled once, whatever the number of its core types.
            self.time = time_of_target(readings);
            self.enabled = self.time;
            self.running = self.running.min(self.time);
        }
        is_hybrid
    }

    pub(super) fn fill(&mut self, readings: &[(&Part, &Reading)], is_gauge: bool) {
        let is_hybrid = self.fill_times(readings);
        self.is_gauge = is_gauge;
        if is_gauge {
            match readings {
                [(_, reading)] if reading.count() == Count::NotCounted => {
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
        self.count = match readings {
            [(_, reading)] if !is_hybrid => reading.count(),
            _ => total(readings.iter().copied()),
        };
        if let Err(jumped) = self.count.checked(&self.name) {
            self.reason = Some(why(self.event(), &jumped));
            return;
        }
        if readings.iter().any(|(_, reading)| reading.has_jumped()) {
            self.disturbance = Some("the counter of a part jumped".into());
        }
        if self.count == Count::NotCounted && self.backend == Some("posix") {
            self.reason = Some("wait4(2) reports on a command only when it has ended".into());
        }
        if !is_hybrid {
            return;
        }
        let cores = readings.iter().filter_map(|(part, _)| part.core.as_deref());
        for core in cores.collect::<BTreeSet<&str>>() {
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
