//! Reports: the counts of regions, thread by thread.

use std::collections::BTreeMap;
use std::time::Duration;

use quipu::{Count, Counts};
use serde::{Deserialize, Serialize};

use crate::thread::{self, Thread};
use crate::tree::{Node, OUTSIDE, Tree};

/// The counts of the regions of a process.
///
/// ```
/// use quipu_regions::{Report, region};
///
/// {
///     let _region = region!("fill");
///     std::hint::black_box(vec![1u8; 1 << 20]);
/// }
/// let report = Report::now();
/// for region in report.totals() {
///     println!("{}: {} calls, {:?}", region.name(), region.calls, region.elapsed);
/// }
/// assert!(report.to_string().contains("fill"));
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The process.
    pub process: u32,
    /// Its rank among the processes of a parallel program, if its launcher gave it one.
    pub rank: Option<u64>,
    /// The path of its program.
    pub program: String,
    /// The threads that entered regions, in the order in which they did so first.
    pub threads: Vec<ThreadReport>,
}

/// The owners that have regions of their own in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Apart {
    /// Processes, by the rank that a launcher of parallel programs gave them.
    Ranks,
    /// Threads.
    Threads,
}

/// The counts of the regions of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadReport {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its regions, each behind the one in which it was entered first.
    pub regions: Vec<RegionReport>,
    /// The time since it entered its first region in which it was in none.
    pub outside: Duration,
    /// The counts of that time.
    pub outside_counts: Vec<Counted>,
    /// Sentences on regions that were entered or left wrongly, or the reason why nothing was counted.
    pub mistakes: Vec<String>,
}

/// The counts of a region that was entered from another one, or from none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegionReport {
    /// The names of the regions in which it was entered, the outermost first, and its own.
    pub path: Vec<String>,
    /// The number of times that it was entered.
    pub calls: u64,
    /// The number of threads that entered it.
    pub threads: usize,
    /// The number of times that it was entered and not left yet. What is counted in these is not in its counts, but in its own.
    pub not_left: u32,
    /// The time from entering to leaving it, of all calls. That of a recursion is counted once.
    pub elapsed: Duration,
    /// That time without the time of regions inside of it.
    pub own_elapsed: Duration,
    /// The shortest call that was left, of which there is one.
    pub shortest: Option<Duration>,
    /// The longest.
    pub longest: Option<Duration>,
    /// The events, in the order in which they were chosen.
    pub events: Vec<EventOfRegion>,
}

/// An event in a region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventOfRegion {
    /// The count of it and of regions inside of it.
    pub counted: Counted,
    /// The count of it alone.
    pub own: Counted,
}

/// An event, and its count or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counted {
    /// Its name, as it was asked for.
    pub event: String,
    /// The count.
    pub count: Option<Count>,
    /// The reason why there is no count.
    pub reason: Option<String>,
    /// True if it is a number of nanoseconds.
    pub is_time: bool,
    /// True if user mode alone was counted, as more is not permitted.
    pub user_mode_only: bool,
    /// True if whole CPUs were counted, as the system counts no threads.
    pub whole_cpus: bool,
}

impl Report {
    /// Returns what was counted up to now: of other threads, up to the last time that they entered or left a region. It has no
    /// threads in a signal handler that came while the thread was busy with regions.
    pub fn now() -> Self {
        let program = std::env::current_exe().map(|path| path.display().to_string());
        let threads = thread::alone(|| thread::all().iter().map(|one| of_thread(one)).collect());
        Self {
            process: std::process::id(),
            rank: quipu_environment::rank(),
            program: program.unwrap_or_default(),
            threads: threads.unwrap_or_default(),
        }
    }

    /// Returns the sums over all threads, a line for each region and the ones in which it was entered.
    pub fn totals(&self) -> Vec<RegionReport> {
        totals(std::slice::from_ref(self))
    }

    /// Has regions of this process apart from those of others: by its rank, or each thread by its number.
    pub fn keep_apart(&mut self, by: Apart) {
        let rank = self
            .rank
            .map_or(format!("process {}", self.process), |rank| {
                format!("rank {rank}")
            });
        for thread in &mut self.threads {
            let owner = match by {
                Apart::Ranks => rank.clone(),
                Apart::Threads => format!("thread {}", thread.id),
            };
            for region in &mut thread.regions {
                if let Some(outermost) = region.path.first_mut() {
                    *outermost = format!("{owner}: {outermost}");
                }
            }
        }
    }

    /// Returns true if no region was entered.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}

/// Returns the stacks of regions in the folded form of flame graphs, each with what an event counted in it alone.
pub fn folded(reports: &[Report], event: &str) -> Vec<String> {
    let totals = totals(reports);
    let lines = totals.iter().filter_map(|region| {
        let own = region.events.iter().map(|of_event| &of_event.own);
        let value = own.clone().find(|own| own.event == event)?.count?.value()?;
        let path = region
            .path
            .iter()
            .map(|name| name.replace([';', '\n'], ":"));
        Some(format!("{} {value}", path.collect::<Vec<_>>().join(";")))
    });
    lines.collect()
}

/// Returns the sums over the threads of processes, each region behind the one in which it was entered.
pub fn totals(reports: &[Report]) -> Vec<RegionReport> {
    let mut sums: Vec<RegionReport> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let threads = reports.iter().flat_map(|report| &report.threads);
    for region in threads.flat_map(|thread| &thread.regions) {
        match places.get(&region.path) {
            Some(place) => sums[*place].add(region),
            None => {
                places.insert(region.path.clone(), sums.len());
                sums.push(region.clone());
            }
        }
    }
    // Each behind its parent: the order of first calls, level by level.
    let order = |region: &RegionReport| {
        let ends = 1..=region.path.len();
        let ends = ends.map(|end| places.get(&region.path[..end]).copied());
        ends.collect::<Vec<_>>()
    };
    sums.sort_by_key(order);
    sums
}

impl ThreadReport {
    /// Returns what the calling thread has counted up to the last time that it entered or left a region, if it has.
    pub fn now() -> Option<Self> {
        thread::own().and_then(|thread| thread::alone(|| of_thread(&thread)))
    }
}

impl RegionReport {
    /// Returns its name.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn of(tree: &Tree, node: &Node) -> Self {
        let mut path = Vec::new();
        let mut next = Some(node);
        while let Some(node) = next {
            path.extend(node.region.map(|region| region.name_alone().to_owned()));
            next = Some(&tree.nodes[node.parent]).filter(|_| node.parent != OUTSIDE);
        }
        path.reverse();
        let was_left = node.longest > Duration::ZERO || node.shortest < Duration::MAX;
        let events = counted(&node.counts).into_iter().zip(counted(&node.own));
        Self {
            path,
            calls: node.calls,
            threads: 1,
            not_left: node.inside,
            elapsed: node.elapsed,
            own_elapsed: node.own_elapsed,
            shortest: was_left.then_some(node.shortest),
            longest: was_left.then_some(node.longest),
            events: events
                .map(|(counted, own)| EventOfRegion { counted, own })
                .collect(),
        }
    }

    /// Adds the same region of another thread.
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.threads += other.threads;
        self.not_left += other.not_left;
        self.elapsed += other.elapsed;
        self.own_elapsed += other.own_elapsed;
        self.shortest = self.shortest.into_iter().chain(other.shortest).min();
        self.longest = self.longest.into_iter().chain(other.longest).max();
        for event in &other.events {
            let mut known = self.events.iter_mut();
            match known.find(|known| known.counted.event == event.counted.event) {
                Some(known) => {
                    known.counted.add(&event.counted);
                    known.own.add(&event.own);
                }
                None => self.events.push(event.clone()),
            }
        }
    }
}

impl Counted {
    /// Returns another count of the same event.
    #[must_use]
    pub fn with_count(&self, count: Count) -> Self {
        Self {
            count: Some(count),
            reason: None,
            ..self.clone()
        }
    }

    /// Returns the name of the event with the mode that it was counted in, if that was narrowed: `cycles:u`.
    pub fn name(&self) -> String {
        let mode = if self.user_mode_only { ":u" } else { "" };
        format!("{}{mode}", self.event)
    }

    /// Adds the same event of another thread. What one of them lacks is missing in the sum.
    fn add(&mut self, other: &Self) {
        let (count, parts) = match (self.count, other.count) {
            (None, None) => return,
            (own, other) => (
                [own, other].map(|count| count.unwrap_or(Count::NotCounted)),
                2,
            ),
        };
        self.count = Some(sum(count, parts));
        self.reason = self.reason.take().or_else(|| other.reason.clone());
        self.user_mode_only |= other.user_mode_only;
        self.whole_cpus |= other.whole_cpus;
    }
}

/// Returns the sum of two counts with what it is.
fn sum(counts: [Count; 2], parts: usize) -> Count {
    let values = counts.map(Count::value);
    let missing = values.iter().filter(|value| value.is_none()).count();
    let missing = missing + counts.iter().map(|count| count.missing()).sum::<usize>();
    let value = values
        .into_iter()
        .flatten()
        .fold(0u128, u128::saturating_add);
    let is_estimate = counts.iter().any(|count| count.is_estimate());
    let is_bound = counts.iter().any(|count| count.is_lower_bound());
    let parts = parts + counts.iter().map(|count| count.missing()).sum::<usize>();
    if counts == [Count::Jumped; 2] {
        return Count::Jumped;
    }
    Count::of_parts(value, is_estimate, missing, parts).bounded(is_bound)
}

fn of_thread(thread: &Thread) -> ThreadReport {
    let mut report = ThreadReport {
        id: thread.id,
        name: thread.name.clone(),
        regions: Vec::new(),
        outside: Duration::ZERO,
        outside_counts: Vec::new(),
        mistakes: Vec::new(),
    };
    match &thread.tree {
        Err(error) => report.mistakes.push(format!("{error:#}")),
        Ok(tree) => {
            let tree = thread::lock(tree);
            let nodes = tree.nodes.iter().skip(1);
            report.regions = nodes.map(|node| RegionReport::of(&tree, node)).collect();
            let outside = &tree.nodes[OUTSIDE];
            report.outside = outside.own_elapsed;
            report.outside_counts = counted(&outside.own);
            report.mistakes.clone_from(&tree.mistakes);
        }
    }
    report
}

/// Returns the events of counts.
fn counted(counts: &Counts) -> Vec<Counted> {
    let events = counts.events().map(|event| {
        let total = event.total();
        let opened = event.event();
        Counted {
            event: event.name().to_owned(),
            count: total.as_ref().ok().copied(),
            reason: total.err().map(|error| format!("{error:#}")),
            is_time: opened.info().is_some_and(|info| info.unit == "ns"),
            user_mode_only: opened.fell_back_to_user(),
            whole_cpus: opened.fell_back_to_cpus().is_some(),
        }
    });
    events.collect()
}
