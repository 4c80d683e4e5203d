//! The configuration: of the command line, and of a file in TOML that is read and reported like event files.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::time::Duration;

use quipu::NativeEvents;
use quipu_events::Diagnostic;
use quipu_events_format::settings::{self, Checked, Notes, UpTo};
use quipu_shell::{Failure, WithTracepoints, processes};
use quipu_text::parse_cpu_list;
use serde::Deserialize;

use crate::Options;
use crate::events::Metric;
use crate::series::{self, Label};

/// The events where none are named.
const DEFAULT_EVENTS: &str = "page-faults,context-switches,cpu-migrations,{cycles,instructions}";
const LONGEST_INTERVAL: u64 = 3600;

/// All that is to be exported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) interval: Duration,
    /// Labels of every series.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) targets: Vec<Target>,
    pub(crate) most_series: usize,
}

/// A kind of thing that is counted, and the events counted there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) what: What,
    /// A list of events, as text.
    pub(crate) events: String,
    /// The most instances.
    pub(crate) most: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// CPUs, all where none are listed.
    Cpus(Vec<u32>, By),
    /// Control groups by the pattern of their path.
    Cgroups(String),
    /// Control groups that systemd makes of units, by the pattern of their name.
    Units(String),
    /// Processes by the pattern of their name.
    Processes(String),
    /// All processes of a user.
    User(String, u32),
}

/// Which CPUs are counted as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Machine,
    Socket,
    Core,
    Cpu,
}

impl What {
    /// Returns the word for it in the label `target`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Cpus(..) => "cpus",
            Self::Cgroups(_) => "cgroup",
            Self::Units(_) => "unit",
            Self::Processes(_) => "process",
            Self::User(..) => "user",
        }
    }
}

/// Reads a number of seconds of the command line.
pub(crate) fn interval(text: &str) -> Result<u64, String> {
    let seconds = text.trim().parse().ok();
    seconds
        .filter(|seconds| (1..=LONGEST_INTERVAL).contains(seconds))
        .ok_or_else(|| format!("expected a whole number of seconds from 1 to {LONGEST_INTERVAL}"))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct Keys {
    interval: Checked<UpTo<LONGEST_INTERVAL>>,
    events: Checked<Vec<Checked<String>>>,
    most_series: Checked<UpTo<1_000_000>>,
    labels: Checked<BTreeMap<String, Checked<String>>>,
    metric: Checked<Vec<Checked<MetricKeys>>>,
    target: Checked<Vec<Checked<TargetKeys>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct MetricKeys {
    name: Checked<String>,
    formula: Checked<String>,
    description: Checked<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct TargetKeys {
    cpus: Checked<String>,
    by: Checked<String>,
    cgroups: Checked<String>,
    units: Checked<String>,
    processes: Checked<String>,
    user: Checked<String>,
    events: Checked<Vec<Checked<String>>>,
    most: Checked<UpTo<100_000>>,
}

impl Config {
    /// Returns the configuration that the options ask for.
    ///
    /// # Errors
    /// If it cannot be meant, or the file cannot be read or is wrong, with every finding.
    pub(crate) fn of(options: &Options) -> Result<Self, Failure> {
        Self::checked(options)?.map_err(|findings| {
            let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
            Failure::new(lines.join("\n"))
        })
    }

    /// Returns the same, or the findings in the file.
    ///
    /// # Errors
    /// If it cannot be meant, or the file cannot be read.
    pub(crate) fn checked(options: &Options) -> Result<Result<Self, Vec<Diagnostic>>, Failure> {
        let events = command_line_events(options)?;
        let config = match &options.config {
            Some(path) => {
                let name = path.display().to_string();
                let text = fs::read_to_string(path)
                    .map_err(|e| Failure::usage(format_args!("cannot read {name}: {e}")))?;
                parse(&name, &text, &events)
            }
            None => Ok(Self::with_events(&events)),
        };
        let interval = options.interval.map(Duration::from_secs);
        Ok(config.map(|config| Self {
            interval: interval.unwrap_or(config.interval),
            ..config
        }))
    }

    fn with_events(events: &str) -> Self {
        Self {
            interval: Duration::from_secs(10),
            labels: Vec::new(),
            metrics: Vec::new(),
            targets: vec![Target {
                what: What::Cpus(Vec::new(), By::Machine),
                events: events.to_owned(),
                most: most_of_cpus(),
            }],
            most_series: 10_000,
        }
    }
}

fn command_line_events(options: &Options) -> Result<String, Failure> {
    if options.event.is_empty() {
        return Ok(DEFAULT_EVENTS.to_owned());
    }
    let events = options.event.join(",");
    check_events(&events).map_err(Failure::usage)?;
    Ok(events)
}

/// Refuses text that is no list of events; whether the machine has them is another question.
fn check_events(text: &str) -> Result<(), String> {
    let names = NativeEvents::this();
    let parsed = quipu_text::parse(text, &WithTracepoints(&**names));
    parsed.map(|_| ()).map_err(|e| format!("{e:#}"))
}

fn most_of_cpus() -> usize {
    8192
}

/// Reads the text of a file; `events` are those of targets where it names none.
pub(crate) fn parse(name: &str, text: &str, events: &str) -> Result<Config, Vec<Diagnostic>> {
    settings::read(name, text, |keys: Keys, notes| {
        let mut config = Config::with_events(events);
        if let Some(UpTo(seconds)) = keys.interval.value() {
            config.interval = Duration::from_secs(seconds);
        }
        if let Some(UpTo(most)) = keys.most_series.value() {
            config.most_series = usize::try_from(most).unwrap_or(usize::MAX);
        }
        if let Some(named) = event_list(keys.events, notes) {
            for target in &mut config.targets {
                target.events.clone_from(&named);
            }
        }
        for (label, value) in keys.labels.value().unwrap_or_default() {
            let Some((value, at)) = value.spanned() else {
                continue;
            };
            if !series::is_label(&label) || Label::is_reserved(&label) {
                let label = label.escape_debug();
                notes.add(
                    &at,
                    format!("`{label}` cannot be a label: letters, digits and _, and none that quipu sets itself"),
                );
                continue;
            }
            config.labels.push((label, value));
        }
        for (metric, at) in keys.metric.items() {
            config.metrics.extend(self::metric(metric, &at, notes));
        }
        let common = config.targets[0].events.clone();
        if !keys.target.is_absent() {
            config.targets.clear();
        }
        for (target, at) in keys.target.items() {
            config
                .targets
                .extend(self::target(target, &at, &common, notes));
        }
        config
    })
}

/// Returns the events of a list as one text.
fn event_list(list: Checked<Vec<Checked<String>>>, notes: &Notes<'_>) -> Option<String> {
    let items: Vec<_> = list.items().collect();
    for (text, at) in &items {
        if let Err(message) = check_events(text) {
            notes.add(at, message);
        }
    }
    let texts: Vec<String> = items.into_iter().map(|(text, _)| text).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

fn metric(keys: MetricKeys, at: &Range<usize>, notes: &Notes<'_>) -> Option<Metric> {
    let Some((name, name_at)) = keys.name.spanned() else {
        notes.add(at, "a metric needs a `name`");
        return None;
    };
    let description = keys.description.value();
    let (metric, at) = match keys.formula.spanned() {
        Some((formula, at)) => (Metric::of_formula(&name, &formula, description), at),
        None => (Metric::of_database(&name), name_at.clone()),
    };
    let checked = metric.and_then(|metric| match series::is_label(&name) {
        true => Ok(metric),
        false => Err(format!(
            "`{}` cannot be the name of a metric: it has letters, digits and _",
            name.escape_debug()
        )),
    });
    checked.map_err(|message| notes.add(&at, message)).ok()
}

fn target(keys: TargetKeys, at: &Range<usize>, common: &str, notes: &Notes<'_>) -> Option<Target> {
    let events = event_list(keys.events, notes).unwrap_or_else(|| common.to_owned());
    let by = keys.by.spanned();
    let mut chosen = Vec::new();
    if let Some((list, at)) = keys.cpus.spanned() {
        chosen.push(cpus(&list, by.as_ref(), &at, notes)?);
    } else if let Some((_, at)) = &by {
        notes.add(at, "`by` is for `cpus`");
    }
    chosen.extend(
        keys.cgroups
            .value()
            .map(|pattern| What::Cgroups(pattern.trim_matches('/').to_owned())),
    );
    chosen.extend(keys.units.value().map(What::Units));
    chosen.extend(keys.processes.value().map(What::Processes));
    if let Some((name, at)) = keys.user.spanned() {
        match processes::user_number(&name) {
            Some(id) => chosen.push(What::User(name, id)),
            None => {
                let name = name.escape_debug();
                notes.add(&at, format!("there is no user `{name}`"));
                return None;
            }
        }
    }
    let most = keys.most.value().map(|UpTo(most)| most);
    match <[What; 1]>::try_from(chosen) {
        Ok([what]) => {
            let default = match what {
                What::Cpus(..) => most_of_cpus(),
                What::User(..) => 1000,
                _ => 100,
            };
            let most = most.and_then(|most| usize::try_from(most).ok());
            Some(Target {
                most: most.unwrap_or(default),
                what,
                events,
            })
        }
        Err(_) => {
            notes.add(
                at,
                "a target has one of `cpus`, `cgroups`, `units`, `processes`, `user`",
            );
            None
        }
    }
}

fn cpus(
    list: &str,
    by: Option<&(String, Range<usize>)>,
    at: &Range<usize>,
    notes: &Notes<'_>,
) -> Option<What> {
    let cpus = match list {
        "all" => Vec::new(),
        list => match parse_cpu_list(list) {
            Ok(cpus) if !cpus.is_empty() => cpus,
            _ => {
                let list = list.escape_debug();
                notes.add(at, format!("`{list}` are no CPUs: write all, or 0-3,8"));
                return None;
            }
        },
    };
    let by = match by.map(|(word, at)| (word.as_str(), at)) {
        None | Some(("machine", _)) => By::Machine,
        Some(("socket", _)) => By::Socket,
        Some(("core", _)) => By::Core,
        Some(("cpu", _)) => By::Cpu,
        Some((word, at)) => {
            let word = word.escape_debug();
            notes.add(
                at,
                format!("unknown word `{word}`; there are machine, socket, core, cpu"),
            );
            return None;
        }
    };
    Some(What::Cpus(cpus, by))
}

#[cfg(test)]
mod tests;
