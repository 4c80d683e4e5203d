//! From options to a plan: what is sampled where, with contradictions refused before anything runs.

use std::ffi::OsString;
use std::time::Duration;

use quipu::{Machine, Target};
use quipu_linux::LinuxBackend;
use quipu_linux::sampling::{
    BranchSampleType, ExtraRecords, Rate, ReadFormat, SampleType, SampledEvent, SamplerFlags,
    SamplerSpec, WhenFull,
};

use quipu_shell::Failure;
use quipu_shell::control::{self, ControlFiles};
use quipu_shell::target::Scope;

use super::call_graph::CallGraph;
use super::events::{self, Events};
use super::options::{NamesIn, Options};
use super::output::Destination;
use super::switch::{FileSwitch, SwitchOn};
use super::tracepoints;
use super::users;

/// The size of a page for `-m`. Rings are rounded up to the machine's own pages.
const PAGE: usize = 4096;

/// A consistent plan of what to do.
pub(super) struct RecordPlan {
    pub(super) backend: LinuxBackend,
    pub(super) spec: SamplerSpec,
    /// The records beside samples that are recorded apart, where they are.
    pub(super) tracked: ExtraRecords,
    pub(super) scope: Scope,
    /// True if the targets are the processes of a user.
    pub(super) of_user: bool,
    pub(super) command: Vec<OsString>,
    pub(super) output: Destination,
    switch_on: Option<SwitchOn>,
    /// True if files have the time in their names.
    is_stamped: bool,
    most_files: usize,
    /// The level at which records are compressed.
    pub(super) compression: Option<i32>,
    /// The names of the events where they have others than their own.
    pub(super) names: Vec<Option<String>>,
    /// True for events of weak groups.
    pub(super) weak: Vec<bool>,
    /// The time from the start of the command to that of sampling; [`Duration::MAX`] until a command comes.
    pub(super) delay: Option<Duration>,
    pub(super) control: Option<ControlFiles>,
    /// Length at which the recording ends, in bytes.
    pub(super) max_size: Option<u64>,
    /// True if the last event is that of times off the CPU, and if the records of switches are wanted beside it.
    pub(super) off_cpu: bool,
    pub(super) switch_events: bool,
    /// The place where the names of what was hit are kept.
    pub(super) names_in: NamesIn,
    pub(super) notes: Vec<String>,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
}

impl RecordPlan {
    pub(super) fn new(options: &Options) -> Result<Self, Failure> {
        let scope = scope(options)?;
        let backend = quipu::linux_backend()?;
        let mut events = events::events(options, &backend)?;
        for sampled in &events.list {
            Machine::this().check_sampling(&sampled.event)?;
        }
        let notes = std::mem::take(&mut events.notes);
        let (names, weak) = (events.names(), std::mem::take(&mut events.weak));
        let mut spec = spec(options, events, &scope)?;
        let delay = control::delay(options.delay, options.control.as_ref())?;
        let mut tracked = ExtraRecords::empty();
        if options.overwrite {
            spec.when_full = WhenFull::Overwrite;
        }
        if delay.is_some() || options.control.is_some() || options.overwrite {
            std::mem::swap(&mut tracked, &mut spec.extra_records);
            // The file has two events then.
            spec.sample_type |= SampleType::IDENTIFIER;
        }
        Ok(Self {
            spec,
            tracked,
            names,
            weak,
            delay,
            control: options.control.clone(),
            max_size: options.max_size,
            backend,
            scope,
            of_user: options.user.is_some(),
            command: options.target.command.clone(),
            output: Destination::of(&options.output),
            switch_on: options.switch_output,
            is_stamped: options.timestamp_filename || options.switch_output.is_some(),
            most_files: options.switch_max_files.unwrap_or(0),
            compression: options.compression_level.filter(|level| *level > 0),
            off_cpu: options.off_cpu,
            switch_events: options.switch_events,
            names_in: options.names,
            notes,
            quiet: options.quiet,
            verbose: options.verbose,
        })
    }

    /// Returns the files of the recording, where they get names of their own.
    pub(super) fn switch(&self) -> Result<Option<FileSwitch>, Failure> {
        match &self.output {
            Destination::File(path) if self.is_stamped => {
                FileSwitch::new(self.switch_on, path, self.most_files).map(Some)
            }
            Destination::Stream if self.is_stamped => Err(Failure::usage(
                "-o -: standard output is one stream, without names of files: leave out --switch-output and \
                 --timestamp-filename",
            )),
            _ => Ok(None),
        }
    }

    /// Returns the targets of the samplers; `command` is the process of the command.
    pub(super) fn targets(&self, command: Option<i32>) -> Vec<Target> {
        let targets = self.scope.targets(command).into_iter();
        targets.map(|(_, target)| target).collect()
    }
}

fn spec(options: &Options, events: Events, scope: &Scope) -> Result<SamplerSpec, Failure> {
    let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
    let on_cpus = matches!(scope, Scope::Cpus(_) | Scope::Cgroups(..));
    let inherits = !options.target.no_inherit && !options.per_thread && !on_cpus;
    spec.events = events.list;
    spec.attributes = events
        .attributes
        .with_inherit(inherits)
        .with_enable_on_exec(*scope == Scope::Command && options.delay.is_none_or(|ms| ms == 0))
        .with_disabled(true);
    spec.sample_type |= SampleType::CPU;
    spec.sample_type.set(SampleType::ADDR, options.data);
    let is_tracepoint = |event: &SampledEvent| tracepoints::parts(&event.event.event).is_some();
    let has_tracepoints = spec.events.iter().any(is_tracepoint);
    spec.sample_type.set(SampleType::RAW, has_tracepoints);
    // The shorter samples are, the more a ring holds: each that stands for one event does not have to say so. A tracepoint
    // may stand for more (`__perf_count`, `include/trace/perf.h`), and times off the CPU do.
    let is_each = |event: &SampledEvent| event.rate == Rate::Period(1);
    let are_all = spec.events.iter().all(is_each) && !has_tracepoints && !options.off_cpu;
    spec.sample_type.set(SampleType::PERIOD, !are_all);
    spec.branches = match options.branch_any {
        true => BranchSampleType::ANY,
        false => options
            .branch_filter
            .map_or(BranchSampleType::empty(), |filter| filter.0),
    };
    spec.sample_type
        .set(SampleType::BRANCH_STACK, !spec.branches.is_empty());
    if events.reads_groups && options.off_cpu {
        return Err(Failure::usage(
            "--off-cpu: samples with the values of a group (:S) do not tell times; leave out :S, or record them apart",
        ));
    }
    if events.reads_groups {
        spec.sample_type |= SampleType::READ;
        spec.read_format |= ReadFormat::GROUP;
    }
    spec.extra_records = ExtraRecords::MAPPINGS
        | ExtraRecords::BUILD_IDS
        | ExtraRecords::NAMES
        | ExtraRecords::TASKS
        | ExtraRecords::KSYMBOLS;
    spec.extra_records.set(
        ExtraRecords::SWITCHES,
        options.switch_events || options.off_cpu,
    );
    let by_default = || {
        let takes_chains = options.sampling.callchains || options.off_cpu;
        takes_chains.then_some(CallGraph::FramePointers)
    };
    if let Some(method) = options.sampling.call_graph.or_else(by_default) {
        method.ask(&mut spec)?;
    }
    spec.flags.set(SamplerFlags::THREAD_COUNTS, options.stat);
    spec.clock = options.clockid.map(super::options::Clock::number);
    spec.ring_bytes = PAGE * options.sampling.mmap_pages as usize;
    Ok(spec)
}

fn scope(options: &Options) -> Result<Scope, Failure> {
    if options.target.all_cpus && options.target.cpus.is_some() {
        return Err(Failure::usage(
            "-a samples every CPU and -C only some: give one of them",
        ));
    }
    if !options.cgroup.is_empty() {
        return Ok(Scope::cgroups(&options.cgroup, options.target.cpu_list()?));
    }
    if let Some(user) = &options.user {
        return users::processes_of(user).map(Scope::Tasks);
    }
    options.target.scope()?.ok_or_else(|| {
        Failure::usage(
            "nothing to record: name a command (quipu record -- ls), a process (-p PID), a thread \
             (-t TID), a user (-u USER), control groups (-G CGROUP) or CPUs (-a, -C LIST)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_needed_and_only_one_choice_of_cpus() {
        let mut options = Options::default();
        assert!(scope(&options).is_err());
        options.target.cpus = Some("0".into());
        assert!(scope(&options).is_ok());
        options.target.all_cpus = true;
        assert!(scope(&options).is_err());
    }
}
