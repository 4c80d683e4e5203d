//! The collector: counters on all instances of all targets, and their series at each read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use quipu::{Backend, Error, ErrorKind, EventSet, EventSetBuilder, EventSpec, GroupSpec, SetEvent};
use quipu_shell::terminal;

use crate::attached::Attached;
use crate::config::{Config, Target};
use crate::events::EventMetric;
use crate::instances::{self, Found, Instance};
use crate::outcomes::Outcomes;
use crate::retired::Retired;
use crate::series::{Family, Label, Labels, Point, Shape, Snapshot, Value};
use crate::subject::{RUNNING_RATIO, Subject, Total};

/// The shortest time from one search for instances to the next.
const SEARCH_INTERVAL: Duration = Duration::from_millis(900);

/// A target with its subjects.
struct Watched {
    target: Target,
    builder: Result<EventSetBuilder, Error>,
    /// The events as they were asked for, and what is known of those that could be opened.
    events: Vec<Arc<str>>,
    metrics: Vec<Option<EventMetric>>,
    subjects: BTreeMap<Vec<Label>, Subject>,
    left_out: usize,
    instances: usize,
}

/// All counters, and what they have counted so far.
pub(crate) struct Collector {
    config: Config,
    watched: Vec<Watched>,
    retired: Retired,
    /// By event and reason.
    errors: BTreeMap<(Arc<str>, String), u64>,
    /// Sentences that were written.
    said: BTreeSet<String>,
    started: SystemTime,
    reads: u64,
    read_time: Duration,
    searched: Option<Instant>,
    /// Backends in the place of the machine's own.
    backends: Option<Vec<Arc<dyn Backend>>>,
    /// False if the file could not be used when it was read again.
    pub(crate) reloaded: bool,
    pub(crate) outcomes: Arc<Outcomes>,
}

/// The most different sentences that are written.
const MOST_SAID: usize = 1000;

impl Collector {
    /// Makes a collector; the first [`collect`](Self::collect) opens its counters.
    pub(crate) fn new(config: Config) -> Self {
        Self::with_backends(config, None)
    }

    /// Makes a collector of some backends.
    pub(crate) fn with_backends(config: Config, backends: Option<Vec<Arc<dyn Backend>>>) -> Self {
        let mut collector = Self {
            watched: Vec::new(),
            retired: Retired::default(),
            errors: BTreeMap::new(),
            said: BTreeSet::new(),
            started: SystemTime::now(),
            reads: 0,
            read_time: Duration::ZERO,
            searched: None,
            backends,
            reloaded: true,
            outcomes: Arc::default(),
            config,
        };
        collector.watch();
        collector
    }

    /// Goes on with another configuration. What stays is counted on; what comes back goes on from where it ended.
    pub(crate) fn reload(&mut self, config: Config) {
        let unchanged = config.metrics == self.config.metrics;
        self.config = config;
        self.searched = None;
        self.said.clear();
        let earlier = std::mem::take(&mut self.watched);
        let (mut kept, mut ended): (Vec<_>, Vec<_>) = earlier
            .into_iter()
            .partition(|watched| unchanged && self.config.targets.contains(&watched.target));
        for watched in &mut ended {
            for (_, mut subject) in std::mem::take(&mut watched.subjects) {
                subject.read(&watched.metrics);
                retire(&mut self.retired, &watched.events, subject);
            }
        }
        self.watch();
        for watched in &mut self.watched {
            if let Some(at) = kept.iter().position(|kept| kept.target == watched.target) {
                *watched = kept.swap_remove(at);
            }
        }
    }

    fn watch(&mut self) {
        let targets = self.config.targets.iter();
        self.watched = targets
            .map(|target| Watched {
                builder: builder(&self.config, target, self.backends.as_deref()),
                target: target.clone(),
                events: Vec::new(),
                metrics: Vec::new(),
                subjects: BTreeMap::new(),
                left_out: 0,
                instances: 0,
            })
            .collect();
    }

    /// Returns the interval of files and messages.
    pub(crate) fn interval(&self) -> Duration {
        self.config.interval
    }

    /// Reads all counters, looks for new instances and those that have ended, and returns the series.
    pub(crate) fn collect(&mut self) -> Snapshot {
        let begun = Instant::now();
        let is_due = self
            .searched
            .is_none_or(|last| last.elapsed() >= SEARCH_INTERVAL);
        let mut found: Vec<Option<Found>> = Vec::new();
        for at in 0..self.watched.len() {
            let result = is_due.then(|| instances::find(&self.watched[at].target));
            found.push(
                result.and_then(|found| found.map_err(|error| self.say(format!("{error:#}"))).ok()),
            );
        }
        // What has ended is read a last time.
        let at = SystemTime::now();
        self.read();
        let mut ended = Vec::new();
        if is_due {
            self.searched = Some(begun);
            for (at, found) in found.into_iter().enumerate() {
                if let Some(mut found) = found {
                    let gone = self.take_ended(at, &found);
                    ended.extend(gone.into_iter().map(|subject| (at, subject)));
                    self.attach(at, &mut found);
                }
            }
        }
        let mut snapshot = Snapshot {
            labels: self.config.labels.clone(),
            at: Some(at),
            ..Snapshot::default()
        };
        for watched in &self.watched {
            for (event, metric) in watched.metrics.iter().enumerate() {
                let Some(metric) = metric else { continue };
                for subject in watched.subjects.values() {
                    subject.put(event, metric, &mut snapshot);
                }
            }
        }
        // The last values of what has ended are seen once.
        for (at, subject) in ended {
            let watched = &self.watched[at];
            for (event, metric) in watched.metrics.iter().enumerate() {
                if let Some(metric) = metric {
                    subject.put(event, metric, &mut snapshot);
                }
            }
            retire(&mut self.retired, &watched.events, subject);
        }
        let is_counted = |family: &Family| family.name != RUNNING_RATIO;
        let has_none = |watched: &Watched| watched.builder.is_ok() && watched.subjects.is_empty();
        let is_up = snapshot.families.iter().any(is_counted) || self.watched.iter().all(has_none);
        self.reads += 1;
        self.read_time += begun.elapsed();
        self.put_own(&mut snapshot, is_up);
        snapshot
    }

    fn read(&mut self) {
        let mut failed = Vec::new();
        for watched in &mut self.watched {
            for subject in watched.subjects.values_mut() {
                for (event, error) in subject.read(&watched.metrics) {
                    let is_open = subject
                        .attached
                        .iter()
                        .any(|attached| attached.set.events()[event].error().is_none());
                    if is_open {
                        failed.push((Arc::clone(&watched.events[event]), error));
                    }
                }
            }
        }
        for (event, error) in failed {
            self.note(&event, &error);
        }
    }

    /// Takes the subjects that are not there any more.
    fn take_ended(&mut self, at: usize, found: &Found) -> Vec<Subject> {
        let subjects = &mut self.watched[at].subjects;
        let ended = subjects.keys();
        let ended = ended.filter(|labels| !found.subjects.contains_key(*labels));
        let ended: Vec<Vec<Label>> = ended.cloned().collect();
        let ended = ended.iter();
        ended.filter_map(|labels| subjects.remove(labels)).collect()
    }

    /// Attaches counters to the instances that are new, and detaches them from those of a subject that have ended.
    fn attach(&mut self, at: usize, found: &mut Found) {
        let watched = &mut self.watched[at];
        let builder = match &watched.builder {
            Ok(builder) => builder.clone(),
            Err(error) => {
                let sentence = format!("{error:#}");
                return self.say(sentence);
            }
        };
        let mut refused = Vec::new();
        for (labels, instances) in &mut found.subjects {
            let events = watched.events.len().max(1);
            let series = watched.subjects.len().saturating_mul(events);
            let is_known = watched.subjects.contains_key(labels);
            if !is_known && series >= self.config.most_series {
                found.left_out += instances.len().max(1);
                continue;
            }
            let subject = watched
                .subjects
                .entry(labels.clone())
                .or_insert_with(|| Subject {
                    labels: Labels::from(labels.as_slice()),
                    attached: Vec::new(),
                    totals: Vec::new(),
                    is_partial: false,
                });
            subject.is_partial = false;
            let is_wanted = |attached: &Attached| {
                let mut wanted = instances.iter();
                wanted.any(|instance| instance.identity == attached.identity)
            };
            subject.attached.retain(is_wanted);
            for Instance { identity, place } in std::mem::take(instances) {
                let mut known = subject.attached.iter();
                if known.any(|attached| attached.identity == identity) {
                    continue;
                }
                let attached = match Attached::open(&builder, place, identity) {
                    Ok(attached) => attached,
                    Err(error) => {
                        let all = Arc::from(watched.target.events.as_str());
                        refused.push((all, error));
                        subject.is_partial = true;
                        continue;
                    }
                };
                let errors = || attached.set.events().iter().map(SetEvent::error);
                let is_gone = |error: &Error| error.kind() == ErrorKind::NoSuchTarget;
                if errors().all(|error| error.is_some_and(is_gone)) {
                    // It has ended since it was found.
                    continue;
                }
                learn(
                    &attached.set,
                    &self.config,
                    &mut watched.events,
                    &mut watched.metrics,
                );
                for (event, error) in watched.events.iter().zip(errors()) {
                    refused.extend(error.map(|error| (Arc::clone(event), error.clone())));
                }
                match errors().all(|error| error.is_some()) {
                    // The next search tries again.
                    true => subject.is_partial = true,
                    false => subject.attached.push(attached),
                }
            }
            if subject.totals.len() != watched.events.len() {
                let retired = &mut self.retired;
                let totals = watched.events.iter();
                let totals = totals
                    .map(|event| retired.take(&subject.labels, event))
                    .map(|total| total.unwrap_or_else(Total::new));
                subject.totals = totals.collect();
                subject.begin();
            }
        }
        watched.left_out = found.left_out;
        let counted = watched.subjects.values();
        watched.instances = counted.map(|subject| subject.attached.len()).sum();
        let what = watched.target.what.kind();
        if found.left_out > 0 {
            self.say(format!(
                "{} of the target `{what}` are not counted: there are more than `most` or `most-series` allow",
                found.left_out
            ));
        }
        for (event, error) in refused {
            self.note(&event, &error);
        }
    }

    /// Counts an error, and writes it the first time.
    fn note(&mut self, event: &Arc<str>, error: &Error) {
        let reason = error.kind().to_string().replace([' ', '-'], "_");
        *self.errors.entry((Arc::clone(event), reason)).or_default() += 1;
        self.say(format!("{event} is not counted: {error:#}"));
    }

    fn say(&mut self, sentence: String) {
        if self.said.len() < MOST_SAID && !self.said.contains(&sentence) {
            terminal::warn(&sentence);
            self.said.insert(sentence);
        }
    }

    /// Adds the series about the export itself.
    fn put_own(&self, snapshot: &mut Snapshot, is_up: bool) {
        let start = self.started;
        let mut put = |name: &str, unit, help: &str, shape, labels: &[Label], value| {
            let point = Point {
                labels: labels.into(),
                value,
                start,
            };
            snapshot.put((name, unit), help, shape, point);
        };
        let version = [Label::new("version", env!("CARGO_PKG_VERSION"))];
        put(
            "quipu_build_info",
            None,
            "Version of quipu",
            Shape::Gauge,
            &version,
            Value::Whole(1),
        );
        put(
            "quipu_up",
            None,
            "Whether any event is counted, where there is anything to count",
            Shape::Gauge,
            &[],
            Value::Whole(is_up.into()),
        );
        put(
            "quipu_config_reload_success",
            None,
            "Whether the file could be used when it was last read",
            Shape::Gauge,
            &[],
            Value::Whole(self.reloaded.into()),
        );
        put(
            "quipu_reads",
            None,
            "Reads of all counters",
            Shape::Counter,
            &[],
            Value::Whole(self.reads),
        );
        put(
            "quipu_read",
            Some("seconds"),
            "Time that the reads of all counters took",
            Shape::Counter,
            &[],
            Value::Real(self.read_time.as_secs_f64()),
        );
        for (name, help, [fine, failed]) in self.outcomes.all() {
            for (outcome, count) in [fine, failed] {
                let labels = [Label::new("outcome", outcome)];
                put(
                    name,
                    None,
                    help,
                    Shape::Counter,
                    &labels,
                    Value::Whole(count),
                );
            }
        }
        let mut of_kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for watched in &self.watched {
            let of_kind = of_kinds.entry(watched.target.what.kind()).or_default();
            of_kind.0 += watched.instances;
            of_kind.1 += watched.left_out;
        }
        for (kind, (instances, left_out)) in of_kinds {
            let labels = [Label::new("target", kind)];
            put(
                "quipu_instances",
                None,
                "Sets of CPUs, control groups and processes that are counted",
                Shape::Gauge,
                &labels,
                Value::Whole(instances as u64),
            );
            put(
                "quipu_instances_left_out",
                None,
                "Those that are not counted because there are too many",
                Shape::Gauge,
                &labels,
                Value::Whole(left_out as u64),
            );
        }
        for ((event, reason), count) in &self.errors {
            let labels = [
                Label("event", Arc::clone(event)),
                Label::new("reason", reason.as_str()),
            ];
            put(
                "quipu_event_errors",
                None,
                "Attempts to open or read an event that failed",
                Shape::Counter,
                &labels,
                Value::Whole(*count),
            );
        }
    }

    /// Returns what is counted, and what cannot be, in lines for a person.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for watched in &self.watched {
            let instances = watched.instances;
            let plural = if instances == 1 { "" } else { "s" };
            let kind = watched.target.what.kind();
            lines.push(format!("target {kind}: {instances} instance{plural}"));
            let known = watched.events.iter().zip(&watched.metrics);
            lines.extend(known.filter_map(|(event, metric)| {
                let metric = metric.as_ref()?;
                Some(format!("  {event} as {}", crate::text::full_name(metric)))
            }));
        }
        lines
    }
}

/// Returns the description of the sets of a target.
fn builder(
    config: &Config,
    target: &Target,
    backends: Option<&[Arc<dyn Backend>]>,
) -> Result<EventSetBuilder, Error> {
    let mut builder = EventSet::builder();
    if let Some(backends) = backends {
        builder.backends(backends.iter().cloned());
    }
    builder.events(target.events.as_str())?;
    for metric in &config.metrics {
        builder.preset(&metric.name, &metric.formula)?;
        let event = EventSpec::new(quipu::Event::Named(metric.name.clone()));
        builder.events(GroupSpec::single(event))?;
    }
    Ok(builder)
}

/// Takes note of the metrics of events that could be opened for the first time.
fn learn(
    set: &EventSet,
    config: &Config,
    events: &mut Vec<Arc<str>>,
    metrics: &mut Vec<Option<EventMetric>>,
) {
    if events.is_empty() {
        events.extend(set.events().iter().map(|event| Arc::from(event.name())));
        metrics.resize(events.len(), None);
    }
    for (event, metric) in set.events().iter().zip(metrics) {
        if let (None, Some(info)) = (&metric, event.info()) {
            *metric = Some(EventMetric::of(event, info, &config.metrics));
        }
    }
}

/// Keeps the totals of a subject that has ended.
fn retire(retired: &mut Retired, events: &[Arc<str>], subject: Subject) {
    for (event, total) in events.iter().zip(subject.totals) {
        retired.keep(&subject.labels, event, total);
    }
}

#[cfg(test)]
mod tests;
