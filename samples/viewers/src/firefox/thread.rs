//! The tables of a thread.

use foldhash::HashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Event, Marker, OFF_CPU, Recording, Sample, StackId, Unit};

use super::libs::Libs;
use super::meta::{ASLEEP, KERNEL, TEXT, USER};

/// The number that stands for nothing in some columns.
const NONE: i64 = -1;
/// The type of resources that are files of code.
const LIBRARY: u32 = 1;
/// The phase of markers of one time.
const INSTANT: u32 = 0;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread<'a> {
    frame_table: FrameTable,
    func_table: FuncTable,
    markers: MarkerTable,
    name: String,
    is_main_thread: bool,
    native_symbols: Value,
    paused_ranges: [(); 0],
    pid: String,
    process_name: &'a str,
    process_shutdown_time: Option<()>,
    process_startup_time: f64,
    process_type: &'static str,
    register_time: f64,
    resource_table: ResourceTable,
    samples: SampleTable,
    stack_table: StackTable,
    string_array: Vec<String>,
    tid: String,
    unregister_time: Option<()>,
    show_markers_in_timeline: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    length: usize,
    address: Vec<i64>,
    inline_depth: Vec<u32>,
    category: Vec<usize>,
    subcategory: Vec<u32>,
    func: Vec<usize>,
    native_symbol: Vec<Option<()>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<u32>,
    line: Vec<Option<u32>>,
    column: Vec<Option<()>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    length: usize,
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<i64>,
    file_name: Vec<Option<usize>>,
    line_number: Vec<Option<()>>,
    column_number: Vec<Option<()>>,
}

#[derive(Default, Serialize)]
struct ResourceTable {
    length: usize,
    lib: Vec<usize>,
    name: Vec<usize>,
    host: Vec<Option<()>>,
    r#type: Vec<u32>,
}

#[derive(Default, Serialize)]
struct StackTable {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleTable {
    length: usize,
    weight_type: &'static str,
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Weights,
    /// Nanoseconds of CPU time that passed before each sample.
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Vec::is_empty")]
    thread_cpu_delta: Vec<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Weights {
    Counts(Vec<u64>),
    Milliseconds(Vec<f64>),
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MarkerTable {
    length: usize,
    category: Vec<usize>,
    data: Vec<Value>,
    end_time: Vec<Option<()>>,
    name: Vec<usize>,
    phase: Vec<u32>,
    start_time: Vec<f64>,
}

impl FrameTable {
    /// Adds a frame, and returns its position.
    fn push(&mut self, category: usize, func: usize, line: Option<u32>, is_inlined: bool) -> usize {
        self.address.push(NONE);
        self.inline_depth.push(u32::from(is_inlined));
        self.category.push(category);
        self.subcategory.push(0);
        self.func.push(func);
        self.native_symbol.push(None);
        self.inner_window_id.push(0);
        self.line.push(line);
        self.column.push(None);
        self.length += 1;
        self.length - 1
    }
}

impl FuncTable {
    /// Adds a function, and returns its position.
    fn push(&mut self, name: usize, resource: i64, file: Option<usize>) -> usize {
        self.name.push(name);
        self.is_js.push(false);
        self.relevant_for_js.push(false);
        self.resource.push(resource);
        self.file_name.push(file);
        self.line_number.push(None);
        self.column_number.push(None);
        self.length += 1;
        self.length - 1
    }
}

/// The names and numbers of a track.
pub(super) struct Identity<'a> {
    pub(super) name: String,
    pub(super) process_name: &'a str,
    pub(super) pid: String,
    pub(super) tid: String,
    pub(super) is_main_thread: bool,
}

/// The tables of one event in one thread, while they are made.
pub(super) struct ThreadBuilder<'a> {
    recording: &'a Recording,
    event: &'a Event,
    strings: Vec<String>,
    string_places: HashMap<String, usize>,
    frames: FrameTable,
    frame_places: HashMap<usize, usize>,
    funcs: FuncTable,
    func_places: HashMap<(usize, i64), usize>,
    resources: ResourceTable,
    resource_places: HashMap<usize, usize>,
    stacks: StackTable,
    stack_places: HashMap<StackId, usize>,
    /// The frame of sleeps, and the stacks of those with these callers.
    asleep: Option<usize>,
    sleeps: HashMap<Option<usize>, usize>,
    samples: SampleTable,
    markers: MarkerTable,
}

impl<'a> ThreadBuilder<'a> {
    /// Returns the tables before the first sample of an event.
    pub(super) fn new(recording: &'a Recording, event: usize) -> Self {
        let event = &recording.events[event];
        let (weight_type, weight) = match event.unit {
            Unit::Count => ("samples", Weights::Counts(Vec::new())),
            Unit::CpuTime | Unit::Time => ("tracing-ms", Weights::Milliseconds(Vec::new())),
        };
        Self {
            recording,
            event,
            strings: Vec::new(),
            string_places: HashMap::default(),
            frames: FrameTable::default(),
            frame_places: HashMap::default(),
            funcs: FuncTable::default(),
            func_places: HashMap::default(),
            resources: ResourceTable::default(),
            resource_places: HashMap::default(),
            stacks: StackTable::default(),
            stack_places: HashMap::default(),
            asleep: None,
            sleeps: HashMap::default(),
            samples: SampleTable {
                length: 0,
                weight_type,
                stack: Vec::new(),
                time: Vec::new(),
                weight,
                thread_cpu_delta: Vec::new(),
            },
            markers: MarkerTable::default(),
        }
    }

    /// Adds a sample. One of time off the CPU in the track of a clock has the frame of sleeps.
    pub(super) fn sample(&mut self, sample: &Sample, libs: &mut Libs) {
        let mut stack = sample.stack.map(|stack| self.stack(stack, libs));
        let is_asleep = self.recording.events[sample.event].unit != self.event.unit;
        if is_asleep {
            stack = Some(self.sleep(stack));
        }
        let samples = &mut self.samples;
        samples.length += 1;
        samples.stack.push(stack);
        samples.time.push(milliseconds(sample.time));
        if self.event.unit == Unit::CpuTime {
            let ran = if is_asleep { 0 } else { sample.weight };
            samples.thread_cpu_delta.push(ran);
        }
        match &mut samples.weight {
            Weights::Counts(weights) => weights.push(sample.weight),
            Weights::Milliseconds(weights) => weights.push(milliseconds(sample.weight)),
        }
    }

    /// Adds a marker.
    pub(super) fn marker(&mut self, marker: &Marker, libs: &mut Libs) {
        let name = self.string(&self.event.name);
        let mut data = json!({"type": TEXT, "text": marker.text});
        if let Some(stack) = marker.stack {
            data["cause"] = json!({"stack": self.stack(stack, libs)});
        }
        let markers = &mut self.markers;
        markers.length += 1;
        markers.category.push(0);
        markers.data.push(data);
        markers.end_time.push(None);
        markers.name.push(name);
        markers.phase.push(INSTANT);
        markers.start_time.push(milliseconds(marker.time));
    }

    /// Returns the mean time between samples in ms; infinite where there are too few.
    pub(super) fn interval(&self) -> f64 {
        let times = &self.samples.time;
        match (times.first(), times.last()) {
            (Some(first), Some(last)) if last > first => (last - first) / (times.len() - 1) as f64,
            _ => f64::INFINITY,
        }
    }

    /// Returns the thread.
    pub(super) fn finish(self, identity: Identity<'a>) -> Thread<'a> {
        let first = self.samples.time.first();
        let first = first.or(self.markers.start_time.first());
        let first = first.copied().unwrap_or(0.0);
        Thread {
            frame_table: self.frames,
            func_table: self.funcs,
            show_markers_in_timeline: self.markers.length > 0,
            markers: self.markers,
            name: identity.name,
            is_main_thread: identity.is_main_thread,
            native_symbols: json!({"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []}),
            paused_ranges: [],
            pid: identity.pid,
            process_name: identity.process_name,
            process_shutdown_time: None,
            process_startup_time: first,
            process_type: "default",
            register_time: first,
            resource_table: self.resources,
            samples: self.samples,
            stack_table: self.stacks,
            string_array: self.strings,
            tid: identity.tid,
            unregister_time: None,
        }
    }

    /// Returns the position of a stack.
    fn stack(&mut self, stack: StackId, libs: &mut Libs) -> usize {
        let mut missing = Vec::new();
        let mut next = Some(stack);
        let mut place = None;
        while let Some(stack) = next {
            if let Some(known) = self.stack_places.get(&stack) {
                place = Some(*known);
                break;
            }
            missing.push(stack);
            next = self.recording.stacks.node(stack).0;
        }
        for stack in missing.into_iter().rev() {
            let frame = self.frame(self.recording.stacks.node(stack).1, libs);
            let stacks = &mut self.stacks;
            stacks.prefix.push(place);
            stacks.frame.push(frame);
            self.stack_places.insert(stack, stacks.length);
            place = Some(stacks.length);
            stacks.length += 1;
        }
        place.unwrap_or(0)
    }

    /// Returns the position of the stack of a sleep.
    fn sleep(&mut self, caller: Option<usize>) -> usize {
        let asleep = *self.asleep.get_or_insert_with(|| {
            self.strings.push(OFF_CPU.to_owned());
            let name = self.strings.len() - 1;
            let func = self.funcs.push(name, NONE, None);
            self.frames.push(ASLEEP, func, None, false)
        });
        let stacks = &mut self.stacks;
        *self.sleeps.entry(caller).or_insert_with(|| {
            stacks.prefix.push(caller);
            stacks.frame.push(asleep);
            stacks.length += 1;
            stacks.length - 1
        })
    }

    /// Returns the position of a frame.
    fn frame(&mut self, at: usize, libs: &mut Libs) -> usize {
        if let Some(place) = self.frame_places.get(&at) {
            return *place;
        }
        let frame = &self.recording.frames[at];
        let file = frame.source.as_ref().map(|(file, _)| self.string(file));
        let func = self.func(at, file, libs);
        // A line is one of the function's file.
        let line = frame.source.as_ref().map(|(_, line)| *line);
        let line = line.filter(|_| self.funcs.file_name[func] == file);
        let category = if frame.in_kernel { KERNEL } else { USER };
        let place = self.frames.push(category, func, line, frame.is_inlined);
        self.frame_places.insert(at, place);
        place
    }

    /// Returns the position of the function of a frame, which has a source file.
    fn func(&mut self, frame: usize, file: Option<usize>, libs: &mut Libs) -> usize {
        let frame = &self.recording.frames[frame];
        let name = self.string(&frame.title());
        let lib = libs.of(self.recording, frame);
        let resource = lib.map_or(NONE, |lib| self.resource(lib, libs) as i64);
        let funcs = &mut self.funcs;
        let place = self.func_places.entry((name, resource));
        *place.or_insert_with(|| funcs.push(name, resource, file))
    }

    /// Returns the position of a file of code.
    fn resource(&mut self, lib: usize, libs: &Libs) -> usize {
        if let Some(place) = self.resource_places.get(&lib) {
            return *place;
        }
        let name = self.string(libs.name(lib));
        let resources = &mut self.resources;
        resources.lib.push(lib);
        resources.name.push(name);
        resources.host.push(None);
        resources.r#type.push(LIBRARY);
        self.resource_places.insert(lib, resources.length);
        resources.length += 1;
        resources.length - 1
    }

    /// Returns the position of a text.
    fn string(&mut self, text: &str) -> usize {
        if let Some(place) = self.string_places.get(text) {
            return *place;
        }
        self.strings.push(text.to_owned());
        let place = self.strings.len() - 1;
        self.string_places.insert(text.to_owned(), place);
        place
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
