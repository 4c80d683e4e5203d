//! Reading a recording into what viewers are given.

use std::collections::HashMap as StdHashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use foldhash::HashMap;
use quipu_perf_data::record::FileIdentity;
use quipu_perf_data::{Error, EventAttr, Features, RawRecord, Record, RecordedEvent, Sample};
use quipu_symbols::AddressOwner;
use quipu_viewers::{Event, Frame, Marker, Recording, StackId, Task};

use crate::hit_files::hexadecimal;
use crate::recording::{Input, Places, Replay, Visit};
use crate::script::tracepoints::{self, Tracepoint};

use quipu_shell::terminal::escaped;

use super::super::load::Loading;
use super::super::profile::{Profile, Seen};
use super::super::stacks::Stack;
use super::super::unit::unit;

/// State of reading: that of a report, and each sample.
pub(super) struct Collect {
    loading: Loading,
    recording: Recording,
    /// The time of the first sample.
    began: Option<u64>,
    /// The time of the last sample that has one, since the first.
    time: u64,
    /// The thread of each sampled thread number, until a thread is named.
    by_thread: HashMap<i32, usize>,
    tasks: HashMap<Task, usize>,
    stacks: HashMap<(u32, u32), Option<StackId>>,
    /// The formats of tracepoints by their numbers, and the number of each event that is one.
    tracepoints: StdHashMap<u64, Tracepoint>,
    tracepoint_of: Vec<Option<u64>>,
    places: Places,
    /// The events, stacks and weights of one sample, kept for their memory.
    counted: Vec<(usize, Stack, u64)>,
}

impl Visit for Collect {
    fn record(
        &mut self,
        replay: &Replay,
        event: usize,
        raw: &RawRecord<'_>,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        match record {
            Record::Comm(_) | Record::Fork(_) => self.by_thread.clear(),
            Record::Mapping(mapping) => {
                if let Some(FileIdentity::BuildId(id)) = mapping.file {
                    note_build_id(&mut self.recording, mapping.path, id);
                }
            }
            _ => {}
        }
        self.loading.record(replay, event, raw, record)
    }

    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let mut counted = std::mem::take(&mut self.counted);
        let each = |event, stack, weight| counted.push((event, stack, weight));
        self.loading.add(replay, (event, sample), each);
        if let Some(time) = sample.time() {
            let began = *self.began.get_or_insert(time);
            self.time = time.saturating_sub(began);
        }
        let mut stack_of_marker = None;
        for (of, key, weight) in counted.drain(..) {
            let task = self.task(replay, sample);
            let stack = self.stack(key);
            if of == event {
                stack_of_marker = Some((task, stack));
            }
            self.recording.samples.push(quipu_viewers::Sample {
                time: self.time,
                task,
                event: of,
                stack,
                weight,
            });
        }
        self.counted = counted;
        if let Some((task, stack)) = stack_of_marker
            && let Some(text) = self.text(replay, event, sample)
        {
            self.recording.markers.push(Marker {
                time: self.time,
                task,
                event,
                stack,
                text,
            });
        }
        ControlFlow::Continue(())
    }
}

impl Collect {
    /// Returns the state before the first record.
    pub(super) fn new(
        loading: Loading,
        (events, features, names): (&[RecordedEvent], &Features, &[String]),
        input: Input<'_>,
    ) -> Self {
        let mut recording = Recording {
            title: match features.command_line.as_slice() {
                [] => input.path.display().to_string(),
                words => words.join(" "),
            },
            ..Recording::default()
        };
        if let (Some(release), Some(machine)) = (&features.os_release, &features.arch) {
            recording.system = format!("Linux {release} {machine}");
        }
        // As perf says when a file was recorded.
        let written = input.path.metadata().and_then(|file| file.modified()).ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        recording.began = written.map_or(0.0, |since| since.as_secs_f64() * 1e3);
        let attrs = events.iter().map(RecordedEvent::attr);
        let seen = attrs.clone().zip(names).map(|(attr, name)| Event {
            name: name.clone(),
            unit: unit(attr, name),
        });
        recording.events = seen.collect();
        for id in &features.build_ids {
            note_build_id(&mut recording, &id.path, &id.id);
        }
        let number = |attr: &EventAttr| (attr.event_type() == TRACEPOINT).then(|| attr.config());
        Self {
            loading,
            recording,
            began: None,
            time: 0,
            by_thread: HashMap::default(),
            tasks: HashMap::default(),
            stacks: HashMap::default(),
            tracepoints: tracepoints::of_file(features.tracing_data.as_deref()),
            tracepoint_of: attrs.map(number).collect(),
            places: Places::default(),
            counted: Vec::new(),
        }
    }

    /// Returns what was read, for viewers and for a report.
    pub(super) fn finish(self, replay: &Replay) -> (Recording, Profile) {
        let mut recording = self.recording;
        let profile = self.loading.finish(replay);
        if recording.began > 0.0 {
            recording.began -= self.time as f64 / 1e6;
        }
        recording.frames = profile.functions.iter().map(frame).collect();
        (recording, profile)
    }

    /// Returns the position of the thread of a sample.
    fn task(&mut self, replay: &Replay, sample: &Sample<'_>) -> usize {
        let thread = sample.thread();
        let (pid, tid) = thread.map_or((-1, -1), |thread| (thread.pid, thread.tid));
        if let Some(known) = self.by_thread.get(&tid) {
            return *known;
        }
        let name: Arc<str> = escaped(&replay.command_of(sample)).into();
        let process = replay.processes.thread_name(pid);
        let process = process.map(|process| escaped(process).into());
        let task = Task {
            pid,
            tid,
            process: process.unwrap_or_else(|| name.clone()),
            name,
        };
        let all = &mut self.recording.tasks;
        let place = *self.tasks.entry(task).or_insert_with_key(|task| {
            all.push(task.clone());
            all.len() - 1
        });
        self.by_thread.insert(tid, place);
        place
    }

    fn stack(&mut self, key: Stack) -> Option<StackId> {
        let (loading, recording) = (&self.loading, &mut self.recording);
        let known = self.stacks.entry((key.leaf, key.callers));
        *known.or_insert_with(|| recording.stacks.push_all(loading.frames_of(key).rev()))
    }

    /// Returns the text of a sample of a tracepoint, as `quipu script` prints it.
    fn text(&mut self, replay: &mut Replay, event: usize, sample: &Sample<'_>) -> Option<String> {
        let tracepoint = self.tracepoints.get(&self.tracepoint_of[event]?)?;
        let places = &mut self.places;
        let mut symbols = |address| {
            let place = places.at(replay, AddressOwner::Kernel, address);
            let name = place.code.symbol.as_deref()?.to_owned();
            Some((name, address - place.offset))
        };
        let mut text = String::new();
        tracepoint.print(sample.raw()?, &mut symbols, &mut text);
        Some(text)
    }
}

/// `PERF_TYPE_TRACEPOINT` (`include/uapi/linux/perf_event.h`).
const TRACEPOINT: u32 = 2;

fn frame(seen: &Seen) -> Frame {
    let name = seen.name.as_ref();
    Frame {
        // pprof prints names to terminals as they are.
        name: name.map(|name| escaped(name).into()),
        object: seen.object.clone(),
        source: seen.source.clone(),
        is_inlined: seen.inlined,
        in_kernel: seen.in_kernel,
    }
}

fn note_build_id(recording: &mut Recording, path: &[u8], id: &[u8]) {
    let path: Arc<str> = String::from_utf8_lossy(path).into();
    let build_ids = &mut recording.build_ids;
    build_ids.entry(path).or_insert_with(|| hexadecimal(id));
}
