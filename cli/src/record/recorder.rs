//! Recording: open, begin the file, release the command, drain the rings, finish the file.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use quipu::Target;
use quipu::command::{Running, SuspendedCommand};
use quipu_linux::sampling::{SampleType, Sampler, SamplerSpec, Woken};
use quipu_perf_data::{Compressor, EventAttr, EventGroup, Features, RecordedEvent, synthesized};
use signal_hook::consts::SIGTERM;

use crate::control::{self, Command, Control, Purpose};
use crate::failure::Failure;
use crate::stat::signals::Signals;
use crate::stat::{any_alive, command, raise_open_file_limit};
use crate::target::Scope;
use crate::terminal::{self, escaped};

use super::existing;
use super::machine;
use super::opening::Opened;
use super::output::{Destination, Output, StandardOutput};
use super::plan::RecordPlan;
use super::second_signal::SecondSignal;
use super::statistics::{self, Statistics};
use super::tracepoints;
use crate::report::throttled;

/// The longest wait for one sampler before all are drained, and the command and signals checked.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait where there are several samplers, of which only one can be waited for.
const DRAIN_INTERVAL_OF_MANY: Duration = Duration::from_millis(20);
/// The time between progress messages.
const PROGRESS: Duration = Duration::from_secs(1);

/// One call of `quipu record`.
pub(super) struct Recorder<'a> {
    plan: &'a RecordPlan,
    signals: Signals,
    second: SecondSignal,
    control: Option<Control>,
    /// The time at which sampling starts, where that is delayed.
    start: Option<Instant>,
}

/// A recording in progress.
struct Recording {
    spec: SamplerSpec,
    samplers: Vec<Sampler>,
    /// Samplers of records beside samples, where those are recorded apart.
    tracking: Vec<Sampler>,
    output: Output,
    statistics: Statistics,
    /// The time of the last progress message.
    last_progress: Instant,
    /// True once it was ended by other means than a signal.
    is_over: bool,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(plan: &'a RecordPlan) -> Result<Self, Failure> {
        Ok(Self {
            plan,
            signals: Signals::watch()?,
            second: SecondSignal::watch()?,
            control: match &plan.control {
                Some(files) => Some(Control::open(files, Purpose::Record)?),
                None => None,
            },
            start: None,
        })
    }

    /// Records. Whatever fails on the way, the file is finished, and a command is not left behind without being recorded
    /// or told to end.
    pub(super) fn run(mut self) -> Result<ExitCode, Failure> {
        let stdout = match self.plan.output {
            Destination::Stream => Some(StandardOutput::take()?),
            Destination::File(_) => None,
        };
        let suspended = command::suspend(&self.plan.command, None)?;
        // After the command was made, so that it keeps the limit it is used to.
        raise_open_file_limit();
        let targets = self
            .plan
            .targets(suspended.as_ref().map(SuspendedCommand::pid));
        let opened = Opened::open(self.plan, &targets)?;
        let mut recording = self.begin(opened, &targets, stdout)?;
        self.start = match self.plan.delay {
            Some(delay) => Instant::now().checked_add(delay),
            None => None,
        };
        let status = match suspended {
            Some(suspended) => suspended
                .resume()
                .map_err(|e| command::not_executed(&self.plan.command[0], &e))
                .and_then(|mut running| {
                    let status = self.follow(&mut running, &mut recording);
                    if status.is_err() {
                        command::signal(&running, SIGTERM);
                    }
                    status
                }),
            None => self.watch(&targets, &mut recording).map(|()| 0),
        };
        let finished = self.finish(recording);
        let status = status?;
        finished?;
        Ok(ExitCode::from(status))
    }

    /// Begins the file with the state of before; from here on everything is recorded.
    fn begin(
        &self,
        opened: Opened,
        targets: &[Target],
        stdout: Option<StandardOutput>,
    ) -> Result<Recording, Failure> {
        let Opened {
            samplers,
            tracking,
            spec,
            notes,
        } = opened;
        let mut events = recorded_events(&spec, &samplers, &self.plan.names)?;
        events.extend(tracking_event(&tracking)?);
        let attrs = events.iter().map(RecordedEvent::attr);
        let statistics = Statistics::new(attrs, &samplers);
        let first_ids = events
            .iter()
            .map(|event| (event.name(), event.ids().first()));
        let names: Vec<_> = first_ids
            .filter_map(|(name, id)| Some(synthesized::event_name(*id?, name?)))
            .collect();
        let compressor = self.plan.compression.map(Compressor::new).transpose();
        let compressor =
            compressor.map_err(|_| Failure::usage("-z: this quipu was built without zstd"))?;
        let mut output = match (&self.plan.output, stdout) {
            (Destination::File(path), _) => Output::create(path, events)?,
            (Destination::Stream, None) => return Err(Failure::new("standard output is closed")),
            (Destination::Stream, Some(stdout)) => {
                let mut features = features(&spec);
                features.compression = compressor.as_ref().map(Compressor::description);
                Output::stream(stdout, &events, &features)?
            }
        };
        if matches!(self.plan.output, Destination::File(_)) {
            // Before anything else, so that a file that is not finished has them.
            output.write(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        output.compress(compressor);
        for note in &notes {
            self.say(note);
        }
        if self.plan.verbose {
            for (sampled, info) in spec.events.iter().zip(samplers[0].events()) {
                self.say(&format!(
                    "{} is sampled as {}, {:?}",
                    sampled.event, info.name, sampled.rate
                ));
            }
        }
        if self.plan.scope != Scope::Command {
            // First, so that later mappings are not missed.
            tracking.iter().try_for_each(Sampler::enable)?;
            if self.plan.delay.is_none() {
                samplers.iter().try_for_each(Sampler::enable)?;
            }
        }
        let records = existing::records(targets, trailer_len(samplers[0].layout().sample_type()));
        output.write(&[&records]);
        output.finish_round();
        Ok(Recording {
            spec,
            statistics,
            samplers,
            tracking,
            output,
            last_progress: Instant::now(),
            is_over: false,
        })
    }

    /// Records until the command has ended; returns its exit status. A second signal ends the recording, and tells the
    /// command to end, without waiting for it. Where the file cannot be written any more, the command goes on.
    fn follow(&mut self, running: &mut Running, recording: &mut Recording) -> Result<u8, Failure> {
        let mut is_told = false;
        loop {
            if let Some(signal) = self.signals.take_to_pass_on() {
                command::signal(running, signal);
            }
            if let (true, Some(signal)) = (self.second.arrived(), self.signals.last()) {
                command::signal(running, SIGTERM);
                return Ok(command::exit_code(ExitStatus::from_raw(signal)));
            }
            if let (Some(why), false) = (recording.output.why_broken(), is_told) {
                terminal::warn(format_args!(
                    "{why}; the command goes on without being recorded"
                ));
                is_told = true;
                recording.stop();
            }
            if self.is_to_end(recording)? {
                recording.stop();
                command::signal(running, SIGTERM);
            }
            let all_ended = self.wait(recording)? == Woken::Ended;
            // All that it did is in the rings before it is seen to have ended.
            let timeout = if all_ended {
                DRAIN_INTERVAL
            } else {
                Duration::ZERO
            };
            let exit = running.wait_timeout(timeout)?;
            recording.drain()?;
            if let Some(exit) = exit {
                return Ok(command::exit_code(exit.status));
            }
        }
    }

    /// Records until a signal, or until no sampled task is left.
    fn watch(&mut self, targets: &[Target], recording: &mut Recording) -> Result<(), Failure> {
        if !self.plan.quiet && io::stderr().is_terminal() {
            self.say("recording; press Ctrl-C to stop and write the file");
        }
        loop {
            let ended = self.is_to_end(recording)? || self.signals.arrived() || !any_alive(targets);
            if !ended {
                self.wait(recording)?;
            }
            recording.drain()?;
            if ended || recording.output.is_broken() {
                return Ok(());
            }
            self.progress(recording);
        }
    }

    fn wait(&self, recording: &mut Recording) -> Result<Woken, Failure> {
        let mut longest = match recording.samplers.len() {
            1 => DRAIN_INTERVAL,
            _ => DRAIN_INTERVAL_OF_MANY,
        };
        if self.control.is_some() {
            longest = control::INTERVAL;
        }
        if let Some(start) = self.start {
            longest = longest.min(start.saturating_duration_since(Instant::now()));
        }
        Ok(match recording.samplers.as_mut_slice() {
            [one] => one.wait(Some(longest))?,
            [] => Woken::Ended,
            [first, ..] => match first.wait(Some(longest))? {
                // The others may go on.
                Woken::Ended => {
                    self.signals.sleep(longest);
                    Woken::TimedOut
                }
                woken => woken,
            },
        })
    }

    /// Starts sampling when its time has come, and does what commands say; returns true once the recording is to end: by a
    /// command, or because the file is as long as it may be.
    fn is_to_end(&mut self, recording: &mut Recording) -> Result<bool, Failure> {
        if recording.is_over {
            return Ok(false);
        }
        if self.start.is_some_and(|start| start <= Instant::now()) {
            self.start = None;
            recording.samplers.iter().try_for_each(Sampler::enable)?;
        }
        if let Some(control) = &mut self.control {
            while let Some(command) = control.next()? {
                match command {
                    Command::Enable => recording.samplers.iter().try_for_each(Sampler::enable)?,
                    Command::Disable => recording.samplers.iter().try_for_each(Sampler::disable)?,
                    Command::Ping => {}
                    Command::Stop => recording.is_over = true,
                }
                control.acknowledge()?;
            }
        }
        if let Some(most) = self.plan.max_size
            && recording.output.len() >= most
        {
            self.say(&format!("the file has reached {most} bytes (--max-size)"));
            recording.is_over = true;
        }
        Ok(recording.is_over)
    }

    /// Stops, writes the remaining records, and reports.
    fn finish(&self, mut recording: Recording) -> Result<(), Failure> {
        recording.stop();
        let drained = recording.drain();
        let losses = statistics::losses(&recording.samplers, recording.spec.events.len());
        for (record, count) in losses.counted {
            let record = synthesized::lost_samples(count, recording.samplers[0].layout(), record);
            recording.output.write(&[&record]);
        }
        let statistics = recording.statistics;
        let mut features = features(&recording.spec);
        features.build_ids = statistics.build_ids();
        features.sample_time = statistics.times();
        let len = recording.output.finish(features)?;
        drained?;
        if self.plan.quiet {
            return Ok(());
        }
        let lost = losses.all;
        let (events, counts) = (recording.spec.events.iter(), statistics.by_event());
        let by_event = events.zip(counts).zip(&losses.by_event);
        for (at, ((sampled, (count, throttling)), own)) in by_event.enumerate() {
            let event = &sampled.event;
            if self.plan.verbose || (*own > 0 && losses.by_event.len() > 1) {
                self.say(&format!("{}, {own} lost, of {event}", samples(count)));
            }
            if let Some(throttled) = throttled(throttling) {
                self.say(&format!("{event} {throttled}"));
            }
            if let Some(jumped) = statistics.jumped(at) {
                self.say(&format!("{event}: {jumped}"));
            }
        }
        self.say(&format!(
            "{}, {lost} lost, {} in {}",
            samples(statistics.samples()),
            megabytes(len),
            self.plan.output
        ));
        if lost > 0 {
            self.say(&format!(
                "samples were lost because a ring buffer was full: use more pages (-m {}) or a lower rate",
                4 * recording.spec.ring_bytes / 4096
            ));
        }
        Ok(())
    }

    /// Writes a progress message to a terminal that no command writes to.
    fn progress(&self, recording: &mut Recording) {
        if self.plan.quiet
            || recording.last_progress.elapsed() < PROGRESS
            || !io::stderr().is_terminal()
        {
            return;
        }
        recording.last_progress = Instant::now();
        self.say(&format!(
            "{} so far, {} lost, {}",
            samples(recording.statistics.samples()),
            statistics::lost_records(&recording.samplers),
            megabytes(recording.output.len())
        ));
    }

    fn say(&self, text: &str) {
        if !self.plan.quiet {
            // A message that cannot be written is also in the file or of no importance.
            let _ = writeln!(io::stderr(), "[ quipu record: {} ]", escaped(text));
        }
    }
}

impl Recording {
    /// Stops sampling.
    fn stop(&self) {
        for sampler in self.samplers.iter().chain(&self.tracking) {
            // Threads that have ended have nothing to stop.
            let _ = sampler.disable();
        }
    }

    /// Writes the records in the rings as they are.
    fn drain(&mut self) -> Result<(), Failure> {
        for sampler in self.samplers.iter_mut().chain(&mut self.tracking) {
            let layout = *sampler.layout();
            for ring in sampler.rings_mut() {
                let mut batch = ring.records();
                if batch.remaining() == 0 {
                    continue;
                }
                self.output.write_records(&batch.bytes());
                for record in &mut batch {
                    let record = record?;
                    if !self.output.is_broken() {
                        self.statistics.note(&record, &layout)?;
                    }
                }
            }
        }
        self.output.finish_round();
        Ok(())
    }
}

/// Returns the events with the ids of all their counters.
fn recorded_events(
    spec: &SamplerSpec,
    samplers: &[Sampler],
    names: &[Option<String>],
) -> Result<Vec<RecordedEvent>, Failure> {
    let events = spec.events.iter().zip(names).enumerate();
    events
        .map(|(index, (sampled, name))| {
            let name = name.clone().unwrap_or_else(|| sampled.event.to_string());
            recorded_event(samplers, index, name)
        })
        .collect()
}

/// Returns the event of the records beside samples, where those are recorded apart.
fn tracking_event(tracking: &[Sampler]) -> Result<Option<RecordedEvent>, Failure> {
    let event = (!tracking.is_empty()).then(|| recorded_event(tracking, 0, "dummy:u".to_owned()));
    event.transpose()
}

/// Returns an event of samplers with the ids of all its counters.
fn recorded_event(
    samplers: &[Sampler],
    index: usize,
    name: String,
) -> Result<RecordedEvent, Failure> {
    let counters = samplers.iter().flat_map(Sampler::counters);
    let own: Vec<_> = counters.filter(|c| c.event() == index).collect();
    let attr = own.first().map(|c| c.attr_bytes()).unwrap_or_default();
    let attr = EventAttr::from_bytes(&attr)
        .map_err(|e| Failure::new(format_args!("cannot describe {name} in a file: {e}")))?;
    let ids = own.iter().map(|c| c.id()).collect();
    Ok(RecordedEvent::new(attr, ids, name))
}

/// Returns the description of a recording, as far as it is known at its start.
fn features(spec: &SamplerSpec) -> Features {
    let mut features = machine::features();
    let events = spec.events.iter().map(|s| &s.event.event);
    features.tracing_data = tracepoints::formats(events).map(|data| data.to_bytes());
    features.groups = groups(spec);
    features
}

/// Returns the groups of several events.
fn groups(spec: &SamplerSpec) -> Vec<EventGroup> {
    let mut leader = 0;
    let groups = spec
        .events
        .chunk_by(|_, next| next.is_member)
        .map(|events| {
            let len = events.len() as u32;
            leader += len;
            EventGroup::new(leader - len, len)
        });
    groups.filter(|group| group.len > 1).collect()
}

/// Returns the length of the trailer of records that are not samples, in bytes.
fn trailer_len(sample_type: SampleType) -> usize {
    8 * (sample_type & SampleType::TRAILER).bits().count_ones() as usize
}

fn samples(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} sample{plural}")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.3} MB", bytes as f64 / 1e6)
}
