//! A recording as viewers want it: samples of stacks, in the order of time.

use std::collections::HashMap;
use std::sync::Arc;

use crate::stacks::{StackId, Stacks};

/// A recording. Positions in it are those of its lists.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The command that was recorded, or what else names the recording.
    pub title: String,
    /// The system and the CPU that it was recorded on; empty if they are not known.
    pub system: String,
    /// The time at which it began, in ms since 1970; 0 if that is not known.
    pub began: f64,
    /// The events that were sampled.
    pub events: Vec<Event>,
    /// The threads that were sampled.
    pub tasks: Vec<Task>,
    /// The build IDs of files of code, in base 16, by their paths.
    pub build_ids: HashMap<Arc<str>, String>,
    /// The functions, each with its line if there is one.
    pub frames: Vec<Frame>,
    /// The stacks, of positions in `frames`.
    pub stacks: Stacks,
    /// The samples, in the order of their times.
    pub samples: Vec<Sample>,
    /// Occurrences with a text, in the order of their times.
    pub markers: Vec<Marker>,
}

/// The name of the frame that stands for a sleep, where times on and off the CPU are shown together.
pub const OFF_CPU: &str = "[off CPU]";

/// An event that was sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Unit of the weights of its samples.
    pub unit: Unit,
}

/// The unit of the weights of an event's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// A number of occurrences.
    #[default]
    Count,
    /// Nanoseconds of the time in which a thread ran.
    CpuTime,
    /// Other nanoseconds, such as those of sleeping.
    Time,
}

/// A thread under one name: one that takes another name is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its process.
    pub pid: i32,
    /// The thread itself.
    pub tid: i32,
    /// Name of the process, which is that of its first thread.
    pub process: Arc<str>,
    /// Name of the thread.
    pub name: Arc<str>,
}

/// A function, or a line of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name; `None` if there is no symbol.
    pub name: Option<Arc<str>>,
    /// Path of its file, or a name in brackets (`[kernel.kallsyms]`).
    pub object: Arc<str>,
    /// Source file and line, where they are known.
    pub source: Option<(Arc<str>, u32)>,
    /// True if it was inlined into the next outer frame.
    pub is_inlined: bool,
    /// True if it ran in the kernel.
    pub in_kernel: bool,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the recording began.
    pub time: u64,
    /// Position of the thread.
    pub task: usize,
    /// Position of the event.
    pub event: usize,
    /// The stack; `None` if nothing is known of it.
    pub stack: Option<StackId>,
    /// Number of events that it stands for, in the event's unit.
    pub weight: u64,
}

/// An occurrence with a text: that of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Nanoseconds since the recording began.
    pub time: u64,
    /// Position of the thread.
    pub task: usize,
    /// Position of the event, which names it.
    pub event: usize,
    /// The stack; `None` if nothing is known of it.
    pub stack: Option<StackId>,
    /// Its values, for a person.
    pub text: String,
}

impl Frame {
    /// Returns a function of user mode, without a line.
    pub fn new(name: &str, object: &str) -> Self {
        Self {
            name: Some(name.into()),
            object: object.into(),
            source: None,
            is_inlined: false,
            in_kernel: false,
        }
    }

    /// Returns its name; that of its file in brackets if it has none, and `[unknown]` without a file, as flame graphs have it.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => name.as_ref().to_owned(),
            None => format!("[{}]", self.short_object().trim_matches(['[', ']'])),
        }
    }

    /// Returns the name of its file without the directories.
    pub fn short_object(&self) -> &str {
        match self.object.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() => name,
            _ => &self.object,
        }
    }
}

impl Recording {
    /// Returns the events of which there are samples or markers, as positions.
    pub(crate) fn seen_events(&self) -> Vec<usize> {
        let mut seen = vec![false; self.events.len()];
        let of_samples = self.samples.iter().map(|sample| sample.event);
        for event in of_samples.chain(self.markers.iter().map(|marker| marker.event)) {
            seen[event] = true;
        }
        (0..seen.len()).filter(|event| seen[*event]).collect()
    }

    /// Returns the clock and the time off the CPU that are one kind of samples, if there is one of each.
    pub(crate) fn wall_time(&self) -> Option<[usize; 2]> {
        let seen = self.seen_events();
        let only = |unit| {
            let mut events = seen
                .iter()
                .filter(|event| self.events[**event].unit == unit);
            events.next().copied().filter(|_| events.next().is_none())
        };
        Some([only(Unit::CpuTime)?, only(Unit::Time)?])
    }

    /// Returns the build ID of a file in base 16; empty if it is not known.
    pub(crate) fn build_id(&self, object: &str) -> &str {
        self.build_ids.get(object).map_or("", String::as_str)
    }
}
