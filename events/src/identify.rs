//! Identification of this machine's CPU, and of the entry of the database that describes it.
//!
//! An x86 CPU is identified by CPUID, an ARM CPU by the main id register that Linux shows in sysfs, and others by what
//! Linux says in procfs; BSDs report a vendor and a signature, or a text such as `GenuineIntel-6-8F-8`. A hybrid CPU gives one entry per core type.

mod chosen;
mod cpuid;
mod proc;

use std::fs;
use std::path::Path;

use quipu_events_format::packed::{CpuView, RuleView};
use quipu_events_format::pattern;
use quipu_hal::{CounterBank, CpuIdentity, Error, ErrorKind, Result, SlotClass};

pub use crate::architectural::ArchitecturalEvents;
use crate::cpu_table::{CoreFacts, CpuTable};
use crate::database::Database;

pub use cpuid::{CpuidLeaf, from_cpuid, from_signature, from_text};
pub use proc::{from_cpuinfo, from_sysinfo};

/// One kind of core of a machine.
///
/// ```
/// use quipu_events::Database;
/// use quipu_events::identify::{Core, from_text};
///
/// let core = Core::new(from_text("GenuineIntel-6-55-4").expect("vendor-family-model-stepping"));
/// assert_eq!(Database::embedded().identify(&core)?.id(), "intel-skx");
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// Its identity.
    pub identity: CpuIdentity,
    /// The core type on a hybrid CPU: `core`, `atom`.
    pub core_type: Option<String>,
    /// The native model id of a hybrid CPU's core (CPUID leaf 0x1A), where it is known.
    pub native_model: Option<u32>,
    /// Its counters, as it describes them itself; empty when it does not.
    pub counters: Vec<CounterBank>,
    /// The version of Intel's architectural performance monitoring (CPUID leaf 0xA) or of AMD's (function
    /// 8000_0022), or 0.
    pub perfmon_version: u8,
    /// The architectural events that it has (CPUID leaf 0xA).
    pub architectural_events: ArchitecturalEvents,
    /// True if its counters are known to be Arm's PMUv3, which have the architecture's event numbers. Those of
    /// an Apple CPU are not.
    pub has_pmu_v3: bool,
}

impl Core {
    /// Returns a core of which only the identity is known.
    pub fn new(identity: CpuIdentity) -> Self {
        Self {
            identity,
            core_type: None,
            native_model: None,
            counters: Vec::new(),
            perfmon_version: 0,
            architectural_events: ArchitecturalEvents::default(),
            has_pmu_v3: false,
        }
    }

    /// Describes its counters as CPUID does: `Intel architectural version 5, 8 general and 4 fixed counters of 48
    /// bits`. `None` for a CPU, or a virtual one, whose CPUID lists none.
    pub fn counters_by_cpuid(&self) -> Option<String> {
        if self.perfmon_version == 0 {
            return None;
        }
        let of = |class| {
            let bank = self.counters.iter().find(|bank| bank.class == class);
            bank.map_or((0, 0), |bank| (bank.number, bank.width))
        };
        let ((general, width), (fixed, _)) = (of(SlotClass::General), of(SlotClass::Fixed));
        let version = self.perfmon_version;
        Some(match &self.identity {
            CpuIdentity::X86 { vendor, .. } if vendor == "GenuineIntel" => format!(
                "Intel architectural version {version}, {general} general and {fixed} fixed counters of {width} bits"
            ),
            _ => format!("AMD PerfMonV{version}, {general} core counters of {width} bits"),
        })
    }

    /// Returns its own facts, for the table that is used on it.
    fn facts(&self, fallback: bool, recognised_by: Option<String>) -> CoreFacts {
        CoreFacts {
            identity: self.identity.clone(),
            counters: self.counters.clone(),
            refused: self.architectural_events.refused(fallback),
            recognised_by,
        }
    }
}

/// Returns the kinds of core of this machine: one, or more on a hybrid or big.LITTLE machine.
///
/// # Errors
/// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the machine does not say what CPU it has.
pub fn this_machine() -> Result<Vec<Core>> {
    machine_at(Path::new("/sys"), Path::new("/proc"))
}

/// Returns the kinds of core of a machine, as [`this_machine`], with sysfs and procfs at other paths.
///
/// # Errors
/// As [`this_machine`].
pub fn machine_at(sysfs: &Path, procfs: &Path) -> Result<Vec<Core>> {
    if let Some(core) = cpuid::this_cpu() {
        return Ok(hybrid_cores(core, sysfs));
    }
    let has_pmu_v3 = has_pmu_v3(sysfs);
    let mut identities: Vec<CpuIdentity> = midrs(sysfs)
        .into_iter()
        .map(|midr| CpuIdentity::Arm { midr })
        .collect();
    if identities.is_empty() {
        identities = proc::identities(procfs);
    }
    let cores: Vec<Core> = identities
        .into_iter()
        .map(|identity| Core {
            has_pmu_v3,
            ..Core::new(identity)
        })
        .collect();
    if cores.is_empty() {
        return Err(
            Error::new(ErrorKind::NoSuchDevice, "identify this machine's CPU")
                .with_reason("there is neither CPUID, nor a main id register in sysfs, nor a CPU that is known in procfs"),
        );
    }
    Ok(cores)
}

/// Returns the different `MIDR_EL1` values of a machine, in the order of its CPUs
/// (`/sys/devices/system/cpu/cpu*/regs/identification/midr_el1`).
///
/// Revisions of one part count as one. `sysfs` is where sysfs is mounted.
pub fn midrs(sysfs: &Path) -> Vec<u64> {
    /// The variant and the revision.
    const REVISION: u64 = 0xf0_000f;
    let Ok(cpus) = fs::read_dir(sysfs.join("devices/system/cpu")) else {
        return Vec::new();
    };
    let mut numbered: Vec<(u32, u64)> = cpus
        .filter_map(|cpu| {
            let cpu = cpu.ok()?;
            let number = cpu
                .file_name()
                .to_str()?
                .strip_prefix("cpu")?
                .parse()
                .ok()?;
            let text = fs::read_to_string(cpu.path().join("regs/identification/midr_el1")).ok()?;
            let digits = text.trim();
            let digits = digits.strip_prefix("0x").unwrap_or(digits);
            Some((number, u64::from_str_radix(digits, 16).ok()?))
        })
        .collect();
    numbered.sort_unstable();
    let mut midrs: Vec<u64> = Vec::new();
    for (_, midr) in numbered {
        if !midrs
            .iter()
            .any(|known| known & !REVISION == midr & !REVISION)
        {
            midrs.push(midr);
        }
    }
    midrs
}

/// Returns true if Linux has a PMUv3 driver for the cores: `armv8_pmuv3_0`, `armv8_cortex_a72`,
/// `armv9_cortex_a710` (drivers/perf/arm_pmuv3.c). Other drivers, such as Apple's, have names of their own.
pub fn has_pmu_v3(sysfs: &Path) -> bool {
    let pmus = fs::read_dir(sysfs.join("bus/event_source/devices"));
    pmus.into_iter().flatten().flatten().any(|pmu| {
        let name = pmu.file_name();
        let name = name.to_string_lossy();
        name.starts_with("armv8_") || name.starts_with("armv9_")
    })
}

/// Returns one core for each core type that Linux shows (`devices/cpu_core`, `devices/cpu_atom`).
fn hybrid_cores(core: Core, sysfs: &Path) -> Vec<Core> {
    let types: Vec<&str> = ["core", "atom"]
        .into_iter()
        .filter(|core_type| {
            sysfs
                .join(format!("bus/event_source/devices/cpu_{core_type}"))
                .exists()
        })
        .collect();
    if types.is_empty() {
        return vec![core];
    }
    types
        .into_iter()
        .map(|core_type| {
            if core.core_type.as_deref() == Some(core_type) {
                return core.clone();
            }
            // CPUID describes the core it runs on; of the other type only the name is known.
            Core {
                core_type: Some(core_type.to_owned()),
                ..Core::new(core.identity.clone())
            }
        })
        .collect()
}

impl Database {
    /// Returns the table of a core: that of the first entry that matches, fallback entries last. Layers on top are tried
    /// first. The counters are those the core says it has, and architectural events that it says it
    /// lacks are refused.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when no entry matches.
    pub fn identify(&self, core: &Core) -> Result<CpuTable> {
        for fallback in [false, true] {
            for layer in self.layers.iter().rev() {
                let mut entries = layer.table.cpus();
                let matching = entries.find_map(|cpu| {
                    let rule = (cpu.is_fallback() == fallback).then(|| rule_for(&cpu, core))??;
                    let takes_any = rule.is_arm() && rule.implementer().is_none();
                    (!takes_any || core.has_pmu_v3).then(|| (cpu.id(), rule))
                });
                if let Some((id, rule)) = matching {
                    let rule = words(rule, fallback);
                    return Ok(self.cpu(id)?.on_core(core.facts(fallback, Some(rule))));
                }
            }
        }
        let reason = match core.identity {
            CpuIdentity::Arm { .. } if !core.has_pmu_v3 => {
                "no CPU entry matches it, and its counters are not known to be a PMUv3 with the events of the architecture"
            }
            _ => "no CPU entry matches it",
        };
        Err(Error::new(
            ErrorKind::UnsupportedFeature,
            format!("find {} in the event database", describe(&core.identity)),
        )
        .with_reason(reason)
        .with_hint("choose one with --cpu, or add one in an event file"))
    }

    /// Returns the tables of this machine: one for each kind of core.
    ///
    /// # Errors
    /// As [`this_machine`] and [`identify`](Self::identify).
    pub fn this_machine(&self) -> Result<Vec<CpuTable>> {
        this_machine()?
            .iter()
            .map(|core| self.identify(core))
            .collect()
    }
}

/// Returns the rule of an entry that describes a core.
fn rule_for<'t>(cpu: &CpuView<'t>, core: &Core) -> Option<RuleView<'t>> {
    cpu.rules().find(|rule| match &core.identity {
        CpuIdentity::X86 {
            vendor,
            family,
            model,
            stepping,
        } => {
            rule.is_x86()
                && rule.vendor() == vendor
                && rule.family() == u32::from(*family)
                && rule.has_model(u32::from(*model))
                && rule.has_stepping(u32::from(*stepping))
                && matches_core_type(*rule, core)
        }
        CpuIdentity::Arm { midr } => {
            let implementer = (midr >> 24) as u32 & 0xff;
            let part = (midr >> 4) as u32 & 0xfff;
            rule.is_arm()
                && rule
                    .implementer()
                    .is_none_or(|wanted| wanted == implementer)
                && rule.part().is_none_or(|wanted| wanted == part)
        }
        CpuIdentity::Other { scheme, id } => rule
            .other()
            .is_some_and(|(isa, wanted)| isa == *scheme && pattern::matches(wanted, id)),
        _ => false,
    })
}

fn matches_core_type(rule: RuleView<'_>, core: &Core) -> bool {
    let wanted = rule.core_type();
    if wanted.is_empty() {
        return true;
    }
    // A hybrid part with one kind of core switched off does not name its type to every program.
    let core_type = core.core_type.as_deref();
    core_type.is_none_or(|core_type| core_type == wanted)
        && match (rule.native_model(), core.native_model) {
            (Some(wanted), Some(native)) => wanted == native,
            _ => true,
        }
}

/// Returns a rule in words: `GenuineIntel family 6, model 0x55, steppings 0-4`.
fn words(rule: RuleView<'_>, fallback: bool) -> String {
    let range = |name: &str, (first, last): (u32, u32), most: u32| match (first, last) {
        (0, last) if last >= most => String::new(),
        (first, last) if first == last => format!(", {name} {first:#x}"),
        (first, last) => format!(", {name}s {first:#x}-{last:#x}"),
    };
    let mut words = if let Some((isa, id)) = rule.other() {
        format!("{isa} {id}")
    } else if rule.is_x86() {
        format!("{} family {}", rule.vendor(), rule.family())
            + &range("model", rule.models(), u32::from(u8::MAX))
            + &range("stepping", rule.steppings(), 0xf)
    } else {
        match (rule.implementer(), rule.part()) {
            (Some(implementer), Some(part)) => {
                format!("implementer {implementer:#x}, part {part:#x}")
            }
            (Some(implementer), None) => format!("implementer {implementer:#x}"),
            _ => "any ARM CPU with a PMUv3".to_owned(),
        }
    };
    if rule.is_x86() && !rule.core_type().is_empty() {
        words += &format!(", core type {}", rule.core_type());
    }
    if let Some(native) = rule.native_model() {
        words += &format!(", native model {native:#x}");
    }
    if fallback {
        words += ", since no entry of its own matches";
    }
    words
}

/// Returns an identity as people write it: `GenuineIntel-6-8F-8`, or the main id register.
pub fn describe(identity: &CpuIdentity) -> String {
    match identity {
        CpuIdentity::X86 {
            vendor,
            family,
            model,
            stepping,
        } => format!("{vendor}-{family}-{model:X}-{stepping:X}"),
        CpuIdentity::Arm { midr } => format!("MIDR {midr:#018x}"),
        CpuIdentity::Other { scheme, id } => format!("{scheme} {id}"),
        other => format!("{other:?}"),
    }
}

/// Returns a bank of counters, if there are any.
fn bank(class: SlotClass, number: u32, width: u32) -> Option<CounterBank> {
    (number > 0 && width > 0).then_some(CounterBank {
        class,
        number: number as u8,
        width: width as u8,
    })
}
