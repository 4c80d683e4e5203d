//! The records of a recording in the order of their times, and what they change: mappings, names of threads.

use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
use std::time::SystemTime;

use foldhash::HashMap;
use quipu_perf_data::record::{self, Mapping, kind};
use quipu_perf_data::{
    BranchSampleType, BuildIdOwner, CpuMode, Error, EventAttr, Features, FileRecords, RawRecord,
    Reader, Record, RecordLayout, RecordedEvent, Sample, SampleType, TimeOrder,
};
use quipu_symbols::{
    AddressOwner, Architecture, FileIdentity, KeptNames, Mapped, Processes, Symbolizer,
};

use crate::progress::Progress;
use quipu_shell::Failure;

use super::cut_chain::FrameKind;
use super::deferred::{self, Deferred};
use super::input::{Input, name};
use super::kernel::Kernel;
use super::listed;
use super::memory::Memory;
use super::not_unwound::NotUnwound;
use super::visit::{Begin, Visit};

/// `PERF_TYPE_TRACEPOINT` of `include/uapi/linux/perf_event.h`.
const TRACEPOINT: u32 = 2;

/// State of going through a recording.
pub(crate) struct Replay {
    layouts: Arc<[RecordLayout]>,
    /// True for events whose branches are the calls that have not returned.
    pub(super) call_stacks: Vec<bool>,
    /// True for events whose chains of user mode come later.
    pub(super) deferred_chains: Vec<bool>,
    /// Events by the ids of their counters.
    events: HashMap<u64, usize>,
    /// The name of the idle task of each CPU, which nobody names.
    idle: Arc<str>,
    /// The earliest time in the file, in ns.
    pub(crate) begun: u64,
    pub(crate) processes: Processes,
    pub(crate) symbolizer: Symbolizer,
    /// True for processes that are told apart from others with the same mappings.
    told_apart: HashMap<i32, bool>,
    /// The kinds of frames by address space and address, of innermost frames and of others.
    pub(super) frame_kinds: HashMap<(u64, u64, bool), FrameKind>,
    pub(super) kernel: Kernel,
    deferred: Deferred,
    /// The machine that was recorded, if its stacks can be unwound.
    pub(crate) machine: Option<Architecture>,
    pub(super) not_unwound: NotUnwound,
    /// The number of records that cannot be decoded, and why the first of them cannot.
    left_out: Option<(u64, Error)>,
    /// Bytes of hardware traces, which are not decoded.
    traced: u64,
    /// Sentences on the file for the user.
    notes: Vec<String>,
    /// The memory that it may take; none of what has no end.
    memory: Option<Memory>,
    /// True for records that are taken as they come: of processes that have ended nothing comes any more.
    is_live: bool,
    is_done: bool,
}

impl Replay {
    /// Returns the state before the first record of a file, and the visitor.
    pub(super) fn begin<R: Read, V>(
        reader: &Reader<R>,
        input: Input<'_>,
        begin: impl Begin<V>,
    ) -> Result<(Self, V), Failure> {
        let (events, features) = (reader.events(), reader.features());
        let (replay, names) = Self::of_file((events, features), reader.appendix(), input)?;
        let visit = begin(events, features, &names)?;
        Ok((replay, visit))
    }

    /// Returns the state before the first record of a file, and the names of its events.
    fn of_file(
        (events, features): (&[RecordedEvent], &Features),
        kept: Option<&[u8]>,
        input: Input<'_>,
    ) -> Result<(Self, Vec<String>), Failure> {
        if features.has_counts {
            return Err(Failure::usage(format_args!(
                "{} has counts and no samples; quipu stat report shows them",
                name(input.path)
            )));
        }
        let symbols = input.symbols;
        let named = symbols.map(|symbols| symbols.kernel(features, input.force));
        let named = named.transpose()?.flatten();
        let mut kept_names = kept.and_then(KeptNames::read);
        if let Some(names) = &mut kept_names {
            if named.is_some() {
                names.forget_kernel();
            }
            if symbols.is_some_and(|symbols| symbols.symfs.is_some()) {
                names.forget_files();
            }
        }
        let kernel = Kernel::of(features, named);
        let in_user_mode = features
            .build_ids
            .iter()
            .filter(|b| b.owner == BuildIdOwner::User);
        let build_ids: Vec<_> = in_user_mode
            .map(|b| (b.path.clone(), b.id.clone()))
            .collect();
        let names = events.iter().map(|event| {
            let attr = event.attr();
            let name = event.name().map(str::to_owned);
            name.or_else(|| attr.event_name())
                .unwrap_or_else(|| numbers(attr))
        });
        let names = names.collect();
        let mut symbolizer = Symbolizer::new()
            .of_this_machine(kernel.is_of_this_machine())
            .recorded_until(input.written())
            .with_lines(input.lines)
            .without_parameters(!input.parameters)
            .with_maps_of_others(input.force)
            .with_build_ids(build_ids)
            .with_recorded_symbols(listed::symbols(features))
            .with_kept(kept_names)
            .under(symbols.and_then(|symbols| symbols.symfs.clone()));
        #[cfg(target_os = "linux")]
        {
            symbolizer = symbolizer.with_generations(quipu_linux::inode_generation);
        }
        if let Some(copies) = input.copies {
            symbolizer = symbolizer.with_copies(copies);
        }
        if input.keeping {
            symbolizer = symbolizer.keeping();
        }
        kernel.name(&mut symbolizer);
        let machine = match features.arch.as_deref() {
            Some(name) => Architecture::from_name(name),
            None => {
                let registers = events.iter().map(|event| event.attr().user_registers());
                registers.filter_map(Architecture::from_registers).next()
            }
        };
        let mut replay = Self::new(events, (symbolizer, kernel), machine);
        let most = symbols.and_then(|symbols| symbols.max_memory);
        replay.memory = Some(Memory::of_recording(most));
        let left_out = features.left_out.iter().map(|(section, offset)| {
            format!("the section {section} at byte {offset} is malformed, and left out")
        });
        replay.notes.extend(left_out);
        if kept.is_some() && replay.symbolizer.kept().is_none() {
            let note = "the names that were kept with the recording are malformed, and left out";
            replay.notes.push(note.to_owned());
        }
        Ok((replay, names))
    }

    /// Returns the state for records that are taken as they come, on this machine.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn live(events: &[RecordedEvent], with_lines: bool) -> Self {
        let kernel = Kernel::of_this_machine();
        let mut symbolizer = Symbolizer::new()
            .of_this_machine(true)
            .recorded_until(Some(SystemTime::now()))
            .with_lines(with_lines);
        #[cfg(target_os = "linux")]
        {
            symbolizer = symbolizer.with_generations(quipu_linux::inode_generation);
        }
        kernel.name(&mut symbolizer);
        let machine = Architecture::from_name(std::env::consts::ARCH);
        Self {
            is_live: true,
            ..Self::new(events, (symbolizer, kernel), machine)
        }
    }

    fn new(
        events: &[RecordedEvent],
        (symbolizer, kernel): (Symbolizer, Kernel),
        machine: Option<Architecture>,
    ) -> Self {
        let ids = events.iter().enumerate();
        let ids = ids.flat_map(|(at, event)| event.ids().iter().map(move |id| (*id, at)));
        Self {
            layouts: events.iter().map(|e| e.attr().layout()).collect(),
            call_stacks: events.iter().map(|e| has_call_stacks(e.attr())).collect(),
            deferred_chains: events
                .iter()
                .map(|e| e.attr().defers_callchains())
                .collect(),
            events: ids.collect(),
            idle: "swapper".into(),
            begun: u64::MAX,
            processes: Processes::new(),
            told_apart: HashMap::default(),
            frame_kinds: HashMap::default(),
            kernel,
            deferred: Deferred::default(),
            machine,
            not_unwound: NotUnwound::default(),
            symbolizer,
            left_out: None,
            traced: 0,
            notes: Vec::new(),
            memory: None,
            is_live: false,
            is_done: false,
        }
    }

    /// Takes the records of a round of reading all buffers, after those of the round before, in the order of their times.
    /// Those that cannot be decoded are left out, and counted.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn round(&mut self, order: &mut TimeOrder, bytes: &[u8], visit: &mut impl Visit) {
        let layouts = self.layouts.clone();
        let mut rest = bytes;
        while let Some(record) = RawRecord::at_start(rest) {
            self.feed(order, record, &layouts, visit);
            rest = rest.get(record.bytes().len().max(1)..).unwrap_or_default();
        }
        let Ok(()) = order.finish_round(|record| self.take(record, &layouts, visit));
    }

    /// Takes a record of the kernel's, or has it wait for those that may come before it.
    #[inline(always)]
    fn feed(
        &mut self,
        order: &mut TimeOrder,
        record: RawRecord<'_>,
        layouts: &[RecordLayout],
        visit: &mut impl Visit,
    ) {
        match self.time_of(record) {
            Some(time) => {
                self.begun = self.begun.min(time);
                order.push(time, record.bytes());
                self.check_memory(record.bytes().len());
            }
            None => {
                let Ok(()) = self.take(record.bytes(), layouts, visit);
            }
        }
    }

    /// Takes the records in the order of their times.
    pub(super) fn run<R: Read, V: Visit>(
        mut self,
        mut records: FileRecords<'_, R>,
        mut visit: V,
        len: Option<u64>,
    ) -> Result<(Self, V), Error> {
        let mut order = TimeOrder::new();
        let layouts = self.layouts.clone();
        let mut progress = match len {
            Some(len) if !visit.is_shown_as_it_comes() => Progress::of_bytes(len),
            _ => Progress::hidden(),
        };
        let mut is_first = true;
        self.is_done = !visit.needs_records();
        while !self.is_done {
            let read = records.offset();
            progress.set(read);
            self.memory.iter_mut().for_each(|memory| memory.read = read);
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if is_first || matches!(error, Error::Io(_)) => return Err(error),
                Err(error) => {
                    self.notes.push(format!(
                        "the file is not whole: {error}; what can be read of it is reported"
                    ));
                    break;
                }
            };
            is_first = false;
            if record.kind() == kind::FINISHED_ROUND {
                let Ok(()) = order.finish_round(|record| self.take(record, &layouts, &mut visit));
            } else if record.kind() < kind::FIRST_OF_USER {
                self.feed(&mut order, record, &layouts, &mut visit);
            }
        }
        let Ok(()) = order.finish(|record| self.take(record, &layouts, &mut visit));
        for sample in self.deferred.rest() {
            if !self.is_done
                && let Err(error) = self.take_waiting(&sample, None, &mut visit)
            {
                self.left_out.get_or_insert((0, error)).0 += 1;
            }
        }
        if self.processes.left_out() > 0 {
            self.notes.push(format!(
                "{} mappings of forked processes are left out, as there are too many: what ran in those has no names",
                self.processes.left_out()
            ));
        }
        self.traced = records.traced();
        Ok((self, visit))
    }

    /// Returns true if the kernel that was recorded runs here.
    pub(crate) fn is_of_this_kernel(&self) -> bool {
        self.kernel.is_this_one()
    }

    /// Returns the event of a counter by its id.
    pub(crate) fn event_with_id(&self, id: u64) -> Option<usize> {
        self.events.get(&id).copied()
    }

    /// Returns the number of the address space of an owner: what is at an address in it stays, as another one has another number.
    /// Processes with the same functions have the same.
    pub(crate) fn space(&mut self, owner: AddressOwner) -> u64 {
        let AddressOwner::Process(pid) = owner else {
            return self.space_of_no_process(owner);
        };
        let is_told_apart = match self.told_apart.get(&pid) {
            Some(told_apart) => *told_apart,
            None => self.tell_apart(pid),
        };
        space_of_process(&self.processes, pid, is_told_apart)
    }

    /// Finds out whether a process has functions that another one with the same mappings has not.
    #[cold]
    fn tell_apart(&mut self, pid: i32) -> bool {
        let symbolizer = &self.symbolizer;
        let has_own = self.is_live || symbolizer.may_have_own_functions(&self.processes, pid);
        self.told_apart.insert(pid, has_own);
        has_own
    }

    /// Returns the number of the address space of an owner, which no other process has.
    pub(crate) fn own_space(&self, owner: AddressOwner) -> u64 {
        match owner {
            AddressOwner::Process(pid) => space_of_process(&self.processes, pid, true),
            other => self.space_of_no_process(other),
        }
    }

    /// Returns the number of the address space of the kernel, which changes as symbols come and go, or of guests and the hypervisor.
    fn space_of_no_process(&self, owner: AddressOwner) -> u64 {
        match owner {
            AddressOwner::Kernel => 1 << 63 | self.kernel.changes(),
            AddressOwner::GuestKernel => 1,
            AddressOwner::Guest => 2,
            AddressOwner::Hypervisor => 3,
            _ => 0,
        }
    }

    /// Returns the layout of the records of an event.
    #[inline]
    pub(crate) fn layout(&self, event: usize) -> &RecordLayout {
        &self.layouts[event]
    }

    /// Returns the name of the thread of a sample. One that was not recorded is called by its number, as perf calls it:
    /// `:1234`.
    pub(crate) fn command_of(&self, sample: &Sample<'_>) -> Arc<str> {
        let tid = sample.thread().map_or(-1, |thread| thread.tid);
        let name = match tid {
            0 => Some(&self.idle),
            tid => self.processes.thread_name(tid),
        };
        name.map_or_else(|| format!(":{tid}").into(), Arc::clone)
    }

    /// Returns what is to be said of the file: that it is cut, or has records that cannot be decoded.
    pub(crate) fn notes_on_file(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.traced > 0 {
            notes.push(format!(
                "a hardware trace of {} bytes (Intel PT, Arm ETM or another) is there, and is not decoded",
                self.traced
            ));
        }
        if let Some((records, error)) = &self.left_out {
            notes.push(format!(
                "{records} records are left out, they cannot be decoded: {error}"
            ));
        }
        notes
    }

    /// The event that a record belongs to: by its id where records say it, else the first.
    #[inline(always)]
    fn event_of(&self, record: RawRecord<'_>) -> usize {
        match self.layouts.len() {
            1 => 0,
            _ => self.event_of_several(record),
        }
    }

    #[inline(never)]
    fn event_of_several(&self, record: RawRecord<'_>) -> usize {
        let first = &self.layouts[0];
        let id = if first.sample_type().contains(SampleType::IDENTIFIER) {
            record.identifier()
        } else if record.kind() == kind::SAMPLE {
            match record.decode(first) {
                Ok(Record::Sample(sample)) => sample.id(),
                _ => None,
            }
        } else {
            record.sample_id(first).and_then(|trailer| trailer.id)
        };
        id.and_then(|id| self.events.get(&id).copied()).unwrap_or(0)
    }

    /// When a record was written; `None` for what was there before.
    #[inline(always)]
    fn time_of(&self, record: RawRecord<'_>) -> Option<u64> {
        let time = record.time(&self.layouts[self.event_of(record)]);
        time.filter(|time| *time > 0 && *time < u64::MAX)
    }

    /// Takes a record, or leaves it out where its bytes make no sense.
    fn take(
        &mut self,
        bytes: &[u8],
        layouts: &[RecordLayout],
        visit: &mut impl Visit,
    ) -> Result<(), Infallible> {
        if self.is_done {
            return Ok(());
        }
        self.check_memory(bytes.len());
        if let Err(error) = self.decode(bytes, layouts, visit) {
            self.left_out.get_or_insert((0, error)).0 += 1;
        }
        Ok(())
    }

    /// Ends the recording if it takes more memory than it may.
    fn check_memory(&mut self, bytes: usize) {
        let memory = self.memory.as_mut();
        let excess = memory.and_then(|memory| memory.excess(bytes, &self.symbolizer));
        self.is_done |= excess.is_some();
        self.notes.extend(excess);
    }

    fn decode(
        &mut self,
        bytes: &[u8],
        layouts: &[RecordLayout],
        visit: &mut impl Visit,
    ) -> Result<(), Error> {
        let Some(record) = RawRecord::at_start(bytes) else {
            return Ok(());
        };
        let event = self.event_of(record);
        let layout = &layouts[event];
        match record.decode_sample(layout)? {
            Some(sample) if self.deferred.keep(record, &sample) => Ok(()),
            Some(sample) => {
                self.is_done = visit.sample(self, event, &sample).is_break();
                Ok(())
            }
            None => self.decode_other(event, record, layout, visit),
        }
    }

    /// Decodes a record that is no sample.
    #[inline(never)]
    fn decode_other(
        &mut self,
        event: usize,
        record: RawRecord<'_>,
        layout: &RecordLayout,
        visit: &mut impl Visit,
    ) -> Result<(), Error> {
        let decoded = record.decode(layout)?;
        self.check_memory(Memory::OF_STATE);
        visit.record(self, event, &record, &decoded)?;
        match &decoded {
            Record::Mapping(mapping) => {
                self.map(mapping, record.misc().cpu_mode());
            }
            Record::Ksymbol(symbol) => self.kernel.take_symbol(symbol, &mut self.symbolizer),
            Record::Comm(comm) => {
                let thread = comm.thread;
                self.processes
                    .name(thread.pid, thread.tid, comm.name, comm.is_exec);
            }
            Record::CallchainDeferred(frames) => {
                let thread = record.sample_id(layout).and_then(|id| id.thread);
                let thread = thread.map_or(-1, |thread| thread.tid);
                for sample in self.deferred.take(thread, frames.cookie) {
                    self.take_waiting(&sample, Some(frames), visit)?;
                }
            }
            Record::Fork(task) => {
                let (new, parent) = (task.thread, task.parent);
                self.processes
                    .fork(new.pid, new.tid, parent.pid, parent.tid);
            }
            Record::Exit(task) if self.is_live => {
                self.processes.end(task.thread.pid, task.thread.tid);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a sample that has waited for its frames of user mode, with them if they have come.
    fn take_waiting(
        &mut self,
        bytes: &[u8],
        frames: Option<&record::CallchainDeferred<'_>>,
        visit: &mut impl Visit,
    ) -> Result<(), Error> {
        let Some(record) = RawRecord::at_start(bytes) else {
            return Ok(());
        };
        let event = self.event_of(record);
        let layout = *self.layout(event);
        let Some(sample) = record.decode_sample(&layout)? else {
            return Ok(());
        };
        let whole = frames.and_then(|frames| deferred::with_frames(record, &sample, frames));
        let whole = whole.as_deref().and_then(RawRecord::at_start);
        let whole = whole
            .map(|whole| whole.decode_sample(&layout))
            .transpose()?;
        let sample = whole.flatten().unwrap_or(sample);
        self.is_done |= visit.sample(self, event, &sample).is_break();
        Ok(())
    }

    /// Takes a mapping.
    fn map(&mut self, mapping: &Mapping<'_>, mode: CpuMode) {
        if mapping.is_data {
            return;
        }
        let (start, len) = (mapping.address, mapping.len);
        let addresses = start..start.saturating_add(len);
        match mode {
            CpuMode::Kernel => return self.kernel.map(mapping, addresses, &mut self.symbolizer),
            // What a guest has mapped is none of the host's processes'.
            CpuMode::GuestKernel | CpuMode::GuestUser => return,
            _ => {}
        }
        let mapped =
            Mapped::new(addresses, mapping.file_offset, mapping.path).of(identity_of(mapping));
        self.processes.map(mapping.thread.pid, mapped);
    }
}

/// Returns the identity of the file of a mapping.
pub(crate) fn identity_of(mapping: &Mapping<'_>) -> FileIdentity {
    match mapping.file {
        Some(record::FileIdentity::BuildId(id)) => FileIdentity::BuildId(id.into()),
        Some(record::FileIdentity::Inode {
            major,
            minor,
            inode,
            generation,
        }) => FileIdentity::Inode {
            device: (major, minor),
            inode,
            generation,
        },
        _ => FileIdentity::Unknown,
    }
}

/// Returns the number of the address space of a process, which it alone has if it is told apart.
fn space_of_process(processes: &Processes, pid: i32, is_told_apart: bool) -> u64 {
    let own = if is_told_apart {
        pid.cast_unsigned()
    } else {
        0
    };
    // The first ones are of no process.
    u64::from(own) << 32 | (u64::from(processes.space(pid)) + 4)
}

/// Returns true if the branches of an event's samples are the calls that have not returned.
fn has_call_stacks(attr: &EventAttr) -> bool {
    attr.branch_sample_type() & BranchSampleType::CALL_STACK.bits() != 0
}

/// Returns the name of an event that has none, neither in the file nor for its numbers: those.
fn numbers(attr: &EventAttr) -> String {
    match attr.event_type() {
        // The files `id` of tracefs have the number.
        TRACEPOINT => format!("tracepoint {}", attr.config()),
        other => format!("type {other} config {:#x}", attr.config()),
    }
}
