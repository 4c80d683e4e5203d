//! The tables that samples point to. Numbers of locations, functions and mappings begin with 1.

use std::sync::Arc;

use foldhash::HashMap;

use crate::{Frame, Recording, StackId};

use super::message::{Function, Line, Location, Mapping};

/// The tables, while they are made.
pub(super) struct Tables<'a> {
    recording: &'a Recording,
    pub(super) strings: Vec<String>,
    string_places: HashMap<String, i64>,
    pub(super) mapping: Vec<Mapping>,
    mapping_ids: HashMap<Arc<str>, u64>,
    pub(super) function: Vec<Function>,
    /// By name, file of code and source file.
    function_ids: HashMap<(i64, u64, i64), u64>,
    pub(super) location: Vec<Location>,
    /// By the frames of one address: inlined functions and the one they are in.
    location_ids: HashMap<Vec<usize>, u64>,
}

impl<'a> Tables<'a> {
    /// Returns tables with the empty text, and the mapping of the program: pprof takes the first one for that.
    pub(super) fn new(recording: &'a Recording) -> Self {
        let mut tables = Self {
            recording,
            strings: vec![String::new()],
            string_places: HashMap::from_iter([(String::new(), 0)]),
            mapping: Vec::new(),
            mapping_ids: HashMap::default(),
            function: Vec::new(),
            function_ids: HashMap::default(),
            location: Vec::new(),
            location_ids: HashMap::default(),
        };
        let frames = recording.frames.iter();
        let mut in_user_mode = frames.filter(|frame| !frame.in_kernel);
        let is_program = |frame: &&Frame| {
            let mut names = recording.tasks.iter().map(|task| &*task.process);
            names.any(|name| frame.short_object().starts_with(name))
        };
        let program = in_user_mode.clone().find(is_program);
        if let Some(frame) = program.or_else(|| in_user_mode.next()) {
            tables.mapping(frame);
        }
        tables
    }

    /// Returns the position of a text.
    pub(super) fn string(&mut self, text: &str) -> i64 {
        if let Some(place) = self.string_places.get(text) {
            return *place;
        }
        let place = self.strings.len() as i64;
        self.strings.push(text.to_owned());
        self.string_places.insert(text.to_owned(), place);
        place
    }

    /// Returns the locations of a stack, the innermost first.
    pub(super) fn locations(&mut self, stack: Option<StackId>) -> Vec<u64> {
        let recording = self.recording;
        let mut locations = Vec::new();
        let mut frames = Vec::new();
        for frame in recording.stacks.frames(stack) {
            frames.push(frame);
            if !recording.frames[frame].is_inlined {
                locations.push(self.place(std::mem::take(&mut frames)));
            }
        }
        if !frames.is_empty() {
            locations.push(self.place(frames));
        }
        locations
    }

    /// Returns the location of inlined functions and the one they are in.
    fn place(&mut self, frames: Vec<usize>) -> u64 {
        if let Some(id) = self.location_ids.get(&frames) {
            return *id;
        }
        let recording = self.recording;
        let outer = frames.last().map(|frame| &recording.frames[*frame]);
        let mapping_id = outer.map_or(0, |frame| self.mapping(frame));
        let line = frames.iter().map(|frame| {
            let frame = &recording.frames[*frame];
            Line {
                function_id: self.function(frame, mapping_id),
                line: frame.source.as_ref().map_or(0, |(_, line)| (*line).into()),
            }
        });
        let line = line.collect();
        let id = self.location.len() as u64 + 1;
        self.location.push(Location {
            id,
            mapping_id,
            line,
        });
        self.location_ids.insert(frames, id);
        id
    }

    /// Returns the mapping of the file of a function; 0 if the file is not known.
    fn mapping(&mut self, frame: &Frame) -> u64 {
        if &*frame.object == "[unknown]" {
            return 0;
        }
        if let Some(id) = self.mapping_ids.get(&frame.object) {
            return *id;
        }
        let id = self.mapping.len() as u64 + 1;
        let build_id = self.recording.build_id(&frame.object).to_owned();
        let mapping = Mapping {
            id,
            filename: self.string(&frame.object),
            build_id: self.string(&build_id),
            // There is nothing left to look up.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        self.mapping.push(mapping);
        self.mapping_ids.insert(frame.object.clone(), id);
        id
    }

    fn function(&mut self, frame: &Frame, mapping: u64) -> u64 {
        let name = self.string(&frame.title());
        let source = frame.source.as_ref();
        let filename = source.map_or(0, |(file, _)| self.string(file));
        let functions = &mut self.function;
        let key = (name, mapping, filename);
        *self.function_ids.entry(key).or_insert_with(|| {
            let id = functions.len() as u64 + 1;
            functions.push(Function {
                id,
                name,
                system_name: name,
                filename,
            });
            id
        })
    }
}
