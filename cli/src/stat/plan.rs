//! From options to a plan: what is counted where, with contradictions refused before anything runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu::hal::Cgroup;
use quipu::{Attributes, Machine, Target};

use crate::failure::Failure;
use crate::names::Names;
use crate::targets;

use super::aggregate::By;
use super::backend::Backends;
use super::events::{self, Request};
use super::options::Options;
use super::simulated::SimulatedPctr;
use super::system;

/// What to do, without contradictions.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) requests: Vec<Request>,
    pub(super) scope: Scope,
    pub(super) command: Vec<OsString>,
    /// Where native events are named, when that was chosen.
    pub(super) names: Option<Names>,
    /// The only backends to use, by name; all when there is none.
    pub(super) backend: Vec<String>,
    /// The simulated device to use instead.
    pub(super) simulated: Option<SimulatedPctr>,
    /// Whether to take registers that somebody else counts with.
    pub(super) take_busy: bool,
    pub(super) inherit: bool,
    pub(super) by: By,
    pub(super) runs: u32,
    pub(super) interval: Option<Duration>,
    pub(super) summary: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) verbose: bool,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scope {
    /// The command, from its execution on.
    Command,
    /// Processes and threads that run already.
    Tasks(Vec<Target>),
    /// Whole CPUs.
    Cpus(Target),
    /// Control groups, by the name they were given and their path, on CPUs; none means all CPUs.
    Cgroups(Vec<(String, PathBuf)>, Vec<u32>),
}

impl Plan {
    pub(super) fn new(options: &Options) -> Result<Self, Failure> {
        system::refuse_what_is_missing(options)?;
        let scope = scope(options)?;
        let by = match options {
            Options { no_aggr: true, .. } => By::Cpu,
            Options { per_core: true, .. } => By::Core,
            Options {
                per_socket: true, ..
            } => By::Socket,
            Options {
                per_thread: true, ..
            } => By::Thread,
            _ => By::Nothing,
        };
        let on_cpus = matches!(scope, Scope::Cpus(_) | Scope::Cgroups(..));
        if matches!(by, By::Cpu | By::Core | By::Socket) && !on_cpus {
            return Err(Failure::usage(
                "-A, --per-core and --per-socket need CPUs to count on: add -a or -C LIST",
            ));
        }
        if by == By::Thread && !matches!(scope, Scope::Tasks(_)) {
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
                "--take-busy takes bare registers from others: it needs --backend msr",
            ));
        }
        if options.command.is_empty() && options.repeat.is_some_and(|n| n > 1) {
            return Err(Failure::usage("-r needs a command to repeat"));
        }
        Ok(Self {
            requests: events::requests(options, on_cpus)?,
            scope,
            command: options.command.clone(),
            names: options.names.choose()?,
            backend: options.backend.clone(),
            simulated: options.simulate.map(SimulatedPctr::new).transpose()?,
            take_busy: options.take_busy,
            inherit: !options.no_inherit,
            by,
            runs: options.repeat.unwrap_or(1),
            interval: options.interval_print.map(Duration::from_millis),
            summary: options.summary,
            timeout: options.timeout.map(Duration::from_millis),
            verbose: options.verbose,
        })
    }

    /// How groups are opened. A command's counters start when it executes; all others are started.
    pub(super) fn attributes(&self) -> Attributes {
        Attributes {
            inherit: self.inherit && matches!(self.scope, Scope::Command | Scope::Tasks(_)),
            enable_on_exec: self.scope == Scope::Command,
            disabled: true,
            ..Attributes::default()
        }
    }

    /// The CPUs that the command has to stay on: those that are counted, where a CPU's counters know
    /// nothing of commands.
    pub(super) fn command_cpus(&self) -> Option<&[u32]> {
        match &self.scope {
            Scope::Cpus(Target::Cpus(cpus)) if self.backend == ["msr"] => Some(cpus),
            _ => None,
        }
    }

    /// The machine to count on.
    pub(super) fn machine(&self) -> &Machine {
        match &self.names {
            Some(names) => &names.machine,
            None => Machine::this(),
        }
    }

    /// What there is to say once everything is closed: what could not be put back, and with `-v` what
    /// a simulated device went through.
    pub(super) fn aftermath(&self, backends: &Backends) -> Vec<String> {
        if self.requests.is_empty() {
            return Vec::new();
        }
        let mut lines: Vec<String> = match &backends.counting {
            Some(backends) => backends.iter().flat_map(|b| b.not_restored()).collect(),
            None => {
                let used = self.machine().usable();
                used.flat_map(|backend| backend.not_restored()).collect()
            }
        };
        if let Some(simulated) = self.simulated.as_ref().filter(|_| self.verbose) {
            lines.extend(simulated.log());
        }
        lines
    }

    /// What the report says it is about.
    pub(super) fn title(&self) -> String {
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
    let cpus = match &options.cpus {
        Some(list) => targets::cpus(list)?,
        None => Vec::new(),
    };
    let tasks = targets::tasks(&options.pid, &options.tid)?;
    if !options.cgroup.is_empty() {
        let cgroups = options.cgroup.iter();
        let cgroups = cgroups.map(|path| (path.display().to_string(), cgroup_path(path)));
        Ok(Scope::Cgroups(cgroups.collect(), cpus))
    } else if !tasks.is_empty() {
        Ok(Scope::Tasks(tasks))
    } else if !cpus.is_empty() {
        Ok(Scope::Cpus(Target::Cpus(cpus)))
    } else if options.all_cpus {
        Ok(Scope::Cpus(Target::AllCpus))
    } else if !options.command.is_empty() {
        Ok(Scope::Command)
    } else {
        Err(Failure::usage(
            "nothing to count: give a command (quipu stat -- ls), a process (-p PID), or -a for \
             the whole machine; quipu stat --help shows examples",
        ))
    }
}

/// A control group as people name it: a directory, or a path from the root of the hierarchy with or
/// without a slash before it.
fn cgroup_path(path: &Path) -> PathBuf {
    if path.join("cgroup.procs").exists() {
        return path.to_owned();
    }
    path.strip_prefix("/").unwrap_or(path).to_owned()
}

impl Scope {
    /// The targets, each with the name of its control group.
    pub(super) fn targets(&self, command: Option<i32>) -> Vec<(Option<String>, Target)> {
        match self {
            Self::Command => command
                .map(|pid| (None, Target::Thread(pid)))
                .into_iter()
                .collect(),
            Self::Tasks(targets) => targets.iter().map(|t| (None, t.clone())).collect(),
            Self::Cpus(target) => vec![(None, target.clone())],
            Self::Cgroups(cgroups, cpus) => cgroups
                .iter()
                .map(|(name, path)| {
                    let target = Target::Cgroup {
                        cgroup: Cgroup::Path(path.clone()),
                        cpus: cpus.clone(),
                    };
                    (Some(name.clone()), target)
                })
                .collect(),
        }
    }
}

/// A command as it would be typed, in quotes.
fn command_line(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    format!("'{}'", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(change: impl FnOnce(&mut Options)) -> Result<Plan, String> {
        let mut options = Options::default();
        change(&mut options);
        Plan::new(&options).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_command_is_the_target_unless_another_is_named() {
        let alone = plan(|o| o.command = vec!["ls".into()]).expect("fine");
        assert_eq!(alone.scope, Scope::Command);
        assert!(alone.attributes().enable_on_exec && alone.attributes().inherit);
        assert_eq!(alone.title(), "'ls'");
        let beside = plan(|o| {
            o.command = vec!["sleep".into(), "1".into()];
            o.cpus = Some("2,0-1".into());
        })
        .expect("fine");
        assert_eq!(beside.scope, Scope::Cpus(Target::Cpus(vec![0, 1, 2])));
        assert!(!beside.attributes().enable_on_exec && !beside.attributes().inherit);
        assert_eq!(beside.title(), "CPUs 0,1,2");
        assert_eq!(beside.command_cpus(), None);
        let registers = plan(|o| {
            o.command = vec!["ls".into()];
            o.cpus = Some("1,3".into());
            o.backend = vec!["msr".into()];
        })
        .expect("fine");
        assert_eq!(registers.command_cpus(), Some(&[1, 3][..]));
        assert_eq!(
            registers.title(),
            "everything on CPUs 1,3, by raw registers"
        );
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        for (change, word) in [
            ((|_| {}) as fn(&mut Options), "quipu stat -- ls"),
            (|o| o.cpus = Some(String::new()), "0-3,8"),
            (|o| o.cpus = Some("x".into()), "0-3,8"),
            (|o| o.pid = vec![0], "0 is no process"),
            (
                |o| {
                    o.command = vec!["ls".into()];
                    o.no_aggr = true;
                },
                "add -a",
            ),
            (
                |o| {
                    o.all_cpus = true;
                    o.per_thread = true;
                },
                "add -p",
            ),
            (
                |o| {
                    o.all_cpus = true;
                    o.repeat = Some(2);
                },
                "needs a command",
            ),
            (
                |o| {
                    o.command = vec!["ls".into()];
                    o.backend = vec!["msr".into()];
                },
                "add -C LIST",
            ),
            (
                |o| {
                    o.all_cpus = true;
                    o.take_busy = true;
                },
                "needs --backend msr",
            ),
        ] {
            let message = plan(change).expect_err(word);
            assert!(message.contains(word), "{message}");
        }
    }
}
