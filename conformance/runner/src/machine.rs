//! The machine that the suite runs on.

use std::env::consts;

use serde::{Deserialize, Serialize};

use crate::fixtures::Tested;

const UNKNOWN: &str = "unknown";

/// The facts of a machine that every report begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    pub(crate) machine: String,
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) pmu: String,
    pub(crate) user: String,
}

impl Platform {
    /// Returns the machine this runs on, with the PMU that the backend uses.
    pub(crate) fn of(tested: &Tested) -> Self {
        let mut platform = Self::here();
        if let Some(pmu) = &tested.pmu {
            platform.pmu.clone_from(pmu);
        }
        platform
    }

    /// Adds a name to the machine's, and sets the CPU's where that is not known.
    pub(crate) fn called(mut self, machine: Option<&str>, cpu: Option<&str>) -> Self {
        if let Some(machine) = machine {
            self.machine = format!("{}, {machine}", self.machine);
        }
        if let Some(cpu) = cpu.filter(|_| self.cpu == UNKNOWN) {
            self.cpu = cpu.into();
        }
        self
    }

    /// Returns the facts of a simulated PMU, which are the same on every machine.
    pub(crate) fn simulated(pmu: &str) -> Self {
        let any = || "any".to_owned();
        Self {
            machine: any(),
            kernel: any(),
            cpu: any(),
            pmu: pmu.into(),
            user: any(),
        }
    }

    /// Returns true for a [simulated](Self::simulated) machine.
    pub(crate) fn is_simulated(&self) -> bool {
        *self == Self::simulated(&self.pmu)
    }

    /// Returns true if a check that passes on one has to pass on the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let facts = |p: &Self| [&p.machine, &p.cpu, &p.pmu, &p.user].map(String::clone);
        facts(self) == facts(other)
    }

    #[cfg(target_os = "linux")]
    fn here() -> Self {
        use std::path::Path;

        use quipu_linux::privileges::{Privileges, Seccomp};

        let facts = Privileges::read();
        let may_count_all = facts.is_perfmon_capable();
        let cores = quipu_linux::sysfs::SysfsPmus::new().core_pmus();
        let names: Vec<_> = cores.iter().map(|pmu| pmu.name.as_str()).collect();
        let unknown = || UNKNOWN.to_owned();
        Self {
            machine: format!("{} {}", consts::OS, consts::ARCH),
            kernel: facts.kernel.unwrap_or_else(unknown),
            cpu: facts.cpu.unwrap_or_else(unknown),
            pmu: if !names.is_empty() {
                names.join(", ")
            } else if Path::new("/sys/bus/event_source").exists() {
                "none".into()
            } else {
                unknown()
            },
            user: match facts.perf_event_paranoid {
                _ if facts.seccomp == Some(Seccomp::Filter) => {
                    "behind a filter of system calls".into()
                }
                _ if facts.uid == Some(0) && !may_count_all => "root without CAP_PERFMON".into(),
                _ if facts.uid == Some(0) => "root".into(),
                Some(level) => format!("ordinary, perf_event_paranoid {level}"),
                None if facts.uid.is_some() => "ordinary".into(),
                None => unknown(),
            },
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn here() -> Self {
        let (kernel, user) = system();
        Self {
            machine: format!("{} {}", consts::OS, consts::ARCH),
            kernel,
            cpu: UNKNOWN.into(),
            pmu: UNKNOWN.into(),
            user,
        }
    }

    /// Returns name and value of each fact.
    pub(crate) fn facts(&self) -> [(&'static str, &str); 5] {
        [
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("cpu", &self.cpu),
            ("pmu", &self.pmu),
            ("user", &self.user),
        ]
    }
}

/// Returns the release of the kernel (uname(3)) and the user.
#[cfg(all(unix, not(target_os = "linux")))]
fn system() -> (String, String) {
    let kernel = nix::sys::utsname::uname().map_or(UNKNOWN.into(), |name| {
        let kernel = [name.release(), name.version()].map(|part| part.to_string_lossy());
        kernel.join(" ").trim().to_owned()
    });
    let root = nix::unistd::geteuid().is_root();
    (kernel, if root { "root" } else { "ordinary" }.into())
}

#[cfg(not(unix))]
fn system() -> (String, String) {
    (UNKNOWN.into(), UNKNOWN.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_called_what_is_said_where_nobody_knows_better() {
        let known = Platform {
            machine: "openbsd x86_64".into(),
            cpu: UNKNOWN.into(),
            ..Platform::simulated("")
        };
        let called = known.clone().called(Some("a laptop"), Some("Atom"));
        assert_eq!(called.machine, "openbsd x86_64, a laptop");
        assert_eq!(called.cpu, "Atom");
        assert_eq!(called.called(None, Some("Core")).cpu, "Atom");
        assert_eq!(known.clone().called(None, None), known);
    }
}
