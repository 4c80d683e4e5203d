//! Recording: open, begin the file, release the command, drain the rings, finish the file.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use quipu::Target;
use quipu::command::{Running, SuspendedCommand};
use quipu_linux::sampling::{Sampler, Woken};
use quipu_perf_data::synthesized;
use quipu_symbols::Copies;
use signal_hook::consts::SIGTERM;

use quipu_shell::Failure;
use quipu_shell::command;
use quipu_shell::control::{self, Command, Control, Purpose};
use quipu_shell::signals::Signals;
use quipu_shell::target::Scope;
use quipu_shell::tasks::{any_alive, raise_open_file_limit};
use quipu_shell::terminal;

use super::chains::follows_frame_pointers;
use super::cut_chains;
use super::kept_names::{self, Kept};
use super::messages::{megabytes, samples, say};
use super::opening::OpenSamplers;
use super::options::{NamesIn, Options};
use super::output::{Destination, StandardOutput};
use super::plan::RecordPlan;
use super::second_signal::SecondSignal;
use super::session::{self, Recording};
use super::statistics;
use super::switch::FileSwitch;
use crate::report::throttled;

/// The longest wait for samplers before all are drained, and the command and signals checked.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time without a look at whether the command or the targets have ended, as long as rings are not empty.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The time between progress messages.
const PROGRESS: Duration = Duration::from_secs(1);

/// Records what the options name, on Linux.
pub(super) fn record(options: &Options) -> Result<ExitCode, Failure> {
    let plan = RecordPlan::new(options)?;
    Recorder::new(&plan)?.run()
}

/// One call of `quipu record`.
struct Recorder<'a> {
    plan: &'a RecordPlan,
    signals: Signals,
    second: SecondSignal,
    control: Option<Control>,
    /// The files, where they are kept under names of their own.
    switch: Option<FileSwitch>,
    /// The time at which sampling starts, where that is delayed.
    start: Option<Instant>,
}

impl<'a> Recorder<'a> {
    fn new(plan: &'a RecordPlan) -> Result<Self, Failure> {
        Ok(Self {
            plan,
            signals: Signals::watch()?,
            second: SecondSignal::watch()?,
            control: match &plan.control {
                Some(files) => Some(Control::open(files, Purpose::Record)?),
                None => None,
            },
            switch: plan.switch()?,
            start: None,
        })
    }

    /// Records. Whatever fails on the way, the file is finished, and a command is not left behind without being recorded
    /// or told to end.
    fn run(mut self) -> Result<ExitCode, Failure> {
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
        let opened = OpenSamplers::open(self.plan, &targets)?;
        self.introduce(&opened);
        let mut recording = Recording::begin(self.plan, opened, targets.clone(), stdout)?;
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

    /// Tells what is recorded, where that was asked for or is other than it was asked for.
    fn introduce(&self, opened: &OpenSamplers) {
        for note in &opened.notes {
            self.say(note);
        }
        if self.plan.verbose {
            let infos = opened.samplers[0].events();
            for (sampled, info) in opened.spec.events.iter().zip(infos) {
                self.say(&format!(
                    "{} is sampled as {}, {:?}",
                    sampled.event, info.name, sampled.rate
                ));
            }
        }
    }

    /// Records until the command has ended; returns its exit status. A second signal ends the recording, and tells the
    /// command to end, without waiting for it. Where the file cannot be written any more, the command goes on.
    fn follow(&mut self, running: &mut Running, recording: &mut Recording) -> Result<u8, Failure> {
        let (mut is_told, mut is_found) = (false, false);
        let mut looked = Instant::now();
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
            let all_ended = self.wait_unless(is_found, recording)? == Woken::Ended;
            // First of all: rings fill up in the time that anything else takes.
            is_found = recording.drain()?;
            if is_found && looked.elapsed() < LOOK_INTERVAL {
                continue;
            }
            looked = Instant::now();
            let timeout = if all_ended {
                DRAIN_INTERVAL
            } else {
                Duration::ZERO
            };
            // What it did since is in the rings, which are read again at the end.
            if let Some(exit) = running.wait_timeout(timeout)? {
                return Ok(command::exit_code(exit.status));
            }
        }
    }

    /// Records until a signal, or until no sampled task is left.
    fn watch(&mut self, targets: &[Target], recording: &mut Recording) -> Result<(), Failure> {
        if !self.plan.quiet && io::stderr().is_terminal() {
            self.say("recording; press Ctrl-C to stop and write the file");
        }
        let (mut is_found, mut looked) = (false, Instant::now());
        loop {
            let mut ended = self.is_to_end(recording)? || self.signals.arrived();
            if !is_found || looked.elapsed() >= LOOK_INTERVAL {
                ended |= !any_alive(targets);
                looked = Instant::now();
            }
            if !ended {
                self.wait_unless(is_found, recording)?;
            }
            is_found = recording.drain()?;
            if ended || recording.output.is_broken() {
                return Ok(());
            }
            self.progress(recording);
        }
    }

    /// Waits for records, but not where the last round found some: it may have taken long, and what is in a ring again takes
    /// from the room for what comes until this process runs.
    fn wait_unless(&self, is_found: bool, recording: &mut Recording) -> Result<Woken, Failure> {
        match is_found {
            true => Ok(Woken::Data),
            false => self.wait(recording),
        }
    }

    fn wait(&self, recording: &mut Recording) -> Result<Woken, Failure> {
        let mut longest = DRAIN_INTERVAL;
        if self.control.is_some() {
            longest = control::INTERVAL;
        }
        if let Some(start) = self.start {
            longest = longest.min(start.saturating_duration_since(Instant::now()));
        }
        let mut samplers: Vec<_> = recording.samplers.iter_mut().collect();
        Ok(Sampler::wait_any(&mut samplers, Some(longest))?)
    }

    /// Starts sampling when its time has come, does what commands say, and goes on in a new file when it is time for that;
    /// returns true once the recording is to end: by a command, or because the file is as long as it may be.
    fn is_to_end(&mut self, recording: &mut Recording) -> Result<bool, Failure> {
        if recording.is_over {
            return Ok(false);
        }
        if self.start.is_some_and(|start| start <= Instant::now()) {
            self.start = None;
            recording.samplers.iter().try_for_each(Sampler::enable)?;
        }
        if let Some(control) = &mut self.control {
            for command in control.commands()? {
                match command {
                    Command::Enable => recording.samplers.iter().try_for_each(Sampler::enable)?,
                    Command::Disable => recording.samplers.iter().try_for_each(Sampler::disable)?,
                    Command::Ping => {}
                    Command::Stop => recording.is_over = true,
                }
                control.acknowledge()?;
            }
        }
        let mut kept = None;
        if let Some(switch) = &mut self.switch
            && !recording.output.is_broken()
            && switch.is_due(recording.output.len())
        {
            let name = switch.next_name();
            let len = recording.switch(self.plan, &name)?;
            kept = Some(format!("{} in {}", megabytes(len), name.display()));
            switch.keep(name);
        }
        if let Some(kept) = kept {
            self.say(&kept);
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
    fn finish(&mut self, mut recording: Recording) -> Result<(), Failure> {
        recording.stop();
        let mut drained = recording.drain_all();
        if drained.is_ok() && self.plan.off_cpu {
            // What came in the last round is put in order in the next.
            drained = recording.drain().map(drop);
        }
        let losses = statistics::losses(&recording.samplers, recording.spec.events.len());
        for (record, count) in losses.counted {
            let record = synthesized::lost_samples(count, recording.samplers[0].layout(), record);
            recording.output.write(&[&record]);
        }
        let mut name = self.plan.output.to_string();
        if let Some(switch) = &mut self.switch {
            let own = switch.next_name();
            recording.output.rename(&own)?;
            name = own.display().to_string();
            switch.keep(own);
        }
        let mut statistics = recording.statistics;
        let mut features = session::features(&recording.spec);
        features.build_ids.extend(statistics.build_ids());
        features.sample_time = statistics.times();
        let mut len = recording.output.finish(features)?;
        len += self.keep_names(Path::new(&name), &statistics.copies());
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
            name
        ));
        let of_tasks = matches!(self.plan.scope, Scope::Command | Scope::Tasks(_));
        if let Some(remark) = statistics.not_sampled().filter(|_| of_tasks) {
            self.say(&remark);
        }
        if lost > 0 {
            self.say(&format!(
                "samples were lost because a ring buffer was full: use more pages (-m {}) or a lower rate",
                4 * recording.spec.ring_bytes / 4096
            ));
        }
        if matches!(self.plan.output, Destination::File(_))
            && follows_frame_pointers(&recording.spec)
            && let Some(note) = cut_chains::note(Path::new(&name))
        {
            self.say(&note);
        }
        Ok(())
    }

    /// Keeps the names of what was hit with the files of the recording; returns the number of bytes that the last one, at
    /// `path`, has grown by.
    fn keep_names(&mut self, path: &Path, copies: &Copies) -> u64 {
        let is_file = matches!(self.plan.output, Destination::File(_)) && path.is_file();
        if self.plan.names_in == NamesIn::None || !is_file {
            return 0;
        }
        // The one that has ended the recording.
        let _ = self.second.arrived();
        let mut files: Vec<_> = self.switch.iter().flat_map(FileSwitch::kept).collect();
        if files.is_empty() {
            files.push(path);
        }
        let mut grown = 0;
        let mut sentences = Vec::new();
        for file in files {
            let (place, copies) = (self.plan.names_in, copies.clone());
            match kept_names::keep(file, place, copies, || self.second.arrived_again()) {
                Kept::InCache(files) => {
                    if self.plan.verbose {
                        sentences.push(match files {
                            1 => "1 file is in the cache".to_owned(),
                            files => format!("{files} files are in the cache"),
                        });
                    }
                }
                Kept::InFile(addresses, len) => {
                    grown = len;
                    if self.plan.verbose {
                        let len = megabytes(len);
                        sentences.push(format!("names of {addresses} addresses are kept, {len}"));
                    }
                }
                Kept::Not(why) => {
                    sentences.push(format!("{}: {why}", file.display()));
                    break;
                }
            }
        }
        for sentence in sentences {
            self.say(&sentence);
        }
        grown
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
        say(self.plan.quiet, text);
    }
}
