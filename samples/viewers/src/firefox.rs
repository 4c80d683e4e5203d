//! The processed profile format of Firefox Profiler (`docs-developer/processed-profile-format.md` of its sources), version 55.
//!
//! The crate fxprof-processed-profile writes it too, but neither source lines nor inlined functions, and weights of 32 bits.

mod libs;
mod meta;
mod names;
mod thread;

use std::io::{self, Write};

use foldhash::HashMap;
use serde::Serialize;

use crate::Recording;

use libs::Libs;
use meta::Meta;
use names::UniqueNumbers;
use thread::{Identity, Thread, ThreadBuilder};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    meta: Meta<'a>,
    libs: &'a Libs,
    threads: Vec<Thread<'a>>,
    pages: [(); 0],
    profiler_overhead: [(); 0],
    counters: [(); 0],
}

/// The name of the track of times on and off the CPU, as that of an event.
const WALL_TIME: &str = "wall-time";

/// Writes a recording: a track for each thread and event, weighed by what samples stand for, and markers of what has a text.
/// The times on and off the CPU of a thread are one track.
///
/// # Errors
/// If it cannot be written, or the recording has no samples.
pub fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let wall_time = recording.wall_time();
    // Sleeps are in the track of the clock.
    let track = |event: usize| match wall_time {
        Some([on, off]) if event == off => on,
        _ => event,
    };
    let mut tracks = recording.seen_events();
    tracks.retain(|event| track(*event) == *event);
    let mut libs = Libs::default();
    let mut builders: Vec<((usize, usize), ThreadBuilder<'_>)> = Vec::new();
    let mut places: HashMap<(usize, usize), usize> = HashMap::default();
    let mut place = |builders: &mut Vec<_>, task: usize, event: usize| {
        *places.entry((task, event)).or_insert_with(|| {
            builders.push(((task, event), ThreadBuilder::new(recording, event)));
            builders.len() - 1
        })
    };
    for sample in &recording.samples {
        let at = place(&mut builders, sample.task, track(sample.event));
        builders[at].1.sample(sample, &mut libs);
    }
    for marker in &recording.markers {
        let at = place(&mut builders, marker.task, marker.event);
        builders[at].1.marker(marker, &mut libs);
    }
    if builders.is_empty() {
        return Err(io::Error::other("there are no samples"));
    }
    // The tracks of a thread beside each other, as the events are.
    builders.sort_by_key(|((task, event), _)| (*task, *event));
    let interval = builders.iter().map(|(_, builder)| builder.interval());
    let interval = interval.fold(f64::INFINITY, f64::min);
    let (mut pids, mut tids) = (UniqueNumbers::default(), UniqueNumbers::default());
    let mut last_task = None;
    let threads = builders.into_iter().map(|((at, event), builder)| {
        let task = &recording.tasks[at];
        let is_first = last_task.replace(at) != Some(at);
        builder.finish(Identity {
            name: match (tracks.len(), wall_time) {
                (1, _) => task.name.as_ref().to_owned(),
                (_, Some([on, _])) if event == on => format!("{} ({WALL_TIME})", task.name),
                _ => format!("{} ({})", task.name, recording.events[event].name),
            },
            process_name: &task.process,
            pid: pids.of(task.pid, &task.process),
            tid: tids.of(task.tid, (at, event)),
            is_main_thread: is_first && task.pid == task.tid,
        })
    });
    let profile = Profile {
        threads: threads.collect(),
        meta: Meta::new(recording, interval),
        libs: &libs,
        pages: [],
        profiler_overhead: [],
        counters: [],
    };
    serde_json::to_writer(out, &profile).map_err(io::Error::from)
}
