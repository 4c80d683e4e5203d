//! Recording: open, begin the file, release the command, drain the rings, finish the file.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use quipu::command::{Running, SuspendedCommand};
use quipu::{ErrorKind, Filter, Target};
use quipu_linux::sampling::{SampleType, Sampler, SamplerSpec, Woken};
use quipu_perf_data::{EventAttr, RecordedEvent, synthesized};
use signal_hook::consts::SIGTERM;

use crate::failure::Failure;
use crate::stat::signals::Signals;
use crate::stat::{any_alive, command, raise_open_file_limit};
use crate::target::Scope;
use crate::terminal::{self, escaped};

use super::existing;
use super::machine;
use super::output::Output;
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
    /// The requested samples, after [`open`](Self::open) those that are taken: maybe of user mode only.
    spec: SamplerSpec,
    /// Notes for the user.
    notes: Vec<String>,
}

/// A recording in progress.
struct Recording {
    samplers: Vec<Sampler>,
    output: Output,
    statistics: Statistics,
    /// When a person was last last_progress.
    last_progress: Instant,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(plan: &'a RecordPlan) -> Result<Self, Failure> {
        Ok(Self {
            plan,
            signals: Signals::watch()?,
            second: SecondSignal::watch()?,
            spec: plan.spec.clone(),
            notes: plan.notes.clone(),
        })
    }

    /// Records. Whatever fails on the way, the file is finished, and a command is not left behind without being recorded
    /// or told to end.
    pub(super) fn run(mut self) -> Result<ExitCode, Failure> {
        let suspended = command::suspend(&self.plan.command, None)?;
        // After the command was made, so that it keeps the limit it is used to.
        raise_open_file_limit();
        let targets = self
            .plan
            .targets(suspended.as_ref().map(SuspendedCommand::pid));
        let samplers = self.open(&targets)?;
        let mut recording = self.begin(samplers, &targets)?;
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

    /// Opens a sampler for each target. Where the kernel may not be sampled, user mode is, if all
    /// events occur there.
    fn open(&mut self, targets: &[Target]) -> Result<Vec<Sampler>, Failure> {
        let backend = &self.plan.backend;
        let open = |spec: &SamplerSpec| -> quipu::Result<Vec<Sampler>> {
            let samplers = targets
                .iter()
                .map(|target| backend.open_sampler(spec, target));
            samplers.collect()
        };
        let denied = match open(&self.spec) {
            Err(error) if error.kind() == ErrorKind::NoPermission => error,
            other => return Ok(other?),
        };
        for sampled in &mut self.spec.events {
            if !sampled.event.filter.contains(Filter::USER | Filter::KERNEL) {
                return Err(denied.into());
            }
            sampled.event.filter = sampled.event.filter.with_levels(Filter::USER);
        }
        let samplers = open(&self.spec)?;
        let mut infos = samplers.iter().flat_map(Sampler::events);
        if infos.any(|info| !info.occurs_in.contains(Filter::USER)) {
            return Err(denied.into());
        }
        let hint = denied.hint().unwrap_or("it is not permitted");
        let hint = hint.trim_end_matches(", or count user mode only (:u)");
        self.notes.push(format!("sampling user mode only: {hint}"));
        Ok(samplers)
    }

    /// Begins the file with the state of before; from here on everything is recorded.
    fn begin(&self, samplers: Vec<Sampler>, targets: &[Target]) -> Result<Recording, Failure> {
        let events = recorded_events(&self.spec, &samplers)?;
        let attrs = events.iter().map(RecordedEvent::attr);
        let statistics = Statistics::new(attrs, &samplers);
        let first_ids = events
            .iter()
            .map(|event| (event.name(), event.ids().first()));
        let names: Vec<_> = first_ids
            .filter_map(|(name, id)| Some(synthesized::event_name(*id?, name?)))
            .collect();
        let mut output = Output::create(&self.plan.output, events)?;
        // Before anything else, so that a file that is not finished has them.
        output.write(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for note in &self.notes {
            self.say(note);
        }
        if self.plan.verbose {
            for (sampled, info) in self.spec.events.iter().zip(samplers[0].events()) {
                self.say(&format!(
                    "{} is sampled as {}, {:?}",
                    sampled.event, info.name, sampled.rate
                ));
            }
        }
        if self.plan.scope != Scope::Command {
            // First, so that later mappings are not missed.
            samplers.iter().try_for_each(Sampler::enable)?;
        }
        let records = existing::records(targets, trailer_len(samplers[0].layout().sample_type()));
        output.write(&[&records]);
        output.finish_round();
        Ok(Recording {
            statistics,
            samplers,
            output,
            last_progress: Instant::now(),
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
    fn watch(&self, targets: &[Target], recording: &mut Recording) -> Result<(), Failure> {
        if !self.plan.quiet && io::stderr().is_terminal() {
            self.say("recording; press Ctrl-C to stop and write the file");
        }
        loop {
            let ended = self.signals.arrived() || !any_alive(targets);
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
        Ok(match recording.samplers.as_mut_slice() {
            [one] => one.wait(Some(DRAIN_INTERVAL))?,
            [] => Woken::Ended,
            [first, ..] => match first.wait(Some(DRAIN_INTERVAL_OF_MANY))? {
                // The others may go on.
                Woken::Ended => {
                    self.signals.sleep(DRAIN_INTERVAL_OF_MANY);
                    Woken::TimedOut
                }
                woken => woken,
            },
        })
    }

    /// Stops, writes the remaining records, and reports.
    fn finish(&self, mut recording: Recording) -> Result<(), Failure> {
        recording.stop();
        let drained = recording.drain();
        let losses = statistics::losses(&recording.samplers, self.spec.events.len());
        for (record, count) in losses.counted {
            let record = synthesized::lost_samples(count, recording.samplers[0].layout(), record);
            recording.output.write(&[&record]);
        }
        let mut features = machine::features();
        features.build_ids = recording.statistics.build_ids();
        features.sample_time = recording.statistics.times();
        let events = self.spec.events.iter().map(|s| &s.event.event);
        features.tracing_data = tracepoints::formats(events).map(|data| data.to_bytes());
        let statistics = recording.statistics;
        let len = recording.output.finish(&features)?;
        drained?;
        if self.plan.quiet {
            return Ok(());
        }
        let lost = losses.all;
        let (events, counts) = (self.spec.events.iter(), statistics.by_event());
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
            self.plan.output.display()
        ));
        if lost > 0 {
            self.say(&format!(
                "samples were lost because a ring buffer was full: use more pages (-m {}) or a lower rate",
                4 * self.spec.ring_bytes / 4096
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
        for sampler in &self.samplers {
            // Threads that have ended have nothing to stop.
            let _ = sampler.disable();
        }
    }

    /// Writes the records in the rings as they are.
    fn drain(&mut self) -> Result<(), Failure> {
        for sampler in &mut self.samplers {
            let layout = *sampler.layout();
            for ring in sampler.rings_mut() {
                let mut batch = ring.records();
                if batch.remaining() == 0 {
                    continue;
                }
                self.output.write(&batch.bytes());
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
) -> Result<Vec<RecordedEvent>, Failure> {
    let events = spec.events.iter().enumerate();
    events
        .map(|(index, sampled)| {
            let counters = samplers.iter().flat_map(Sampler::counters);
            let own: Vec<_> = counters.filter(|c| c.event() == index).collect();
            let attr = own.first().map(|c| c.attr_bytes()).unwrap_or_default();
            let attr = EventAttr::from_bytes(&attr).map_err(|e| {
                Failure::new(format_args!(
                    "cannot describe {} in a file: {e}",
                    sampled.event
                ))
            })?;
            let ids = own.iter().map(|c| c.id()).collect();
            Ok(RecordedEvent::new(attr, ids, sampled.event.to_string()))
        })
        .collect()
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
