//! Which events are counted: those asked for, or the default ones, and the cache events of `-d`.

use quipu::{Event, EventSpec, Filter, GroupSpec, Hardware, IntoGroups, Software};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult, text};

use quipu_shell::Failure;
use quipu_shell::event_text::{self, EventText};

use super::options::Options;

/// A group or lone event to count, as the command line asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub group: GroupSpec,
    /// The names of the members as typed; none for an event that was not asked for by name.
    pub labels: Vec<String>,
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
                *label = with_modifiers(label, modifier, &member.event);
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
    fn into_groups(self, _: &dyn Fn(&str) -> bool) -> quipu::Result<Vec<GroupSpec>> {
        Ok(vec![self.group])
    }
}

/// Returns the requests of a command line, in order. `ends_in_mask` is that of the CPU the events are for
/// ([`text::parse_list_with`]).
pub fn requests(
    options: &Options,
    on_cpus: bool,
    ends_in_mask: &dyn Fn(&str) -> bool,
) -> Result<Vec<Request>, Failure> {
    if options.null {
        return Ok(Vec::new());
    }
    let mut requests = Vec::new();
    for text in &options.event {
        requests.extend(named(text, ends_in_mask)?);
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

fn named(text: &str, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<Request>, Failure> {
    let text = EventText::read(text, &event_text::tracepoints).map_err(Failure::usage)?;
    let groups = text::parse_list_with(&text.list, ends_in_mask);
    let groups = groups.map_err(|e| Failure::usage(format_args!("{e:#}")))?;
    let (mut rest, mut said) = (text.list.as_str(), text.said.into_iter());
    let requests = groups.into_iter().map(|group| {
        let mut labels = typed_names(&mut rest, &group, ends_in_mask).unwrap_or_default();
        // A rate is for samples; what is counted is the same.
        for (at, said) in said.by_ref().take(group.members.len()).enumerate() {
            if let (Some(name), Some(label)) = (said.name, labels.get_mut(at)) {
                *label = name;
            }
        }
        Request {
            labels,
            group,
            optional: false,
        }
    });
    Ok(requests.collect())
}

/// Returns the names of a group's members as typed at the beginning of `list`, which goes on after it.
/// The modifiers of a group in braces are added to each.
fn typed_names(
    list: &mut &str,
    group: &GroupSpec,
    ends_in_mask: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let start = list.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    let members = start.strip_prefix('{');
    let mut rest = members.unwrap_or(start);
    let mut names = Vec::new();
    for member in &group.members {
        // A comma may also be within the event, between slashes or quotes.
        let ends = rest.match_indices([',', '}']).map(|(end, _)| end);
        let mut names_at = ends
            .chain([rest.len()])
            .map(|end| (rest[..end].trim(), end));
        let (name, end) = names_at.find(|(name, _)| is_name_of(name, member, ends_in_mask))?;
        names.push(name.to_owned());
        rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
    }
    if members.is_some() {
        rest = rest.trim_start().strip_prefix('}')?;
        let (modifiers, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
        rest = after;
        // W and S are the group's alone.
        let modifiers = modifiers.trim().replace(['W', 'S'], "");
        if let Some(modifiers) = modifiers.strip_prefix(':').filter(|m| !m.is_empty()) {
            for (name, member) in names.iter_mut().zip(&group.members) {
                *name = with_modifiers(name, modifiers, &member.event);
            }
        }
    }
    *list = rest;
    Some(names)
}

/// Returns true if a text is that of one event, whatever its modifiers are.
fn is_name_of(text: &str, member: &EventSpec, ends_in_mask: &dyn Fn(&str) -> bool) -> bool {
    let groups = text::parse_list_with(text, ends_in_mask).unwrap_or_default();
    matches!(groups.as_slice(), [group] if matches!(group.members.as_slice(), [one] if one.event == member.event))
}

/// Returns the name of an event, as typed, with more modifiers, as one would type it.
pub fn with_modifiers(name: &str, modifiers: &str, event: &Event) -> String {
    let separate = format!("{name}:{modifiers}");
    let has_none = matches!(event, Event::Named(all) if all == name);
    if has_none || text::parse_list(&separate).is_ok() {
        return separate;
    }
    format!("{name}{modifiers}")
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
