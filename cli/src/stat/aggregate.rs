//! Which parts of a target share a line: all, or those of a CPU, a core, a socket, a thread.

use std::collections::BTreeMap;
use std::fmt;

use quipu::Part;

use crate::failure::Failure;

use super::system::{self, CpuPlace};

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Everything in one line.
    Nothing,
    Cpu,
    Core,
    Socket,
    Thread,
}

/// What one line is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The whole target.
    Whole,
    Cpu(u32),
    Core {
        socket: i32,
        die: i32,
        core: i32,
    },
    Socket(i32),
    Thread {
        id: i32,
        name: String,
    },
}

impl fmt::Display for Place {
    /// As perf writes it: `CPU0`, `S0-D0-C1`, `S0`, `bash-1234`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Cpu(cpu) => write!(f, "CPU{cpu}"),
            Self::Core { socket, die, core } => {
                write!(f, "S{socket}-D{}-C{core}", (*die).max(0))
            }
            Self::Socket(socket) => write!(f, "S{socket}"),
            Self::Thread { id, name } => write!(f, "{name}-{id}"),
        }
    }
}

/// Sorts parts into places; looks at the machine once, and only as far as needed.
#[derive(Debug)]
pub(super) struct Aggregation {
    by: By,
    cpus: BTreeMap<u32, CpuPlace>,
    threads: BTreeMap<i32, String>,
}

impl Aggregation {
    /// For these parts; a thread's name is looked up now, because later it may have ended.
    pub(super) fn new<'a>(
        by: By,
        parts: impl IntoIterator<Item = &'a Part>,
    ) -> Result<Self, Failure> {
        let mut aggregation = Self {
            by,
            cpus: BTreeMap::new(),
            threads: BTreeMap::new(),
        };
        match by {
            By::Core | By::Socket => {
                let places = system::places()?.into_iter();
                aggregation.cpus = places.map(|place| (place.cpu, place)).collect();
            }
            By::Thread => {
                let threads = parts.into_iter().filter_map(|part| part.thread);
                aggregation.threads = threads.map(|id| (id, system::thread_name(id))).collect();
            }
            By::Nothing | By::Cpu => {}
        }
        Ok(aggregation)
    }

    /// The line that a part belongs to.
    pub(super) fn place(&self, part: &Part) -> Place {
        let cpu = part.cpu.and_then(|cpu| self.cpus.get(&cpu));
        match (self.by, part.cpu, part.thread, cpu) {
            (By::Cpu, Some(cpu), ..) => Place::Cpu(cpu),
            (By::Core, .., Some(cpu)) => Place::Core {
                socket: cpu.socket,
                die: cpu.die,
                core: cpu.core,
            },
            (By::Socket, .., Some(cpu)) => Place::Socket(cpu.socket),
            (By::Thread, _, Some(id), _) => Place::Thread {
                id,
                name: self.threads.get(&id).cloned().unwrap_or_default(),
            },
            _ => Place::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_sockets(by: By) -> Aggregation {
        let place = |cpu, socket, core| {
            let place = CpuPlace {
                socket,
                die: -1,
                core,
                cpu,
            };
            (cpu, place)
        };
        Aggregation {
            by,
            cpus: [
                place(0, 0, 0),
                place(1, 0, 0),
                place(2, 0, 4),
                place(3, 1, 0),
            ]
            .into(),
            threads: [(7, "worker".to_owned())].into(),
        }
    }

    fn labels(by: By) -> Vec<String> {
        let aggregation = two_sockets(by);
        (0..4)
            .map(|cpu| aggregation.place(&Part::on_cpu(cpu)).to_string())
            .collect()
    }

    #[test]
    fn cpus_are_sorted_into_cores_and_sockets() {
        assert_eq!(labels(By::Nothing), ["", "", "", ""]);
        assert_eq!(labels(By::Cpu), ["CPU0", "CPU1", "CPU2", "CPU3"]);
        assert_eq!(
            labels(By::Core),
            ["S0-D0-C0", "S0-D0-C0", "S0-D0-C4", "S1-D0-C0"]
        );
        assert_eq!(labels(By::Socket), ["S0", "S0", "S0", "S1"]);
    }

    #[test]
    fn threads_have_names() {
        let aggregation = two_sockets(By::Thread);
        let label = |id| aggregation.place(&Part::of_thread(id)).to_string();
        assert_eq!(label(7), "worker-7");
        assert_eq!(label(8), "-8");
    }
}
