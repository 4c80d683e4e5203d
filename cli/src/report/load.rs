//! Reading a file: records in the order of their times, processes, samples, names.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use quipu_perf_data::record::{FileIdentity, Mapping, kind};
use quipu_perf_data::{
    BuildIdOwner, Callchain, Context, CpuMode, Error, EventAttr, Excess, FileRecords, Losses,
    Periods, RawRecord, ReadDeltas, Reader, Record, RecordLayout, Sample, SampleId, SampleType,
    Throttling, TimeOrder,
};
use quipu_symbols::{AddressOwner, KernelSymbols, Mapped, Processes, Symbolizer};

use crate::failure::Failure;

use super::options::Options;
use super::profile::{EventProfile, Functions, Profile, Stack, Weight};

/// Name of the kernel's own mapping, before the name of a symbol.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// Reads the file that the options name, or standard input.
pub(super) fn load(options: &Options) -> Result<Profile, Failure> {
    let name = options.input.display();
    let fail = |e: &dyn std::fmt::Display| Failure::new(format_args!("cannot read {name}: {e}"));
    if options.input == Path::new("-") {
        let fail = |e| Failure::new(format_args!("cannot read standard input: {e}"));
        return load_stdin(options).map_err(fail);
    }
    let file = File::open(&options.input).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => fail(&match cfg!(target_os = "linux") {
            true => "there is no such file; `quipu record -- COMMAND` makes one",
            false => "there is no such file; on Linux `quipu record -- COMMAND` makes one",
        }),
        _ => fail(&e),
    })?;
    load_file(file, options).map_err(|e| fail(&e))
}

/// Reads a stream as it comes, or a file as a whole, whose records are not last in it.
fn load_stdin(options: &Options) -> Result<Profile, Error> {
    let mut stdin = io::stdin().lock();
    let mut start = Vec::new();
    stdin.by_ref().take(16).read_to_end(&mut start)?;
    let is_stream = quipu_perf_data::is_stream(&start)?;
    let mut input = Cursor::new(start).chain(stdin);
    if is_stream {
        let mut reader = Reader::from_stream(input)?;
        let loading = Loading::new(&reader, options.inline);
        return loading.read(reader.stream_records());
    }
    let mut file = Vec::new();
    input.read_to_end(&mut file)?;
    load_file(Cursor::new(file), options)
}

fn load_file<R: Read + io::Seek>(file: R, options: &Options) -> Result<Profile, Error> {
    let mut reader = Reader::new(file)?;
    Loading::new(&reader, options.inline).read(reader.records()?)
}

/// State of reading a file.
struct Loading {
    layouts: Vec<RecordLayout>,
    /// True for events that threads inherit.
    inherited: Vec<bool>,
    losses: Losses,
    throttling: Vec<Throttling>,
    deltas: ReadDeltas,
    periods: Vec<Periods>,
    /// The earliest time in the file.
    begun: u64,
    /// True if there are samples that do not say how many events they stand for.
    without_period: bool,
    /// Events by the ids of their counters.
    events: HashMap<u64, usize>,
    processes: Processes,
    symbolizer: Symbolizer,
    has_kernel_symbols: bool,
    profile: Profile,
    /// The functions at addresses, until mappings change.
    known: HashMap<(AddressOwner, u64), Box<[usize]>>,
    nameless: Arc<str>,
}

impl Loading {
    fn new<R: Read>(reader: &Reader<R>, inline: bool) -> Self {
        let features = reader.features();
        let same = |recorded: &Option<String>, name: &str| {
            let own = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
            own.is_some_and(|own| recorded.as_deref() == Some(own.trim()))
        };
        let this_machine =
            same(&features.os_release, "osrelease") && same(&features.host_name, "hostname");
        let kernel = this_machine.then(KernelSymbols::of_this_machine).flatten();
        let in_user_mode = features
            .build_ids
            .iter()
            .filter(|b| b.owner == BuildIdOwner::User);
        let build_ids: Vec<_> = in_user_mode
            .map(|b| (b.path.clone(), b.id.clone()))
            .collect();
        let mut profile = Profile::default();
        let mut events = HashMap::new();
        for (i, event) in reader.events().iter().enumerate() {
            events.extend(event.ids().iter().map(|id| (*id, i)));
            profile.events.push(EventProfile {
                name: match event.name() {
                    Some(name) => name.to_owned(),
                    None => {
                        let attr = event.attr();
                        attr.event_name().unwrap_or_else(|| numbers(attr))
                    }
                },
                ..EventProfile::default()
            });
        }
        Self {
            layouts: reader.events().iter().map(|e| e.attr().layout()).collect(),
            inherited: reader
                .events()
                .iter()
                .map(|e| e.attr().is_inherited())
                .collect(),
            losses: Losses::new(reader.events()),
            throttling: vec![Throttling::default(); reader.events().len()],
            deltas: ReadDeltas::default(),
            periods: reader
                .events()
                .iter()
                .map(|e| Periods::new(e.attr()))
                .collect(),
            begun: u64::MAX,
            without_period: false,
            events,
            processes: Processes::new(),
            has_kernel_symbols: kernel.is_some(),
            symbolizer: Symbolizer::new()
                .with_kernel(kernel)
                .of_this_machine(this_machine)
                .with_lines(inline)
                .with_build_ids(build_ids),
            profile,
            known: HashMap::new(),
            nameless: "[unknown]".into(),
        }
    }

    /// Takes the records in the order of their times.
    fn read<R: Read>(mut self, mut records: FileRecords<'_, R>) -> Result<Profile, Error> {
        let mut order = TimeOrder::new();
        loop {
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error @ (Error::Truncated { .. } | Error::Unfinished { .. })) => {
                    let note = format!(
                        "the file is not whole: {error}; what can be read of it is reported"
                    );
                    self.profile.notes.push(note);
                    break;
                }
                Err(error) => return Err(error),
            };
            if record.kind() == kind::FINISHED_ROUND {
                order.finish_round(|record| self.take(record))?;
            } else if record.kind() < kind::FIRST_OF_USER {
                match self.time_of(record.bytes()) {
                    Some(time) => {
                        self.begun = self.begun.min(time);
                        order.push(time, record.bytes());
                    }
                    None => self.take(record.bytes())?,
                }
            }
        }
        order.finish(|record| self.take(record))?;
        Ok(self.finish())
    }

    /// The event that a record belongs to: by its id where records say it, else the first.
    fn event_of(&self, record: &RawRecord<'_>) -> usize {
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
    fn time_of(&self, bytes: &[u8]) -> Option<u64> {
        let record = RawRecord::at_start(bytes)?;
        let layout = &self.layouts[self.event_of(&record)];
        let time = match record.kind() {
            kind::SAMPLE => match record.decode(layout) {
                Ok(Record::Sample(sample)) => sample.time(),
                _ => None,
            },
            _ => record.sample_id(layout)?.time,
        };
        time.filter(|time| *time > 0 && *time < u64::MAX)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(record) = RawRecord::at_start(bytes) else {
            return Ok(());
        };
        let event = self.event_of(&record);
        let layout = self.layouts[event];
        self.losses.note(&record, &layout)?;
        let decoded = record.decode(&layout)?;
        match &decoded {
            Record::Sample(_) => self.throttling[event].note(&decoded, &SampleId::default()),
            Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
                let event = self.events.get(&throttle.id).copied().unwrap_or(event);
                let trailer = record.sample_id(&layout).unwrap_or_default();
                self.throttling[event].note(&decoded, &trailer);
            }
            Record::Exit(_) => {
                let all = self.throttling.iter_mut();
                all.for_each(|event| event.note(&decoded, &SampleId::default()));
            }
            _ => {}
        }
        match decoded {
            Record::Mapping(mapping) => self.map(&mapping, record.misc().cpu_mode()),
            Record::Comm(comm) => {
                let thread = comm.thread;
                self.processes
                    .name(thread.pid, thread.tid, comm.name, comm.is_exec);
                if comm.is_exec {
                    self.known.clear();
                }
            }
            Record::Fork(task) => {
                let (new, parent) = (task.thread, task.parent);
                self.processes
                    .fork(new.pid, new.tid, parent.pid, parent.tid);
            }
            Record::Sample(sample) => self.sample(event, &sample),
            _ => {}
        }
        Ok(())
    }

    fn map(&mut self, mapping: &Mapping<'_>, mode: CpuMode) {
        if mapping.is_data {
            return;
        }
        if mode == CpuMode::Kernel {
            if let Some(symbol) = mapping.path.strip_prefix(KERNEL) {
                self.symbolizer
                    .set_kernel_reference(symbol, mapping.file_offset);
            }
            return;
        }
        if let Some(FileIdentity::BuildId(id)) = mapping.file {
            self.symbolizer.add_build_id(mapping.path, id);
        }
        let mapped = Mapped::new(
            mapping.address..mapping.address.saturating_add(mapping.len),
            mapping.file_offset,
            mapping.path,
        );
        self.processes.map(mapping.thread.pid, mapped);
        self.known.clear();
    }

    fn sample(&mut self, event: usize, sample: &Sample<'_>) {
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let name = thread.and_then(|thread| match thread.tid {
            // The idle task of each CPU, which nobody names.
            0 => Some(Arc::from("swapper")),
            tid => self.processes.thread_name(tid).cloned(),
        });
        let own = owner(sample.misc().cpu_mode(), pid);
        let stack = Stack {
            command: name.unwrap_or_else(|| self.nameless.clone()),
            frames: self.frames(sample, own, pid).into(),
        };
        let is_inherited = self.inherited[event];
        let read: Vec<_> = self.deltas.of_sample(sample, is_inherited).collect();
        if read.is_empty() {
            let period = sample.period();
            self.without_period |= period.is_none();
            let excess = self.periods[event].check_sample(sample);
            self.count(event, stack, period.unwrap_or(1), excess);
            return;
        }
        for (id, count) in read {
            if let (Some(event), 1..) = (self.events.get(&id).copied(), count) {
                let excess = self.periods[event].check_read(id, sample.time(), count);
                self.count(event, stack.clone(), count, excess);
            }
        }
    }

    /// Adds a sample, without weight if its period is impossible.
    fn count(&mut self, event: usize, stack: Stack, period: u64, excess: Option<Excess>) {
        let event = &mut self.profile.events[event];
        let jumped = excess.is_some_and(|excess| excess.is_beyond(self.begun));
        event.jumped += u64::from(jumped);
        let period = if jumped { 0 } else { period };
        let weight = Weight { samples: 1, period };
        event.total.add(weight);
        event.stacks.entry(stack).or_default().add(weight);
    }

    /// The functions of a sample, the innermost first: that of its instruction, and those of its chain.
    fn frames(&mut self, sample: &Sample<'_>, own: AddressOwner, pid: i32) -> Vec<usize> {
        let mut frames = Vec::with_capacity(16);
        let chain = sample.callchain();
        let mut chain = chain.iter().flat_map(Callchain::frames).peekable();
        let owner_of = |context| match context {
            Context::Kernel => AddressOwner::Kernel,
            Context::User => AddressOwner::Process(pid),
            Context::Unknown => own,
            _ => AddressOwner::Other,
        };
        let first = chain.peek().map(|frame| frame.address);
        if let Some(ip) = sample.ip().or(first) {
            self.functions_at(own, ip, &mut frames);
            // A chain begins with the same instruction or one close by, unless one of the two modes is left
            // out of it: then with the call into the mode that is.
            chain.next_if(|frame| owner_of(frame.context) == own);
        }
        for frame in chain {
            // A return address is behind its call, which may be the last of its function.
            let address = frame.address.saturating_sub(1);
            self.functions_at(owner_of(frame.context), address, &mut frames);
        }
        frames
    }

    fn functions_at(&mut self, owner: AddressOwner, address: u64, out: &mut Vec<usize>) {
        if let Some(known) = self.known.get(&(owner, address)) {
            out.extend_from_slice(known);
            return;
        }
        let mut found = Vec::new();
        self.symbolizer
            .resolve(&self.processes, owner, address, &mut found);
        let functions: &mut Functions = &mut self.profile.functions;
        let in_kernel = owner == AddressOwner::Kernel;
        let places: Box<[usize]> = found
            .into_iter()
            .map(|function| functions.place(function, in_kernel))
            .collect();
        out.extend_from_slice(&places);
        self.known.insert((owner, address), places);
    }

    fn finish(mut self) -> Profile {
        let notes = &mut self.profile.notes;
        for (i, event) in self.profile.events.iter_mut().enumerate() {
            event.lost = self.losses.of(i);
            event.throttled = super::throttled(&self.throttling[i]);
        }
        // Of a file that was cut, that there are none is no wonder.
        if notes.is_empty() && self.profile.events.iter().all(|e| e.total.samples == 0) {
            notes.push("there are no samples: nothing of what was sampled happened".into());
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
        let changed: Vec<_> = self.symbolizer.changed().collect();
        if !changed.is_empty() {
            let files = changed.join(", ");
            self.profile.notes.push(format!(
                "{files}: not the file that was recorded, so its functions have no names"
            ));
        }
        let stacks = self.profile.events.iter().flat_map(|e| e.stacks.keys());
        let mut frames = stacks.flat_map(|stack| &stack.frames);
        if !self.has_kernel_symbols && frames.any(|f| self.profile.functions.get(*f).in_kernel) {
            self.profile.notes.push(
                "the kernel's functions have no names: the file does not say that it is of this machine \
                 and kernel, or kernel.kptr_restrict hides them"
                    .into(),
            );
        }
        self.profile
    }
}

/// Returns the name of an event that has none, neither in the file nor for its numbers: those.
fn numbers(attr: &EventAttr) -> String {
    format!("type {} config {:#x}", attr.event_type(), attr.config())
}

fn owner(mode: CpuMode, pid: i32) -> AddressOwner {
    match mode {
        CpuMode::Kernel => AddressOwner::Kernel,
        CpuMode::User => AddressOwner::Process(pid),
        _ => AddressOwner::Other,
    }
}
