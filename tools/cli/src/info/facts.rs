//! Facts of the report as JSON shows them. A fact that could not be found out is `null`.

use quipu::{BackendChoice, BackendStatus, Machine, MatchedCpu, Selection};
use quipu_events::identify::this_machine;
use quipu_hal::{Capabilities, Features, Simultaneity, TargetKinds};
use serde::Serialize;

use super::linux_facts::LinuxFacts;
use super::refusal::Refusal;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// The version of this command.
    pub(super) quipu: &'static str,
    pub(super) machine: MachineFacts,
    #[serde(flatten)]
    pub(super) linux: Option<LinuxFacts>,
    /// The device of the counters, on systems that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<DeviceFacts>,
    pub(super) selection: SelectionFacts,
    pub(super) backends: Vec<BackendFacts>,
}

/// Which backends count, and why.
#[derive(Debug, Default, Serialize)]
pub(super) struct SelectionFacts {
    /// The entries of the event database for this CPU; empty with the refusal when it has none.
    pub(super) cpus: Vec<CpuFacts>,
    #[serde(flatten)]
    pub(super) refusal: Option<Refusal>,
    /// In the order in which they are considered.
    pub(super) considered: Vec<ConsideredFacts>,
}

#[derive(Debug, Serialize)]
pub(super) struct CpuFacts {
    pub(super) id: String,
    pub(super) name: String,
    /// The rule that describes this CPU; `null` when the entry was asked for.
    pub(super) recognised_by: Option<String>,
    /// The backends that reach its counters, in order of preference.
    pub(super) prefers: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ConsideredFacts {
    pub(super) backend: String,
    pub(super) chosen: bool,
    pub(super) reasons: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct MachineFacts {
    pub(super) system: &'static str,
    pub(super) kernel: Option<String>,
    pub(super) cpu: Option<String>,
    /// The numbers by which its vendor tells it from others: `AuthenticAMD family 25, model 1, stepping 1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_id: Option<String>,
    /// Its counters as CPUID describes them, which takes no rights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counters_by_cpuid: Option<String>,
    /// The clock of a CPU, the highest where it varies, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clock_mhz: Option<f64>,
    pub(super) cpus_online: Option<usize>,
    pub(super) sockets: Option<usize>,
    /// True in a virtual machine; known if the CPU tells.
    pub(super) virtual_machine: Option<bool>,
    /// The effective user; on Linux among the privileges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<u32>,
}

/// A device node, and what this user may do with it.
#[derive(Debug, Serialize)]
pub(super) struct DeviceFacts {
    pub(super) path: String,
    /// The backend that counts with it.
    pub(super) backend: &'static str,
    pub(super) exists: bool,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct BackendFacts {
    pub(super) name: &'static str,
    pub(super) usable: bool,
    #[serde(flatten)]
    pub(super) abilities: Option<Abilities>,
    #[serde(flatten)]
    pub(super) refusal: Option<Refusal>,
}

/// The abilities of a usable backend here.
#[derive(Debug, Serialize)]
pub(super) struct Abilities {
    pub(super) events: Vec<&'static str>,
    /// Kinds of event that cannot be counted with it here.
    pub(super) no_events: Vec<&'static str>,
    pub(super) targets: Vec<&'static str>,
    pub(super) features: Vec<&'static str>,
    /// `atomic`, `sequential` or `none`.
    pub(super) simultaneity: &'static str,
    pub(super) slots: Option<usize>,
    /// The number of those that were shown to count.
    pub(super) counting_slots: Option<usize>,
}

impl Facts {
    /// Returns the facts that the facade knows of a machine.
    pub(super) fn of(machine: &Machine) -> Self {
        Self {
            quipu: env!("CARGO_PKG_VERSION"),
            machine: MachineFacts {
                system: std::env::consts::OS,
                counters_by_cpuid: counters_by_cpuid(),
                ..MachineFacts::default()
            },
            linux: None,
            device: None,
            selection: selection(&machine.selection()),
            backends: {
                let all = machine.backends().iter().chain(machine.on_request());
                all.map(backend).collect()
            },
        }
    }
}

/// Returns the counters of the kind of core that this runs on.
fn counters_by_cpuid() -> Option<String> {
    let cores = this_machine().ok()?;
    let counters = cores.first()?.counters_by_cpuid()?;
    Some(match cores.len() {
        1 => counters,
        _ => format!("{counters}; other kinds of core may have others"),
    })
}

fn selection(selection: &Selection) -> SelectionFacts {
    let cpu = |cpu: &MatchedCpu| CpuFacts {
        id: cpu.id.clone(),
        name: cpu.name.clone(),
        recognised_by: cpu.matched_by.clone(),
        prefers: cpu.prefers.clone(),
    };
    let considered = |considered: &BackendChoice| ConsideredFacts {
        backend: considered.backend.clone(),
        chosen: considered.chosen,
        reasons: considered.reasons.clone(),
    };
    SelectionFacts {
        cpus: selection
            .cpus()
            .unwrap_or_default()
            .iter()
            .map(cpu)
            .collect(),
        refusal: selection.cpus().err().map(Refusal::from),
        considered: selection.backends().iter().map(considered).collect(),
    }
}

fn backend(status: &BackendStatus) -> BackendFacts {
    BackendFacts {
        name: status.name(),
        usable: status.backend().is_some(),
        abilities: status.backend().map(|b| abilities(b.capabilities())),
        refusal: status.error().map(Refusal::from),
    }
}

/// The kinds of event, as abilities of a backend.
const EVENTS: [(Features, &str); 5] = [
    (Features::HARDWARE_EVENTS, "hardware events"),
    (Features::SOFTWARE_EVENTS, "software events"),
    (Features::BREAKPOINTS, "breakpoints"),
    (Features::TRACEPOINTS, "tracepoints"),
    (Features::NAMED_PMUS, "events of named PMUs"),
];

const FEATURES: [(Features, &str); 9] = [
    (Features::INHERIT, "inherit"),
    (Features::INHERIT_THREAD, "inherit threads alone"),
    (Features::PINNED, "pinned"),
    (Features::EXCLUSIVE, "exclusive"),
    (Features::ENABLE_ON_EXEC, "enable on exec"),
    (Features::REMOVE_ON_EXEC, "remove on exec"),
    (Features::MULTIPLEXING, "multiplexing"),
    (Features::ANY_THREAD, "any thread"),
    (Features::USER_READS, "user-space reads"),
];

const TARGETS: [(TargetKinds, &str); 7] = [
    (TargetKinds::CURRENT_THREAD, "this thread"),
    (TargetKinds::THREAD, "a thread"),
    (TargetKinds::PROCESS, "a process"),
    (TargetKinds::CURRENT_CPU, "this CPU"),
    (TargetKinds::CPU, "a CPU"),
    (TargetKinds::ALL_CPUS, "all CPUs"),
    (TargetKinds::CGROUP, "a control group"),
];

fn abilities(capabilities: &Capabilities) -> Abilities {
    let features = capabilities.features;
    Abilities {
        events: names(&EVENTS, |kind| features.contains(kind)),
        no_events: names(&EVENTS, |kind| !features.contains(kind)),
        targets: names(&TARGETS, |kind| capabilities.targets.contains(kind)),
        features: names(&FEATURES, |feature| features.contains(feature)),
        simultaneity: match capabilities.simultaneity {
            Simultaneity::None => "none",
            Simultaneity::Sequential => "sequential",
            Simultaneity::Atomic => "atomic",
        },
        slots: capabilities.slots,
        counting_slots: capabilities.counting_slots,
    }
}

fn names<T: Copy>(table: &[(T, &'static str)], has: impl Fn(T) -> bool) -> Vec<&'static str> {
    let those = table.iter().filter(|(flag, _)| has(*flag));
    those.map(|(_, name)| *name).collect()
}
