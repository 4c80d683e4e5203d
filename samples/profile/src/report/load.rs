//! Reading a recording: its samples, added up by stack.

mod frames;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
mod live;

use std::mem;
use std::ops::ControlFlow;
use std::path::Path;

use foldhash::HashMap;
use quipu_perf_data::{
    Branch, BranchStack, Error, Excess, Features, Losses, Periods, RawRecord, ReadDeltas, Record,
    RecordedEvent, Sample, SampleId, SampleType, Throttling,
};
use quipu_symbols::{AddressOwner, Function, FunctionId};

use crate::recording::{
    ChainFrame, Input, Replay, SampleSelection, Visit, owner, owner_of_address,
};
use quipu_shell::Failure;

use super::cut_chains::CutChains;
use super::header;
use super::nameless::nameless;
use super::numbered::Numbered;
use super::options::{Options, Percentage};
use super::profile::{EventProfile, Profile, TakenBranch, Task, Weight};
use super::sort::{Key, USUAL};
use super::stacks::{KnownAddresses, KnownChains, Stack, Stacks, Weights};
use super::threads::EndedThreads;
use super::unit::unit;

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use live::whole_samples;

impl Profile {
    /// Reads a recording of `quipu record`, `perf record` or simpleperf, with call chains and by process name,
    /// file and function.
    ///
    /// # Errors
    /// If it cannot be read, is no recording, or belongs to another user.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        load(&Options::with_callers_of(path), &USUAL)
    }
}

/// Reads the file that the options name, or standard input.
pub(crate) fn load(options: &Options, keys: &[Key]) -> Result<Profile, Failure> {
    let input = Input {
        path: &options.input,
        force: options.shown.force,
        lines: options.inline || keys.contains(&Key::SourceLine),
        parameters: true,
        symbols: Some(&options.shown.symbols),
        keeping: false,
        copies: None,
    };
    let selection = options.selection()?;
    let begin = |events: &[RecordedEvent], features: &Features, names: &[String]| {
        let has_branches = |event: &RecordedEvent| {
            let fields = event.attr().layout().sample_type();
            fields.contains(SampleType::BRANCH_STACK)
        };
        if options.reports_branches(keys) && !events.iter().any(has_branches) {
            return Err(Failure::usage(format_args!(
                "{} has no branches; record -b records them",
                options.input.display()
            )));
        }
        let mut loading = Loading::new(options, (selection, keys), events, names);
        if options.shows_header() {
            let path = (options.input != Path::new("-")).then_some(&*options.input);
            loading.profile.header =
                header::text((path, options.show_info), (events, features, names));
        }
        Ok(loading)
    };
    let (replay, mut loading) = input.replay(begin)?;
    if let (true, Some(kept)) = (options.shows_header(), replay.symbolizer.kept()) {
        let names = kept.len();
        let line = format!("# names of {names} addresses are kept with the recording\n#\n");
        loading.profile.header.push_str(&line);
    }
    Ok(loading.finish(&replay))
}

/// State of reading a recording.
pub(crate) struct Loading {
    selection: SampleSelection,
    /// True if only the description of the recording is asked for.
    header_only: bool,
    /// True if shares are of the chosen samples alone.
    is_relative: bool,
    /// True if not every sample is chosen.
    is_selection: bool,
    keys: Vec<Key>,
    /// True if tasks are told apart by more than their names.
    tells_tasks: bool,
    /// True if inlined functions are told apart.
    inline: bool,
    /// True if callers are looked up.
    with_callers: bool,
    /// The most frames of a call chain that are looked at.
    most_frames: usize,
    /// True if the chain that was read is shortened to these.
    is_short: bool,
    losses: Losses,
    deltas: ReadDeltas,
    /// True if there are samples that do not say how many events they stand for.
    without_period: bool,
    events: Vec<OfEvent>,
    profile: Profile,
    /// The tasks of threads, where tasks differ by their names alone, until a thread is named.
    by_thread: HashMap<i32, u32>,
    chains: KnownChains,
    /// The lists of functions at addresses.
    known: KnownAddresses,
    /// The lists of functions of which all addresses have the same.
    by_id: HashMap<FunctionId, u32>,
    /// The call chain of a sample, the functions at an address and those of a chain, kept for their memory.
    chain: Vec<ChainFrame>,
    found: Vec<Function>,
    callers: Vec<u32>,
    /// The positions in that chain behind which callers are missing.
    cuts: Vec<usize>,
}

/// State of an event.
struct OfEvent {
    /// True if threads inherit it.
    is_inherited: bool,
    /// True if its samples have read counters.
    reads: bool,
    /// True if it is there for records beside samples.
    is_dummy: bool,
    throttling: Throttling,
    periods: Periods,
    /// Its samples that were added up and are not in the profile yet: the number of those with an impossible period, the weight
    /// of all, and the weights of stacks.
    jumped: u64,
    total: Weight,
    weights: Weights,
    threads: EndedThreads,
}

impl OfEvent {
    fn new(event: &RecordedEvent) -> Self {
        let attr = event.attr();
        Self {
            is_inherited: attr.is_inherited(),
            reads: attr.layout().sample_type().contains(SampleType::READ),
            is_dummy: attr.is_dummy(),
            throttling: Throttling::default(),
            periods: Periods::new(attr),
            jumped: 0,
            total: Weight::default(),
            weights: Weights::default(),
            threads: EndedThreads::of(attr),
        }
    }

    /// Adds a sample, without weight if its period is impossible, and returns its weight. One that is not chosen has no stack.
    fn count(
        &mut self,
        begun: u64,
        stack: Option<Stack>,
        period: u64,
        excess: Option<Excess>,
    ) -> Weight {
        let jumped = excess.is_some_and(|excess| excess.is_beyond(begun));
        self.jumped += u64::from(jumped);
        let weight = Weight::of_sample(if jumped { 0 } else { period });
        self.total.add(weight);
        if let Some(stack) = stack {
            self.weights.add(stack, weight);
        }
        weight
    }

    /// Moves what was added up to the profile of the event, and returns the weights of stacks.
    fn gather(&mut self, profile: &mut EventProfile) -> Weights {
        profile.jumped += mem::take(&mut self.jumped);
        profile.total.add(mem::take(&mut self.total));
        mem::take(&mut self.weights)
    }
}

impl Visit for Loading {
    fn record(
        &mut self,
        replay: &Replay,
        event: usize,
        raw: &RawRecord<'_>,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        match record {
            Record::Comm(_) | Record::Fork(_) => self.by_thread.clear(),
            // The kernel's part of a chain stands for something else.
            Record::Ksymbol(_) => self.chains = KnownChains::default(),
            _ => {}
        }
        let layout = replay.layout(event);
        self.losses.note(raw, layout)?;
        match record {
            Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
                let event = replay.event_with_id(throttle.id).unwrap_or(event);
                let trailer = raw.sample_id(layout).unwrap_or_default();
                self.events[event].throttling.note(record, &trailer);
            }
            Record::Read(thread, values) => {
                // A counter of a group reads the others too, of which each has a record of its own.
                let own = raw.sample_id(layout).and_then(|trailer| trailer.id);
                let mut counters = values.iter();
                let counter = match values.len() {
                    1 => counters.next(),
                    _ => counters.find(|counter| counter.id == own),
                };
                if let Some(counter) = counter {
                    let event = counter
                        .id
                        .and_then(|id| replay.event_with_id(id))
                        .unwrap_or(event);
                    self.events[event].threads.add(*thread, values, counter);
                }
            }
            Record::Exit(_) => {
                for event in &mut self.events {
                    event.throttling.note(record, &SampleId::default());
                }
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
        self.add(replay, (event, sample), |_, _, _| ());
        ControlFlow::Continue(())
    }

    fn needs_records(&self) -> bool {
        !self.header_only
    }
}

/// Why a sample is not in a report, as `perf report` has it (`tools/perf/builtin-report.c`).
enum NotChosen {
    /// Its CPU, its time or its function without a name: it is not counted at all.
    LeftOut,
    /// Its thread, its file or its function: shares are of it too, unless they are relative.
    Filtered,
}

impl Loading {
    /// Returns the state before the first sample.
    pub(crate) fn new(
        options: &Options,
        (selection, keys): (SampleSelection, &[Key]),
        events: &[RecordedEvent],
        names: &[String],
    ) -> Self {
        let attrs = events.iter().map(RecordedEvent::attr);
        let named = attrs.zip(names).map(|(attr, name)| EventProfile {
            name: name.clone(),
            unit: unit(attr, name),
            ..EventProfile::default()
        });
        let tells_task = |key: &Key| matches!(key, Key::Pid | Key::Tid | Key::Cpu);
        let tells_tasks = keys.iter().any(tells_task);
        Self {
            header_only: options.header_only,
            is_relative: options.shown.percentage == Percentage::Relative,
            is_selection: !selection.is_empty(),
            tells_tasks,
            selection,
            keys: keys.to_vec(),
            inline: options.inline,
            with_callers: options.with_children()
                || options.call_graph.is_some()
                || options.draws_stacks(),
            most_frames: options.max_stack.unwrap_or(usize::MAX),
            is_short: false,
            losses: Losses::new(events),
            deltas: ReadDeltas::default(),
            without_period: false,
            events: events.iter().map(OfEvent::new).collect(),
            profile: Profile {
                events: named.collect(),
                stacks: Stacks {
                    branches: options.reports_branches(keys).then(Numbered::default),
                    ..Stacks::default()
                },
                ..Profile::default()
            },
            by_thread: HashMap::default(),
            chains: KnownChains::default(),
            known: KnownAddresses::default(),
            by_id: HashMap::default(),
            chain: Vec::new(),
            found: Vec::new(),
            callers: Vec::new(),
            cuts: Vec::new(),
        }
    }

    /// Adds a sample, and calls `each` with every event that it is a sample of, if it is chosen: its stack and the number of events
    /// that it stands for.
    pub(super) fn add(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        mut each: impl FnMut(usize, Stack, u64),
    ) {
        let of_event = &mut self.events[event];
        of_event.throttling.note_sample(sample);
        let read = of_event.reads.then(|| self.read(event, sample));
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let own = owner(sample.misc().cpu_mode(), pid);
        let stack = match self.is_selection {
            false => Some(self.stack(replay, (event, sample), own)),
            true => match self.chosen_stack(replay, (event, sample), own) {
                Ok(stack) => Some(stack),
                Err(NotChosen::Filtered) if !self.is_relative => None,
                Err(_) => return,
            },
        };
        if self.profile.stacks.branches.is_some() {
            self.count_branches(replay, (event, sample), stack);
            return;
        }
        let mut count = |event, of_event: &mut OfEvent, period, excess| {
            let weight = of_event.count(replay.begun, stack, period, excess);
            if let Some(stack) = stack {
                each(event, stack, weight.period);
            }
        };
        let Some(read) = read.filter(|read| !read.is_empty()) else {
            let period = sample.period();
            self.without_period |= period.is_none();
            let of_event = &mut self.events[event];
            let excess = of_event.periods.check_sample(sample);
            count(event, of_event, period.unwrap_or(1), excess);
            return;
        };
        for (id, value) in read {
            if let (Some(event), 1..) = (replay.event_with_id(id), value) {
                let of_event = &mut self.events[event];
                let excess = of_event.periods.check_read(id, sample.time(), value);
                count(event, of_event, value, excess);
            }
        }
    }

    /// Returns the counts that a sample read, since those that it read before.
    fn read(&mut self, event: usize, sample: &Sample<'_>) -> Vec<(u64, u64)> {
        let is_inherited = self.events[event].is_inherited;
        self.deltas.of_sample(sample, is_inherited).collect()
    }

    /// Returns the stack of a sample.
    fn stack(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        own: AddressOwner,
    ) -> Stack {
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let task = match thread {
            Some(thread) if !self.tells_tasks => self.task_of(replay, sample, thread.tid),
            _ => self.task(replay, sample),
        };
        let (leaf, callers) = match sample.ip() {
            Some(ip) => self.frames(replay, (event, sample), (own, pid), ip),
            None => self.frames_of_chain(replay, (event, sample), own, pid),
        };
        Stack {
            task,
            leaf,
            callers,
        }
    }

    /// Returns the stack of a sample that is chosen.
    fn chosen_stack(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        own: AddressOwner,
    ) -> Result<Stack, NotChosen> {
        let mode = sample.misc().cpu_mode();
        if !self.selection.is_then_and_there(sample) || self.selection.hides(mode) {
            return Err(NotChosen::LeftOut);
        }
        let has_thread = self
            .selection
            .has_thread(sample, &replay.command_of(sample));
        let is_of_named = self.selection.is_of_named();
        if !has_thread && !is_of_named {
            return Err(NotChosen::Filtered);
        }
        let stack = self.stack(replay, (event, sample), own);
        if is_of_named && !self.has_name(stack.leaf) {
            return Err(NotChosen::LeftOut);
        }
        let decides = self.selection.is_of_functions() && self.profile.stacks.branches.is_none();
        if !has_thread || decides && !self.selects(stack.leaf) {
            return Err(NotChosen::Filtered);
        }
        Ok(stack)
    }

    /// Adds each branch of a sample, of which one counts as much as another. Its target is the function that decides whether it
    /// is chosen.
    fn count_branches(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        stack: Option<Stack>,
    ) {
        let pid = sample.thread().map_or(-1, |thread| thread.pid);
        for branch in sample.branches().iter().flat_map(BranchStack::iter) {
            let Some(stack) = stack else {
                self.events[event].count(replay.begun, None, 1, None);
                continue;
            };
            let [from, to] = [branch.from, branch.to]
                .map(|address| self.functions_at(replay, owner_of_address(address, pid), address));
            if self.selection.is_of_named() && !(self.has_name(from) && self.has_name(to)) {
                continue;
            }
            let is_chosen = !self.selection.is_of_functions() || self.selects(to);
            if !is_chosen && self.is_relative {
                continue;
            }
            let from = self.profile.stacks.lists.get(from).first();
            let branch = taken(&branch, from.map(|from| *from as usize));
            let number = self
                .profile
                .stacks
                .branches
                .as_mut()
                .map(|all| all.number(branch));
            let stack = Stack {
                leaf: to,
                callers: number.unwrap_or_default(),
                ..stack
            };
            let stack = is_chosen.then_some(stack);
            self.events[event].count(replay.begun, stack, 1, None);
        }
    }

    /// Returns the number of the task of a sample of a thread, where tasks differ by their names alone.
    fn task_of(&mut self, replay: &Replay, sample: &Sample<'_>, tid: i32) -> u32 {
        if let Some(task) = self.by_thread.get(&tid) {
            return *task;
        }
        let task = self.task(replay, sample);
        self.by_thread.insert(tid, task);
        task
    }

    /// Returns the number of the task of a sample.
    fn task(&mut self, replay: &Replay, sample: &Sample<'_>) -> u32 {
        let thread = sample.thread();
        let tells = |key| self.tells_tasks && self.keys.contains(&key);
        let pid = thread.map_or(-1, |thread| thread.pid);
        let tid = thread.map(|thread| thread.tid);
        let task = Task {
            command: replay.command_of(sample),
            pid: tells(Key::Pid).then_some(pid),
            tid: tid.filter(|_| tells(Key::Tid)),
            cpu: sample.cpu().filter(|_| tells(Key::Cpu)),
        };
        self.profile.stacks.tasks.number(task)
    }

    /// Returns the functions of a stack as positions in the profile, the innermost first.
    pub(super) fn frames_of(&self, stack: Stack) -> impl DoubleEndedIterator<Item = usize> {
        self.profile.stacks.frames(stack)
    }

    /// Returns true if the first function of a list has a name.
    fn has_name(&self, leaf: u32) -> bool {
        let leaf = self.profile.stacks.lists.get(leaf).first();
        leaf.is_some_and(|leaf| self.profile.functions.get(*leaf as usize).name.is_some())
    }

    /// Returns true if samples of the first function of a list are chosen.
    fn selects(&self, leaf: u32) -> bool {
        let leaf = self.profile.stacks.lists.get(leaf).first();
        leaf.is_some_and(|leaf| {
            let leaf = self.profile.functions.get(*leaf as usize);
            self.selection
                .has_function(&leaf.object, leaf.name.as_deref())
        })
    }

    /// Returns the profile of what was read.
    pub(crate) fn finish(mut self, replay: &Replay) -> Profile {
        for (i, event) in self.profile.events.iter_mut().enumerate() {
            event.lost = self.losses.of(i);
            let of_event = &mut self.events[i];
            event.throttled = super::throttled(&of_event.throttling);
            event.threads.extend(of_event.threads.counts());
            event.stacks = of_event.gather(event);
            let pieces = (&self.profile.functions, &self.profile.stacks);
            event.cut = CutChains::of(event, pieces, replay.chain_source(i));
        }
        let mut notes = replay.notes_on_file();
        // Of a file that was cut, that there are none is no wonder.
        let are_all = notes.is_empty() && self.selection.is_empty();
        if are_all && self.profile.events.iter().all(|e| e.stacks.is_empty()) {
            notes.push("there are no samples: nothing of what was sampled happened".into());
        }
        if self.without_period {
            notes.push(
                "samples do not say how many events they stand for: shares are of samples".into(),
            );
        }
        let events = self.profile.events.iter();
        let beyond = events.filter(|event| event.total.period == u64::MAX);
        notes.extend(beyond.map(|event| {
            let name = &event.name;
            format!("{name}: the samples stand for more events than 64 bits can count, so that their shares are wrong")
        }));
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
        let nameless = nameless(&self.profile);
        notes.extend(replay.notes_on_names(&nameless));
        let has_nameless = |(stack, _): (Stack, Weight)| {
            let frames = self.profile.stacks.frames(stack);
            let mut functions = frames.map(|frame| self.profile.functions.get(frame));
            functions.any(|seen| seen.in_kernel && seen.name.is_none())
        };
        let events = &self.profile.events;
        if !nameless
            .iter()
            .any(|one| one.in_kernel && one.percent >= 1.0)
            && events
                .iter()
                .any(|event| event.stacks.iter().any(has_nameless))
            && !replay.symbolizer.has_kernel()
        {
            notes.push(
                "the kernel's functions have no names: by its build ID, or its release and the host's name, it was another \
                 kernel, or kernel.kptr_restrict hides them"
                    .into(),
            );
        }
        self.profile.notes = notes;
        let mut of_events = self.events.iter();
        let events = &mut self.profile.events;
        events.retain(|event| {
            let is_dummy = of_events.next().is_some_and(|event| event.is_dummy);
            !is_dummy || event.total.samples > 0
        });
        self.profile.add_wall_time();
        self.profile
    }
}

/// Returns what a report tells of a branch in a function.
fn taken(branch: &Branch, from: Option<usize>) -> TakenBranch {
    TakenBranch {
        from,
        mispredicted: match (branch.predicted(), branch.mispredicted()) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        },
        cycles: branch.cycles(),
    }
}
