//! A comparison: rounds in which every command runs once in each pass, in random order, until there are enough.

use std::io::{self, IsTerminal};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use quipu_shell::Failure;
use quipu_shell::signals::Signals;
use quipu_shell::terminal;

use crate::metrics::{Asked, Metric, Source};
use crate::options::Options;
use crate::passes::Plan;
use crate::stats::{Settings, compare};
use crate::subjects::Subject;
use crate::trial::{Run, Trials};

/// The pairs that are measured where no option says otherwise.
const PAIRS: u32 = 20;
/// The most pairs where an option says when to end.
const MOST_PAIRS: u32 = 10_000;
/// The least pairs before an interval says that there are enough.
const LEAST_PAIRS: u32 = 10;
/// The time between changes of the progress line.
const PROGRESS: Duration = Duration::from_millis(100);

/// Everything that was measured.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) metrics: Vec<Metric>,
    /// By metric and command: a value of each round.
    pub(crate) values: Vec<Vec<Vec<f64>>>,
    /// By command: the exit status of each run of the first pass; -n for signal n.
    pub(crate) statuses: Vec<Vec<i32>>,
    pub(crate) not_counted: Vec<(String, String)>,
    pub(crate) notes: Vec<String>,
    pub(crate) rounds: u32,
    pub(crate) passes: usize,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) end: End,
}

/// The reason why a comparison ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// A signal asked for it.
    Interrupted(i32),
    /// A run ended in another way than it should.
    Stopped(String),
}

/// A comparison as it is measured.
struct Session<'a> {
    options: &'a Options,
    settings: Settings,
    trials: Trials<'a>,
    signals: Signals,
    random: fastrand::Rng,
    plan: Plan,
    measured: Measured,
    /// The exit status that every run has to have.
    expected: Option<(String, ExitStatus)>,
    /// By metric: why it had no value in a run, and how often.
    missing: Vec<Option<(String, u32)>>,
    began: Instant,
    last_progress: Instant,
}

/// Measures commands as options have it.
pub(crate) fn measure(
    options: &Options,
    settings: Settings,
    subjects: Vec<Subject>,
    signals: Signals,
) -> Result<Measured, Failure> {
    let asked = Asked::new(&options.event)?;
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let mut trials = Trials::new(options, seed)?;
    let plan = {
        let probe = trials.suspend(&subjects[0])?;
        trials.note_memory_before(&probe);
        Plan::new(&asked, &probe)?
    };
    let metrics: Vec<Metric> = plan
        .metrics
        .iter()
        .map(|(metric, _)| metric.clone())
        .collect();
    let now = Instant::now();
    let mut session = Session {
        options,
        settings,
        trials,
        signals,
        random: fastrand::Rng::with_seed(seed),
        measured: Measured {
            values: vec![vec![Vec::new(); subjects.len()]; metrics.len()],
            statuses: vec![Vec::new(); subjects.len()],
            metrics,
            subjects,
            not_counted: plan.not_counted.clone(),
            notes: plan.notes.clone(),
            rounds: 0,
            passes: plan.passes.len(),
            seed,
            seconds: 0.0,
            end: End::Complete,
        },
        missing: vec![None; plan.metrics.len()],
        plan,
        expected: None,
        began: now,
        last_progress: now,
    };
    let _anchors = anchors();
    let done = session.run();
    session.clear_progress();
    session.trials.clean_up()?;
    done?;
    Ok(session.finish())
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let left_now = left_behind();
        for _ in 0..self.options.warmup.unwrap_or(1) {
            if self.round()?.is_none() {
                return Ok(());
            }
        }
        self.began = Instant::now();
        while self.wants_more() {
            let Some(runs) = self.round()? else {
                break;
            };
            self.keep(&runs);
            self.show_progress();
        }
        self.measured.seconds = self.began.elapsed().as_secs_f64();
        let left = left_now();
        if !left.is_empty() {
            let processes = left.join(", ");
            self.measured.notes.push(format!(
                "left behind: {processes} still ran at the end; they disturb what runs beside them, and what they do is in no number"
            ));
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        let rounds = self.measured.rounds;
        let is_bounded = self.options.time.is_some() || self.options.until.is_some();
        let most = self
            .options
            .pairs
            .unwrap_or(if is_bounded { MOST_PAIRS } else { PAIRS });
        let is_late = self
            .options
            .time
            .is_some_and(|time| self.began.elapsed() >= time);
        // Two pairs at least, so that there is an interval.
        rounds < most && !(is_late && rounds >= 2) && !self.is_narrow()
    }

    /// Returns true if the interval of the first metric is as narrow as it is to be.
    fn is_narrow(&self) -> bool {
        let Some(percent) = self.options.until else {
            return false;
        };
        let Some((base, others)) = self
            .measured
            .values
            .first()
            .and_then(|first| first.split_first())
        else {
            return false;
        };
        let is_narrow = |other: &Vec<f64>| {
            let interval = compare(base, other, self.settings).relative_interval();
            interval.is_some_and(|interval| (interval.high - interval.low) * 100.0 <= percent)
        };
        self.measured.rounds >= LEAST_PAIRS && !others.is_empty() && others.iter().all(is_narrow)
    }

    /// Runs every command once in each pass; returns the runs by pass and command, or `None` if that ended the comparison.
    fn round(&mut self) -> Result<Option<Vec<Vec<Run>>>, Failure> {
        let mut runs = Vec::new();
        for pass in &self.plan.passes {
            let mut order: Vec<usize> = (0..self.measured.subjects.len()).collect();
            self.random.shuffle(&mut order);
            let mut of_pass: Vec<Option<Run>> = order.iter().map(|_| None).collect();
            for index in order {
                let subject = &self.measured.subjects[index];
                if self.signals.arrived() {
                    self.measured.end = End::Interrupted(self.signals.last().unwrap_or_default());
                    return Ok(None);
                }
                let run = self.trials.run(subject, pass, &mut self.signals)?;
                if let Some(signal) = self.signals.last() {
                    self.measured.end = End::Interrupted(signal);
                    return Ok(None);
                }
                if let Some(why) = stop(
                    subject,
                    &run,
                    &mut self.expected,
                    self.options.ignore_failure,
                ) {
                    self.measured.end = End::Stopped(why);
                    return Ok(None);
                }
                of_pass[index] = Some(run);
            }
            runs.push(of_pass.into_iter().flatten().collect());
        }
        Ok(Some(runs))
    }

    fn keep(&mut self, runs: &[Vec<Run>]) {
        self.measured.rounds += 1;
        for (subject, run) in runs[0].iter().enumerate() {
            self.measured.statuses[subject].push(signed(run.status()));
        }
        for (metric, (_, source)) in self.plan.metrics.iter().enumerate() {
            // What is known of every run is taken from those of the first pass: as many values as an event has.
            let passes = self.plan.passes.iter().zip(runs);
            let of_pass = passes.take(match source {
                Source::Event(_) => usize::MAX,
                _ => 1,
            });
            for (pass, runs) in of_pass {
                for (subject, run) in runs.iter().enumerate() {
                    match run.value(*source, pass.events()) {
                        Some(Ok(value)) => self.measured.values[metric][subject].push(value),
                        Some(Err(why)) => self.missing[metric].get_or_insert((why, 0)).1 += 1,
                        None => {}
                    }
                }
            }
        }
    }

    fn show_progress(&mut self) {
        if !io::stderr().is_terminal() || self.last_progress.elapsed() < PROGRESS {
            return;
        }
        self.last_progress = Instant::now();
        let name = &self.measured.metrics[0].name;
        let mut line = format!("{} pairs", self.measured.rounds);
        if let Some((base, others)) = self.measured.values[0].split_first() {
            for (other, subject) in others.iter().zip(&self.measured.subjects[1..]) {
                if let Some(interval) = compare(base, other, self.settings).relative_interval() {
                    let [value, low, high] =
                        [interval.value, interval.low, interval.high].map(|share| share * 100.0);
                    line += &format!(
                        "; {}: {name} {value:+.1} % [{low:+.1}, {high:+.1}]",
                        subject.label
                    );
                }
            }
        }
        let line: String = line.chars().take(79).collect();
        terminal::say(&format!("\r\x1b[K{line}"));
    }

    fn clear_progress(&self) {
        if io::stderr().is_terminal() {
            terminal::say("\r\x1b[K");
        }
    }

    /// Leaves out the metrics that had no value in a run.
    fn finish(mut self) -> Measured {
        let mut measured = self.measured;
        let mut missing = self.missing.iter_mut().map(Option::take);
        let mut at = 0;
        let runs = measured.rounds * measured.subjects.len() as u32;
        while at < measured.metrics.len() {
            match missing.next().flatten() {
                Some((why, times)) => {
                    let metric = measured.metrics.remove(at);
                    measured.values.remove(at);
                    let why = match times == runs {
                        true => why,
                        false => format!("in {times} of {runs} runs {why}"),
                    };
                    measured.not_counted.push((metric.name, why));
                }
                None => at += 1,
            }
        }
        let statuses = measured.statuses.iter().flatten();
        let failed = statuses.filter(|status| **status != 0).count();
        if failed > 0 {
            measured
                .notes
                .push(match (self.options.ignore_failure, &self.expected) {
                    (false, Some((_, status))) => format!("every run ended with {status}"),
                    _ => format!("{failed} of {runs} runs failed, and are in all numbers"),
                });
        }
        measured
    }
}

/// Returns the reason why a run ends the comparison, if it does.
fn stop(
    subject: &Subject,
    run: &Run,
    expected: &mut Option<(String, ExitStatus)>,
    ignore: bool,
) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;

    let name = &subject.label;
    if run.timed_out {
        return Some(format!(
            "a run of {name} took longer than --timeout, and was killed"
        ));
    }
    if ignore {
        return None;
    }
    let status = run.status();
    if status.signal().is_some() {
        return Some(format!("a run of {name} was killed ({status})"));
    }
    let (first, usual) = expected.get_or_insert_with(|| (name.clone(), status));
    (status != *usual).then(|| {
        format!("a run of {name} ended with {status}, and the first of {first} with {usual}: they do not do the same; --show-output shows what they say, -i counts them all the same")
    })
}

/// Returns the code of an exit status, or a signal below zero.
fn signed(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;

    status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or_default())
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        /// Opens counters that keep the kernel from patching its code in every run. Without permission for them, runs only
        /// take longer.
        fn anchors() -> Option<impl Sized> {
            use quipu::Software;

            quipu_linux::Anchors::hold(&[Software::PageFaults, Software::ContextSwitches, Software::CpuMigrations]).ok()
        }

        /// Returns a function that returns the processes that commands from now on have left behind, by name and id.
        fn left_behind() -> impl FnOnce() -> Vec<String> {
            use quipu_shell::left_behind::{Begun, left_behind};

            let this = std::process::id().try_into().ok();
            let begun = this.and_then(Begun::of);
            move || begun.map(left_behind).unwrap_or_default()
        }
    } else {
        /// Returns `None`: the kernel has no code to patch.
        fn anchors() -> Option<()> {
            None
        }

        /// Returns a function that returns none: this system does not show what is left behind.
        fn left_behind() -> impl FnOnce() -> Vec<String> {
            Vec::new
        }
    }
}
