//! From options to a plan: what is sampled where, with contradictions refused before anything runs.

use std::ffi::OsString;
use std::path::PathBuf;

use quipu::linux::LinuxBackend;
use quipu::linux::sampling::{ExtraRecords, SampleType, SampledEvent, SamplerSpec};
use quipu::{Attributes, Target};

use crate::failure::Failure;
use crate::targets;

use super::events::{self, Events};
use super::options::{CallGraph, Options};
use super::tracepoints;

/// How long a page is, for `-m`. Rings are made as long as the machine's own pages need.
const PAGE: usize = 4096;

/// What to do, without contradictions.
pub(super) struct Plan {
    pub(super) backend: LinuxBackend,
    pub(super) spec: SamplerSpec,
    pub(super) scope: Scope,
    pub(super) command: Vec<OsString>,
    pub(super) output: PathBuf,
    pub(super) note: Option<&'static str>,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
}

/// What is sampled.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scope {
    /// The command, from its execution on.
    Command,
    /// Processes and threads that run already.
    Tasks(Vec<Target>),
    /// Whole CPUs.
    Cpus(Target),
}

impl Plan {
    pub(super) fn new(options: &Options) -> Result<Self, Failure> {
        let scope = scope(options)?;
        if options.output.as_os_str() == "-" {
            return Err(Failure::usage(
                "-o -: a pipe cannot hold this file, whose beginning is written last; name a file",
            ));
        }
        if !options.mmap_pages.is_power_of_two() {
            return Err(Failure::usage(format_args!(
                "-m {}: the pages of a ring buffer are a power of two",
                options.mmap_pages
            )));
        }
        let backend = quipu::linux_backend()?;
        let events = events::events(options, &backend)?;
        let note = events.note;
        Ok(Self {
            spec: spec(options, events, &scope)?,
            backend,
            scope,
            command: options.command.clone(),
            output: options.output.clone(),
            note,
            quiet: options.quiet,
            verbose: options.verbose,
        })
    }

    /// Where samplers are opened; `command` is the process of the command.
    pub(super) fn targets(&self, command: Option<i32>) -> Vec<Target> {
        match (&self.scope, command) {
            (Scope::Command, Some(pid)) => vec![Target::Thread(pid)],
            (Scope::Command, None) => Vec::new(),
            (Scope::Tasks(targets), _) => targets.clone(),
            (Scope::Cpus(target), _) => vec![target.clone()],
        }
    }
}

fn spec(options: &Options, events: Events, scope: &Scope) -> Result<SamplerSpec, Failure> {
    let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
    spec.events = events.list;
    spec.attributes = Attributes {
        inherit: !options.no_inherit && !matches!(scope, Scope::Cpus(_)),
        enable_on_exec: *scope == Scope::Command,
        disabled: true,
        ..events.attributes
    };
    spec.sample_type |= SampleType::IDENTIFIER | SampleType::CPU | SampleType::PERIOD;
    if has_callchains(options)? {
        spec.sample_type |= SampleType::CALLCHAIN;
    }
    spec.sample_type.set(SampleType::ADDR, options.data);
    let is_tracepoint = |event: &SampledEvent| tracepoints::parts(&event.event.event).is_some();
    let has_tracepoints = spec.events.iter().any(is_tracepoint);
    spec.sample_type.set(SampleType::RAW, has_tracepoints);
    spec.extra_records = ExtraRecords::MAPPINGS | ExtraRecords::NAMES | ExtraRecords::TASKS;
    spec.clock = options.clockid.map(super::options::Clock::number);
    spec.ring_bytes = PAGE * options.mmap_pages as usize;
    Ok(spec)
}

fn has_callchains(options: &Options) -> Result<bool, Failure> {
    let refused = match options.call_graph {
        None => return Ok(options.callchains),
        Some(CallGraph::Fp) => return Ok(true),
        Some(CallGraph::Dwarf) => "dwarf: stacks are not copied",
        Some(CallGraph::Lbr) => "lbr: branch records are not followed",
    };
    Err(Failure::usage(format_args!(
        "--call-graph {refused}; -g follows frame pointers, which programs have when they are built \
         with -fno-omit-frame-pointer"
    )))
}

fn scope(options: &Options) -> Result<Scope, Failure> {
    let tasks = targets::tasks(&options.pid, &options.tid)?;
    if !tasks.is_empty() {
        return Ok(Scope::Tasks(tasks));
    }
    if let Some(list) = &options.cpus {
        return Ok(Scope::Cpus(Target::Cpus(targets::cpus(list)?)));
    }
    if options.all_cpus {
        return Ok(Scope::Cpus(Target::AllCpus));
    }
    if options.command.is_empty() {
        return Err(Failure::usage(
            "nothing to record: name a command (quipu record -- ls), a process (-p PID), a thread \
             (-t TID) or CPUs (-a, -C LIST)",
        ));
    }
    Ok(Scope::Command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sampled_follows_from_the_options() {
        let none = Options::default();
        assert!(scope(&none).is_err());
        let command = Options {
            command: vec!["ls".into()],
            ..Options::default()
        };
        assert_eq!(scope(&command).expect("a command"), Scope::Command);
        let tasks = Options {
            pid: vec![1],
            tid: vec![2],
            ..command.clone()
        };
        let both = vec![Target::Process(1), Target::Thread(2)];
        assert_eq!(scope(&tasks).expect("tasks"), Scope::Tasks(both));
        let nobody = Options {
            pid: vec![0],
            ..command.clone()
        };
        assert!(scope(&nobody).is_err());
        let cpus = Options {
            cpus: Some("0-1".into()),
            ..command
        };
        let both = Target::Cpus(vec![0, 1]);
        assert_eq!(scope(&cpus).expect("CPUs"), Scope::Cpus(both));
    }

    #[test]
    fn call_chains_that_cannot_be_had_are_refused() {
        let with = |call_graph| Options {
            call_graph,
            ..Options::default()
        };
        assert_eq!(has_callchains(&with(None)).ok(), Some(false));
        assert_eq!(has_callchains(&with(Some(CallGraph::Fp))).ok(), Some(true));
        for refused in [CallGraph::Dwarf, CallGraph::Lbr] {
            let failure = has_callchains(&with(Some(refused))).expect_err("not supported");
            assert!(failure.to_string().contains("-g follows"), "{failure}");
        }
    }
}
