//! The lines of the reports of some sets, known before anything is counted: which readings are in which line.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::slice;

use quipu::{Counts, Error, MemberIndex, Part, Preset, Reading};

use super::aggregate::{AggregateId, Aggregation};
use super::rows::{Readings, Row};
use super::sets::{Sets, Snapshot, refusal};
use quipu_shell::reasons;

/// The lines of sets, which are filled from one snapshot after the other: event by event, place by place, or the other
/// way round where places are few and large.
pub struct Lines {
    rows: Vec<Row>,
    /// The sources of each row.
    sources: Vec<Source>,
    /// The rows of the threads that counted something, if the target is every thread.
    active: Option<Vec<Row>>,
}

/// The origin of a row's numbers.
enum Source {
    /// No counter: it is a tool event, or an event that could not be opened.
    None,
    Counters(Counters),
}

/// The counters of an event in one line.
struct Counters {
    event: usize,
    is_preset: bool,
    members: Vec<OfMember>,
}

/// The counters of one set.
struct OfMember {
    member: usize,
    /// By term; an event that is no preset is its only term.
    terms: Vec<Vec<CounterPosition>>,
}

/// The position of one counter's readings.
#[derive(Clone, Copy)]
struct CounterPosition {
    at: MemberIndex,
    part: usize,
}

impl Lines {
    /// Returns the lines of sets.
    pub fn new(sets: &Sets, aggregation: &Aggregation) -> Self {
        // It has the parts in which they count.
        let snapshot = sets.snapshot();
        let mut lines: Vec<(Row, Source)> = Vec::new();
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
                let tools = sets.tools(index).filter(|_| at == 0);
                lines.extend(tools.map(|row| (row, Source::None)));
                if index == sets.len() || sets.is_hidden(index) {
                    continue;
                }
                let mut event = OfEvent::gather(&snapshot, &members, index, aggregation);
                for (place, cpus) in &places {
                    for unit in event.units(place) {
                        let at = (place, cpus.len(), unit);
                        lines.extend(event.line(sets, at, cgroup));
                    }
                }
            }
        }
        sort_by_large_places(&mut lines, |(row, _)| row);
        let (rows, sources) = lines.into_iter().unzip();
        Self {
            rows,
            sources,
            active: aggregation.every_thread.then(Vec::new),
        }
    }

    /// Returns the rows of a snapshot, without metrics. `elapsed` is in seconds.
    pub fn fill(&mut self, sets: &Sets, snapshot: &Snapshot, elapsed: f64) -> &mut [Row] {
        let mut terms = Vec::new();
        for (row, source) in self.rows.iter_mut().zip(&self.sources) {
            if let Source::Counters(counters) = source {
                row.clear();
                counters.fill(row, sets, snapshot, &mut terms);
            }
            row.limit_time_of_cgroup(elapsed);
        }
        match &mut self.active {
            Some(active) => {
                *active = most_active(&self.rows);
                active
            }
            None => &mut self.rows,
        }
    }
}

impl Counters {
    /// Enters what was counted into a row. What could not be read of one set is missing; where nothing could, the row has
    /// the reason. `terms` is room for the readings.
    fn fill<'s>(
        &self,
        row: &mut Row,
        sets: &Sets,
        snapshot: &'s Snapshot,
        terms: &mut Vec<Readings<'s>>,
    ) {
        let event = sets.event(self.event);
        if let Some(reading) = self.only_reading(snapshot) {
            row.fill(&[reading], event.is_gauge);
        } else {
            terms.iter_mut().for_each(Readings::clear);
            let refused = self.gather(snapshot, terms);
            let preset = match refused {
                Some(error) if terms.iter().all(Vec::is_empty) => {
                    row.is_unsupported = reasons::is_unsupported(&error);
                    row.reason = Some(reasons::why(&event.spec.event, &error));
                    return;
                }
                _ => self.preset(snapshot),
            };
            match preset {
                Some(preset) => row.evaluate(preset, &terms[..preset.terms().len()]),
                None => row.fill(terms.first().map_or(&[], Vec::as_slice), event.is_gauge),
            }
        }
        if row.count.exact().is_none() || snapshot.disturbance(self.event).is_some() {
            let turn = sets.rotation_interval(self.event);
            row.qualify(snapshot.disturbance(self.event), turn);
        }
    }

    /// Returns the reading of an event that one counter counts, as most are, if it could be read.
    fn only_reading<'s>(&self, snapshot: &'s Snapshot) -> Option<(&'s Part, &'s Reading)> {
        match (self.is_preset, self.members.as_slice()) {
            (false, [OfMember { member, terms }]) => match terms[0].as_slice() {
                [counter] => counter.reading(snapshot.counts(*member)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Appends the readings of each term, and returns the last reason why some could not be read.
    fn gather<'s>(&self, snapshot: &'s Snapshot, terms: &mut Vec<Readings<'s>>) -> Option<Error> {
        let mut refused = None;
        for of_member in &self.members {
            let counts = snapshot.counts(of_member.member);
            let Some(event) = counts.get(self.event) else {
                continue;
            };
            if let Some(error) = refusal(&event) {
                refused = Some(error);
                continue;
            }
            if terms.len() < of_member.terms.len() {
                terms.resize_with(of_member.terms.len(), Readings::new);
            }
            for (readings, counters) in terms.iter_mut().zip(&of_member.terms) {
                readings.extend(
                    counters
                        .iter()
                        .filter_map(|counter| counter.reading(counts)),
                );
            }
        }
        refused
    }

    /// Returns the formula, if it is of one.
    fn preset<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Preset> {
        let mut members = self.members.iter();
        members.find_map(|of| snapshot.counts(of.member).get(self.event)?.event().preset())
    }
}

impl CounterPosition {
    fn reading<'s>(&self, counts: &'s Counts) -> Option<(&'s Part, &'s Reading)> {
        let buf = counts.buffer(self.at.group)?.ok()?;
        Some((
            buf.parts().get(self.part)?,
            buf.get(self.part, self.at.member)?,
        ))
    }
}

/// The counters of one event, by place and unit.
struct OfEvent<'a> {
    index: usize,
    is_preset: bool,
    counters: BTreeMap<(AggregateId, Option<&'a str>), Counters>,
    /// The last failure to open it: whether the event is unsupported, and the reason.
    failed: Option<(bool, String)>,
}

impl<'a> OfEvent<'a> {
    fn gather(
        snapshot: &'a Snapshot,
        members: &[usize],
        index: usize,
        aggregation: &Aggregation,
    ) -> Self {
        let mut gathered = Self {
            index,
            is_preset: false,
            counters: BTreeMap::new(),
            failed: None,
        };
        for member in members {
            let counts = snapshot.counts(*member);
            let Some(event) = counts.get(index) else {
                continue;
            };
            let event = event.event();
            if let Some(error) = event.error() {
                let reason = reasons::why(&event.spec().event, error);
                gathered.failed = Some((reasons::is_unsupported(error), reason));
                continue;
            }
            gathered.is_preset = event.preset().is_some();
            let terms = event.preset().map_or(slice::from_ref(event), Preset::terms);
            for (term, counted) in terms.iter().enumerate() {
                let at = counted.index().expect("of an event that is open");
                let Some(Ok(buf)) = counts.buffer(at.group) else {
                    continue;
                };
                for (part, of_part) in buf.parts().iter().enumerate() {
                    let line = (aggregation.id(of_part), aggregation.unit(of_part));
                    let counter = CounterPosition { at, part };
                    gathered.add(line, (*member, terms.len()), term, counter);
                }
            }
        }
        gathered
    }

    fn add(
        &mut self,
        line: (AggregateId, Option<&'a str>),
        (member, width): (usize, usize),
        term: usize,
        counter: CounterPosition,
    ) {
        let counters = self.counters.entry(line).or_insert_with(|| Counters {
            event: self.index,
            is_preset: self.is_preset,
            members: Vec::new(),
        });
        if counters
            .members
            .last()
            .is_none_or(|last| last.member != member)
        {
            counters.members.push(OfMember {
                member,
                terms: vec![Vec::new(); width],
            });
        }
        if let Some(last) = counters.members.last_mut() {
            last.terms[term].push(counter);
        }
    }

    /// Returns the instances of a unit that have lines of their own in a place; `None` for the line of all.
    fn units(&self, place: &AggregateId) -> Vec<Option<&'a str>> {
        let here = self.counters.keys().filter(|(id, _)| id == place);
        let mut units: Vec<_> = here.map(|(_, unit)| *unit).collect();
        // By number: `uncore_imc_2` before `uncore_imc_10`.
        units.sort_by_key(|unit| unit.map(|name| (name.len(), name)));
        if units.is_empty() {
            units.push(None);
        }
        units
    }

    /// Returns the line of an event, or `None` if the event is counted in other places only.
    fn line(
        &mut self,
        sets: &Sets,
        (place, cpus, unit): (&AggregateId, usize, Option<&'a str>),
        cgroup: Option<&str>,
    ) -> Option<(Row, Source)> {
        let event = sets.event(self.index);
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
        if let Some(counters) = self.counters.remove(&(place.clone(), unit)) {
            return Some((row, Source::Counters(counters)));
        }
        let (is_unsupported, reason) = self.failed.clone()?;
        (row.is_unsupported, row.reason) = (is_unsupported, Some(reason));
        Some((row, Source::None))
    }
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

/// Sorts lines place by place, where places are cores or larger.
pub(super) fn sort_by_large_places<L>(lines: &mut [L], row: impl Fn(&L) -> &Row) {
    if lines.iter().any(|line| row(line).place.is_of_cpus()) {
        lines.sort_by(|a, b| row(a).place.cmp(&row(b).place));
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
