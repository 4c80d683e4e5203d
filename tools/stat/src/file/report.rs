//! Reporting the counts of a file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::ExitCode;
use std::rc::Rc;

use foldhash::HashMap;
use quipu::{Event, EventSpec, Part, Reading};
use quipu_perf_data::stat::{StatConfig, StatCount, StatRecord};
use quipu_perf_data::{Features, RecordedEvent};
use quipu_text::{NoNames, parse_cpu_list, parse_spec};

use quipu_profile::recording;
use quipu_shell::Failure;

use super::super::aggregate::{AggregateBy, Aggregation, CpuPosition};
use super::super::lines::{self, sort_by_large_places};
use super::super::metrics;
use super::super::options::Options;
use super::super::report::{Output, Report, Times};
use super::super::rows::{Row, Unit};
use super::{ReportOptions, UNITS};

/// Reads a file and reports.
pub(in super::super) fn run(options: &ReportOptions) -> Result<ExitCode, Failure> {
    let name = &*recording::name(&options.input);
    let mut reader = recording::reader(&options.input, options.force, "stat record")?;
    let unreadable =
        |error: &dyn Display| Failure::new(format_args!("cannot read {name}: {error}"));
    let fail = |error| unreadable(&error);
    let mut features = reader.features().clone();
    if features.cpu_topology.is_none() {
        take_places(&mut features);
    }
    if !features.has_counts {
        return Err(unreadable(
            &"it has no counts; quipu report shows what was sampled",
        ));
    }
    let mut counts = Counts::of(reader.events());
    let mut records = reader.records().map_err(fail)?;
    let mut output = None;
    while let Some(record) = records.next_record().map_err(fail)? {
        let Some(record) = StatRecord::decode(&record).map_err(fail)? else {
            continue;
        };
        let StatRecord::Round(round) = record else {
            counts.take(record);
            continue;
        };
        let output = match &mut output {
            Some(output) => output,
            none => none.insert(open_output(options)?),
        };
        let time = round.time as f64 * 1e-9;
        let aggregation = counts.aggregation(options, &features, name)?;
        let mut rows = counts.rows(&aggregation, time);
        if !round.is_final {
            output.interval(time, &rows);
            continue;
        }
        rows.iter_mut().for_each(Row::command_has_ended);
        let mut times = Times::default();
        times.elapsed.add(time);
        output.report(&Report {
            title: title(&features, name),
            runs: 1,
            rows,
            times,
            ..Report::default()
        });
    }
    match output {
        Some(output) => output.finish().map(|()| ExitCode::SUCCESS),
        None => Err(unreadable(&"it ends before the first counts")),
    }
}

/// Takes the places of this machine's CPUs for a stream of perf, which has none, as perf does.
fn take_places(features: &mut Features) {
    cfg_if::cfg_if! {
        if #[cfg(target_os = "linux")] {
            let own = quipu_profile::record::features();
            features.cpu_topology = own.cpu_topology;
            features.numa_nodes = own.numa_nodes;
        } else {
            let _ = features;
        }
    }
}

/// Opens the output that is asked for, in its form.
fn open_output(options: &ReportOptions) -> Result<Output, Failure> {
    Output::open(&Options {
        form: options.form.clone(),
        output: options.output.clone(),
        ..Options::default()
    })
}

/// Returns the title of a report: the command line that counted.
fn title(features: &Features, name: &str) -> String {
    match features.command_line.as_slice() {
        [] => name.to_owned(),
        words => format!("'{}'", words.join(" ")),
    }
}

/// An event of a file.
struct Counted {
    name: Rc<str>,
    spec: Rc<EventSpec>,
    unit: Unit,
}

/// Place of a counter: its CPU, and the position of its thread.
type CounterPlace = (Option<u32>, u32);

/// Counts and descriptions that a file has told so far.
struct Counts {
    config: StatConfig,
    threads: Vec<(i32, String)>,
    cpus: Vec<Option<u32>>,
    events: Vec<Counted>,
    /// Events by the ids of their counters.
    by_id: HashMap<u64, usize>,
    /// The counts of each event, and those of the round before.
    now: Vec<BTreeMap<CounterPlace, StatCount>>,
    before: Vec<BTreeMap<CounterPlace, StatCount>>,
    /// Seconds to the round before.
    last: f64,
}

impl Counts {
    fn of(events: &[RecordedEvent]) -> Self {
        let ids = events.iter().enumerate();
        let ids = ids.flat_map(|(at, event)| event.ids().iter().map(move |id| (*id, at)));
        Self {
            config: StatConfig::new(1, 0),
            threads: Vec::new(),
            cpus: Vec::new(),
            events: events.iter().map(counted).collect(),
            by_id: ids.collect(),
            now: vec![BTreeMap::new(); events.len()],
            before: vec![BTreeMap::new(); events.len()],
            last: 0.0,
        }
    }

    fn take(&mut self, record: StatRecord) {
        let event = |id: u64| self.by_id.get(&id).copied();
        match record {
            StatRecord::Config(config) => self.config = config,
            StatRecord::Threads(threads) => self.threads = threads,
            StatRecord::Cpus(cpus) => self.cpus = cpus,
            StatRecord::Unit(id, unit) => {
                if let Some(event) = event(id) {
                    self.events[event].unit.name = unit.into();
                }
            }
            StatRecord::Scale(id, scale) => {
                if let Some(event) = event(id) {
                    self.events[event].unit.factor = scale;
                }
            }
            StatRecord::Count(count) => {
                if let Some(event) = event(count.id) {
                    self.now[event].insert((count.cpu, count.thread), count);
                }
            }
            _ => {}
        }
    }

    /// Returns the lines that are asked for, or that were when it was counted.
    fn aggregation(
        &self,
        options: &ReportOptions,
        features: &Features,
        name: &str,
    ) -> Result<Aggregation, Failure> {
        let asked = AggregateBy::of(&options.places)?;
        let recorded = || {
            let units = UNITS[units(features.version.as_deref().unwrap_or_default())];
            let number = usize::try_from(self.config.aggregation).ok();
            number.and_then(|number| *units.get(number)?)
        };
        let by = match asked {
            AggregateBy::Target => recorded().unwrap_or(asked),
            _ => asked,
        };
        let on_cpus = self.cpus.iter().any(Option::is_some);
        let is_of_threads = self.threads.iter().any(|(id, _)| *id >= 0);
        let (is_there, what) = match by {
            AggregateBy::Thread => (is_of_threads, "threads"),
            _ => (!by.is_of_cpus() || on_cpus, "CPUs"),
        };
        let is_known = !matches!(by, AggregateBy::Cluster | AggregateBy::Cache(_));
        if !is_there || !is_known {
            return Err(Failure::usage(match is_known {
                true => format!("{name} does not tell {what} apart: it was counted without them"),
                false => format!("{name} does not tell which CPUs share a cache or cluster"),
            }));
        }
        Ok(Aggregation {
            by,
            merges_units: true,
            every_thread: false,
            cpus: topology(features),
            threads: self.threads.iter().cloned().collect(),
        })
    }

    /// Returns the rows of a round that ended so many seconds after the start, and begins the next one.
    fn rows(&mut self, aggregation: &Aggregation, seconds: f64) -> Vec<Row> {
        let this = &*self;
        let threads = 0..this.threads.len().max(1) as u32;
        let cpus = this.cpus.iter().copied();
        let cpus = cpus.chain(this.cpus.is_empty().then_some(None));
        let parts = cpus.flat_map(|cpu| {
            let threads = threads.clone();
            threads.map(move |thread| this.part((cpu, thread)))
        });
        let places = lines::places(parts, aggregation);
        let mut rows = Vec::new();
        for (event, now) in self.now.iter().enumerate() {
            let readings = now.iter().map(|(place, count)| {
                let before = self.before[event].get(place).copied();
                let before = before.unwrap_or_default();
                let reading = Reading::new(
                    count.value.saturating_sub(before.value),
                    count.enabled.saturating_sub(before.enabled),
                    count.running.saturating_sub(before.running),
                );
                let part = self.part(*place);
                (aggregation.id(&part), part, reading)
            });
            let readings: Vec<_> = readings.collect();
            for (place, cpus) in &places {
                let of_place = readings.iter().filter(|(id, ..)| id == place);
                let of_place: Vec<_> = of_place.map(|(_, part, reading)| (part, reading)).collect();
                let Counted { name, spec, unit } = &self.events[event];
                let mut row = Row {
                    place: place.clone(),
                    cpus: cpus.len(),
                    is_unsupported: readings.is_empty(),
                    ..Row::uncounted(name.clone(), spec.clone(), unit.clone())
                };
                if !of_place.is_empty() {
                    row.fill(&of_place, false);
                } else if !readings.is_empty() {
                    continue;
                }
                rows.push(row);
            }
        }
        sort_by_large_places(&mut rows, |row| row);
        metrics::attach(&mut rows, self.divisor(seconds - self.last));
        self.last = seconds;
        self.before.clone_from(&self.now);
        rows
    }

    /// Returns the seconds by which counts of an interval are divided; 0 if it is too short for that: a file does not say how
    /// long a read took, and only the last interval is shorter than what was asked for.
    fn divisor(&self, seconds: f64) -> f64 {
        let asked = self.config.interval as f64 * 1e-3;
        let shortest = (asked / 100.0).max(1e-3).min(asked / 2.0);
        match seconds < shortest {
            true => 0.0,
            false => seconds,
        }
    }

    fn part(&self, (cpu, thread): CounterPlace) -> Part {
        let thread = self.threads.get(thread as usize).map(|(id, _)| *id);
        let mut part = Part::whole();
        part.cpu = cpu;
        part.thread = thread.filter(|id| *id >= 0);
        part
    }
}

/// Returns an event as rows have it.
fn counted(event: &RecordedEvent) -> Counted {
    let numbers = event.attr().event_name();
    let name = event.name().map(str::to_owned).or_else(|| numbers.clone());
    let name = name.unwrap_or_else(|| "[unknown]".to_owned());
    let parsed = |text: &str| parse_spec(text, &NoNames).ok();
    let spec = numbers.as_deref().and_then(parsed);
    let spec = spec.or_else(|| parsed(&name));
    let spec = spec.unwrap_or_else(|| EventSpec::new(Event::Named(name.clone())));
    Counted {
        spec: spec.into(),
        unit: Unit::none(),
        name: name.into(),
    }
}

/// Returns the position of the units that a version of perf numbers: `6.1.192`.
fn units(version: &str) -> usize {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 9) => 2,
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 5) => 1,
        _ => 0,
    }
}

/// Returns the places of CPUs as a file tells them.
fn topology(features: &Features) -> BTreeMap<u32, CpuPosition> {
    let places = features.cpu_topology.iter().flat_map(|all| &all.places);
    let places = places.zip(0..).filter(|(place, _)| place.core != u32::MAX);
    let node = |cpu| {
        let mut nodes = features.numa_nodes.iter();
        let node =
            nodes.find(|node| parse_cpu_list(&node.cpus).is_ok_and(|cpus| cpus.contains(&cpu)));
        node.map_or(-1, |node| node.node.cast_signed())
    };
    let places = places.map(|(place, cpu)| {
        let place = CpuPosition {
            cpu,
            socket: place.socket.cast_signed(),
            die: place.die.cast_signed(),
            cluster: -1,
            core: place.core.cast_signed(),
            node: node(cpu),
            caches: BTreeMap::new(),
        };
        (cpu, place)
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_interval_may_be_too_short_to_divide_by() {
        for (interval, seconds, expected) in [
            (200, 42e-6, 0.0),
            (200, 1.9e-3, 0.0),
            (200, 2.1e-3, 2.1e-3),
            (10, 0.9e-3, 0.0),
            (1, 0.9e-3, 0.9e-3),
            (1, 0.4e-3, 0.0),
            // The whole run.
            (0, 42e-6, 42e-6),
        ] {
            let counts = Counts {
                config: StatConfig::new(1, interval),
                ..Counts::of(&[])
            };
            assert_eq!(counts.divisor(seconds), expected, "{interval} {seconds}");
        }
    }

    #[test]
    fn numbers_of_units_are_those_of_the_version_that_wrote_them() {
        let by = |version: &str, number: usize| UNITS[units(version)][number];
        for version in ["6.1.192", "quipu 0.1.0", "", "5.10"] {
            assert_eq!(by(version, 4), Some(AggregateBy::Core), "{version}");
        }
        assert_eq!(by("6.5", 4), Some(AggregateBy::Cache(None)));
        assert_eq!(by("6.9-rc1", 4), Some(AggregateBy::Cluster));
        assert_eq!(by("7.0", 7), Some(AggregateBy::Thread));
    }
}
