//! `quipu top`: the functions that are hot now.

#[cfg(test)]
mod example;
mod keys;
mod options;
mod rows;
mod screen;
mod tty;
mod view;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu_perf_data::{Error, RawRecord, Record, Sample, TimeOrder};

pub use options::Options;

use crate::annotate::{self, EventHits, Hits, SampledFunction};
use crate::record::Live;
use crate::recording::{Replay, Visit};
use crate::report::{self, Key, Seen};
use quipu_shell::Failure;
use quipu_shell::signals::Signals;
use quipu_shell::terminal::{self, Layout, shortened};

use rows::TopForm;

/// The longest time between two readings of the rings.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Samples as they are taken, added up.
struct LiveProfile {
    live: Live,
    replay: Replay,
    order: TimeOrder,
    sums: Sums,
    /// The records of a round, kept for its memory.
    records: Vec<u8>,
}

impl LiveProfile {
    fn open(options: &Options, form: &TopForm) -> Result<Self, Failure> {
        let live = Live::open(&options.recording()?)?;
        let names = live.events.iter();
        let names: Vec<_> = names
            .map(|event| event.name().unwrap_or_default().to_owned())
            .collect();
        Ok(Self {
            replay: Replay::live(&live.events, form.keys.contains(&Key::SourceLine)),
            order: TimeOrder::new(),
            records: Vec::new(),
            sums: Sums {
                hits: annotate::Loading::new(options.selection(), &live.events, &names)
                    .counting_all(),
                stacks: report::Loading::new(
                    &form.report,
                    (options.selection(), &form.keys),
                    &live.events,
                    &names,
                ),
            },
            live,
        })
    }

    /// Adds up what has been sampled since the last time.
    fn drain(&mut self) -> Result<(), Failure> {
        self.records.clear();
        self.live.drain(&mut self.records)?;
        self.replay
            .round(&mut self.order, &self.records, &mut self.sums);
        Ok(())
    }

    /// Ends an interval: what was counted before weighs less from now on, or nothing.
    fn age(&mut self, zero: bool) {
        self.sums.hits.age(zero);
        self.sums.stacks.age(zero);
    }

    /// Returns what has been sampled by now, by stack.
    fn stacks(&mut self) -> &report::Profile {
        self.sums.stacks.gather();
        self.sums.stacks.profile()
    }

    /// Returns an event with the instructions of a function that were sampled; the hottest, where several are the same by name.
    fn instructions(
        &self,
        event: usize,
        wanted: &Seen,
    ) -> Option<(&EventHits, &SampledFunction, &Hits)> {
        let event = self.sums.hits.events().get(event)?;
        let is_wanted = |function: &SampledFunction| {
            function.name == wanted.name && function.object == wanted.object
        };
        let found = event.functions.iter().filter(|(one, _)| is_wanted(one));
        let (function, hits) = found.max_by_key(|(_, hits)| hits.total.period)?;
        Some((event, function, hits))
    }
}

/// Samples, added up by instruction and by stack.
struct Sums {
    hits: annotate::Loading,
    stacks: report::Loading,
}

impl Visit for Sums {
    fn record(
        &mut self,
        replay: &Replay,
        event: usize,
        raw: &RawRecord<'_>,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        self.hits.record(replay, event, raw, record)?;
        self.stacks.record(replay, event, raw, record)
    }

    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        self.hits.sample(replay, event, sample)?;
        self.stacks.sample(replay, event, sample)
    }
}

/// Shows what is hot until a signal, a key, or the end of what is sampled.
///
/// # Errors
/// If nothing can be sampled.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let signals = Signals::watch()?;
    let form = options.form()?;
    let mut profile = LiveProfile::open(options, &form)?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if is_terminal && !options.stdio {
        screen::run(&mut profile, (options, &form), &signals)?;
        if profile.live.has_ended() {
            // The screen is gone with its terminal, and the table with it.
            terminal::print(&tables(&mut profile, (options, &form))).map_err(Failure::new)?;
            terminal::warn(options.ended());
        }
    } else {
        for note in &profile.live.notes {
            terminal::warn(note);
        }
        print_tables(&mut profile, (options, &form), &signals)?;
    }
    for remark in profile.live.remarks() {
        terminal::warn(remark);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a table after each interval.
fn print_tables(
    profile: &mut LiveProfile,
    (options, form): (&Options, &TopForm),
    signals: &Signals,
) -> Result<(), Failure> {
    let mut is_over = false;
    while !is_over {
        let end = Instant::now() + options.interval();
        while !is_over && Instant::now() < end {
            profile.drain()?;
            is_over = signals.arrived() || profile.live.has_ended();
            let left = end.saturating_duration_since(Instant::now());
            if !is_over {
                profile.live.wait(left.min(DRAIN_INTERVAL))?;
            }
        }
        // Twice: a round is complete when the next one ends.
        profile.drain()?;
        profile.drain()?;
        let text = tables(profile, (options, form));
        if terminal::print_to_reader(&text)
            .map_err(Failure::new)?
            .is_break()
        {
            break;
        }
        profile.age(options.zero);
    }
    Ok(())
}

/// Returns a table of each event, in lines that fit on a terminal.
fn tables(profile: &mut LiveProfile, (options, form): (&Options, &TopForm)) -> String {
    let mut text = String::new();
    let lost = profile.live.lost();
    let stacks = profile.stacks();
    for event in &stacks.events {
        let rows = rows::rows(stacks, event, form);
        let title = (&*event.name, event.total.samples);
        rows::table(&mut text, title, &rows, (form, options.entries), lost);
    }
    let Some(width) = Layout::of_stdout().width else {
        return text;
    };
    let lines = text.lines().map(|line| shortened(line, width));
    lines.map(|line| line.into_owned() + "\n").collect()
}
