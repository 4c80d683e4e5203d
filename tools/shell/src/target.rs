//! The target of a measurement: the options that name it, which `stat` and `record` share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use quipu::Target;
use quipu_text::parse_cpu_list;

use crate::Failure;
use crate::numbers;

/// The options that name a target.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetOptions {
    /// Measure these processes, with all their threads
    #[arg(
        short,
        long,
        value_name = "PID,..",
        value_parser = numbers::id,
        allow_negative_numbers = true,
        value_delimiter = ',',
        help_heading = "Where"
    )]
    pub pid: Vec<i32>,
    /// Measure these threads
    #[arg(
        short,
        long,
        value_name = "TID,..",
        value_parser = numbers::id,
        allow_negative_numbers = true,
        value_delimiter = ',',
        help_heading = "Where"
    )]
    pub tid: Vec<i32>,
    /// Measure every CPU, whatever runs there
    #[arg(short, long, conflicts_with_all = ["pid", "tid"], help_heading = "Where")]
    pub all_cpus: bool,
    /// Measure these CPUs (0-3,8), whatever runs there
    #[arg(short = 'C', long, value_name = "LIST", conflicts_with_all = ["pid", "tid"], help_heading = "Where")]
    pub cpus: Option<String>,
    /// Leave out the threads and processes that the target starts
    #[arg(short = 'i', long, help_heading = "Where")]
    pub no_inherit: bool,

    /// The command to run and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// The extent of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// The command, from its execution on.
    Command,
    /// Processes and threads that run already.
    Tasks(Vec<Target>),
    /// Whole CPUs.
    Cpus(Target),
    /// Control groups, by the name they were given and their path, on CPUs; none means all CPUs.
    Cgroups(Vec<(String, PathBuf)>, Vec<u32>),
}

impl TargetOptions {
    /// Returns the scope that the options name, or `None` if they name none. A command beside another
    /// target says only how long to measure.
    pub fn scope(&self) -> Result<Option<Scope>, Failure> {
        let (tasks, cpus) = (self.tasks()?, self.cpu_list()?);
        Ok(if !tasks.is_empty() {
            Some(Scope::Tasks(tasks))
        } else if !cpus.is_empty() {
            Some(Scope::Cpus(Target::Cpus(cpus)))
        } else if self.all_cpus {
            Some(Scope::Cpus(Target::AllCpus))
        } else {
            (!self.command.is_empty()).then_some(Scope::Command)
        })
    }

    fn tasks(&self) -> Result<Vec<Target>, Failure> {
        if let Some(bad) = self.pid.iter().chain(&self.tid).find(|id| **id < 1) {
            return Err(Failure::usage(format_args!(
                "{bad} is not a process or thread id"
            )));
        }
        let processes = self.pid.iter().copied().map(Target::Process);
        let threads = self.tid.iter().copied().map(Target::Thread);
        Ok(processes.chain(threads).collect())
    }

    /// Returns the CPUs of `-C`; there is at least one if the option is given.
    pub fn cpu_list(&self) -> Result<Vec<u32>, Failure> {
        let Some(list) = &self.cpus else {
            return Ok(Vec::new());
        };
        let cpus = parse_cpu_list(list).map_err(|e| Failure::usage(format_args!("{e:#}")))?;
        if cpus.is_empty() {
            return Err(Failure::usage("-C needs CPUs, written like 0-3,8"));
        }
        Ok(cpus)
    }
}

impl Scope {
    /// Returns the scope of control groups, each a directory or a path from the root of the hierarchy
    /// with or without a slash before it.
    pub fn cgroups(paths: &[PathBuf], cpus: Vec<u32>) -> Self {
        let path_of = |path: &Path| match path.join("cgroup.procs").try_exists() {
            Ok(false) => path.strip_prefix("/").unwrap_or(path).to_owned(),
            Ok(true) | Err(_) => path.to_owned(),
        };
        let cgroups = paths.iter();
        let cgroups = cgroups.map(|path| (path.display().to_string(), path_of(path)));
        Self::Cgroups(cgroups.collect(), cpus)
    }

    /// Returns the targets, each with the name of its control group; `command` is the process of the
    /// command.
    pub fn targets(&self, command: Option<i32>) -> Vec<(Option<&str>, Target)> {
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
                        path: path.clone(),
                        cpus: cpus.clone(),
                    };
                    (Some(name.as_str()), target)
                })
                .collect(),
        }
    }
}

/// Returns true if two threads of a core are online, which the formulas of some CPUs depend on.
pub fn threads_share_cores() -> bool {
    let active = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
    active.is_ok_and(|active| active.trim() == "1")
}
