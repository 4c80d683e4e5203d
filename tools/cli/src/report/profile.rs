//! A recording, added up: how often each stack of functions was seen.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_symbols::Function;

/// Content of a file.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) events: Vec<EventProfile>,
    pub(crate) functions: Functions,
    /// Lines on the machine and the recording, if they are asked for.
    pub(crate) header: String,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// The samples of one event.
#[derive(Debug, Default)]
pub(crate) struct EventProfile {
    pub(crate) name: String,
    /// Number of samples that were lost, as the file says.
    pub(crate) lost: u64,
    /// Sentence on throttling, where there was any.
    pub(crate) throttled: Option<String>,
    /// Number of samples with an impossible period, which have no weight.
    pub(crate) jumped: u64,
    /// Weight that shares are parts of: of all samples, or of those that are chosen.
    pub(crate) total: Weight,
    pub(crate) stacks: HashMap<Stack, Weight>,
}

/// Weight of a function or stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Weight {
    pub(crate) samples: u64,
    /// Number of events that the samples stand for.
    pub(crate) period: u64,
}

/// Eighths that are left of what was sampled before, when it ages (`hists__decay_entry`, `tools/perf/util/hist.c`).
#[cfg(target_os = "linux")]
const AGED: u64 = 7;
/// Parts with less of an event than one in so many are forgotten when it ages.
#[cfg(target_os = "linux")]
const FORGOTTEN: u64 = 100_000;

impl Weight {
    /// Returns that of one sample.
    pub(crate) fn of_sample(period: u64) -> Self {
        Self { samples: 1, period }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }

    /// Has what was sampled before weigh less, or nothing.
    #[cfg(target_os = "linux")]
    pub(crate) fn age(&mut self, zero: bool) {
        let left = if zero { 0 } else { AGED };
        self.samples = self.samples * left / 8;
        self.period = (u128::from(self.period) * u128::from(left) / 8) as u64;
    }

    /// Returns the least period that is remembered of parts of it.
    #[cfg(target_os = "linux")]
    pub(crate) fn least_remembered(self) -> u64 {
        (self.period / FORGOTTEN).max(1)
    }

    /// Its share of a total, in percent.
    pub(crate) fn percent_of(self, total: Self) -> f64 {
        match total.period {
            0 => 0.0,
            all => self.period as f64 * 100.0 / all as f64,
        }
    }
}

/// Task that was running, as far as a report tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) command: Arc<str>,
    pub(crate) pid: Option<i32>,
    pub(crate) tid: Option<i32>,
    pub(crate) cpu: Option<u32>,
}

/// Stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub(crate) task: Task,
    /// The branch that was taken into its function, where branches are reported.
    pub(crate) branch: Option<TakenBranch>,
    /// Positions in [`Functions`], the innermost first.
    pub(crate) frames: Box<[usize]>,
}

/// A branch, as far as a report tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TakenBranch {
    /// The position of the function that it is in; `None` where nothing is known of the address.
    pub(crate) from: Option<usize>,
    /// `None` where the CPU does not tell.
    pub(crate) mispredicted: Option<bool>,
    pub(crate) cycles: u16,
}

/// Every function that was seen, once.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    all: Vec<Seen>,
    places: foldhash::HashMap<Seen, usize>,
}

/// A function, and whether it ran in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seen {
    pub(crate) object: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) inlined: bool,
    pub(crate) in_kernel: bool,
    /// The source line, where a report tells them.
    pub(crate) source: Option<(Arc<str>, u32)>,
}

impl Functions {
    /// The position of a function.
    pub(crate) fn place(&mut self, seen: Seen) -> usize {
        if let Some(place) = self.places.get(&seen) {
            return *place;
        }
        let place = self.all.len();
        self.places.insert(seen.clone(), place);
        self.all.push(seen);
        place
    }

    /// The function at a position that [`place`](Self::place) gave.
    pub(crate) fn get(&self, place: usize) -> &Seen {
        &self.all[place]
    }
}

impl Seen {
    pub(crate) fn new(function: Function, in_kernel: bool) -> Self {
        Self {
            object: function.object,
            name: function.name,
            inlined: function.inlined,
            in_kernel,
            source: function.source,
        }
    }

    /// Its name, for a person.
    pub(crate) fn title(&self) -> String {
        let name = self.name.as_deref().unwrap_or("[unknown]");
        let inlined = if self.inlined { " (inlined)" } else { "" };
        format!("{name}{inlined}")
    }

    /// The file's name without its directories.
    pub(crate) fn short_object(&self) -> &str {
        match self.object.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() => name,
            _ => &self.object,
        }
    }

    /// As perf marks it: `[k]` in the kernel, `[.]` elsewhere.
    pub(crate) fn mark(&self) -> &'static str {
        if self.in_kernel { "[k]" } else { "[.]" }
    }
}
