//! Recording on FreeBSD: samples of hwpmc(4), and the files and names in the driver's log, as records of a `perf.data` file.

#[cfg(feature = "commands")]
mod live;
mod loaded;
mod plan;
mod records;
mod samples;

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::utsname::{UtsName, uname};
use quipu::Woken;
use quipu::command::{Running, SuspendedCommand};
use quipu_hwpmc::{Driver, Hwpmc, HwpmcBackend};
use quipu_perf_data::{Compressor, Features, synthesized};
use quipu_symbols::Copies;
use signal_hook::consts::SIGTERM;

use quipu_shell::signals::Signals;
use quipu_shell::target::Scope;
use quipu_shell::terminal;
use quipu_shell::{Failure, command};

#[cfg(feature = "commands")]
pub(crate) use self::live::Live;
use self::plan::Plan;
use self::records::counter_id;
use self::samples::Samples;
use super::cut_chains;
use super::kept_names::{self, Kept};
use super::messages::{megabytes, samples, say};
use super::options::{NamesIn, Options};
use super::output::{Destination, Output, StandardOutput};
use super::second_signal::SecondSignal;

/// The longest wait for samples before the command and signals are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// The time between progress messages.
const PROGRESS: Duration = Duration::from_secs(1);

/// Why samples were lost, and what helps.
const NO_ROOM: &str = "the driver had no room for what was lost, of everyone who samples: take fewer with -c, or set \
                       kern.hwpmc.nsamples and kern.hwpmc.nbuffers_pcpu higher in loader.conf(5)";

/// Records what the options name.
pub(super) fn record(options: &Options) -> Result<ExitCode, Failure> {
    let plan = Plan::new(options)?;
    let destination = Destination::of(&options.output);
    let backend = quipu::hwpmc_backend()?;
    let (signals, second) = (Signals::watch()?, SecondSignal::watch()?);
    let stdout = match destination {
        Destination::Stream => Some(StandardOutput::take()?),
        Destination::File(_) => None,
    };
    let suspended = command::suspend(&options.target.command, None)?;
    let command = suspended.as_ref().map(SuspendedCommand::pid);
    let samples = Samples::open(&plan, &backend, command)?;
    let compressor = options.compression_level.filter(|level| *level > 0);
    let compressor = compressor.map(Compressor::new).transpose();
    let compressor =
        compressor.map_err(|_| Failure::usage("-z: this quipu was built without zstd"))?;
    let mut features = features(&backend);
    let output = match (&destination, stdout) {
        (Destination::Stream, Some(stdout)) => {
            features.compression = compressor.as_ref().map(Compressor::description);
            Output::stream(stdout, &samples.events, &features)?
        }
        _ => Output::create(&options.output, samples.events.clone())?,
    };
    let mut recording = Recording {
        options,
        samples,
        output,
        signals,
        second,
        told: Instant::now(),
    };
    if let Destination::File(_) = destination {
        // Before anything else, so that a file that is not finished has them.
        for (index, name) in plan.names.iter().enumerate() {
            let name = synthesized::event_name(counter_id(index), name);
            recording.output.write(&[&name]);
        }
    }
    recording.output.compress(compressor);
    if plan.scope != Scope::Command {
        recording.samples.sampler.enable()?;
    }
    let status = match suspended {
        Some(suspended) => {
            let resumed = suspended.resume();
            let program = &options.target.command[0];
            resumed
                .map_err(|e| command::not_executed(program, &e))
                .and_then(|mut running| {
                    let status = recording.follow(&mut running);
                    if status.is_err() {
                        command::signal(&running, SIGTERM);
                    }
                    status
                })
        }
        None => recording.watch().map(|()| 0),
    };
    let finished = recording.finish(&plan, features);
    let status = status?;
    finished?;
    Ok(ExitCode::from(status))
}

/// Returns the description of the machine, and the command line of this process.
fn features(backend: &HwpmcBackend<Hwpmc>) -> Features {
    let mut features = Features::default();
    let system = uname().ok();
    let system =
        |part: fn(&UtsName) -> &std::ffi::OsStr| Some(part(system.as_ref()?).to_str()?.to_owned());
    features.host_name = system(UtsName::nodename);
    features.os_release = system(UtsName::release);
    features.version = Some(format!("quipu {}", env!("CARGO_PKG_VERSION")));
    // By the name that readers know it by, which is amd64 here.
    features.arch = Some(std::env::consts::ARCH.to_owned());
    let machine = backend.driver().machine().ok();
    features.cpus = machine.map(|machine| (machine.cpus, machine.cpus));
    let words = std::env::args_os();
    features.command_line = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    features
}

/// A recording in progress.
struct Recording<'a> {
    options: &'a Options,
    samples: Samples,
    output: Output,
    signals: Signals,
    second: SecondSignal,
    /// The time of the last progress message.
    told: Instant,
}

impl Recording<'_> {
    /// Records until the command has ended; returns its exit status. A second signal ends the recording, and tells the
    /// command to end, without waiting for it. Where the file cannot be written any more, the command goes on.
    fn follow(&mut self, running: &mut Running) -> Result<u8, Failure> {
        let mut is_told = false;
        loop {
            if let Some(signal) = self.signals.take_to_pass_on() {
                command::signal(running, signal);
            }
            if let (true, Some(signal)) = (self.second.arrived(), self.signals.last()) {
                command::signal(running, SIGTERM);
                return Ok(command::exit_code(ExitStatus::from_raw(signal)));
            }
            if let (Some(why), false) = (self.output.why_broken(), is_told) {
                terminal::warn(format_args!(
                    "{why}; the command goes on without being recorded"
                ));
                is_told = true;
            }
            let ended = self.samples.sampler.wait(Some(INTERVAL))? == Woken::Ended;
            self.drain()?;
            let timeout = if ended { INTERVAL } else { Duration::ZERO };
            if let Some(exit) = running.wait_timeout(timeout)? {
                return Ok(command::exit_code(exit.status));
            }
        }
    }

    /// Records until a signal, or until no sampled process is left.
    fn watch(&mut self) -> Result<(), Failure> {
        if !self.options.quiet && io::stderr().is_terminal() {
            say(
                self.options.quiet,
                "recording; press Ctrl-C to stop and write the file",
            );
        }
        loop {
            let ended = self.signals.arrived()
                || self.samples.sampler.wait(Some(INTERVAL))? == Woken::Ended
                || self.output.is_broken();
            self.drain()?;
            if ended {
                return Ok(());
            }
            if self.told.elapsed() >= PROGRESS && io::stderr().is_terminal() {
                self.told = Instant::now();
                let (taken, len) = (self.taken(), megabytes(self.output.len()));
                let lost = self.samples.sampler.lost();
                say(
                    self.options.quiet,
                    &format!("{taken} so far, {lost} lost, {len}"),
                );
            }
        }
    }

    /// Writes what was logged since the last time.
    fn drain(&mut self) -> Result<(), Failure> {
        let out = self.samples.drain()?;
        if !out.is_empty() {
            self.output.write_records(&[out]);
            self.output.finish_round();
            out.clear();
        }
        Ok(())
    }

    /// Stops, writes the remaining records, and reports.
    fn finish(mut self, plan: &Plan, mut features: Features) -> Result<(), Failure> {
        // Of what has ended there is nothing to stop.
        let _ = self.samples.sampler.disable();
        let drained = self.drain();
        features.sample_time = self.samples.records.times;
        let (options, taken, lost) = (self.options, self.taken(), self.samples.sampler.lost());
        let destination = Destination::of(&options.output);
        let mut len = self.output.finish(features)?;
        drained?;
        let path = &options.output;
        let is_file = matches!(destination, Destination::File(_)) && path.is_file();
        if is_file && options.names != NamesIn::None {
            // The one that has ended the recording.
            let _ = self.second.arrived();
            let mut is_enough = || self.second.arrived_again();
            match kept_names::keep(path, options.names, Copies::default(), &mut is_enough) {
                Kept::InFile(addresses, grown) => {
                    len += grown;
                    if options.verbose {
                        say(
                            options.quiet,
                            &format!("names of {addresses} addresses are kept"),
                        );
                    }
                }
                Kept::InCache(files) if options.verbose => {
                    say(
                        options.quiet,
                        &format!("{files} of the files are in the cache"),
                    );
                }
                Kept::InCache(_) => {}
                Kept::Not(why) => say(options.quiet, &format!("{}: {why}", path.display())),
            }
        }
        if options.verbose {
            for (count, name) in self.samples.records.samples.iter().zip(&plan.names) {
                say(options.quiet, &format!("{} of {name}", samples(*count)));
            }
        }
        let len = megabytes(len);
        say(
            options.quiet,
            &format!("{taken}, {lost} lost, {len} in {destination}"),
        );
        if lost > 0 {
            say(options.quiet, NO_ROOM);
        }
        if let Some(note) = self.samples.records.note_on_kernel() {
            say(options.quiet, &note);
        }
        if is_file
            && plan.spec.call_chains
            && let Some(note) = cut_chains::note(path)
        {
            say(options.quiet, &note);
        }
        Ok(())
    }

    fn taken(&self) -> String {
        samples(self.samples.records.samples.iter().sum())
    }
}
