//! From options to a plan: what is counted where, with contradictions refused before anything runs.

use std::ffi::OsString;
use std::time::Duration;

use quipu::{Attributes, Machine, Target};

use crate::failure::Failure;
use crate::names::Names;
use crate::target::Scope;

use super::aggregate::AggregateBy;
use super::backend::Backends;
use super::events::{self, Request};
use super::options::Options;
use super::simulated::SimulatedPctr;
use super::system;

/// A consistent plan of what to do.
#[derive(Debug)]
pub struct Plan {
    pub requests: Vec<Request>,
    pub scope: Scope,
    pub command: Vec<OsString>,
    /// The chosen source of native event names.
    pub names: Option<Names>,
    /// The only backends to use, by name; all when there is none.
    pub backend: Vec<String>,
    /// The simulated device to use instead.
    pub simulated: Option<SimulatedPctr>,
    /// True if the events are the default ones.
    pub default_events: bool,
    /// True if registers may be taken that another program counts with.
    pub take_busy: bool,
    pub inherit: bool,
    pub by: AggregateBy,
    pub runs: u32,
    pub interval: Option<Duration>,
    pub summary: bool,
    pub timeout: Option<Duration>,
    pub verbose: bool,
}

impl Plan {
    pub fn new(options: &Options) -> Result<Self, Failure> {
        system::check_supported(options)?;
        let scope = scope(options)?;
        let by = match options {
            Options { no_aggr: true, .. } => AggregateBy::Cpu,
            Options { per_core: true, .. } => AggregateBy::Core,
            Options {
                per_socket: true, ..
            } => AggregateBy::Socket,
            Options {
                per_thread: true, ..
            } => AggregateBy::Thread,
            _ => AggregateBy::Target,
        };
        let on_cpus = matches!(scope, Scope::Cpus(_) | Scope::Cgroups(..));
        if matches!(
            by,
            AggregateBy::Cpu | AggregateBy::Core | AggregateBy::Socket
        ) && !on_cpus
        {
            return Err(Failure::usage(
                "-A, --per-core and --per-socket need CPUs to count on: add -a or -C LIST",
            ));
        }
        if by == AggregateBy::Thread && !matches!(scope, Scope::Tasks(_)) {
            return Err(Failure::usage(
                "--per-thread needs threads that run already: add -p PID or -t TID",
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
        if options.target.command.is_empty() && options.repeat.is_some_and(|n| n > 1) {
            return Err(Failure::usage("-r needs a command to repeat"));
        }
        let names = options.names.choose()?;
        let simulated = options.simulate.map(SimulatedPctr::new).transpose()?;
        let native = Names::native(names.as_ref());
        let requests = events::requests(options, on_cpus, &|name| match &simulated {
            Some(simulated) => simulated.ends_in_mask(name),
            None => native.ends_in_mask(name),
        })?;
        Ok(Self {
            requests,
            scope,
            command: options.target.command.clone(),
            names,
            backend: options.backend.clone(),
            simulated,
            default_events: options.event.is_empty() && !options.null,
            take_busy: options.take_busy,
            inherit: !options.target.no_inherit,
            by,
            runs: options.repeat.unwrap_or(1),
            interval: options.interval_print.map(Duration::from_millis),
            summary: options.summary,
            timeout: options.timeout.map(Duration::from_millis),
            verbose: options.verbose,
        })
    }

    /// Returns the attributes of groups. A command's counters start when it executes; others are started.
    pub fn attributes(&self) -> Attributes {
        Attributes::default()
            .with_inherit(self.inherit && matches!(self.scope, Scope::Command | Scope::Tasks(_)))
            .with_enable_on_exec(self.scope == Scope::Command)
            .with_disabled(true)
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

    /// Returns a warning for each register that could not be restored after everything was closed,
    /// and with `-v` the log of a simulated device.
    pub fn restore_warnings(&self, backends: &Backends) -> Vec<String> {
        if self.requests.is_empty() {
            return Vec::new();
        }
        let failures: Vec<_> = match &backends.counting {
            Some(backends) => backends.iter().flat_map(|b| b.restore_failures()).collect(),
            None => {
                let used = self.machine().usable();
                used.flat_map(|backend| backend.restore_failures())
                    .collect()
            }
        };
        let mut lines: Vec<String> = failures.iter().map(|e| format!("{e:#}")).collect();
        if let Some(simulated) = self.simulated.as_ref().filter(|_| self.verbose) {
            lines.extend(simulated.log());
        }
        lines
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
    options.target.scope()?.ok_or_else(|| {
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
