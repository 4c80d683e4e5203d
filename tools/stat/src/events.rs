//! Which events are counted: those asked for, or the default ones, and the cache events of `-d`.

use quipu::{Event, EventSpec, Filter, GroupSpec, Hardware, IntoGroups, Software};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult};
use quipu_text::{EventNames, Label, Parsed, ParsedGroup};

use quipu_shell::{Failure, WithTracepoints};

use super::options::Options;

/// A group or lone event to count, as the command line asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub group: GroupSpec,
    /// The names of the members as typed; none for an event that was not asked for by name.
    pub labels: Vec<Label>,
    /// Left out of the report where it cannot be counted, because it was not asked for.
    pub optional: bool,
}

impl Request {
    fn default_event(event: impl Into<Event>) -> Self {
        Self {
            group: GroupSpec::single(EventSpec::new(event)),
            labels: Vec::new(),
            optional: false,
        }
    }

    /// Returns the request for a group that was parsed. Rates are for samples; what is counted is the same.
    fn parsed(group: ParsedGroup<'_>) -> Self {
        // W and S are the group's alone.
        let modifiers = group.modifiers.replace(['W', 'S'], "");
        let label = |member: &Parsed<'_>| match &member.settings.name {
            Some(name) => Label::from(name.clone()),
            None => {
                let mut label = member.label();
                label.add(&modifiers, &member.spec);
                label
            }
        };
        Self {
            labels: group.members.iter().map(label).collect(),
            group: group.into(),
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

impl Request {
    fn is_software(&self) -> bool {
        let mut members = self.group.members.iter();
        members.all(|member| matches!(member.event, Event::Software(_)))
    }
}

impl Request {
    /// Counts at one privilege level only, whose modifier is added to the names. Members with levels of their own keep
    /// them, and so do clocks and what only the kernel does, which have no other level.
    fn narrow(&mut self, level: Filter, modifier: &str) {
        let members = self.group.members.iter_mut().enumerate();
        for (at, member) in members {
            let of_kernel = matches!(member.event, Event::Software(event) if !is_fault(event));
            if of_kernel || !member.filter.contains(Filter::LEVELS) {
                continue;
            }
            member.filter = member.filter.with_levels(level);
            if let Some(label) = self.labels.get_mut(at) {
                label.add(modifier, member);
            }
        }
    }
}

fn is_fault(event: Software) -> bool {
    use Software as S;
    let memory = [S::PageFaults, S::MinorFaults, S::MajorFaults];
    memory.contains(&event) || matches!(event, S::AlignmentFaults | S::EmulationFaults)
}

impl IntoGroups for Request {
    fn into_groups(self, _: &dyn EventNames) -> quipu::Result<Vec<GroupSpec>> {
        Ok(vec![self.group])
    }
}

/// Returns the requests of a command line, in order. `names` are those of the CPU the events are for.
pub fn requests(
    options: &Options,
    on_cpus: bool,
    names: &dyn EventNames,
) -> Result<Vec<Request>, Failure> {
    if options.null {
        return Ok(Vec::new());
    }
    let mut requests = Vec::new();
    for text in &options.event {
        requests.extend(named(text, names)?);
    }
    if options.event.is_empty() && !options.measures_metrics() {
        let on_registers = options.backend == ["msr"];
        let of_command = on_registers && !options.target.command.is_empty();
        requests = default_set(on_cpus && !of_command);
        // Registers count none of the kernel's events.
        let software = requests.iter_mut().filter(|request| request.is_software());
        software.for_each(|request| request.optional |= on_registers);
    }
    requests.extend(detailed(options.detailed));
    if options.all_user {
        requests
            .iter_mut()
            .for_each(|r| r.narrow(Filter::USER, "u"));
    } else if options.all_kernel {
        requests
            .iter_mut()
            .for_each(|r| r.narrow(Filter::KERNEL, "k"));
    }
    Ok(requests)
}

fn named(text: &str, names: &dyn EventNames) -> Result<Vec<Request>, Failure> {
    let groups = quipu_text::parse(text, &WithTracepoints(names))
        .map_err(|e| Failure::usage(format_args!("{e:#}")))?;
    Ok(groups.into_iter().map(Request::parsed).collect())
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
