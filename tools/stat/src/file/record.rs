//! Keeping counts in a file.

use std::path::Path;

use quipu::{Part, Reading};
use quipu_perf_data::stat::{StatConfig, StatCount, StatRecord, StatRound};
use quipu_perf_data::{EventAttr, Features, RecordedEvent};

use quipu_profile::record::{Destination, Output, StandardOutput, features};
use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::super::plan::Plan;
use super::super::sets::{Sets, Snapshot};
use super::super::system;
use super::{Keep, UNITS};

/// Counts that are being written to a file or stream.
pub(super) struct CountWriter {
    destination: Destination,
    /// Standard output, if it is the stream.
    stdout: Option<StandardOutput>,
    open: Option<Open>,
}

/// A file that has begun.
struct Open {
    output: Output,
    /// The threads by their numbers in the file.
    threads: Vec<i32>,
    has_intervals: bool,
}

impl CountWriter {
    /// Returns a recording into a file that begins when the counters are open. Standard output is taken at once.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        let destination = Destination::of(path);
        let stdout = match destination {
            Destination::Stream => Some(StandardOutput::take()?),
            Destination::File(_) => None,
        };
        Ok(Self {
            destination,
            stdout,
            open: None,
        })
    }

    fn create(&mut self, events: Vec<RecordedEvent>) -> Result<Output, Failure> {
        match (&self.destination, self.stdout.take()) {
            (Destination::File(path), _) => Output::create(path, events),
            (Destination::Stream, Some(stdout)) => {
                Output::stream(stdout, &events, &features_of_counts())
            }
            (Destination::Stream, None) => Err(Failure::new("standard output is closed")),
        }
    }
}

impl Keep for CountWriter {
    fn begin(&mut self, plan: &Plan, sets: &Sets, command: Option<i32>) -> Result<(), Failure> {
        let of_scope = UNITS[0].iter().position(|by| *by == Some(plan.by));
        let Some(aggregation) = of_scope else {
            return Err(Failure::usage(
                "stat record has no lines of caches or clusters; quipu stat counts them",
            ));
        };
        if let Some((_, tool)) = plan.tools.first() {
            return Err(Failure::usage(format_args!(
                "stat record -e {}: it is no counter; a file has the time that passed all the same",
                tool.name
            )));
        }
        let mut threads: Vec<i32> = sets.all_parts().filter_map(|part| part.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut cpus: Vec<_> = sets.all_parts().map(|part| part.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        if matches!(plan.scope, Scope::Command) {
            threads.clear();
        }
        if threads.len() > StatRecord::MOST_THREADS {
            return Err(Failure::new(format_args!(
                "a file can list {} threads, and these are {}",
                StatRecord::MOST_THREADS,
                threads.len()
            )));
        }
        let named = |id: &i32| (*id, system::thread_name(*id));
        let listed = match (threads.is_empty(), command) {
            (false, _) => threads.iter().map(named).collect(),
            (true, Some(pid)) if plan.scope == Scope::Command => vec![named(&pid)],
            (true, _) => vec![(-1, String::new())],
        };
        if cpus.is_empty() {
            cpus.push(None);
        }
        let events = events(sets)?;
        let mut records: Vec<_> = units(sets).collect();
        let interval = plan
            .interval
            .map_or(0, |interval| interval.as_millis() as u64);
        records.extend([
            StatRecord::Threads(listed),
            StatRecord::Cpus(cpus),
            StatRecord::Config(StatConfig::new(aggregation as u64, interval)),
        ]);
        let mut output = self.create(events)?;
        for record in records {
            output.write(&[&record.to_bytes()]);
        }
        self.open = Some(Open {
            output,
            threads,
            has_intervals: interval > 0,
        });
        Ok(())
    }

    fn interval(&mut self, sets: &Sets, snapshot: &Snapshot, seconds: f64) {
        if let Some(open) = &mut self.open {
            open.counts(sets, snapshot);
            open.round(false, seconds);
        }
    }

    fn finish(&mut self, sets: &Sets, snapshot: &Snapshot, seconds: f64) -> Result<(), Failure> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        // As perf has it: the last of several rounds is that of the last interval.
        if !open.has_intervals {
            open.counts(sets, snapshot);
            open.round(true, seconds);
        }
        open.output.finish(features_of_counts()).map(drop)
    }
}

impl Open {
    fn round(&mut self, is_final: bool, seconds: f64) {
        let time = (seconds * 1e9).round() as u64;
        let round = StatRecord::Round(StatRound { is_final, time });
        self.output.write(&[&round.to_bytes()]);
    }

    /// Writes the counts of every event, part by part. What several units count in the same place is one counter.
    fn counts(&mut self, sets: &Sets, snapshot: &Snapshot) {
        for event in (0..sets.len()).filter(|event| !sets.is_hidden(*event)) {
            let mut counts: Vec<StatCount> = Vec::new();
            for (part, reading) in sets.readings(snapshot, event) {
                self.add(&mut counts, id(event), part, reading);
            }
            let span = snapshot.span.filter(|_| sets.follows_processes(event));
            for mut count in counts {
                if let Some(span) = span {
                    [count.enabled, count.running] = span.times([count.enabled, count.running]);
                }
                self.output.write(&[&StatRecord::Count(count).to_bytes()]);
            }
        }
    }

    fn add(&self, counts: &mut Vec<StatCount>, id: u64, part: &Part, reading: &Reading) {
        let thread = part
            .thread
            .and_then(|id| self.threads.binary_search(&id).ok());
        let thread = thread.unwrap_or(0) as u32;
        let is_it = |count: &StatCount| (count.cpu, count.thread) == (part.cpu, thread);
        let at = counts.iter().position(is_it).unwrap_or_else(|| {
            counts.push(StatCount {
                id,
                cpu: part.cpu,
                thread,
                ..StatCount::default()
            });
            counts.len() - 1
        });
        let count = &mut counts[at];
        count.value = count.value.saturating_add(reading.value);
        count.running = count.running.saturating_add(reading.time_running);
        count.enabled = match part.core {
            // A hybrid target is enabled once, whatever the number of its core types.
            Some(_) => count.enabled.max(reading.time_enabled),
            None => count.enabled.saturating_add(reading.time_enabled),
        };
    }
}

/// Returns the description of this machine, and that the records are counts.
fn features_of_counts() -> Features {
    let mut features = features();
    features.has_counts = true;
    features
}

/// Returns the number of an event's counters in the file. The kernel has one for each; readers tell events apart by them.
fn id(event: usize) -> u64 {
    event as u64 + 1
}

/// Returns the events of the file.
fn events(sets: &Sets) -> Result<Vec<RecordedEvent>, Failure> {
    let backend = quipu::linux_backend()?;
    let mut events = Vec::new();
    for index in (0..sets.len()).filter(|index| !sets.is_hidden(*index)) {
        let event = sets.event(index);
        let name = &event.name;
        if sets.is_preset(index) {
            return Err(Failure::usage(format_args!(
                "stat record -e {name}: it is a preset of several events, and a file has their counts; name the events \
                 (quipu list {name})"
            )));
        }
        let attr = backend.attr_bytes(&event.spec)?;
        let attr = EventAttr::from_bytes(&attr)
            .map_err(|e| Failure::new(format_args!("cannot describe {name} in a file: {e}")))?;
        // One that no backend counts too: its name is found by it.
        events.push(RecordedEvent::new(attr, vec![id(index)], &**name));
    }
    Ok(events)
}

/// Returns the records on the units of events that have one.
fn units(sets: &Sets) -> impl Iterator<Item = StatRecord> {
    let counted = (0..sets.len()).filter(|event| sets.event(*event).backend.is_some());
    counted.flat_map(|index| {
        let unit = &sets.event(index).unit;
        let name =
            (!unit.name.is_empty()).then(|| StatRecord::Unit(id(index), unit.name.to_string()));
        let scale = (!unit.is_plain()).then(|| StatRecord::Scale(id(index), unit.factor));
        [name, scale].into_iter().flatten()
    })
}
