//! The lines of samples (`process_event`, `tools/perf/builtin-script.c`).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use quipu_perf_data::{
    DataSource, EventAttr, Features, ReadDeltas, RecordedEvent, Sample, SampleType, Weight,
};
use quipu_symbols::AddressOwner;

use crate::recording::{
    ChainFrame, Inlined, Nameless, NamelessCounts, Place, Places, Replay, SampleSelection, Visit,
    is_fault, owner,
};
use quipu_shell::Failure;
use quipu_shell::pager::Pager;
use quipu_shell::terminal::escaped;

use super::branches;
use super::data_source;
use super::fields::{Field, FieldSet, Fields};
use super::json::{Frame, JsonSample};
use super::numbers;
use super::options::Options;
use super::tracepoints::{self, Tracepoint};

/// Text of this length is written at once.
const MUCH: usize = 64 << 10;

/// Printing the samples of a recording.
pub(super) struct Script {
    options: Options,
    selection: SampleSelection,
    events: Vec<Printed>,
    /// The longest name of an event.
    width: usize,
    /// The longest source of data that was printed.
    source_width: usize,
    tracepoints: HashMap<u64, Tracepoint>,
    deltas: ReadDeltas,
    places: Places,
    nameless: NamelessCounts,
    /// The call chain of a sample, kept for its memory.
    chain: Vec<ChainFrame>,
    text: String,
    out: Pager,
    outcome: io::Result<()>,
}

/// An event and its fields that are printed.
struct Printed {
    name: String,
    fields: FieldSet,
    has_chain: bool,
    /// True if an address of data is one that the sampled instruction touched: it has a symbol then.
    is_fault: bool,
    /// True if threads inherit it.
    is_inherited: bool,
    /// The number of a tracepoint.
    tracepoint: Option<u64>,
}

impl Visit for Script {
    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let is_inherited = self
            .events
            .get(event)
            .is_some_and(|event| event.is_inherited);
        let read: Vec<_> = match sample.values() {
            Some(_) => self.deltas.of_sample(sample, is_inherited).collect(),
            None => Vec::new(),
        };
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let name = replay.command_of(sample);
        if !self.selection.has(sample, &name) {
            return ControlFlow::Continue(());
        }
        let own = owner(sample.misc().cpu_mode(), pid);
        let is_of_functions = self.selection.is_of_functions();
        if is_of_functions || sample.ip().is_some() {
            let ip = sample.ip().unwrap_or(0);
            let place = self.places.at(replay, own, ip);
            let (object, symbol) = (&place.code.object, place.code.symbol.as_deref());
            if is_of_functions && !self.selection.has_function(object, symbol) {
                return ControlFlow::Continue(());
            }
            self.nameless.note(&place, own);
        }
        let mut samples: Vec<(usize, Option<u64>)> = Vec::new();
        if read.is_empty() {
            samples.push((event, sample.period()));
        }
        // A leader samples for the members of its group: each has counted what it read.
        samples.extend(
            read.into_iter()
                .filter(|(_, count)| *count > 0)
                .filter_map(|(id, count)| Some((replay.event_with_id(id)?, Some(count)))),
        );
        for (event, period) in samples {
            match self.options.json {
                true => self.row(replay, (event, period), sample, &name, own),
                false => self.line(replay, (event, period), sample, &name, own),
            }
        }
        if self.text.len() >= MUCH {
            self.outcome = self.out.write_all(self.text.as_bytes());
            self.text.clear();
        }
        match self.outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_shown_as_it_comes(&self) -> bool {
        io::stdout().is_terminal()
    }
}

impl Script {
    pub(super) fn new(
        options: &Options,
        fields: &Fields,
        selection: SampleSelection,
        (events, features, names): (&[RecordedEvent], &Features, &[String]),
        out: Pager,
    ) -> Result<Self, Failure> {
        let attrs: Vec<&EventAttr> = events.iter().map(RecordedEvent::attr).collect();
        let with_chains = !options.hide_call_graph;
        let sets = fields.of_events(&attrs, names, with_chains)?;
        let printed = attrs.iter().zip(names).zip(sets);
        let printed = printed.map(|((attr, name), fields)| Printed {
            name: escaped(name).into_owned(),
            fields,
            has_chain: with_chains && attr.layout().sample_type().contains(SampleType::CALLCHAIN),
            is_fault: is_fault(attr),
            is_inherited: attr.is_inherited(),
            tracepoint: (attr.event_type() == 2).then(|| attr.config()),
        });
        Ok(Self {
            options: options.clone(),
            selection,
            events: printed.collect(),
            width: names.iter().map(String::len).max().unwrap_or(0),
            source_width: 0,
            tracepoints: tracepoints::of_file(features.tracing_data.as_deref()),
            deltas: ReadDeltas::default(),
            places: Places::default(),
            nameless: NamelessCounts::default(),
            chain: Vec::new(),
            text: String::with_capacity(2 * MUCH),
            out,
            outcome: Ok(()),
        })
    }

    /// Returns the shares of samples whose functions have no names.
    pub(super) fn nameless(&self) -> Vec<Nameless> {
        self.nameless.shares()
    }

    /// Writes what is left. A reader that went away is no error.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let written = match self.outcome {
            Ok(()) => self.out.write_all(self.text.as_bytes()),
            failed => failed,
        };
        self.out.finish(written)
    }

    fn line(
        &mut self,
        replay: &mut Replay,
        (event, period): (usize, Option<u64>),
        sample: &Sample<'_>,
        name: &str,
        own: AddressOwner,
    ) {
        let Self {
            options,
            events,
            width,
            source_width,
            tracepoints,
            places,
            text,
            chain,
            ..
        } = self;
        let position = event;
        let Some(event) = events.get(position) else {
            return;
        };
        let fields = event.fields;
        let has_chain = event.has_chain && fields.has(Field::Ip);
        begin(text, fields, sample, name, (options.ns, event.has_chain));
        if fields.has(Field::Period) {
            numbers::push(text, period.unwrap_or(0), 10);
            text.push(' ');
        }
        if fields.has(Field::Event) {
            let _ = write!(text, "{:>width$}: ", event.name, width = *width);
        }
        if fields.has(Field::Trace)
            && let Some(raw) = sample.raw()
            && let Some(tracepoint) = event.tracepoint.and_then(|id| tracepoints.get(&id))
        {
            let mut symbols = |address| {
                let place = places.at(replay, AddressOwner::Kernel, address);
                let name = place.code.symbol.as_deref()?.to_owned();
                Some((name, address - place.offset))
            };
            let from = text.len();
            tracepoint.print(raw, &mut symbols, text);
            let shown = escaped(&text[from..]).into_owned();
            text.truncate(from);
            text.push_str(&shown);
        }
        let pid = sample.thread().map_or(-1, |thread| thread.pid);
        if fields.has(Field::Address) {
            let address = sample.addr().unwrap_or(0);
            numbers::push_hex(text, address, 16);
            if event.is_fault {
                let place = places.at(replay, AddressOwner::Process(pid), address);
                symbol(text, fields, &place);
            }
        }
        memory_access(text, fields, sample, source_width);
        if !fields.has(Field::Ip) {
            branches::push(text, fields, (replay, places), sample, pid);
            text.push('\n');
            return;
        }
        if !has_chain {
            let address = sample.ip().unwrap_or(0);
            let place = places.at(replay, own, address);
            text.push(' ');
            numbers::push_hex(text, address, 16);
            symbol(text, fields, &place);
            let source = place.code.innermost_source();
            source_line(text, fields, address, (source, &place));
            branches::push(text, fields, (replay, places), sample, pid);
            text.push('\n');
            return;
        }
        text.push('\n');
        chain.clear();
        replay.chain(position, sample, (own, pid), chain);
        for frame in chain.iter().take(options.max_stack) {
            let place = places.at(replay, frame.owner, frame.address);
            let address = match frame.owner {
                AddressOwner::Process(_) => place.in_file,
                _ => frame.address,
            };
            let inlined = options.inline.then_some(&*place.code.inlined);
            for inlined in inlined.unwrap_or_default() {
                text.push('\t');
                numbers::push_hex(text, address, 16);
                inlined_symbol(text, fields, inlined, &place);
                source_line(text, fields, address, (inlined.source.as_ref(), &place));
                text.push('\n');
            }
            let source = match options.inline {
                true => place.code.source.as_ref(),
                false => place.code.innermost_source(),
            };
            text.push('\t');
            numbers::push_hex(text, address, 16);
            symbol(text, fields, &place);
            source_line(text, fields, address, (source, &place));
            text.push('\n');
        }
        branches::push(text, fields, (replay, places), sample, pid);
        text.push('\n');
    }

    fn row(
        &mut self,
        replay: &mut Replay,
        (event, period): (usize, Option<u64>),
        sample: &Sample<'_>,
        name: &str,
        own: AddressOwner,
    ) {
        let position = event;
        let Some(event) = self.events.get(position) else {
            return;
        };
        let thread = sample.thread();
        let pid = thread.map_or(-1, |thread| thread.pid);
        let chain = &mut self.chain;
        chain.clear();
        if event.has_chain {
            replay.chain(position, sample, (own, pid), chain);
            chain.truncate(self.options.max_stack);
        }
        if chain.is_empty() {
            chain.extend(sample.ip().map(|address| ChainFrame {
                owner: own,
                address,
                is_return_address: false,
            }));
        }
        let tracepoint = event.tracepoint.and_then(|id| self.tracepoints.get(&id));
        let fields = tracepoint.and_then(|tracepoint| Some(tracepoint.values(sample.raw()?)));
        let row = JsonSample {
            event: &event.name,
            command: name,
            pid: thread.map(|thread| thread.pid),
            tid: thread.map(|thread| thread.tid),
            time: sample.time(),
            cpu: sample.cpu(),
            period,
            address: sample.addr().map(|address| format!("{address:#x}")),
            data_source: sample.data_source().and_then(data_source::known),
            weight: sample.weight().map(|weight| costs(weight).0),
            fields,
            frames: chain
                .iter()
                .flat_map(|frame| {
                    let place = self.places.at(replay, frame.owner, frame.address);
                    Frame::all(frame.address, &place, self.options.inline)
                })
                .collect(),
            branches: branches::rows((replay, &mut self.places), sample, pid),
        };
        // Numbers and text always have a form.
        if let Ok(row) = serde_json::to_string(&row) {
            self.text.push_str(&row);
            self.text.push('\n');
        }
    }
}

/// Appends what a line begins with: who, where, when.
fn begin(
    text: &mut String,
    fields: FieldSet,
    sample: &Sample<'_>,
    name: &str,
    (nanoseconds, has_chain): (bool, bool),
) {
    let (pid, tid) = sample
        .thread()
        .map_or((-1, -1), |thread| (thread.pid, thread.tid));
    if fields.has(Field::Comm) {
        let name = escaped(name);
        let width = if has_chain && fields.has(Field::Ip) {
            0
        } else {
            16
        };
        let _ = write!(text, "{name:>width$} ");
    }
    match (fields.has(Field::Pid), fields.has(Field::Tid)) {
        (true, true) => {
            let _ = write!(text, "{pid:>5}/{tid:<5} ");
        }
        (true, false) | (false, true) => {
            let id = if fields.has(Field::Pid) { pid } else { tid };
            numbers::push_signed(text, id, 5);
            text.push(' ');
        }
        (false, false) => {}
    }
    if fields.has(Field::Cpu) {
        text.push('[');
        numbers::push_zeros(text, sample.cpu().unwrap_or(0).into(), 3);
        text.push_str("] ");
    }
    if fields.has(Field::Time) {
        let time = sample.time().unwrap_or(0);
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        numbers::push(text, seconds, 5);
        text.push('.');
        match nanoseconds {
            true => numbers::push_zeros(text, rest, 9),
            false => numbers::push_zeros(text, rest / 1000, 6),
        }
        text.push_str(": ");
    }
}

/// Appends where the data came from that an instruction touched, and what that cost, as far as they are asked for. As with
/// perf a column is as wide as its widest text up to here, `widest`.
fn memory_access(text: &mut String, fields: FieldSet, sample: &Sample<'_>, widest: &mut usize) {
    if fields.has(Field::DataSource) {
        let source = sample.data_source().unwrap_or(DataSource(0));
        let from = text.len();
        numbers::push_hex(text, source.0, 16);
        text.push(' ');
        data_source::push(text, source);
        *widest = (*widest).max(text.len() - from);
        text.extend(std::iter::repeat_n(' ', from + *widest - text.len()));
    }
    let (weight, latency) = sample.weight().map_or((0, 0), costs);
    if fields.has(Field::Weight) {
        numbers::push(text, weight, 16);
    }
    if fields.has(Field::InstructionLatency) {
        numbers::push(text, latency, 16);
    }
}

/// Returns the weight and the latency of the instruction.
fn costs(weight: Weight) -> (u64, u64) {
    match weight {
        Weight::Full(weight) => (weight, 0),
        Weight::Parts { first, second, .. } => (first.into(), second.into()),
        _ => (0, 0),
    }
}

/// Appends the symbol and the file, as far as they are asked for.
fn symbol(text: &mut String, fields: FieldSet, place: &Place) {
    if fields.has(Field::Symbol) {
        let name = place.code.symbol.as_deref().unwrap_or("[unknown]");
        text.push(' ');
        text.push_str(&escaped(name));
        if fields.has(Field::Offset) && place.code.symbol.is_some() {
            text.push_str("+0x");
            numbers::push_hex(text, place.offset, 0);
        }
    }
    if fields.has(Field::Object) {
        text.push_str(" (");
        text.push_str(&escaped(&place.code.object));
        text.push(')');
    }
}

/// Appends the symbol of a function that was inlined, as far as it is asked for. Its offset is that of the function around
/// it, as perf has it.
fn inlined_symbol(text: &mut String, fields: FieldSet, inlined: &Inlined, place: &Place) {
    if fields.has(Field::Symbol) {
        text.push(' ');
        text.push_str(&escaped(inlined.symbol.as_deref().unwrap_or("[unknown]")));
        if fields.has(Field::Offset) && place.code.symbol.is_some() {
            text.push_str("+0x");
            numbers::push_hex(text, place.offset, 0);
        }
    }
    text.push_str(" (inlined)");
}

/// Appends the source line, or the file and the address in it.
fn source_line(
    text: &mut String,
    fields: FieldSet,
    address: u64,
    (source, place): (Option<&(Arc<str>, u32)>, &Place),
) {
    if !fields.has(Field::SourceLine) {
        return;
    }
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let _ = match source {
        Some((file, line)) => write!(text, "\n  {}:{line}", escaped(&short(file))),
        None if &*place.code.object == "[unknown]" => Ok(()),
        None => write!(
            text,
            "\n  {}[{address:x}]",
            escaped(&short(&place.code.object))
        ),
    };
}
