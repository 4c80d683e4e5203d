//! The machine that a comparison was made on, so that none is compared with another unnoticed.

use std::fs;
use std::thread;

use nix::sys::utsname::uname;
use quipu::NativeEvents;
use serde::{Deserialize, Serialize};

/// The surroundings on which a number depends beside the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The name of the host.
    pub(crate) host: String,
    /// The CPU, as the kernel calls it.
    pub(crate) cpu: String,
    /// The number of CPUs that a command may use.
    pub(crate) cpus: usize,
    /// The system, its release and its architecture.
    pub(crate) kernel: String,
    /// The governor of the CPU's frequency; `none` where there is none.
    pub(crate) governor: String,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn this() -> Self {
        let names = uname();
        let text = |of: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
            names.as_ref().map_or(String::new(), |names| {
                of(names).to_string_lossy().into_owned()
            })
        };
        let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Self {
            host: text(|names| names.nodename()),
            cpu: cpu(),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            kernel: [
                text(|names| names.sysname()),
                text(|names| names.release()),
                text(|names| names.machine()),
            ]
            .join(" "),
            governor: governor.map_or_else(|_| "none".to_owned(), |name| name.trim().to_owned()),
        }
    }

    /// Returns in words what differs from another machine; the name of the host does not matter.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let compared = [
            ("CPU", self.cpu.clone(), other.cpu.clone()),
            (
                "number of CPUs",
                self.cpus.to_string(),
                other.cpus.to_string(),
            ),
            ("kernel", self.kernel.clone(), other.kernel.clone()),
            ("governor", self.governor.clone(), other.governor.clone()),
        ];
        let differing = compared
            .into_iter()
            .filter(|(_, here, there)| here != there);
        differing
            .map(|(what, here, there)| format!("its {what} is {there}, and here it is {here}"))
            .collect()
    }
}

/// Returns the name of the CPU: what proc_cpuinfo(5) calls it, or the event database.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = info.lines();
    let named = lines.find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    match named {
        Some((_, name)) => name.trim().to_owned(),
        None => match NativeEvents::this().tables() {
            Ok(tables) => tables
                .iter()
                .map(|table| table.name().to_owned())
                .collect::<Vec<_>>()
                .join(", "),
            Err(_) => "unknown".to_owned(),
        },
    }
}
