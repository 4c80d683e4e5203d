//! From options to a plan: what is counted where, with contradictions refused before anything runs.

use std::ffi::OsString;
use std::time::Duration;

use quipu::{Machine, Target};
use quipu_text::EventNames;

use crate::names::Names;
use quipu_shell::Failure;
use quipu_shell::control::{self, ControlFiles};
use quipu_shell::target::Scope;

use super::aggregate::AggregateBy;
use super::derived::{self, Derived};
use super::events::{self, Request};
use super::options::Options;
use super::rows::Row;
use super::simulated::SimulatedMachine;
use super::system;
use super::tool_events;

/// A consistent plan of what to do.
#[derive(Debug)]
pub struct Plan {
    pub requests: Vec<Request>,
    /// The metrics among the requests.
    pub metrics: Vec<Derived>,
    /// The rows of tool events, each with the number of events before it.
    pub tools: Vec<(usize, Row)>,
    pub scope: Scope,
    pub command: Vec<OsString>,
    /// The chosen source of native event names.
    pub names: Option<Names>,
    /// The only backends to use, by name; all when there is none.
    pub backend: Vec<String>,
    /// The simulated machine to use instead.
    pub simulated: Option<SimulatedMachine>,
    /// True if the events are the default ones.
    pub default_events: bool,
    /// True if the target is every thread that runs.
    pub every_thread: bool,
    /// True if registers may be taken that another program counts with.
    pub take_busy: bool,
    pub inherit: bool,
    pub by: AggregateBy,
    /// True if the instances of a unit outside of the cores are added up.
    pub merges_units: bool,
    pub runs: u32,
    /// True if there are reports until a signal arrives.
    pub forever: bool,
    /// The commands of the shell before and after each run.
    pub pre: Option<OsString>,
    pub post: Option<OsString>,
    /// The time from the start of the command to that of counting; all of it if nothing but commands starts it.
    pub delay: Option<Duration>,
    /// The files that commands come from.
    pub control: Option<ControlFiles>,
    pub interval: Option<Duration>,
    /// The number of intervals to report.
    pub interval_count: Option<u32>,
    pub summary: bool,
    pub timeout: Option<Duration>,
    pub verbose: u8,
    /// True if each run is reported to programs.
    pub reports_runs: bool,
    /// True if the time of each run is reported.
    pub table: bool,
}

impl Plan {
    pub fn new(options: &Options) -> Result<Self, Failure> {
        system::check_supported(options)?;
        let by = AggregateBy::of(&options.places)?;
        let every_thread = by == AggregateBy::Thread && options.target.all_cpus;
        let scope = match every_thread {
            true => Scope::Tasks(system::every_process()?),
            false => scope(options)?,
        };
        let on_cpus = matches!(scope, Scope::Cpus(_) | Scope::Cgroups(..));
        if by.is_of_cpus() && !on_cpus {
            return Err(Failure::usage(
                "-A and --per-core, --per-cache, --per-socket and the like need CPUs to count on: add -a or \
                 -C LIST",
            ));
        }
        if by == AggregateBy::Thread && !matches!(scope, Scope::Tasks(_)) {
            return Err(Failure::usage(
                "--per-thread needs threads that run already: add -p PID, -t TID, or -a for all of them",
            ));
        }
        if options.backend == ["msr"] && !matches!(scope, Scope::Cpus(_)) {
            return Err(Failure::usage(
                "--backend msr counts on CPUs, whatever runs there: add -C LIST or -a",
            ));
        }
        if options.take_busy && options.backend != ["msr"] {
            return Err(Failure::usage(
                "--take-busy takes counters that other programs use: it needs --backend msr",
            ));
        }
        if options.target.command.is_empty() && options.repeat.is_some_and(|n| n != 1) {
            return Err(Failure::usage("-r needs a command to repeat"));
        }
        if options.target.command.is_empty() && (options.pre.is_some() || options.post.is_some()) {
            return Err(Failure::usage(
                "--pre and --post need a command between them",
            ));
        }
        let names = options.names.choose()?;
        let simulated = options.simulate.map(SimulatedMachine::new).transpose()?;
        let native = Names::native(names.as_ref());
        let masks: &dyn EventNames = match &simulated {
            Some(simulated) => simulated,
            None => native,
        };
        let requests = events::requests(options, on_cpus, masks)?;
        let metrics = derived::chosen(options, names.as_ref())?;
        let (mut requests, mut tools) = tool_events::split(requests)?;
        requests.extend(metrics.iter().map(Derived::request));
        let reports_runs = options.adds_to_perf() && options.is_for_programs();
        if reports_runs && options.interval_print.is_none() {
            tool_events::complete(&mut tools, &requests, scope == Scope::Command);
        }
        Ok(Self {
            requests,
            metrics,
            tools,
            every_thread,
            reports_runs,
            table: options.table,
            scope,
            command: options.target.command.clone(),
            names,
            backend: options.backend.clone(),
            simulated,
            default_events: options.event.is_empty()
                && !options.null
                && !options.measures_metrics(),
            take_busy: options.take_busy,
            inherit: !options.target.no_inherit,
            by,
            merges_units: !options.no_merge,
            runs: options.repeat.unwrap_or(1).max(1),
            forever: options.repeat == Some(0),
            pre: options.pre.clone(),
            post: options.post.clone(),
            delay: control::delay(options.delay, options.control.as_ref())?,
            control: options.control.clone(),
            interval_count: options.interval_count,
            interval: options.interval_print.map(Duration::from_millis),
            summary: options.summary,
            timeout: options.timeout.map(Duration::from_millis),
            verbose: options.verbose,
        })
    }

    /// Returns true if the children of what is counted are counted too.
    pub fn inherits(&self) -> bool {
        self.inherit && matches!(self.scope, Scope::Command | Scope::Tasks(_))
    }

    /// Returns true if counting starts when the command executes; otherwise counters are enabled later.
    pub fn starts_on_exec(&self) -> bool {
        self.scope == Scope::Command && self.delay.is_none()
    }

    /// Returns the CPUs that the command has to stay on: those that are counted, where a CPU's counters
    /// know nothing of commands.
    pub fn command_cpus(&self) -> Option<&[u32]> {
        match &self.scope {
            Scope::Cpus(Target::Cpus(cpus)) if self.backend == ["msr"] => Some(cpus),
            _ => None,
        }
    }

    /// Returns true if default events that registers do not count are counted of the command.
    pub fn counts_child(&self) -> bool {
        self.default_events && self.backend == ["msr"] && !self.command.is_empty()
    }

    /// Returns the machine to count on.
    pub fn machine(&self) -> &Machine {
        match &self.names {
            Some(names) => &names.machine,
            None => Machine::this(),
        }
    }

    /// Returns the name of the target for the report.
    pub fn title(&self) -> String {
        match &self.scope {
            Scope::Command => command_line(&self.command),
            Scope::Tasks(targets) => {
                let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
                names.join(", ")
            }
            Scope::Cpus(target) if self.backend == ["msr"] => {
                format!("everything on {target}, by raw registers")
            }
            Scope::Cpus(target) => target.to_string(),
            Scope::Cgroups(cgroups, cpus) => {
                let names: Vec<_> = cgroups.iter().map(|(name, _)| name.as_str()).collect();
                let plural = if names.len() == 1 { "" } else { "s" };
                let mut title = format!("cgroup{plural} {}", names.join(", "));
                if !cpus.is_empty() {
                    title.push_str(&format!(" on {}", Target::Cpus(cpus.clone())));
                }
                title
            }
        }
    }
}

fn scope(options: &Options) -> Result<Scope, Failure> {
    if !options.cgroup.is_empty() {
        return Ok(Scope::cgroups(&options.cgroup, options.target.cpu_list()?));
    }
    let chosen = options.target.scope()?;
    // The overhead is that of this process, whatever runs.
    chosen.or(options.overhead.then_some(Scope::Command)).ok_or_else(|| {
        Failure::usage(
            "nothing to count: give a command (quipu stat -- ls), a process (-p PID), or -a for \
             the whole machine; quipu stat --help shows examples",
        )
    })
}

/// Returns a command as it would be typed, in quotes.
fn command_line(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    format!("'{}'", words.join(" "))
}
