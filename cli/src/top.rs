//! `quipu top`: the functions that are hot now.

mod keys;
mod options;
mod rows;
mod screen;
mod tty;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu_perf_data::TimeOrder;

pub(crate) use options::Options;

use crate::annotate::{EventHits, Loading};
use crate::failure::Failure;
use crate::record::Live;
use crate::recording::Replay;
use crate::stat::signals::Signals;
use crate::terminal;

use rows::{Order, Shown};

/// The longest time between two readings of the rings.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Samples as they are taken, added up.
struct Profile {
    live: Live,
    replay: Replay,
    order: TimeOrder,
    hits: Loading,
    /// The records of a round, kept for its memory.
    records: Vec<u8>,
}

impl Profile {
    fn open(options: &Options) -> Result<Self, Failure> {
        let live = Live::open(&options.recording()?)?;
        let names = live.events.iter();
        let names: Vec<_> = names
            .map(|event| event.name().unwrap_or_default().to_owned())
            .collect();
        Ok(Self {
            replay: Replay::live(&live.events),
            order: TimeOrder::new(),
            records: Vec::new(),
            hits: Loading::new(options.selection(), &live.events, &names).counting_all(),
            live,
        })
    }

    /// Adds up what has been sampled since the last time.
    fn drain(&mut self) -> Result<(), Failure> {
        self.records.clear();
        self.live.drain(&mut self.records)?;
        self.replay
            .round(&mut self.order, &self.records, &mut self.hits)
            .map_err(Failure::new)
    }

    /// Ends an interval: what was counted before weighs less from now on, or nothing.
    fn age(&mut self, zero: bool) {
        self.hits.age(zero);
    }

    fn events(&self) -> &[EventHits] {
        self.hits.events()
    }
}

/// Shows what is hot until a signal, a key, or the end of what is sampled.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let signals = Signals::watch()?;
    let mut profile = Profile::open(options)?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if is_terminal && !options.stdio {
        screen::run(&mut profile, options, &signals)?;
    } else {
        for note in &profile.live.notes {
            terminal::warn(note);
        }
        print_tables(&mut profile, options, &signals)?;
    }
    let lost = profile.live.lost();
    if lost > 0 {
        terminal::warn(format_args!(
            "{lost} records were lost because a ring buffer was full: use more pages (-m) or a lower rate (-F)"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a table after each interval.
fn print_tables(
    profile: &mut Profile,
    options: &Options,
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
        let mut text = String::new();
        for event in profile.events() {
            let shown = Shown {
                order: Order::Share,
                filter: "",
                limit: options.percent_limit,
            };
            let rows = rows::rows(event, shown);
            rows::table(
                &mut text,
                event,
                &rows,
                (options.entries, options.show_nr_samples),
                profile.live.lost(),
            );
        }
        terminal::print(&text).map_err(Failure::new)?;
        profile.age(options.zero);
    }
    Ok(())
}
