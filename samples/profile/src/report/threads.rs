//! The counts of threads: what an event counted in each, which the kernel records when a thread ends (`record -s`).

use std::fmt::Write;

use foldhash::HashMap;
use quipu_perf_data::record::ThreadId;
use quipu_perf_data::{CounterValue, EventAttr, ReadValues};
use serde::Serialize;

use quipu_shell::terminal::escaped;

use super::profile::{EventProfile, ThreadCount};

/// The counters of an event in the threads that have ended, in the order of their ends.
#[derive(Debug)]
pub(super) struct EndedThreads {
    /// True if the kernel counts the event while it happens, and never for a part of the time.
    is_live: bool,
    list: Vec<(ThreadId, Read)>,
    places: HashMap<(i32, i32), usize>,
}

/// Sums of the counters of a thread: there may be one for each CPU that it ran on.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    value: u64,
    /// The time enabled is that of the thread, for each of them.
    enabled: u64,
    running: u64,
}

impl EndedThreads {
    pub(super) fn of(attr: &EventAttr) -> Self {
        /// `PERF_TYPE_SOFTWARE`, `PERF_TYPE_TRACEPOINT`, `PERF_TYPE_BREAKPOINT`.
        const LIVE: [u32; 3] = [1, 2, 5];
        Self {
            is_live: LIVE.contains(&attr.event_type()),
            list: Vec::new(),
            places: HashMap::default(),
        }
    }

    /// Adds what a counter read when its thread ended.
    pub(super) fn add(&mut self, thread: ThreadId, values: &ReadValues<'_>, counter: CounterValue) {
        let place = *self
            .places
            .entry((thread.pid, thread.tid))
            .or_insert_with(|| {
                self.list.push((thread, Read::default()));
                self.list.len() - 1
            });
        let read = &mut self.list[place].1;
        read.value = read.value.saturating_add(counter.value);
        read.enabled = read.enabled.max(values.time_enabled().unwrap_or(0));
        let running = values.time_running().unwrap_or(0);
        read.running = read.running.saturating_add(running);
    }

    /// Returns the count of each thread. The times of counters that the kernel has exchanged between two threads are not
    /// quite those of either (`perf_event_sync_stat`, `kernel/events/core.c`), so that they do not make an estimate of a
    /// count that is exact.
    pub(super) fn counts(&self) -> impl Iterator<Item = ThreadCount> {
        self.list.iter().map(|(thread, read)| {
            let is_estimate = !self.is_live && read.running < read.enabled;
            ThreadCount {
                pid: thread.pid,
                tid: thread.tid,
                count: match is_estimate {
                    true => read.scaled(),
                    false => Some(read.value),
                },
                is_estimate,
            }
        })
    }
}

impl Read {
    /// Returns the count, scaled to the time enabled; `None` if the counters were never on the PMU.
    fn scaled(self) -> Option<u64> {
        let (value, enabled) = (u128::from(self.value), u128::from(self.enabled));
        let running = u128::from(self.running);
        let scaled = (value * enabled + running / 2).checked_div(running)?;
        Some(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl ThreadCount {
    /// Returns the count for a person; an estimate is marked.
    fn text(&self) -> String {
        match self.count {
            None => "-".to_owned(),
            Some(count) if self.is_estimate => format!("~{count}"),
            Some(count) => count.to_string(),
        }
    }
}

/// Appends the table of `perf report -T`: a row for each thread, a column for each event.
pub(super) fn table(out: &mut String, events: &[&EventProfile], separator: Option<&str>) {
    let mut threads: Vec<(i32, i32)> = Vec::new();
    let mut counts: HashMap<(i32, i32), Vec<String>> = HashMap::default();
    for (column, event) in events.iter().enumerate() {
        for thread in &event.threads {
            let id = (thread.pid, thread.tid);
            let row = counts.entry(id).or_insert_with(|| {
                threads.push(id);
                vec!["-".to_owned(); events.len()]
            });
            row[column] = thread.text();
        }
    }
    if threads.is_empty() {
        return;
    }
    let titles = events.iter().map(|event| escaped(&event.name).into_owned());
    let titles = ["PID".to_owned(), "TID".to_owned()]
        .into_iter()
        .chain(titles);
    let rows = threads.iter().map(|id| {
        let ids = [id.0.to_string(), id.1.to_string()].into_iter();
        ids.chain(counts.remove(id).unwrap_or_default())
            .collect::<Vec<_>>()
    });
    let table: Vec<Vec<String>> = std::iter::once(titles.collect()).chain(rows).collect();
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..events.len() + 2)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    out.push('\n');
    for (at, row) in table.iter().enumerate() {
        let mark = if at == 0 { '#' } else { ' ' };
        let line = match separator {
            Some(separator) => row.join(separator),
            None => {
                let cells = row.iter().zip(&widths);
                let cells: Vec<_> = cells
                    .map(|(cell, width)| format!("{cell:>width$}"))
                    .collect();
                cells.join("  ")
            }
        };
        let _ = writeln!(out, "{mark} {line}");
    }
}

/// One line of the counts of threads, for programs.
#[derive(Serialize)]
struct ThreadRow<'a> {
    event: &'a str,
    pid: i32,
    tid: i32,
    /// Null if the counters were never on the PMU.
    count: Option<u64>,
    estimate: bool,
}

/// Appends JSON lines.
pub(super) fn json(out: &mut String, event: &EventProfile) {
    for thread in &event.threads {
        let row = ThreadRow {
            event: &event.name,
            pid: thread.pid,
            tid: thread.tid,
            count: thread.count,
            estimate: thread.is_estimate,
        };
        // Numbers and text always have a form.
        if let Ok(line) = serde_json::to_string(&row) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_perf_data::ReadFormat;

    use super::*;

    fn ended(event_type: u32) -> EndedThreads {
        let mut attr = [0; 64];
        attr[..4].copy_from_slice(&event_type.to_ne_bytes());
        attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
        EndedThreads::of(&EventAttr::from_bytes(&attr).expect("an attr"))
    }

    fn read(ended: &mut EndedThreads, (pid, tid): (i32, i32), words: [u64; 3]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let values = ReadValues::from_bytes(&bytes, ReadFormat::TIMES).expect("whole");
        let counter = values.get(0).expect("one");
        ended.add(ThreadId { pid, tid }, &values, counter);
    }

    fn event(name: &str, ended: &EndedThreads) -> EventProfile {
        EventProfile {
            name: name.into(),
            threads: ended.counts().collect(),
            ..EventProfile::default()
        }
    }

    /// A counter on each of two CPUs, of which a thread ran on both; a PMU that had no room for another all the time.
    #[test]
    fn counters_of_several_cpus_add_up_and_what_a_pmu_did_not_count_is_estimated() {
        let mut faults = ended(1);
        for words in [[60, 100, 70], [40, 110, 20]] {
            read(&mut faults, (7, 8), words);
        }
        read(&mut faults, (7, 7), [5, 10, 10]);
        let mut cycles = ended(0);
        read(&mut cycles, (7, 8), [7, 100, 20]);
        read(&mut cycles, (7, 8), [3, 100, 5]);
        read(&mut cycles, (7, 7), [0, 10, 0]);
        let (faults, cycles) = (event("faults", &faults), event("cycles", &cycles));
        let mut out = String::new();
        table(&mut out, &[&faults, &cycles], None);
        let expected = "\n# PID  TID  faults  cycles\n    7    8     100     ~40\n    7    7       5       -\n";
        assert_eq!(out, expected);
        out.clear();
        table(&mut out, &[&faults, &cycles], Some(";"));
        assert_eq!(out, "\n# PID;TID;faults;cycles\n  7;8;100;~40\n  7;7;5;-\n");
        out.clear();
        json(&mut out, &cycles);
        let expected = "{\"event\":\"cycles\",\"pid\":7,\"tid\":8,\"count\":40,\"estimate\":true}\n\
                        {\"event\":\"cycles\",\"pid\":7,\"tid\":7,\"count\":null,\"estimate\":true}\n";
        assert_eq!(out, expected);
    }
}
