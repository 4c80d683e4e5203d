//! One run of a command: its process, its counters and its end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use quipu::command::{Exit, Running};
use quipu_shell::signals::Signals;
use quipu_shell::{Failure, command};
use quipu_text::parse_cpu_list;

use crate::metrics::Source;
use crate::options::Options;
use crate::passes::{Pass, Value, value};
use crate::subjects::Subject;

/// The longest that is waited at a time.
const LONGEST: Duration = Duration::from_secs(3600);
/// The variable that lengthens the environment.
const PADDING: &str = "QUIPU_COMPARE_PADDING";
/// The most by which the environment is lengthened, as a page of the stack is.
const MOST_PADDING: usize = 4096;
/// The bytes that a process may write to before it executes its program.
const WRITTEN_BEFORE: u64 = 128 << 10;
/// Bytes in a unit of `ru_maxrss` (getrusage(2) of each system).
const MAXRSS_UNIT: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// The way in which commands are run.
#[derive(Debug)]
pub(crate) struct Trials<'a> {
    options: &'a Options,
    cpus: Option<Vec<u32>>,
    input: PathBuf,
    random: fastrand::Rng,
    /// The memory of a process before it executes its program, beside what this process had then, in bytes.
    before: Option<(u64, u64)>,
}

/// One run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) exit: Exit,
    /// True if it took longer than it may, and was killed.
    pub(crate) timed_out: bool,
    /// The memory of its process before it executed the program, below which its peak is not known, in bytes.
    memory_before: u64,
    /// The values of the events of its pass.
    events: Vec<Value>,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(options: &'a Options, seed: u64) -> Result<Self, Failure> {
        let cpus = match &options.cpu {
            Some(list) => {
                Some(parse_cpu_list(list).map_err(|e| Failure::usage(format_args!("{e:#}")))?)
            }
            None => None,
        };
        if cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err(Failure::usage("--cpu needs CPUs, written like 0-3,8"));
        }
        let trials = Self {
            options,
            cpus,
            input: options
                .input
                .clone()
                .unwrap_or_else(|| PathBuf::from("/dev/null")),
            random: fastrand::Rng::with_seed(seed),
            before: None,
        };
        // Before anything runs.
        trials.open_input()?;
        if let Some(directory) = &options.directory {
            fs::read_dir(directory).map_err(|e| {
                let directory = directory.display();
                Failure::new(format_args!("cannot run the commands in {directory}: {e}"))
            })?;
        }
        Ok(trials)
    }

    /// Notes what memory the process of a command has before it executes its program.
    pub(crate) fn note_memory_before(&mut self, probe: &quipu::command::SuspendedCommand) {
        let resident = resident(probe.pid());
        self.before = resident.map(|resident| (resident, own_peak()));
    }

    /// Returns the most memory that a process has before it executes its program: that of the first, and what this process
    /// has grown by since; without it, all that this process has had.
    fn memory_before(&self) -> u64 {
        let now = own_peak();
        match self.before {
            Some((resident, then)) => resident + now.saturating_sub(then) + WRITTEN_BEFORE,
            None => now,
        }
    }

    fn open_input(&self) -> Result<File, Failure> {
        let file = self.input.display();
        File::open(&self.input).map_err(|e| Failure::new(format_args!("cannot read {file}: {e}")))
    }

    /// Makes the process of a command, which is not executed yet.
    pub(crate) fn suspend(
        &mut self,
        subject: &Subject,
    ) -> Result<quipu::command::SuspendedCommand, Failure> {
        let (program, arguments) = subject
            .words
            .split_first()
            .unwrap_or_else(|| unreachable!("commands have words"));
        let mut process = Command::new(program);
        process.args(arguments).stdin(self.open_input()?);
        if !self.options.show_output {
            process.stdout(Stdio::null()).stderr(Stdio::null());
        }
        if let Some(directory) = &self.options.directory {
            process.current_dir(directory);
        }
        if self.options.shuffle_env {
            process.env(PADDING, "x".repeat(self.random.usize(..MOST_PADDING)));
        }
        command::suspend_with(process, self.cpus.as_deref())
    }

    /// Runs a command with the counters of a pass, from --prepare to --conclude.
    pub(crate) fn run(
        &mut self,
        subject: &Subject,
        pass: &Pass,
        signals: &mut Signals,
    ) -> Result<Run, Failure> {
        shell("--prepare", self.options.prepare.as_deref())?;
        let suspended = self.suspend(subject)?;
        let mut counters = pass.open(&suspended)?;
        let running = suspended
            .resume()
            .map_err(|e| command::not_executed(&subject.words[0], &e))?;
        let (exit, timed_out) = self.wait(running, signals)?;
        let mut events = Vec::new();
        if let Some((set, counts)) = &mut counters {
            set.read(counts)?;
            let cpu_time = u64::try_from(cpu_time(&exit).as_nanos()).unwrap_or(u64::MAX);
            events.extend(counts.events().map(|event| value(event, cpu_time)));
        }
        shell("--conclude", self.options.conclude.as_deref())?;
        Ok(Run {
            exit,
            timed_out,
            memory_before: self.memory_before(),
            events,
        })
    }

    /// Runs --cleanup.
    pub(crate) fn clean_up(&self) -> Result<(), Failure> {
        shell("--cleanup", self.options.cleanup.as_deref())
    }

    /// Waits until a command ends; true if it was killed because it took too long.
    fn wait(&self, mut running: Running, signals: &mut Signals) -> Result<(Exit, bool), Failure> {
        let deadline = self.options.timeout.map(|timeout| Instant::now() + timeout);
        let mut timed_out = false;
        loop {
            let left = deadline
                .filter(|_| !timed_out)
                .map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if let Some(exit) = running.wait_timeout(left.unwrap_or(LONGEST))? {
                return Ok((exit, timed_out));
            }
            if let Some(signal) = signals.take_to_pass_on() {
                command::signal(&running, signal);
            }
            if !timed_out && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                timed_out = true;
                command::signal(&running, nix::libc::SIGKILL);
            }
        }
    }
}

impl Run {
    pub(crate) fn status(&self) -> ExitStatus {
        self.exit.status
    }

    /// Returns a number of the run; `events` are the positions of the events of its pass.
    pub(crate) fn value(
        &self,
        source: Source,
        events: impl Iterator<Item = usize>,
    ) -> Option<Value> {
        let seconds = |time: Duration| Ok(time.as_secs_f64());
        Some(match source {
            Source::Elapsed => seconds(self.exit.elapsed),
            Source::CpuTime => seconds(cpu_time(&self.exit)),
            Source::User => seconds(self.exit.user_time),
            Source::System => seconds(self.exit.system_time),
            Source::PeakMemory if self.exit.max_resident <= self.memory_before => {
                let before = self.memory_before as f64 / f64::from(1 << 20);
                Err(format!(
                    "it is not above the {before:.1} MiB that a process has before it executes its program, of quipu"
                ))
            }
            Source::PeakMemory => Ok(self.exit.max_resident as f64),
            Source::Event(wanted) => {
                let mut events = events;
                let at = events.position(|event| event == wanted)?;
                self.events.get(at)?.clone()
            }
        })
    }
}

/// Returns the CPU time of a command from its execution on.
fn cpu_time(exit: &Exit) -> Duration {
    (exit.user_time + exit.system_time).saturating_sub(exit.time_before)
}

/// Returns the most memory that a process has had, in bytes, where the system shows that as text (proc_pid_status(5), `VmHWM`).
fn resident(process: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the most memory that this process has had, in bytes.
fn own_peak() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let peak = usage.and_then(|usage| u64::try_from(usage.max_rss()).ok());
    peak.unwrap_or(0) * MAXRSS_UNIT
}

/// Runs a command of an option by the shell, if there is one.
fn shell(option: &str, command: Option<&OsStr>) -> Result<(), Failure> {
    let Some(command) = command else {
        return Ok(());
    };
    let status = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    let status = status.map_err(|e| Failure::new(format_args!("cannot execute sh: {e}")))?;
    match status.success() {
        true => Ok(()),
        false => {
            let command = command.to_string_lossy();
            Err(Failure::new(format_args!(
                "{option} failed ({status}): {command}"
            )))
        }
    }
}
