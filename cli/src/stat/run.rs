//! Running: attach, release, wait, read, report.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu::Count;
use quipu::command::{Exit, Running, SuspendedCommand};

use crate::failure::Failure;
use crate::names::Names;
use crate::target::Scope;

use super::aggregate::Aggregation;
use super::backend::Backends;
use super::command;
use super::metrics;
use super::notes::notes;
use super::plan::Plan;
use super::repeat::Merge;
use super::report::{CommandTimes, Output, Report, Times};
use super::rows::{Row, TermCount, rows};
use super::sets::{Sets, Snapshot};
use super::signals::Signals;
use super::system;

/// The longest sleep while a command runs. A signal that arrives just before the sleep begins does
/// not end it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
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
}

/// One measurement.
struct Run {
    sets: Sets,
    aggregation: Aggregation,
    /// When counting started.
    started: Instant,
    /// The last interval's readings, and their time in seconds.
    last: Option<(Snapshot, f64)>,
    /// The lines of intervals in which a counter jumped.
    jumped: Vec<Row>,
}

impl Run {
    /// Returns the rows since the last interval, which ended some seconds ago, and keeps those that jumped.
    fn rows_since(&mut self, last: &Snapshot, snapshot: &Snapshot, seconds: f64) -> Vec<Row> {
        let rows = rows(
            &self.sets,
            &snapshot.since(last),
            &self.aggregation,
            seconds,
        );
        let jumped = rows.iter().filter(|row| row.count == Count::Jumped);
        self.jumped.extend(jumped.cloned());
        rows
    }

    /// Returns the rows of the whole run. A jump in an interval is in the value, also where it is too little
    /// for the whole time to show it.
    fn rows(&self, snapshot: &Snapshot, elapsed: f64) -> Vec<Row> {
        let mut rows = rows(&self.sets, snapshot, &self.aggregation, elapsed);
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
        })
    }

    /// Measures as often as asked, and reports.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let _anchors = (self.plan.runs > 1).then(system::anchors);
        let mut merge = Merge::default();
        let mut times = Times::default();
        let mut status = 0;
        let mut last_progress = Instant::now();
        let mut last = None;
        let mut runs = 0;
        while runs < self.plan.runs && !(runs > 0 && self.signals.arrived()) {
            // What is on CPUs would go on counting, beside the next run's.
            drop(last.take());
            if last_progress.elapsed() > PROGRESS {
                last_progress = Instant::now();
                let text = format!("{runs} of {} runs done", self.plan.runs);
                self.output.progress(&text);
            }
            let outcome = self.measure()?;
            runs += 1;
            times.elapsed.add(outcome.elapsed);
            if let Some(exit) = outcome.exit {
                if self.plan.scope == Scope::Command {
                    add_command(times.command.get_or_insert_default(), &exit);
                }
                let code = command::exit_code(exit.status);
                status = if status == 0 { code } else { status };
            }
            merge.add(outcome.rows);
            last = Some(outcome.sets);
        }
        let mut rows = merge.rows();
        // A metric of means, not that of one run.
        metrics::attach(&mut rows, times.elapsed.mean());
        let assumed_cpu = self.plan.names.as_ref().and_then(Names::assumed_cpu);
        let mut notes = last
            .as_ref()
            .map_or_else(Vec::new, |sets| notes(sets, &rows, assumed_cpu));
        if let Some(taken) = self.backends.taken_over() {
            self.output.write_warning(&taken)?;
            notes.push(taken);
        }
        let report = Report {
            title: self.plan.title(),
            runs,
            notes,
            details: match &last {
                Some(sets) if self.plan.verbose => details(sets, &rows),
                _ => Vec::new(),
            },
            rows,
            times,
        };
        if self.plan.interval.is_none() || self.plan.summary {
            self.output.report(&report)?;
        } else {
            self.output.notes(&report)?;
        }
        let is_counted = |row: &Row| row.count.value().is_some();
        if status == 0 && !self.plan.requests.is_empty() && !report.rows.iter().any(is_counted) {
            status = Failure::STATUS;
        }
        Ok(ExitCode::from(status))
    }

    fn measure(&mut self) -> Result<Outcome, Failure> {
        let suspended = command::suspend(&self.plan.command, self.plan.command_cpus())?;
        if self.plan.scope != Scope::Command {
            // After the command was made, so that it keeps the limit it is used to.
            system::raise_open_file_limit();
        }
        let command = suspended.as_ref().map(SuspendedCommand::pid);
        let mut sets = Sets::open(self.plan, self.backends, command)?;
        let aggregation = Aggregation::new(self.plan.by, sets.all_parts())?;
        if self.plan.scope != Scope::Command {
            sets.enable()?;
        }
        let last = self.plan.interval.map(|_| (sets.snapshot(), 0.0));
        let mut run = Run {
            sets,
            aggregation,
            started: Instant::now(),
            last,
            jumped: Vec::new(),
        };
        let exit = match suspended {
            Some(suspended) => {
                if self.plan.scope == Scope::Command {
                    run.sets.enable_on_cpus()?;
                }
                let running = suspended
                    .resume()
                    .map_err(|e| command::not_executed(&self.plan.command[0], &e))?;
                Some(self.wait_for_command(running, &mut run)?)
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
        if self.plan.scope != Scope::Command {
            run.sets.disable()?;
        }
        if let Some(simulated) = &self.plan.simulated {
            simulated.events_occur();
        }
        let mut snapshot = run.sets.snapshot();
        run.sets.read(&mut snapshot)?;
        if let Some((last, time)) = run.last.take() {
            let mut rows = run.rows_since(&last, &snapshot, elapsed - time);
            // What wait4(2) tells in the end is of the whole run, not of the last interval.
            let of_the_run = rows.iter_mut().filter(|row| row.backend == Some("posix"));
            of_the_run.for_each(|row| row.metric = None);
            self.output.interval(elapsed, &rows)?;
        }
        let mut rows = run.rows(&snapshot, elapsed);
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
        let mut snapshot = run.sets.snapshot();
        run.sets.read(&mut snapshot)?;
        let now = run.started.elapsed().as_secs_f64();
        if let Some((last, time)) = run.last.take() {
            let rows = run.rows_since(&last, &snapshot, now - time);
            self.output.interval(now, &rows)?;
        }
        run.last = Some((snapshot, now));
        Ok(())
    }

    fn wait_for_command(&mut self, mut running: Running, run: &mut Run) -> Result<Exit, Failure> {
        let mut clock = Clock::new(self.plan, run.started);
        loop {
            if let Some(signal) = self.signals.take_to_pass_on() {
                running.signal(signal)?;
            }
            if let Some(exit) = running.wait_timeout(clock.next().min(LONGEST_SLEEP))? {
                return Ok(exit);
            }
            if clock.interval_is_over() {
                self.tick(run)?;
            }
            if clock.time_is_over() {
                running.signal(signal_hook::consts::SIGTERM)?;
            }
        }
    }

    fn wait_for_signal(&mut self, run: &mut Run) -> Result<(), Failure> {
        let mut clock = Clock::new(self.plan, run.started);
        let targets = match &self.plan.scope {
            Scope::Tasks(targets) => targets.as_slice(),
            _ => &[],
        };
        while !self.signals.arrived() && (targets.is_empty() || system::any_alive(targets)) {
            let longest = if targets.is_empty() {
                LONGEST_SLEEP
            } else {
                LIVENESS_CHECK
            };
            self.signals.sleep(clock.next().min(longest));
            if clock.interval_is_over() {
                self.tick(run)?;
            }
            if clock.time_is_over() {
                break;
            }
        }
        Ok(())
    }
}

/// When the next interval ends, and when all is over.
struct Clock {
    interval: Option<(Duration, Instant)>,
    end: Option<Instant>,
}

impl Clock {
    fn new(plan: &Plan, started: Instant) -> Self {
        Self {
            interval: plan.interval.map(|length| (length, started + length)),
            end: plan.timeout.map(|timeout| started + timeout),
        }
    }

    /// Returns the time until the next deadline.
    fn next(&self) -> Duration {
        let due = self.interval.map(|(_, at)| at).into_iter().chain(self.end);
        due.map(|at| at.saturating_duration_since(Instant::now()))
            .min()
            .unwrap_or(LONGEST_SLEEP)
    }

    /// Returns true once for each interval that has ended. Intervals that were slept through are
    /// skipped, so that they stay where they belong.
    fn interval_is_over(&mut self) -> bool {
        let Some((length, at)) = &mut self.interval else {
            return false;
        };
        let now = Instant::now();
        if now < *at {
            return false;
        }
        while *at <= now {
            *at += *length;
        }
        true
    }

    /// Returns true once, when the time is over.
    fn time_is_over(&mut self) -> bool {
        let over = self.end.is_some_and(|at| at <= Instant::now());
        if over {
            self.end = None;
        }
        over
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
            let amount = term.unit.scale(value as f64);
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
