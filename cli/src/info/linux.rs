//! Facts about a Linux machine, from its `/proc` and `/sys`.

use std::path::Path;

use quipu_linux::counter_test::CounterTest;
use quipu_linux::privileges::{Capability, Limit, Privileges, Seccomp};
use quipu_linux::sysfs::{Pmu, SysfsPmus};
use quipu_linux::topology::Topology;
use quipu_linux::tracefs::Tracefs;
use quipu_linux::user_read;

use super::facts::{Facts, MachineFacts, Refusal};
use super::linux_facts::{
    CounterFacts, LimitFact, LimitFacts, LinuxFacts, MayCount, PmuFacts, PrivilegeFacts,
    TracepointFacts,
};

/// Returns the facts with what the machine below `root` tells.
pub(super) fn add(facts: Facts, root: &Path, counters: CounterFacts) -> Facts {
    let privileges = Privileges::read_under(root);
    let topology = Topology::at(root.join("sys/devices/system/cpu"));
    let pmus = SysfsPmus::at(root.join("sys/bus/event_source/devices"));
    let linux = LinuxFacts {
        pmus: pmus.pmus().unwrap_or_default().iter().map(pmu).collect(),
        has_cpu_pmu: privileges.has_cpu_pmu,
        counters,
        limits: LimitFacts {
            open_files: privileges.open_files.map(limit),
            locked_memory: privileges.locked_memory.map(limit),
        },
        privileges: privilege_facts(&privileges),
        tracepoints: tracepoints(root),
    };
    Facts {
        machine: MachineFacts {
            system: facts.machine.system,
            cpus_online: topology.online().ok().map(|cpus| cpus.len()),
            sockets: topology.sockets().ok(),
            virtual_machine: privileges.virtual_machine,
            kernel: privileges.kernel,
            cpu: privileges.cpu,
            user_id: None,
        },
        linux: Some(linux),
        ..facts
    }
}

/// Returns what is known of the counters of this machine; `test` tests them now.
pub(super) fn counters(test: bool) -> CounterFacts {
    let made = test.then(CounterTest::run);
    let known = match &made {
        Some(made) => made.as_ref().ok().copied(),
        None => CounterTest::known(),
    };
    let state = match (known, &made) {
        (Some(known), _) => known.explanation(),
        (None, _) if !Privileges::read().has_cpu_pmu => "no hardware counters".to_owned(),
        (None, Some(Err(refusal))) => refusal.to_string(),
        (None, _) => "not tested; quipu info --test tests which of them count".to_owned(),
    };
    CounterFacts {
        state,
        advertised: known.map(|known| known.advertised),
        counting: known.map(|known| known.counting),
        no_user_reads: user_read::available().as_ref().err().map(Refusal::from),
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

fn privilege_facts(privileges: &Privileges) -> PrivilegeFacts {
    let capabilities = Capability::ALL.iter().copied();
    PrivilegeFacts {
        user_id: privileges.uid,
        perf_event_paranoid: privileges.perf_event_paranoid,
        exempt: privileges.is_perfmon_capable(),
        may_count: MayCount {
            user_mode: privileges.may_count_user(),
            kernel_mode: privileges.may_count_kernel(),
            whole_cpus: privileges.may_count_cpus(),
            raw_tracepoints: privileges.may_count_raw_tracepoints(),
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
