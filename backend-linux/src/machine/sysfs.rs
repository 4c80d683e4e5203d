//! The PMUs the kernel registers, from `/sys/bus/event_source/devices`.
//!
//! A PMU's directory has its perf_event type number, its config fields (`format`), events that have
//! a name (`events`), and the CPUs it counts on: `cpus` for a PMU of CPU cores, `cpumask` for one
//! that belongs to a package or the machine and is opened once on each CPU of the mask.

cfg_if::cfg_if! {
    if #[cfg(feature = "names")] {
        mod format;
        mod named_event;
        mod pmu;
        mod resolve;

        pub use format::{ConfigWord, Field};
        pub use named_event::NamedEvent;
        pub use pmu::{Format, Pmu};
        pub use resolve::ResolvedPmuEvent;
    }
}

use std::path::PathBuf;

use quipu_hal::Result;
use quipu_text::parse_cpu_list;

use crate::machine::kernel_file;

/// The directory of PMUs. Nothing is kept: every call reads what is there now.
///
/// ```
/// # fn main() -> quipu_hal::Result<()> {
/// use quipu_linux::sysfs::SysfsPmus;
///
/// for pmu in SysfsPmus::new().core_pmus() {
///     println!("{} has the type {}", pmu.name, pmu.type_);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SysfsPmus {
    root: PathBuf,
}

/// A PMU of CPU cores: what generalized hardware events are opened on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorePmu {
    /// Its name: `cpu`, `cpu_core`, `armv8_cortex_a53`.
    pub name: String,
    /// Its perf_event type.
    pub type_: u32,
    /// The CPUs it counts on; empty means all that are online.
    pub cpus: Vec<u32>,
}

impl SysfsPmus {
    /// The PMUs of this machine.
    pub fn new() -> Self {
        Self::at("/sys/bus/event_source/devices")
    }

    /// The PMUs under another directory than `/sys/bus/event_source/devices`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The names of all PMUs, sorted. Empty where there is no sysfs.
    ///
    /// # Errors
    /// When the directory is there and cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        match kernel_file::names(&self.root) {
            Ok(names) => Ok(names),
            Err(e) if kernel_file::is_missing(&e) => Ok(Vec::new()),
            Err(e) => Err(kernel_file::error("list the PMUs", &self.root, &e)),
        }
    }

    /// The PMUs of CPU cores, by type number: one on most machines, one per core type on hybrid
    /// x86 and on ARM, none in most virtual machines.
    ///
    /// As perf decides (`is_pmu_core` in `tools/perf/util/pmu.c`): the PMU is called `cpu` or
    /// `cpum_cf`, or has a file `cpus`. One whose CPUs are all offline, or whose files cannot be
    /// read, is left out.
    pub fn core_pmus(&self) -> Vec<CorePmu> {
        // Such a PMU is that of all cores (`init_hw_perf_events`, `arch/x86/events/core.c`), and the others of a
        // large machine are many.
        for alone in CORE_NAMES {
            if kernel_file::is_there(&self.file(alone, "type")).unwrap_or(false) {
                return self.core_pmu(alone.to_owned()).into_iter().collect();
            }
        }
        let mut pmus: Vec<CorePmu> = Vec::new();
        // Where they cannot be listed there are none.
        let _listed = kernel_file::each_name(&self.root, &mut |name| {
            if let Some(pmu) = self.core_pmu(name.to_owned()) {
                let at = pmus.partition_point(|before| before.type_ <= pmu.type_);
                pmus.insert(at, pmu);
            }
        });
        pmus
    }

    fn core_pmu(&self, name: String) -> Option<CorePmu> {
        let cpus = match self.cpu_list(&name, "cpus").ok()? {
            Some(cpus) if cpus.is_empty() => return None,
            Some(cpus) => cpus,
            None if CORE_NAMES.contains(&name.as_str()) => Vec::new(),
            None => return None,
        };
        let type_ = kernel_file::read(&self.file(&name, "type"));
        let type_ = type_.ok()?.parse().ok()?;
        Some(CorePmu { name, type_, cpus })
    }

    /// Returns the number of an event that a PMU describes by that alone: `event=0x08`.
    pub(crate) fn number_of_event(&self, pmu: &str, event: &str) -> Option<u64> {
        let path = self.file(pmu, "events").join(event);
        let text = kernel_file::read(&path).ok()?;
        u64::from_str_radix(text.strip_prefix("event=0x")?, 16).ok()
    }

    fn file(&self, pmu: &str, file: &str) -> PathBuf {
        self.root.join(pmu).join(file)
    }

    fn cpu_list(&self, pmu: &str, file: &str) -> Result<Option<Vec<u32>>> {
        let path = self.file(pmu, file);
        let text = kernel_file::read_if_there(&path)
            .map_err(|e| kernel_file::error(format!("find the CPUs of {pmu}"), &path, &e))?;
        text.as_deref().map(parse_cpu_list).transpose()
    }
}

impl Default for SysfsPmus {
    fn default() -> Self {
        Self::new()
    }
}

/// The names of PMUs of all cores of a machine.
const CORE_NAMES: [&str; 2] = ["cpu", "cpum_cf"];
