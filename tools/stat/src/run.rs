//! Running: attach, release, wait, read, report.

use std::ffi::OsStr;
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use quipu::Count;
use quipu::command::{Exit, Running, SuspendedCommand};
use signal_hook::consts::SIGTERM;

use crate::names::Names;
use quipu_shell::control::{self, Command, Control, Purpose};
use quipu_shell::signals::Signals;
use quipu_shell::target::Scope;
use quipu_shell::terminal;
use quipu_shell::{Failure, command, tasks};

use super::aggregate::Aggregation;
use super::backend::Backends;
use super::command_notes::CommandNotes;
use super::file::Keep;
use super::intervals::Intervals;
use super::lines::Lines;
use super::metrics;
use super::notes::{self, notes};
use super::plan::Plan;
use super::regions::Regions;
use super::repeat::Merge;
use super::report::{CommandTimes, Output, Report, Times};
use super::rows::{Row, TermCount};
use super::schedule::{LONGEST_SLEEP, Schedule};
use super::sets::{Sets, Snapshot};
use super::system;
use super::tool_events;
use super::uncounted::{CpuTime, Span};

/// The time between checks of tasks that are not children of this process.
const LIVENESS_CHECK: Duration = Duration::from_millis(50);
/// The time between progress messages.
const PROGRESS: Duration = Duration::from_secs(2);

/// One call of `quipu stat`.
pub struct Session<'a> {
    plan: &'a Plan,
    backends: &'a Backends,
    output: Output,
    signals: Signals,
    control: Option<Control>,
    /// Keeper of the counts, if they are kept, and why it has failed.
    pub(super) keeper: Option<Box<dyn Keep>>,
    not_kept: Option<Failure>,
    command: CommandNotes,
    pub(super) regions: Option<Regions>,
}

/// One measurement.
struct Run {
    sets: Sets,
    lines: Lines,
    /// When counting started.
    started: Instant,
    intervals: Option<Intervals>,
    /// The time that counters of processes have to cover.
    cpu_time: Option<CpuTime>,
    /// The lines of intervals in which a counter jumped.
    jumped: Vec<Row>,
}

impl Run {
    /// Notes the CPU times of now.
    fn look(&mut self) -> Option<&CpuTime> {
        let cpu_time = self.cpu_time.as_mut()?;
        cpu_time.look();
        Some(cpu_time)
    }

    /// Returns the rows since the last interval, and keeps those that jumped.
    fn rows_since(
        &mut self,
        intervals: &mut Intervals,
        elapsed: f64,
        span: Option<Span>,
    ) -> &mut [Row] {
        let Intervals { last, now, .. } = intervals;
        intervals.difference.set_difference(now, last);
        let seconds = elapsed - intervals.ended;
        let rows = (self.lines).fill(&self.sets, &intervals.difference, seconds);
        let jumped = rows.iter().filter(|row| row.count == Count::Jumped);
        self.jumped.extend(jumped.cloned());
        tool_events::fill(rows, seconds, None);
        if let Some(span) = span {
            let has_ended = span.mark(&self.sets, rows, None);
            if let Some(cpu_time) = &mut self.cpu_time {
                cpu_time.has_ended = has_ended;
            }
        }
        metrics::attach(rows, intervals.divisor(seconds));
        rows
    }

    /// Returns the rows of the whole run. A jump in an interval is in the value, also where it is too little
    /// for the whole time to show it.
    fn rows(&mut self, snapshot: &Snapshot, elapsed: f64) -> Vec<Row> {
        let rows = self.lines.fill(&self.sets, snapshot, elapsed);
        let mut rows = rows.to_vec();
        for row in &mut rows {
            if let Some(jumped) = self.jumped.iter().find(|jumped| jumped.is_line_of(row)) {
                (row.count, row.reason) = (Count::Jumped, jumped.reason.clone());
            }
        }
        metrics::attach(&mut rows, elapsed);
        rows
    }
}

/// The outcome of one measurement.
struct Outcome {
    rows: Vec<Row>,
    elapsed: f64,
    exit: Option<Exit>,
    sets: Sets,
}

impl<'a> Session<'a> {
    /// Returns a session that counts with these backends.
    pub fn new(plan: &'a Plan, backends: &'a Backends, output: Output) -> Result<Self, Failure> {
        Ok(Self {
            plan,
            backends,
            output,
            signals: Signals::watch()?,
            control: plan
                .control
                .as_ref()
                .map(|files| Control::open(files, Purpose::Count))
                .transpose()?,
            keeper: None,
            not_kept: None,
            command: CommandNotes::new(plan),
            regions: None,
        })
    }

    /// Measures as often as asked, and reports.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let _anchors = (self.plan.runs > 1 || self.plan.forever).then(system::anchors);
        let mut status = self.measure_and_report()?;
        while self.plan.forever && !self.signals.arrived() && !self.output.is_lost() {
            let code = self.measure_and_report()?;
            status = if status == 0 { code } else { status };
        }
        for failure in self.output.finish().err().into_iter().chain(self.not_kept) {
            if status == 0 {
                return Err(failure);
            }
            terminal::warn(failure);
        }
        Ok(ExitCode::from(status))
    }

    /// Returns the exit status of the runs of one report.
    fn measure_and_report(&mut self) -> Result<u8, Failure> {
        let mut merge = Merge::default();
        let mut times = Times::default();
        let mut status = 0;
        let mut last_progress = Instant::now();
        let mut last = None;
        let mut runs = 0;
        while runs < self.plan.runs && !(runs > 0 && self.signals.arrived()) {
            // What is on CPUs would go on counting, beside the next run's.
            drop(last.take());
            shell(self.plan.pre.as_deref())?;
            if last_progress.elapsed() > PROGRESS {
                last_progress = Instant::now();
                let text = format!("{runs} of {} runs done", self.plan.runs);
                self.output.progress(&text);
            }
            let outcome = self.measure()?;
            shell(self.plan.post.as_deref())?;
            runs += 1;
            times.elapsed.add(outcome.elapsed);
            if let Some(exit) = outcome.exit {
                if self.plan.scope == Scope::Command {
                    add_command(times.command.get_or_insert_default(), &exit);
                }
                let code = command::exit_code(exit.status);
                status = if status == 0 { code } else { status };
            }
            if self.plan.table {
                times.runs.push(outcome.elapsed);
            }
            if self.plan.reports_runs && self.plan.runs > 1 {
                self.output.run(runs as usize, &outcome.rows);
            }
            merge.add(outcome.rows);
            last = Some(outcome.sets);
        }
        let mut rows = merge.rows();
        // A metric of means, not that of one run.
        metrics::attach(&mut rows, times.elapsed.mean());
        let assumed_cpu = self.plan.names.as_ref().and_then(Names::assumed_cpu);
        let mut notes = last.as_ref().map_or_else(Vec::new, |sets| {
            notes(sets, &rows, assumed_cpu, self.plan.interval)
        });
        notes.extend(self.command.take(runs));
        if let Some(taken) = notes::taken_over(self.backends) {
            self.output.write_warning(&taken);
            notes.push(taken);
        }
        let report = Report {
            title: self.plan.title(),
            runs,
            notes,
            details: match &last {
                Some(sets) if self.plan.verbose > 0 => details(sets, &rows),
                _ => Vec::new(),
            },
            rows,
            times,
        };
        if self.plan.interval.is_none() || self.plan.summary {
            self.output.report(&report);
        } else {
            self.output.notes(&report);
        }
        if let Some(regions) = &self.regions {
            regions.report(&report.rows, &mut self.output)?;
        }
        let is_counted = |row: &Row| row.count.value().is_some();
        if status == 0 && !self.plan.requests.is_empty() && !report.rows.iter().any(is_counted) {
            status = Failure::STATUS;
        }
        Ok(status)
    }

    fn measure(&mut self) -> Result<Outcome, Failure> {
        self.command.before_run();
        let (words, cpus) = (&self.plan.command, self.plan.command_cpus());
        let suspended = match &self.regions {
            Some(regions) => Some(command::suspend_with(regions.command(words), cpus)?),
            None => command::suspend(words, cpus)?,
        };
        if self.plan.scope != Scope::Command {
            // After the command was made, so that it keeps the limit it is used to.
            tasks::raise_open_file_limit();
        }
        let command = suspended.as_ref().map(SuspendedCommand::pid);
        if let Some(command) = command {
            self.command.has_process(command);
        }
        let mut sets = Sets::open(self.plan, self.backends, command)?;
        if let Some(keeper) = &mut self.keeper {
            keeper.begin(self.plan, &sets, command)?;
        }
        let aggregation = Aggregation::new(self.plan.by, sets.all_parts())?;
        let aggregation = aggregation
            .merging_units(self.plan.merges_units)
            .of_every_thread(self.plan.every_thread);
        if self.plan.scope != Scope::Command && self.plan.delay.is_none() {
            sets.enable()?;
        }
        let intervals = self.plan.interval.map(|_| Intervals::new(&sets));
        let lines = Lines::new(&sets, &aggregation);
        let mut run = Run {
            sets,
            lines,
            started: Instant::now(),
            intervals,
            cpu_time: CpuTime::begin(self.plan, command),
            jumped: Vec::new(),
        };
        let exit = match suspended {
            Some(suspended) => {
                if self.plan.scope == Scope::Command && self.plan.delay.is_none() {
                    run.sets.enable_on_cpus()?;
                }
                let running = suspended
                    .resume()
                    .map_err(|e| command::not_executed(&self.plan.command[0], &e))?;
                let exit = self.wait_for_command(running, &mut run)?;
                self.command.has_ended();
                Some(exit)
            }
            None => {
                self.announce();
                self.wait_for_signal(&mut run)?;
                None
            }
        };
        let elapsed = match exit {
            Some(exit) => exit.elapsed,
            None => run.started.elapsed(),
        };
        self.finish(run, elapsed.as_secs_f64(), exit)
    }

    /// Writes what the measurement waits for to a terminal.
    fn announce(&self) {
        if self.plan.timeout.is_none() && self.plan.interval.is_none() {
            let title = self.plan.title();
            self.output.progress(&format!(
                "counting {title}; press Ctrl-C to stop and report"
            ));
        }
    }

    fn finish(
        &mut self,
        mut run: Run,
        elapsed: f64,
        exit: Option<Exit>,
    ) -> Result<Outcome, Failure> {
        // While the counters still count.
        if let Some(simulated) = &self.plan.simulated {
            simulated.events_occur();
        }
        let of_command = exit.as_ref().filter(|_| self.plan.scope == Scope::Command);
        let spans = run
            .look()
            .map(|cpu_time| (cpu_time.interval(of_command), cpu_time.whole(of_command)));
        let (interval, whole) = spans.unzip();
        if self.plan.scope != Scope::Command {
            run.sets.disable()?;
        }
        let mut snapshot = run.sets.snapshot();
        run.sets.read(&mut snapshot)?;
        snapshot.span = whole;
        if let Some(mut intervals) = run.intervals.take() {
            intervals.now = snapshot.clone();
            // The command may have ended while the last interval was read.
            let ended = match elapsed > intervals.ended {
                true => elapsed,
                false => run.started.elapsed().as_secs_f64(),
            };
            let rows = run.rows_since(&mut intervals, ended, interval);
            // What wait4(2) tells in the end is of the whole run, not of the last interval.
            let of_the_run = rows.iter_mut().filter(|row| row.backend == Some("posix"));
            of_the_run.for_each(|row| {
                row.metric = None;
                row.begins_when_executed(exit.as_ref().map_or(Duration::ZERO, |e| e.time_before));
            });
            self.output.interval(ended, rows);
            if let Some(keeper) = &mut self.keeper {
                keeper.interval(&run.sets, &snapshot, ended);
            }
        }
        if let Some(keeper) = &mut self.keeper {
            self.not_kept = keeper.finish(&run.sets, &snapshot, elapsed).err();
        }
        let mut rows = run.rows(&snapshot, elapsed);
        if let Some(exit) = &exit {
            let rows = rows.iter_mut();
            rows.for_each(|row| row.begins_when_executed(exit.time_before));
        }
        tool_events::fill(&mut rows, elapsed, of_command);
        if let Some(whole) = whole {
            whole.mark(&run.sets, &mut rows, of_command);
            metrics::attach(&mut rows, elapsed);
        }
        if self.plan.scope == Scope::Command {
            rows.iter_mut().for_each(Row::command_has_ended);
        }
        Ok(Outcome {
            rows,
            elapsed,
            exit,
            sets: run.sets,
        })
    }

    /// Reports what was counted since the last interval.
    fn tick(&mut self, run: &mut Run) -> Result<(), Failure> {
        let Some(mut intervals) = run.intervals.take() else {
            return Ok(());
        };
        let spans = run
            .look()
            .map(|cpu_time| (cpu_time.interval(None), cpu_time.whole(None)));
        intervals.read(&mut run.sets)?;
        let (span, whole) = spans.unzip();
        intervals.now.span = whole;
        if let Some(cpu_time) = &mut run.cpu_time {
            cpu_time.begin_interval();
        }
        let now = run.started.elapsed().as_secs_f64();
        let rows = run.rows_since(&mut intervals, now, span);
        self.output.interval(now, rows);
        if let Some(keeper) = &mut self.keeper {
            keeper.interval(&run.sets, &intervals.now, now);
        }
        intervals.end(now);
        run.intervals = Some(intervals);
        Ok(())
    }

    /// Waits for the command and reports intervals meanwhile. Where that fails, the command is not left behind.
    fn wait_for_command(&mut self, mut running: Running, run: &mut Run) -> Result<Exit, Failure> {
        let ended = self.follow(&mut running, run);
        if ended.is_err() {
            command::signal(&running, SIGTERM);
        }
        ended
    }

    fn follow(&mut self, running: &mut Running, run: &mut Run) -> Result<Exit, Failure> {
        let mut schedule = Schedule::new(self.plan, run.started);
        loop {
            if let Some(signal) = self.signals.take_to_pass_on() {
                command::signal(running, signal);
            }
            if running.ended_within(schedule.next().min(self.longest_sleep()))? {
                // Known until the command is waited for: to hwpmc(4), whether threads were missed; to macOS, what it counted.
                if cfg!(any(target_os = "freebsd", target_os = "macos")) {
                    run.sets.read(&mut run.sets.snapshot())?;
                }
                return Ok(running.wait()?);
            }
            schedule.look();
            self.begin(&mut schedule, run)?;
            if schedule.interval_is_over() {
                self.tick(run)?;
                schedule.look();
            }
            if schedule.no_more_intervals() {
                run.intervals = None;
            }
            if schedule.time_is_over() {
                command::signal(running, SIGTERM);
            }
        }
    }

    /// Returns the longest time without a look at what else may have happened.
    fn longest_sleep(&self) -> Duration {
        match self.control {
            Some(_) => control::INTERVAL,
            None => LONGEST_SLEEP,
        }
    }

    /// Starts counting when its time has come, and does what commands say.
    fn begin(&mut self, schedule: &mut Schedule, run: &mut Run) -> Result<(), Failure> {
        if schedule.delay_is_over() {
            run.sets.enable()?;
            run.started = Instant::now();
            *schedule = Schedule::counting(self.plan, run.started);
        }
        let Some(control) = &mut self.control else {
            return Ok(());
        };
        for command in control.commands()? {
            match command {
                Command::Enable => run.sets.enable()?,
                Command::Disable => run.sets.disable()?,
                Command::Ping | Command::Stop => {}
            }
            control.acknowledge()?;
        }
        Ok(())
    }

    fn wait_for_signal(&mut self, run: &mut Run) -> Result<(), Failure> {
        let mut schedule = Schedule::new(self.plan, run.started);
        let targets = match &self.plan.scope {
            Scope::Tasks(targets) => targets.as_slice(),
            _ => &[],
        };
        let goes_on = |session: &Self| !session.signals.arrived() && !session.output.is_lost();
        while goes_on(self) && (targets.is_empty() || tasks::any_alive(targets)) {
            let longest = match targets {
                [] => self.longest_sleep(),
                _ => LIVENESS_CHECK.min(self.longest_sleep()),
            };
            self.signals.sleep(schedule.next().min(longest));
            run.look();
            schedule.look();
            self.begin(&mut schedule, run)?;
            if schedule.interval_is_over() {
                self.tick(run)?;
                schedule.look();
            }
            if schedule.no_more_intervals() {
                run.intervals = None;
                break;
            }
            if schedule.time_is_over() {
                break;
            }
        }
        Ok(())
    }
}

/// Runs a command of the shell, if there is one.
fn shell(command: Option<&OsStr>) -> Result<(), Failure> {
    let Some(command) = command else {
        return Ok(());
    };
    let name = command.to_string_lossy();
    let ended = process::Command::new("sh").arg("-c").arg(command).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format_args!("{name}: {status}"))),
        Err(e) => Err(Failure::new(format_args!("cannot run {name}: {e}"))),
    }
}

fn add_command(times: &mut CommandTimes, exit: &Exit) {
    times.user.add(exit.user_time.as_secs_f64());
    times.system.add(exit.system_time.as_secs_f64());
    times.peak_memory = times.peak_memory.max(exit.max_resident);
}

/// Returns a term of a formula with what was counted of it.
fn term(term: &TermCount) -> String {
    let mark = if term.count.is_estimate() { "~" } else { "" };
    match term.count.value() {
        Some(value) if term.unit.is_plain() => format!("{} {mark}{value}", term.name),
        Some(value) => {
            let amount = term.unit.scale(value);
            format!("{} {mark}{amount:.2} {}", term.name, term.unit.name)
        }
        None => format!("{} not counted", term.name),
    }
}

/// Returns how each event was opened, and for how long it counted.
fn details(sets: &Sets, rows: &[Row]) -> Vec<String> {
    let mut details = Vec::new();
    for (index, event) in sets.set_events() {
        let name = &sets.event(index).name;
        if let (Some(backend), Some(info)) = (event.backend(), event.info()) {
            let how = match event.preset() {
                Some(preset) if preset.is_in_one_group() => ", in one group",
                Some(_) => {
                    ", each event separately: there are not enough counters for a group of them"
                }
                None => "",
            };
            details.push(format!(
                "{name}: counted by {backend} as {}{how}",
                info.name
            ));
        }
    }
    details.dedup();
    for row in rows.iter().filter(|row| row.enabled > 0) {
        let place = match row.place.to_string() {
            place if place.is_empty() => place,
            place => format!(" on {place}"),
        };
        details.push(format!(
            "{}{place}: enabled {} ns, running {} ns",
            row.name, row.enabled, row.running
        ));
        details.extend(row.preset.iter().map(|preset| {
            let terms: Vec<String> = preset.terms.iter().map(term).collect();
            format!("{}{place}: {}", row.name, terms.join(", "))
        }));
    }
    details
}
