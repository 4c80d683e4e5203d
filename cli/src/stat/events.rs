//! Which events are counted: those asked for, or the default ones, and the cache events of `-d`.

use quipu::{Event, EventSpec, GroupSpec, Hardware, IntoGroups, Software};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult, text};

use crate::failure::Failure;

use super::options::Options;

/// A group or lone event to count, as the command line asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub group: GroupSpec,
    /// The name as written on the command line, if it is a lone event.
    pub label: Option<String>,
    /// Left out of the report where it cannot be counted, because it was not asked for.
    pub optional: bool,
}

impl Request {
    fn default_event(event: impl Into<Event>) -> Self {
        Self {
            group: GroupSpec::single(EventSpec::new(event)),
            label: None,
            optional: false,
        }
    }

    fn optional(event: impl Into<Event>) -> Self {
        Self {
            optional: true,
            ..Self::default_event(event)
        }
    }
}

impl IntoGroups for Request {
    fn into_groups(self) -> quipu::Result<Vec<GroupSpec>> {
        self.group.into_groups()
    }
}

/// Returns the requests of a command line, in order.
pub fn requests(options: &Options, on_cpus: bool) -> Result<Vec<Request>, Failure> {
    if options.null {
        return Ok(Vec::new());
    }
    let mut requests = Vec::new();
    for text in &options.event {
        requests.extend(named(text)?);
    }
    if options.event.is_empty() {
        requests = default_set(on_cpus);
    }
    requests.extend(detailed(options.detailed));
    Ok(requests)
}

fn named(text: &str) -> Result<Vec<Request>, Failure> {
    let groups = text::parse_list(text).map_err(|e| Failure::usage(format_args!("{e:#}")))?;
    // Where the text is a plain list, its items are the names people will look for.
    let plain = !text.contains(['{', '/', '\'']);
    let mut labels = text.split(',').map(|item| item.trim().to_owned());
    Ok(groups
        .into_iter()
        .map(|group| Request {
            label: labels.next().filter(|_| plain),
            group,
            optional: false,
        })
        .collect())
}

/// Returns the default events of `perf stat`. On CPUs the clock is that of the CPU, because the idle task
/// is counted there too.
fn default_set(on_cpus: bool) -> Vec<Request> {
    let clock = if on_cpus {
        Software::CpuClock
    } else {
        Software::TaskClock
    };
    vec![
        Request::default_event(clock),
        Request::default_event(Software::ContextSwitches),
        Request::default_event(Software::CpuMigrations),
        Request::default_event(Software::PageFaults),
        Request::default_event(Hardware::Cycles),
        Request::optional(Hardware::StalledCyclesFrontend),
        Request::optional(Hardware::StalledCyclesBackend),
        Request::default_event(Hardware::Instructions),
        Request::default_event(Hardware::Branches),
        Request::default_event(Hardware::BranchMisses),
    ]
}

/// Returns the events that `-d` adds, level by level.
fn detailed(level: u8) -> impl Iterator<Item = Request> {
    const LEVELS: [&[(Cache, CacheOp)]; 3] = [
        &[(Cache::L1d, CacheOp::Read), (Cache::Ll, CacheOp::Read)],
        &[
            (Cache::L1i, CacheOp::Read),
            (Cache::Dtlb, CacheOp::Read),
            (Cache::Itlb, CacheOp::Read),
        ],
        &[(Cache::L1d, CacheOp::Prefetch)],
    ];
    LEVELS
        .into_iter()
        .take(level.into())
        .flatten()
        .flat_map(|&(cache, op)| {
            CacheResult::ALL
                .iter()
                .map(move |&result| Request::default_event(CacheEvent::new(cache, op, result)))
        })
}
