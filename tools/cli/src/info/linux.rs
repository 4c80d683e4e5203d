//! Facts about a Linux machine, from its `/proc` and `/sys`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use quipu::{Backend, EventSpec, Filter, GroupSpec, Hardware, Software, Target};
use quipu_linux::counter_test::CounterTest;
use quipu_linux::privileges::{Capability, Limit, Privileges, Seccomp};
use quipu_linux::sysfs::{Pmu, SysfsPmus};
use quipu_linux::topology::Topology;
use quipu_linux::tracefs::Tracefs;
use quipu_linux::user_read;

use super::facts::{Facts, MachineFacts};
use super::linux_facts::{
    CounterFacts, CounterTestFacts, LimitFact, LimitFacts, LinuxFacts, MayCount, PmuFacts,
    PrivilegeFacts, TracepointFacts,
};
use super::refusal::Refusal;

/// The counts that the kernel was found to allow by opening them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    pub(super) user_mode: bool,
    pub(super) kernel_mode: bool,
    pub(super) whole_cpus: bool,
    /// True if cycles can be counted in user mode.
    pub(super) cycles: bool,
}

impl Tried {
    /// Tries them on this machine. A setting alone does not tell: kernels differ in what
    /// `perf_event_paranoid` means, and filters of system calls and other modules may forbid all of it.
    pub(super) fn here() -> Self {
        let backend = quipu::linux_backend();
        let opens = |event: EventSpec, target: &Target| {
            let group = GroupSpec::single(event);
            backend
                .as_ref()
                .is_ok_and(|backend| Backend::open(backend, &group, target).is_ok())
        };
        let faults = |level| {
            EventSpec::new(Software::PageFaults).with_filter(Filter::all().with_levels(level))
        };
        let this = Target::CurrentThread;
        Self {
            user_mode: opens(faults(Filter::USER), &this),
            kernel_mode: opens(faults(Filter::KERNEL), &this),
            whole_cpus: opens(EventSpec::new(Software::CpuClock), &Target::AllCpus),
            cycles: opens(
                EventSpec::new(Hardware::Cycles)
                    .with_filter(Filter::all().with_levels(Filter::USER)),
                &this,
            ),
        }
    }
}

/// Returns the facts with what the machine below `root` tells.
pub(super) fn add(facts: Facts, root: &Path, counters: CounterFacts, tried: &Tried) -> Facts {
    let privileges = Privileges::read_under(root);
    let topology = Topology::under(root);
    let pmus = SysfsPmus::at(root.join("sys/bus/event_source/devices"));
    let linux = LinuxFacts {
        pmus: pmus.pmus().unwrap_or_default().iter().map(pmu).collect(),
        has_cpu_pmu: privileges.has_cpu_pmu || tried.cycles,
        counters,
        limits: LimitFacts {
            open_files: privileges.open_files.map(limit),
            locked_memory: privileges.locked_memory.map(limit),
        },
        privileges: privilege_facts(&privileges, tried),
        tracepoints: tracepoints(root),
    };
    Facts {
        machine: MachineFacts {
            cpus_online: topology.online().ok().map(|cpus| cpus.len()),
            sockets: topology.sockets().ok(),
            virtual_machine: privileges.virtual_machine,
            kernel: privileges.kernel,
            cpu: privileges.cpu,
            cpu_id: cpu_id(root),
            clock_mhz: clock_mhz(root),
            ..facts.machine
        },
        linux: Some(linux),
        ..facts
    }
}

/// Returns what is known of the counters of this machine; `test` tests them now.
pub(super) fn counters(test: bool) -> CounterFacts {
    let mut tests: Vec<_> = if test {
        CounterTest::run().iter().map(counter_test).collect()
    } else {
        CounterTest::known().iter().map(tested).collect()
    };
    let none = match Privileges::read().has_cpu_pmu {
        false => Some("no hardware counters"),
        true if tests.is_empty() => Some("not tested; quipu info --test tests which of them count"),
        true => None,
    };
    if let Some(none) = none
        && tests.iter().all(|test| test.pmu.is_none())
    {
        tests = vec![CounterTestFacts::untested(none)];
    }
    CounterFacts {
        tests,
        no_user_reads: user_read::available().as_ref().err().map(Refusal::from),
    }
}

fn counter_test(test: &quipu_hal::Result<CounterTest>) -> CounterTestFacts {
    match test {
        Ok(test) => tested(test),
        Err(refusal) => CounterTestFacts::untested(refusal.to_string()),
    }
}

fn tested(test: &CounterTest) -> CounterTestFacts {
    CounterTestFacts {
        pmu: Some(test.pmu.clone()),
        state: test.explanation(),
        event: Some(test.event.name()),
        advertised: Some(test.advertised),
        counting: Some(test.counting),
    }
}

fn pmu(pmu: &Pmu) -> PmuFacts {
    PmuFacts {
        name: pmu.name.clone(),
        type_: pmu.type_,
        fields: pmu.formats.len(),
        events: pmu.events.len(),
        cpus: pmu.cpumask.clone().or_else(|| pmu.cpus.clone()),
        system_wide: pmu.cpumask.is_some(),
        core: pmu.is_core(),
    }
}

fn limit(limit: Limit) -> LimitFact {
    LimitFact {
        soft: limit.soft,
        hard: limit.hard,
    }
}

/// Returns the value of a line of the first CPU in `/proc/cpuinfo`.
fn cpuinfo(root: &Path, name: &str) -> Option<String> {
    let file = File::open(root.join("proc/cpuinfo")).ok()?;
    let mut lines = BufReader::new(file).lines().map_while(Result::ok);
    let of_first = lines.by_ref().take_while(|line| !line.is_empty());
    let mut values = of_first.filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    values.next()
}

/// Returns the numbers of an x86 CPU.
fn cpu_id(root: &Path) -> Option<String> {
    let vendor = cpuinfo(root, "vendor_id")?;
    let [family, model, stepping] =
        ["cpu family", "model", "stepping"].map(|name| cpuinfo(root, name));
    Some(format!(
        "{vendor} family {}, model {}, stepping {}",
        family?, model?, stepping?
    ))
}

/// Returns the highest clock that the kernel sets, or the one that it measured.
fn clock_mhz(root: &Path) -> Option<f64> {
    let highest = root.join("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    let highest = std::fs::read_to_string(highest).ok();
    let highest = highest.and_then(|khz| khz.trim().parse::<f64>().ok());
    let measured = || cpuinfo(root, "cpu MHz")?.parse().ok();
    highest.map(|khz| khz / 1e3).or_else(measured)
}

fn privilege_facts(privileges: &Privileges, tried: &Tried) -> PrivilegeFacts {
    let capabilities = Capability::ALL.iter().copied();
    PrivilegeFacts {
        user_id: privileges
            .uid
            .or_else(|| Some(nix::unistd::geteuid().as_raw())),
        perf_event_paranoid: privileges.perf_event_paranoid,
        exempt: privileges.is_perfmon_capable(),
        may_count: MayCount {
            user_mode: tried.user_mode,
            kernel_mode: tried.kernel_mode,
            whole_cpus: tried.whole_cpus,
            raw_tracepoints: tried.whole_cpus && privileges.may_count_raw_tracepoints(),
        },
        capabilities: capabilities
            .filter(|capability| privileges.has(*capability))
            .map(Capability::name)
            .collect(),
        initial_user_namespace: privileges.initial_user_namespace,
        seccomp: privileges.seccomp.map(|mode| match mode {
            Seccomp::Disabled => "disabled",
            Seccomp::Strict => "strict",
            Seccomp::Filter => "filter",
            _ => "other",
        }),
    }
}

fn tracepoints(root: &Path) -> TracepointFacts {
    let found = Tracefs::find_under(root).and_then(|tracefs| {
        let systems = tracefs.systems()?.len();
        Ok((tracefs.root().display().to_string(), systems))
    });
    match found {
        Ok((path, systems)) => TracepointFacts {
            path: Some(path),
            systems: Some(systems),
            refusal: None,
        },
        Err(error) => TracepointFacts {
            path: None,
            systems: None,
            refusal: Some(Refusal::from(&error)),
        },
    }
}
