//! The metrics that are compared: what is known of every process that has ended, and events.

use quipu::{Event, EventSpec, GroupSpec, NativeEvents};
use quipu_shell::{Failure, WithTracepoints};
use serde::{Deserialize, Serialize};

/// The events that are compared where none is asked for.
const DEFAULT_EVENTS: &str =
    "page-faults,context-switches,instructions,cycles,branch-misses,cache-misses";

/// A number of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metric {
    /// Its name: that of the event as it was asked for.
    pub(crate) name: String,
    /// Its unit: `s`, `bytes`, another one, or empty for a number of events.
    pub(crate) unit: String,
}

/// The source of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Elapsed,
    /// User and system time, without that before the program was executed.
    CpuTime,
    User,
    System,
    PeakMemory,
    /// The event at a position of those that were asked for.
    Event(usize),
}

impl Source {
    /// The numbers that wait4(2) reports, under the name here and the one that `quipu stat -e` has.
    const OF_PROCESS: [(Self, &'static str, &'static str, &'static str); 5] = [
        (Self::Elapsed, "elapsed", "duration_time", "s"),
        (Self::CpuTime, "cpu-time", "cpu_time", "s"),
        (Self::User, "user-time", "user_time", "s"),
        (Self::System, "system-time", "system_time", "s"),
        (Self::PeakMemory, "peak-memory", "peak_memory", "bytes"),
    ];

    fn of(spec: &EventSpec) -> Option<Self> {
        let Event::Named(asked) = &spec.event else {
            return None;
        };
        let mut known = Self::OF_PROCESS.into_iter();
        known
            .find(|(_, name, as_event, _)| asked == name || asked == as_event)
            .map(|(source, ..)| source)
    }

    /// Returns the metric of a number that is not an event's.
    pub(crate) fn metric(self) -> Option<Metric> {
        let mut known = Self::OF_PROCESS.into_iter();
        known
            .find(|(source, ..)| *source == self)
            .map(|(_, name, _, unit)| Metric {
                name: name.to_owned(),
                unit: unit.to_owned(),
            })
    }
}

/// Events that are counted together: a group that was asked for, or one event.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(crate) group: GroupSpec,
    /// The positions of its events among those that were asked for.
    pub(crate) events: Vec<usize>,
}

/// The numbers that are asked for, in the order of the report.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) sources: Vec<Source>,
    pub(crate) units: Vec<Unit>,
    /// The names of the events.
    pub(crate) labels: Vec<String>,
}

impl Asked {
    /// Reads lists of events; where there is none, the default ones are compared.
    pub(crate) fn new(lists: &[String]) -> Result<Self, Failure> {
        let mut asked = Self {
            sources: Vec::new(),
            units: Vec::new(),
            labels: Vec::new(),
        };
        let of_times = [Source::Elapsed, Source::CpuTime];
        if lists.is_empty() {
            asked.sources.extend(of_times);
            asked
                .sources
                .extend([Source::User, Source::System, Source::PeakMemory]);
            asked.add(DEFAULT_EVENTS)?;
            return Ok(asked);
        }
        for list in lists {
            asked.add(list)?;
        }
        let others = of_times
            .into_iter()
            .filter(|source| !asked.sources.contains(source));
        asked.sources.extend(others.collect::<Vec<_>>());
        Ok(asked)
    }

    fn add(&mut self, list: &str) -> Result<(), Failure> {
        let names: &NativeEvents = NativeEvents::this();
        let groups = quipu_text::parse(list, &WithTracepoints(names))
            .map_err(|e| Failure::usage(format_args!("{e:#}")))?;
        for group in groups {
            let mut events = Vec::new();
            for member in &group.members {
                if let Some(source) = Source::of(&member.spec) {
                    if group.members.len() > 1 {
                        let label = member.label();
                        return Err(Failure::usage(format_args!(
                            "{label} is known of the run as a whole: write it outside of the braces"
                        )));
                    }
                    self.sources.push(source);
                    continue;
                }
                let label = match &member.settings.name {
                    Some(name) => name.to_string(),
                    None => member.label().to_string(),
                };
                events.push(self.labels.len());
                self.sources.push(Source::Event(self.labels.len()));
                self.labels.push(label);
            }
            if !events.is_empty() {
                self.units.push(Unit {
                    group: group.into(),
                    events,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_comes_first_and_times_come_last() {
        let asked = Asked::new(&["page-faults,{cs,peak_memory}".to_owned()]);
        assert!(asked.is_err(), "peak memory is no member of a group");
        let asked = Asked::new(&["peak_memory,{page-faults:u,cs},elapsed".to_owned()])
            .expect("they are well formed");
        use Source as S;
        let expected = [
            S::PeakMemory,
            S::Event(0),
            S::Event(1),
            S::Elapsed,
            S::CpuTime,
        ];
        assert_eq!(asked.sources, expected);
        assert_eq!(asked.labels, ["page-faults:u", "cs"]);
        assert_eq!(asked.units[0].events, [0, 1]);
        let default = Asked::new(&[]).expect("they are well formed");
        assert_eq!((default.sources.len(), default.units.len()), (11, 6));
    }
}
