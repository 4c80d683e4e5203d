//! Recording: open, begin the file, release the command, drain the rings, finish the file.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu::linux::sampling::{SampleType, Sampler, SamplerSpec, Woken};
use quipu::posix::{HeldCommand, Running};
use quipu::{ErrorKind, Filter, Target};
use quipu_perf_data::{EventAttr, RecordedEvent, synthesized};

use crate::failure::Failure;
use crate::stat::signals::Signals;
use crate::stat::{any_alive, command, open_files};

use super::existing;
use super::machine;
use super::output::Output;
use super::plan::{Plan, Scope};
use super::tally::{self, Tally};
use super::tracepoints;

/// How long to wait for one sampler before all are drained, and the command and signals looked at.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same where there are several samplers, which cannot be waited for at once.
const IMPATIENCE: Duration = Duration::from_millis(20);
/// How often a person is told how things go.
const PROGRESS: Duration = Duration::from_secs(1);

/// One call of `quipu record`.
pub(super) struct Session<'a> {
    plan: &'a Plan,
    signals: Signals,
    /// What is asked for, and after [`open`](Self::open) what is sampled: maybe user mode only.
    spec: SamplerSpec,
    /// What a person has to know.
    notes: Vec<String>,
}

/// What is open while it records.
struct Recording {
    samplers: Vec<Sampler>,
    output: Output,
    tally: Tally,
    /// When a person was last told.
    told: Instant,
}

impl<'a> Session<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, Failure> {
        Ok(Self {
            plan,
            signals: Signals::watch()?,
            spec: plan.spec.clone(),
            notes: plan.note.into_iter().map(str::to_owned).collect(),
        })
    }

    pub(super) fn run(mut self) -> Result<ExitCode, Failure> {
        let held = command::hold(&self.plan.command, None)?;
        // After the command was made, so that it keeps the limit it is used to.
        open_files::allow_as_many_as_possible();
        let targets = self.plan.targets(held.as_ref().map(HeldCommand::pid));
        let samplers = self.open(&targets)?;
        let mut recording = self.begin(samplers, &targets)?;
        let status = match held {
            Some(held) => {
                let running = held
                    .release()
                    .map_err(|e| command::not_executed(&self.plan.command[0], &e));
                match running {
                    Ok(running) => self.follow(running, &mut recording)?,
                    Err(failure) => {
                        self.finish(recording)?;
                        return Err(failure);
                    }
                }
            }
            None => {
                self.watch(&targets, &mut recording)?;
                0
            }
        };
        self.finish(recording)?;
        Ok(ExitCode::from(status))
    }

    /// A sampler for each target. Where the kernel may not be sampled, user mode is, if that means
    /// something for all events.
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
        self.notes
            .push(format!("user mode only is sampled: {hint}"));
        Ok(samplers)
    }

    /// Begins the file. What was there before comes first; from here on everything is recorded.
    fn begin(&self, samplers: Vec<Sampler>, targets: &[Target]) -> Result<Recording, Failure> {
        let events = recorded_events(&self.spec, &samplers)?;
        let mut output = Output::create(&self.plan.output, events)?;
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
            // First, so that what is mapped meanwhile is not missed.
            samplers.iter().try_for_each(Sampler::enable)?;
        }
        let records = existing::records(targets, trailer_len(samplers[0].layout().sample_type()));
        output.write(&[&records]);
        output.finish_round();
        Ok(Recording {
            tally: Tally::new(self.spec.events.len(), &samplers),
            samplers,
            output,
            told: Instant::now(),
        })
    }

    /// Records until the command has ended; its exit status.
    fn follow(&self, mut running: Running, recording: &mut Recording) -> Result<u8, Failure> {
        loop {
            if let Some(signal) = self.signals.take_to_pass_on() {
                running.signal(signal)?;
            }
            let all_ended = self.wait(recording)? == Woken::Ended;
            // All that it did is in the rings before it is seen to have ended.
            let patience = if all_ended { PATIENCE } else { Duration::ZERO };
            let exit = running.wait_timeout(patience)?;
            recording.drain()?;
            if let Some(exit) = exit {
                return Ok(command::exit_code(exit.status));
            }
        }
    }

    /// Records until a signal, or until nobody is left who is sampled.
    fn watch(&self, targets: &[Target], recording: &mut Recording) -> Result<(), Failure> {
        if !self.plan.quiet && io::stderr().is_terminal() {
            self.say("recording; Ctrl-C ends and writes the file");
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
            [one] => one.wait(Some(PATIENCE))?,
            [] => Woken::Ended,
            [first, ..] => match first.wait(Some(IMPATIENCE))? {
                // The others may go on.
                Woken::Ended => {
                    self.signals.sleep(IMPATIENCE);
                    Woken::TimedOut
                }
                woken => woken,
            },
        })
    }

    /// Stops, writes what is left, and reports.
    fn finish(&self, mut recording: Recording) -> Result<(), Failure> {
        for sampler in &recording.samplers {
            // Threads that have ended have nothing to stop.
            let _ = sampler.disable();
        }
        recording.drain()?;
        let lost = tally::lost(&recording.samplers);
        let unsaid = lost.saturating_sub(tally::said_lost(&recording.samplers));
        if unsaid > 0 {
            let trailer = trailer_len(recording.samplers[0].layout().sample_type());
            let record = synthesized::lost_samples(unsaid, trailer);
            recording.output.write(&[&record]);
        }
        let mut features = machine::features();
        features.build_ids = recording.tally.build_ids();
        features.sample_time = recording.tally.times();
        let events = self.spec.events.iter().map(|s| &s.event.event);
        features.tracing_data = tracepoints::formats(events).map(|data| data.to_bytes());
        let tally = recording.tally;
        let len = recording.output.finish(&features)?;
        if self.plan.quiet {
            return Ok(());
        }
        if self.plan.verbose {
            for (sampled, count) in self.spec.events.iter().zip(tally.by_event()) {
                self.say(&format!("{count} samples of {}", sampled.event));
            }
        }
        self.say(&format!(
            "{}, {lost} lost, {} in {}",
            samples(tally.samples()),
            megabytes(len),
            self.plan.output.display()
        ));
        if lost > 0 {
            self.say(&format!(
                "some samples found no room: more pages (-m {}) or a lower rate lose fewer",
                4 * self.spec.ring_bytes / 4096
            ));
        }
        Ok(())
    }

    /// Tells a person at the terminal how things go, where no command writes there.
    fn progress(&self, recording: &mut Recording) {
        if self.plan.quiet || recording.told.elapsed() < PROGRESS || !io::stderr().is_terminal() {
            return;
        }
        recording.told = Instant::now();
        self.say(&format!(
            "{} so far, {} lost, {}",
            samples(recording.tally.samples()),
            tally::said_lost(&recording.samplers),
            megabytes(recording.output.len())
        ));
    }

    fn say(&self, text: &str) {
        if !self.plan.quiet {
            // Who does not listen misses nothing that is not in the file.
            let _ = writeln!(io::stderr(), "[ quipu record: {text} ]");
        }
    }
}

impl Recording {
    /// Writes what is in the rings, as it is there.
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
                        self.tally.note(&record, &layout)?;
                    }
                }
            }
        }
        self.output.finish_round();
        Ok(())
    }
}

/// The events with the ids of all their counters.
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

/// How many bytes records that are no samples end with.
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
