//! A recording, added up: how often each stack of functions was seen.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_symbols::Function;

/// Content of a file.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) events: Vec<EventProfile>,
    pub(super) functions: Functions,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// The samples of one event.
#[derive(Debug, Default)]
pub(super) struct EventProfile {
    pub(super) name: String,
    /// Number of samples that were lost, as the file says.
    pub(super) lost: u64,
    /// Sentence on throttling, where there was any.
    pub(super) throttled: Option<String>,
    /// Number of samples with an impossible period, which have no weight.
    pub(super) jumped: u64,
    pub(super) total: Weight,
    pub(super) stacks: HashMap<Stack, Weight>,
}

/// Weight of a function or stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    pub(super) samples: u64,
    /// Number of events that the samples stand for.
    pub(super) period: u64,
}

impl Weight {
    pub(super) fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }

    /// Its share of a total, in percent.
    pub(super) fn percent_of(self, total: Self) -> f64 {
        match total.period {
            0 => 0.0,
            all => self.period as f64 * 100.0 / all as f64,
        }
    }
}

/// Task that was running, as far as a report tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) command: Arc<str>,
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<u32>,
}

/// Stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Stack {
    pub(super) task: Task,
    /// Positions in [`Functions`], the innermost first.
    pub(super) frames: Box<[usize]>,
}

/// Every function that was seen, once.
#[derive(Debug, Default)]
pub(super) struct Functions {
    all: Vec<Seen>,
    places: foldhash::HashMap<Seen, usize>,
}

/// A function, and whether it ran in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) object: Arc<str>,
    pub(super) name: Option<Arc<str>>,
    pub(super) inlined: bool,
    pub(super) in_kernel: bool,
    /// The source line, where a report tells them.
    pub(super) source: Option<(Arc<str>, u32)>,
}

impl Functions {
    /// The position of a function.
    pub(super) fn place(&mut self, function: Function, in_kernel: bool) -> usize {
        let seen = Seen {
            object: function.object,
            name: function.name,
            inlined: function.inlined,
            in_kernel,
            source: function.source,
        };
        if let Some(place) = self.places.get(&seen) {
            return *place;
        }
        let place = self.all.len();
        self.places.insert(seen.clone(), place);
        self.all.push(seen);
        place
    }

    /// The function at a position that [`place`](Self::place) gave.
    pub(super) fn get(&self, place: usize) -> &Seen {
        &self.all[place]
    }
}

impl Seen {
    /// Its name, for a person.
    pub(super) fn title(&self) -> String {
        let name = self.name.as_deref().unwrap_or("[unknown]");
        let inlined = if self.inlined { " (inlined)" } else { "" };
        format!("{name}{inlined}")
    }

    /// The file's name without its directories.
    pub(super) fn short_object(&self) -> &str {
        match self.object.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() => name,
            _ => &self.object,
        }
    }

    /// As perf marks it: `[k]` in the kernel, `[.]` elsewhere.
    pub(super) fn mark(&self) -> &'static str {
        if self.in_kernel { "[k]" } else { "[.]" }
    }
}
