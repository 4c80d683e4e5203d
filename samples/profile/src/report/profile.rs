//! A recording, added up: how often each stack of functions was seen.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_symbols::Function;
use quipu_viewers::Unit;

use super::cut_chains::CutChains;
use super::numbered::Numbered;
use super::stacks::{Stacks, Weights};

/// The samples of a recording, added up by stack.
///
/// ```no_run
/// use std::path::Path;
///
/// use quipu_profile::report::Profile;
///
/// let profile = Profile::read(Path::new("perf.data"))?;
/// for event in &profile.events {
///     println!("{}: {} samples, {} lost", event.name, event.total.samples, event.lost);
///     for (function, weight) in profile.hottest(event).into_iter().take(10) {
///         println!("{:6.2} % {} {}", weight.percent_of(event.total), function.object, function.title());
///     }
/// }
/// for note in &profile.notes {
///     eprintln!("{note}");
/// }
/// # Ok::<(), quipu_shell::Failure>(())
/// ```
#[derive(Debug, Default)]
pub struct Profile {
    /// Its events, in the order of the file. Before them is `wall-time`, the time on the CPU and off it, if both were recorded.
    pub events: Vec<EventProfile>,
    /// The functions that its stacks are of.
    pub functions: Functions,
    /// The tasks and lists of functions that they are made of.
    pub stacks: Stacks,
    /// Lines on the machine and the recording, if they are asked for.
    pub header: String,
    /// Notes for the reader: samples lost, files that are missing or replaced, chains that are cut.
    pub notes: Vec<String>,
}

/// The samples of one event.
#[derive(Debug, Default)]
pub struct EventProfile {
    /// Its name, as it was asked for.
    pub name: String,
    /// The unit of its weights: nanoseconds for clocks and the time off the CPU.
    pub unit: Unit,
    /// Number of samples that were lost, as the file says.
    pub lost: u64,
    /// Sentence on throttling, where there was any.
    pub throttled: Option<String>,
    /// Number of samples with an impossible period, which have no weight.
    pub jumped: u64,
    /// The call chains that are known to be cut, if there are any and chains were asked for: shares of callers are lower bounds.
    pub cut: Option<CutChains>,
    /// Weight that shares are parts of: of all samples, or of those that are chosen.
    pub total: Weight,
    /// The weight of each stack.
    pub stacks: Weights,
    /// The counts of threads that had ended when they were recorded, where they were (`record -s`). One task that was
    /// counted is missing: the one that has the counters as they were opened.
    pub threads: Vec<ThreadCount>,
}

/// The count of an event in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCount {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Number of events; `None` if the counters were never on the PMU.
    pub count: Option<u64>,
    /// True if the count is scaled, as the counters were on the PMU for a part of the time.
    pub is_estimate: bool,
}

/// Weight of a function or stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// Number of samples.
    pub samples: u64,
    /// Number of events that the samples stand for.
    pub period: u64,
}

/// Eighths that are left of what was sampled before, when it ages (`hists__decay_entry`, `tools/perf/util/hist.c`).
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
const AGED: u64 = 7;
/// Parts with less of an event than one in so many are forgotten when it ages.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
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
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn age(&mut self, zero: bool) {
        let left = if zero { 0 } else { AGED };
        self.samples = self.samples * left / 8;
        self.period = (u128::from(self.period) * u128::from(left) / 8) as u64;
    }

    /// Returns the least period that is remembered of parts of it.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn least_remembered(self) -> u64 {
        (self.period / FORGOTTEN).max(1)
    }

    /// Returns its share of a total, in percent.
    pub fn percent_of(self, total: Self) -> f64 {
        match total.period {
            0 => 0.0,
            all => self.period as f64 * 100.0 / all as f64,
        }
    }
}

/// Task that was running, as far as a report has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// The name of its command; empty if a report does not have commands apart.
    pub command: Arc<str>,
    /// The process, if a report has processes apart.
    pub pid: Option<i32>,
    /// The thread, if a report has threads apart.
    pub tid: Option<i32>,
    /// The CPU, if a report has CPUs apart.
    pub cpu: Option<u32>,
}

/// A branch, as far as a report has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakenBranch {
    /// The position of the function that it is in; `None` where nothing is known of the address.
    pub from: Option<usize>,
    /// True if it was mispredicted; `None` if the CPU does not record that.
    pub mispredicted: Option<bool>,
    /// The cycles since the branch before; 0 if the CPU does not record them.
    pub cycles: u16,
}

/// Every function that was seen, once.
#[derive(Debug, Default)]
pub struct Functions {
    all: Numbered<Seen>,
}

/// Place of an instruction in no function that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instruction {
    /// Offset in its file, in bytes.
    InFile(u64),
    /// Address in memory: in the kernel, or in memory of no file.
    InMemory(u64),
}

/// A function, and whether it ran in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seen {
    /// The file: a path, or a name in brackets (`[kernel.kallsyms]`).
    pub object: Arc<str>,
    /// Its name; `None` if the file has no symbol there.
    pub name: Option<Arc<str>>,
    /// The instruction, if it has no name: each is apart from the others.
    pub at: Option<Instruction>,
    /// True if it was inlined into the next function of the stack.
    pub inlined: bool,
    /// True if it ran in the kernel.
    pub in_kernel: bool,
    /// The source line, if lines were asked for.
    pub source: Option<(Arc<str>, u32)>,
}

impl Profile {
    /// Returns the functions that samples of an event hit, with the weight of each, the heaviest first.
    pub fn hottest(&self, event: &EventProfile) -> Vec<(&Seen, Weight)> {
        let mut own: HashMap<usize, Weight> = HashMap::new();
        for (stack, weight) in event.stacks.iter() {
            if let Some(innermost) = self.stacks.frames(stack).next() {
                own.entry(innermost).or_default().add(weight);
            }
        }
        let own = own.into_iter();
        let mut hottest: Vec<_> = own
            .map(|(at, weight)| (self.functions.get(at), weight))
            .collect();
        hottest.sort_by(|a, b| (b.1.period, a.0).cmp(&(a.1.period, b.0)));
        hottest
    }
}

impl Functions {
    /// The position of a function.
    pub(crate) fn place(&mut self, seen: Seen) -> usize {
        self.all.number(seen) as usize
    }

    /// Returns all in the order of their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.all.all().iter()
    }

    /// Returns the function at a position of [`Stacks::frames`].
    pub fn get(&self, place: usize) -> &Seen {
        self.all.get(place as u32)
    }
}

impl Seen {
    pub(crate) fn new(function: Function, at: Option<Instruction>, in_kernel: bool) -> Self {
        Self {
            object: function.object,
            at: at.filter(|_| function.name.is_none() && !function.inlined),
            name: function.name,
            inlined: function.inlined,
            in_kernel,
            source: function.source,
        }
    }

    /// Returns a frame that is no function; its name stands in the place of its file too.
    pub(super) fn stand_in(name: &str) -> Self {
        Self {
            object: name.into(),
            name: Some(name.into()),
            at: None,
            inlined: false,
            in_kernel: false,
            source: None,
        }
    }

    /// Returns its name, for a person: if it has none, the place of its instruction (`app+0x118c`), or `[unknown]`.
    pub fn title(&self) -> String {
        let inlined = if self.inlined { " (inlined)" } else { "" };
        match (&self.name, self.at) {
            (Some(name), _) => format!("{name}{inlined}"),
            (None, Some(Instruction::InFile(offset))) => {
                format!("{}+{offset:#x}", self.short_object())
            }
            (None, Some(Instruction::InMemory(address))) => format!("{address:#x}"),
            (None, None) => format!("[unknown]{inlined}"),
        }
    }

    /// Returns the file's name without its directories.
    pub fn short_object(&self) -> &str {
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
