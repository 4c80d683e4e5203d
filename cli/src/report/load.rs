//! Reading a recording: its samples, added up by stack.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use quipu_perf_data::{
    Error, Excess, Features, Losses, Periods, RawRecord, ReadDeltas, Record, RecordedEvent, Sample,
    SampleId, Throttling,
};
use quipu_symbols::AddressOwner;

use crate::failure::Failure;
use crate::recording::{ChainFrame, Input, Replay, Selection, Visit, owner};

use super::options::Options;
use super::profile::{EventProfile, Functions, Profile, Stack, Task, Weight};
use super::sort::Key;

/// Reads the file that the options name, or standard input.
pub(super) fn load(options: &Options, keys: &[Key]) -> Result<Profile, Failure> {
    let input = Input {
        path: &options.input,
        force: options.force,
        lines: options.inline || keys.contains(&Key::SourceLine),
    };
    let selection = options.selection.selection()?;
    let begin = |events: &[RecordedEvent], _: &Features, names: &[String]| {
        Ok(Loading::new(
            (selection, keys, options.inline),
            events,
            names,
        ))
    };
    let (replay, loading) = input.replay(begin)?;
    Ok(loading.finish(&replay))
}

/// State of reading a recording.
struct Loading {
    selection: Selection,
    keys: Vec<Key>,
    /// True if inlined functions are told apart.
    inline: bool,
    /// True for events that threads inherit.
    inherited: Vec<bool>,
    losses: Losses,
    throttling: Vec<Throttling>,
    deltas: ReadDeltas,
    periods: Vec<Periods>,
    /// True if there are samples that do not say how many events they stand for.
    without_period: bool,
    /// True for events that are there for records beside samples.
    dummies: Vec<bool>,
    profile: Profile,
    /// The functions at addresses of processes, until mappings change, and of the kernel.
    known: HashMap<(AddressOwner, u64), Box<[usize]>>,
    known_of_kernel: HashMap<u64, Box<[usize]>>,
    nameless: Arc<str>,
    /// The call chain of a sample, kept for its memory.
    chain: Vec<ChainFrame>,
}

impl Visit for Loading {
    fn record(
        &mut self,
        replay: &Replay,
        event: usize,
        raw: &RawRecord<'_>,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        let layout = replay.layout(event);
        self.losses.note(raw, &layout)?;
        match record {
            Record::Sample(_) => self.throttling[event].note(record, &SampleId::default()),
            Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
                let event = replay.event_with_id(throttle.id).unwrap_or(event);
                let trailer = raw.sample_id(&layout).unwrap_or_default();
                self.throttling[event].note(record, &trailer);
            }
            Record::Exit(_) => {
                let all = self.throttling.iter_mut();
                all.for_each(|event| event.note(record, &SampleId::default()));
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let read: Vec<_> = {
            let is_inherited = self.inherited[event];
            self.deltas.of_sample(sample, is_inherited).collect()
        };
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let name = thread.and_then(|thread| replay.thread_name(thread.tid));
        let command = name.unwrap_or_else(|| self.nameless.clone());
        if !self.selection.has(sample, &command) {
            return ControlFlow::Continue(());
        }
        let own = owner(sample.misc().cpu_mode(), pid);
        let frames = self.frames(replay, (event, sample), own, pid);
        let leaf = frames.first().map(|leaf| self.profile.functions.get(*leaf));
        if self.selection.is_of_functions()
            && !leaf.is_some_and(|leaf| {
                self.selection
                    .has_function(&leaf.object, leaf.name.as_deref())
            })
        {
            return ControlFlow::Continue(());
        }
        let tells = |key| self.keys.contains(&key);
        let task = Task {
            command,
            pid: tells(Key::Pid).then_some(pid),
            tid: thread.map(|thread| thread.tid).filter(|_| tells(Key::Tid)),
            cpu: sample.cpu().filter(|_| tells(Key::Cpu)),
        };
        let stack = Stack {
            task,
            frames: frames.into(),
        };
        if read.is_empty() {
            let period = sample.period();
            self.without_period |= period.is_none();
            let excess = self.periods[event].check_sample(sample);
            self.count(replay.begun, event, stack, period.unwrap_or(1), excess);
            return ControlFlow::Continue(());
        }
        for (id, count) in read {
            if let (Some(event), 1..) = (replay.event_with_id(id), count) {
                let excess = self.periods[event].check_read(id, sample.time(), count);
                self.count(replay.begun, event, stack.clone(), count, excess);
            }
        }
        ControlFlow::Continue(())
    }

    fn forget(&mut self) {
        self.known.clear();
    }
}

impl Loading {
    fn new(
        (selection, keys, inline): (Selection, &[Key], bool),
        events: &[RecordedEvent],
        names: &[String],
    ) -> Self {
        let named = names.iter().map(|name| EventProfile {
            name: name.clone(),
            ..EventProfile::default()
        });
        Self {
            selection,
            keys: keys.to_vec(),
            inline,
            inherited: events.iter().map(|e| e.attr().is_inherited()).collect(),
            losses: Losses::new(events),
            throttling: vec![Throttling::default(); events.len()],
            deltas: ReadDeltas::default(),
            periods: events.iter().map(|e| Periods::new(e.attr())).collect(),
            without_period: false,
            dummies: events.iter().map(|e| e.attr().is_dummy()).collect(),
            profile: Profile {
                events: named.collect(),
                ..Profile::default()
            },
            known: HashMap::new(),
            known_of_kernel: HashMap::new(),
            nameless: "[unknown]".into(),
            chain: Vec::new(),
        }
    }

    /// Adds a sample, without weight if its period is impossible.
    fn count(
        &mut self,
        begun: u64,
        event: usize,
        stack: Stack,
        period: u64,
        excess: Option<Excess>,
    ) {
        let event = &mut self.profile.events[event];
        let jumped = excess.is_some_and(|excess| excess.is_beyond(begun));
        event.jumped += u64::from(jumped);
        let period = if jumped { 0 } else { period };
        let weight = Weight { samples: 1, period };
        event.total.add(weight);
        event.stacks.entry(stack).or_default().add(weight);
    }

    /// The functions of a sample, the innermost first: that of its instruction, and those of its chain.
    fn frames(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        own: AddressOwner,
        pid: i32,
    ) -> Vec<usize> {
        let mut frames = Vec::with_capacity(16);
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        replay.chain(event, sample, (own, pid), &mut chain);
        let mut rest = chain.iter().peekable();
        let first = rest.peek().map(|frame| frame.address);
        if let Some(ip) = sample.ip().or(first) {
            self.functions_at(replay, own, ip, &mut frames);
            // A chain begins with the same instruction or one close by, unless one of the two modes is left
            // out of it: then with the call into the mode that is.
            rest.next_if(|frame| frame.owner == own);
        }
        for frame in rest {
            // A return address is behind its call, which may be the last of its function.
            let address = match frame.may_follow_call {
                true => frame.address.saturating_sub(1),
                false => frame.address,
            };
            self.functions_at(replay, frame.owner, address, &mut frames);
        }
        self.chain = chain;
        frames
    }

    fn functions_at(
        &mut self,
        replay: &mut Replay,
        owner: AddressOwner,
        address: u64,
        out: &mut Vec<usize>,
    ) {
        let in_kernel = owner == AddressOwner::Kernel;
        let known = match in_kernel {
            true => self.known_of_kernel.get(&address),
            false => self.known.get(&(owner, address)),
        };
        if let Some(known) = known {
            out.extend_from_slice(known);
            return;
        }
        let mut found = Vec::new();
        replay
            .symbolizer
            .resolve(&replay.processes, owner, address, &mut found);
        let with_lines = self.keys.contains(&Key::SourceLine);
        let functions: &mut Functions = &mut self.profile.functions;
        let found = found
            .into_iter()
            .filter(|function| self.inline || !function.inlined);
        let places: Box<[usize]> = found
            .map(|mut function| {
                function.source = function.source.filter(|_| with_lines);
                functions.place(function, in_kernel)
            })
            .collect();
        out.extend_from_slice(&places);
        match in_kernel {
            true => self.known_of_kernel.insert(address, places),
            false => self.known.insert((owner, address), places),
        };
    }

    fn finish(mut self, replay: &Replay) -> Profile {
        for (i, event) in self.profile.events.iter_mut().enumerate() {
            event.lost = self.losses.of(i);
            event.throttled = super::throttled(&self.throttling[i]);
        }
        let mut notes = replay.notes_on_file();
        // Of a file that was cut, that there are none is no wonder.
        if notes.is_empty() && self.profile.events.iter().all(|e| e.total.samples == 0) {
            notes.push(match self.selection.is_empty() {
                true => "there are no samples: nothing of what was sampled happened".into(),
                false => "there are no samples of what was chosen".into(),
            });
        }
        if self.without_period {
            notes.push(
                "samples do not say how many events they stand for: shares are of samples".into(),
            );
        }
        let unknown = self.losses.of_unknown();
        if unknown > 0 {
            notes.push(format!(
                "{unknown} more records were lost; the file does not say of which event"
            ));
        }
        let others = self.losses.of_others();
        if others > 0 {
            notes.push(format!(
                "{others} records of mappings, names or tasks were lost: functions may have no or wrong names"
            ));
        }
        notes.extend(replay.notes_on_names());
        let stacks = self.profile.events.iter().flat_map(|e| e.stacks.keys());
        let mut frames = stacks.flat_map(|stack| &stack.frames);
        if !replay.has_kernel_symbols && frames.any(|f| self.profile.functions.get(*f).in_kernel) {
            notes.push(
                "the kernel's functions have no names: the file does not say that it is of this machine \
                 and kernel, or kernel.kptr_restrict hides them"
                    .into(),
            );
        }
        self.profile.notes = notes;
        let mut dummies = self.dummies.into_iter();
        let events = &mut self.profile.events;
        events.retain(|event| !dummies.next().unwrap_or(false) || event.total.samples > 0);
        self.profile
    }
}
