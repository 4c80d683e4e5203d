//! What the suite runs on.

use std::env::consts;

use serde::Serialize;

use crate::subjects::Tested;

/// The machine, as far as it is known; said in every report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Platform {
    pub(crate) machine: String,
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) pmu: String,
}

impl Platform {
    /// The machine this runs on, with the PMU that the backend uses.
    pub(crate) fn of(tested: &Tested) -> Self {
        let mut platform = Self::here();
        if let Some(pmu) = &tested.pmu {
            platform.pmu.clone_from(pmu);
        }
        platform
    }

    #[cfg(target_os = "linux")]
    fn here() -> Self {
        let facts = quipu::linux::privileges::Privileges::read();
        let cores = quipu::linux::sysfs::SysfsPmus::new().core_pmus();
        let names: Vec<_> = cores.iter().map(|pmu| pmu.name.as_str()).collect();
        let unknown = || "unknown".to_owned();
        Self {
            machine: format!("{} {}", consts::OS, consts::ARCH),
            kernel: facts.kernel.unwrap_or_else(unknown),
            cpu: facts.cpu.unwrap_or_else(unknown),
            pmu: if names.is_empty() {
                "none".into()
            } else {
                names.join(", ")
            },
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn here() -> Self {
        Self {
            machine: format!("{} {}", consts::OS, consts::ARCH),
            kernel: "unknown".into(),
            cpu: "unknown".into(),
            pmu: "unknown".into(),
        }
    }

    /// Name and value of each fact.
    pub(crate) fn facts(&self) -> [(&'static str, &str); 4] {
        [
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("cpu", &self.cpu),
            ("pmu", &self.pmu),
        ]
    }
}
