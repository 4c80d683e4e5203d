//! The file format of speedscope (`src/lib/file-format-spec.ts` of its sources): a profile for each event and thread.

use std::io::{self, Write};

use foldhash::HashMap;
use serde::Serialize;

use crate::{Recording, StackId, Unit};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Samples of one event in one thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Positions of frames, the outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes a recording. Samples with the same stack that follow each other are one.
///
/// # Errors
/// If it cannot be written, or the recording has no samples.
pub fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let mut profiles: Vec<(Profile, Option<StackId>)> = Vec::new();
    let mut places: HashMap<(usize, usize), usize> = HashMap::default();
    for sample in &recording.samples {
        let place = *places
            .entry((sample.event, sample.task))
            .or_insert_with(|| {
                profiles.push((profile(recording, sample.event, sample.task), None));
                profiles.len() - 1
            });
        let (profile, last) = &mut profiles[place];
        profile.end_value = profile.end_value.saturating_add(sample.weight);
        match profile.weights.last_mut() {
            Some(weight) if *last == sample.stack => *weight = weight.saturating_add(sample.weight),
            _ => {
                let mut frames: Vec<_> = recording.stacks.frames(sample.stack).collect();
                frames.reverse();
                profile.samples.push(frames);
                profile.weights.push(sample.weight);
            }
        }
        *last = sample.stack;
    }
    // Those of one event beside each other, the heaviest first.
    let mut order: Vec<_> = places.into_iter().collect();
    let weight = |place: usize| profiles[place].0.end_value;
    order.sort_by_key(|((event, task), place)| (*event, u64::MAX - weight(*place), *task));
    let mut profiles: Vec<_> = profiles
        .into_iter()
        .map(|(profile, _)| Some(profile))
        .collect();
    let profiles: Vec<_> = order
        .into_iter()
        .filter_map(|(_, place)| profiles[place].take())
        .collect();
    if profiles.is_empty() {
        return Err(io::Error::other("there are no samples"));
    }
    let frames = recording.frames.iter().map(|frame| Frame {
        name: frame.title(),
        file: Some(match &frame.source {
            Some((file, _)) => file,
            None => &frame.object,
        }),
        line: frame.source.as_ref().map(|(_, line)| *line),
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: &recording.title,
        exporter: concat!("quipu ", env!("CARGO_PKG_VERSION")),
        active_profile_index: 0,
        shared: Shared {
            frames: frames.collect(),
        },
        profiles,
    };
    serde_json::to_writer(out, &file).map_err(io::Error::from)
}

fn profile(recording: &Recording, event: usize, task: usize) -> Profile {
    let (event, task) = (&recording.events[event], &recording.tasks[task]);
    Profile {
        r#type: "sampled",
        name: format!("{}: {} ({})", event.name, task.name, task.tid),
        unit: match event.unit {
            Unit::Count => "none",
            Unit::CpuTime | Unit::Time => "nanoseconds",
        },
        start_value: 0,
        end_value: 0,
        samples: Vec::new(),
        weights: Vec::new(),
    }
}
