//! From options to what is sampled with hwpmc(4), with what it cannot do refused by name.

use quipu::{Attributes, EventSpec, Filter, Hardware, Machine, NativeEvents, Target};
use quipu_hwpmc::{Hwpmc, HwpmcBackend, HwpmcSampler, SamplerSpec};

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::super::call_graph::CallGraph;
use super::super::options::{Clock, Options};

/// The events between two samples unless something else is asked for.
const USUAL_PERIOD: u64 = 1_000_003;

/// The scope, events and rates of sampling.
pub(super) struct Plan {
    pub(super) spec: SamplerSpec,
    pub(super) scope: Scope,
    /// The names of the events.
    pub(super) names: Vec<String>,
}

impl Plan {
    pub(super) fn new(options: &Options) -> Result<Self, Failure> {
        if let Some((option, why)) = refused(options) {
            return Err(Failure::usage(format_args!("{option}: {why}")));
        }
        let scope = options.target.scope()?.ok_or_else(|| {
            Failure::usage(
                "nothing to record: name a command (quipu record -- ls), a process (-p PID) or CPUs (-a, -C LIST)",
            )
        })?;
        let Events {
            mut list,
            names,
            attributes,
        } = events(options)?;
        let level = match (options.all_user, options.all_kernel) {
            (true, _) => Some(Filter::USER),
            (_, true) => Some(Filter::KERNEL),
            _ => None,
        };
        for (event, _) in &mut list {
            if let Some(level) = level.filter(|_| event.filter.contains(Filter::LEVELS)) {
                event.filter = event.filter.with_levels(level);
            }
            Machine::this().check_sampling(event)?;
        }
        let mut spec = SamplerSpec::new(list);
        spec.attributes = attributes
            .with_disabled(true)
            .with_inherit(!options.target.no_inherit && !matches!(scope, Scope::Cpus(_)))
            .with_enable_on_exec(scope == Scope::Command);
        spec.call_chains = options.sampling.callchains || options.sampling.call_graph.is_some();
        // Of a buffer of 256 KB.
        spec.wake_after = 1000;
        Ok(Self { spec, scope, names })
    }

    /// Opens the sampler of all targets; `command` is the process of the command.
    pub(super) fn open(
        &self,
        backend: &HwpmcBackend<Hwpmc>,
        command: Option<i32>,
    ) -> quipu::Result<HwpmcSampler<Hwpmc>> {
        let targets = self.scope.targets(command);
        let mut targets = targets.iter().map(|(_, target)| target);
        let first = targets.next().unwrap_or(&Target::AllCpus);
        let mut sampler = backend.open_sampler(&self.spec, first)?;
        targets.try_for_each(|target| backend.attach_sampler(&mut sampler, target))?;
        Ok(sampler)
    }
}

/// The events to sample.
struct Events {
    /// Each with its period.
    list: Vec<(EventSpec, u64)>,
    names: Vec<String>,
    /// Attributes that they ask for beside, which the driver refuses.
    attributes: Attributes,
}

/// Returns the events that are asked for, or cycles.
fn events(options: &Options) -> Result<Events, Failure> {
    let usual = options.sampling.count.unwrap_or(USUAL_PERIOD);
    let mut events = Events {
        list: Vec::new(),
        names: Vec::new(),
        attributes: Attributes::default(),
    };
    if options.sampling.event.is_empty() {
        let cycles = EventSpec::new(Hardware::Cycles);
        events.names.push(cycles.to_string());
        events.list.push((cycles, usual));
    }
    for text in &options.sampling.event {
        let groups = quipu_text::parse(text, &**NativeEvents::this())
            .map_err(|e| Failure::usage(format_args!("{e:#}")))?;
        for group in groups {
            if group.members.len() > 1 {
                return Err(Failure::usage(format_args!(
                    "{text}: hwpmc(4) has no groups: write its events without braces"
                )));
            }
            let asked = group.attributes;
            events.attributes.pinned |= asked.pinned;
            events.attributes.exclusive |= asked.exclusive;
            for member in group.members {
                if member.settings.frequency.is_some() {
                    return Err(Failure::usage(format_args!("{text}: {PERIODS}")));
                }
                let name = member.settings.name.clone();
                let name = name.unwrap_or_else(|| member.spec.to_string());
                let period = member.settings.period.unwrap_or(usual);
                events.names.push(name);
                events.list.push((member.spec, period));
            }
        }
    }
    Ok(events)
}

const PERIODS: &str = "hwpmc(4) takes a sample every so many events, and not so many in a second: name their number with -c";
const LINUX: &str = "quipu record has it on Linux alone";

/// Returns an option that cannot be had with hwpmc(4), and why.
fn refused(options: &Options) -> Option<(&'static str, &'static str)> {
    const USUAL_PAGES: u32 = 128;
    let sampling = &options.sampling;
    let by_frame_pointers = |method: CallGraph| method == CallGraph::FramePointers;
    let asked = [
        (sampling.frequency.is_some(), "-F", PERIODS),
        (options.strict_freq, "--strict-freq", PERIODS),
        (
            !sampling.call_graph.is_none_or(by_frame_pointers),
            "--call-graph",
            "hwpmc(4) follows frame pointers: -g, or --call-graph fp",
        ),
        (
            sampling.mmap_pages != USUAL_PAGES,
            "-m",
            "the driver has the same buffers for everyone: kern.hwpmc.nbuffers_pcpu in loader.conf(5)",
        ),
        (
            options.branch_any || options.branch_filter.is_some(),
            "-b, -j",
            "hwpmc(4) records no branches",
        ),
        (options.stat, "-s", "hwpmc(4) does not count single threads"),
        (
            options.switch_events,
            "--switch-events",
            "hwpmc(4) logs them of processes that it counts, not of those that it samples",
        ),
        (
            options.off_cpu,
            "--off-cpu",
            "hwpmc(4) does not log when threads sleep",
        ),
        (
            options.data,
            "-d",
            "hwpmc(4) does not report addresses of data",
        ),
        (
            !options.target.tid.is_empty(),
            "-t",
            "hwpmc(4) samples all threads of a process: name it with -p",
        ),
        (
            !options.cgroup.is_empty(),
            "-G",
            "this system has no control groups",
        ),
        (
            options.user.is_some(),
            "-u",
            "name the processes of the user with -p",
        ),
        (
            options.per_thread,
            "--per-thread",
            "hwpmc(4) has one log for all that a process samples",
        ),
        (
            options
                .clockid
                .is_some_and(|clock| clock != Clock::Monotonic),
            "-k",
            "the driver's clock is told as CLOCK_MONOTONIC",
        ),
        (options.delay.is_some(), "-D", LINUX),
        (options.control.is_some(), "--control", LINUX),
        (options.max_size.is_some(), "--max-size", LINUX),
        (options.overwrite, "--overwrite", LINUX),
        (options.switch_output.is_some(), "--switch-output", LINUX),
        (
            options.switch_max_files.is_some(),
            "--switch-max-files",
            LINUX,
        ),
        (options.timestamp_filename, "--timestamp-filename", LINUX),
    ];
    let mut asked = asked.into_iter();
    asked.find_map(|(is_asked, option, why)| is_asked.then_some((option, why)))
}
