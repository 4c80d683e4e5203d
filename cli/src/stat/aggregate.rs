//! Aggregation of the parts of a target into lines: all, or those of a CPU, a core, a socket, a thread.

use std::collections::BTreeMap;
use std::fmt;

use quipu::Part;

use crate::failure::Failure;

use super::system::{self, CpuTopology};

/// The unit of aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateBy {
    /// Everything in one line.
    Target,
    Cpu,
    Core,
    Socket,
    Thread,
}

/// The part of the target that a line is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AggregateId {
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

impl fmt::Display for AggregateId {
    /// Writes it as perf does: `CPU0`, `S0-D0-C1`, `S0`, `bash-1234`.
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

/// The assignment of parts to lines; looks at the machine once, and only as far as needed.
#[derive(Debug)]
pub struct Aggregation {
    by: AggregateBy,
    cpus: BTreeMap<u32, CpuTopology>,
    threads: BTreeMap<i32, String>,
}

impl Aggregation {
    /// Returns the aggregation of these parts; a thread's name is looked up now, because later it may
    /// have ended.
    pub fn new<'a>(
        by: AggregateBy,
        parts: impl IntoIterator<Item = &'a Part>,
    ) -> Result<Self, Failure> {
        let mut aggregation = Self {
            by,
            cpus: BTreeMap::new(),
            threads: BTreeMap::new(),
        };
        match by {
            AggregateBy::Core | AggregateBy::Socket => {
                let places = system::cpu_topology()?.into_iter();
                aggregation.cpus = places.map(|place| (place.cpu, place)).collect();
            }
            AggregateBy::Thread => {
                let threads = parts.into_iter().filter_map(|part| part.thread);
                aggregation.threads = threads.map(|id| (id, system::thread_name(id))).collect();
            }
            AggregateBy::Target | AggregateBy::Cpu => {}
        }
        Ok(aggregation)
    }

    /// Returns the line that a part belongs to.
    pub fn id(&self, part: &Part) -> AggregateId {
        let cpu = part.cpu.and_then(|cpu| self.cpus.get(&cpu));
        match (self.by, part.cpu, part.thread, cpu) {
            (AggregateBy::Cpu, Some(cpu), ..) => AggregateId::Cpu(cpu),
            (AggregateBy::Core, .., Some(cpu)) => AggregateId::Core {
                socket: cpu.socket,
                die: cpu.die,
                core: cpu.core,
            },
            (AggregateBy::Socket, .., Some(cpu)) => AggregateId::Socket(cpu.socket),
            (AggregateBy::Thread, _, Some(id), _) => AggregateId::Thread {
                id,
                name: self.threads.get(&id).cloned().unwrap_or_default(),
            },
            _ => AggregateId::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_sockets(by: AggregateBy) -> Aggregation {
        let place = |cpu, socket, core| {
            let place = CpuTopology {
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

    fn labels(by: AggregateBy) -> Vec<String> {
        let aggregation = two_sockets(by);
        (0..4)
            .map(|cpu| aggregation.id(&Part::on_cpu(cpu)).to_string())
            .collect()
    }

    #[test]
    fn cpus_are_sorted_into_cores_and_sockets() {
        assert_eq!(labels(AggregateBy::Target), ["", "", "", ""]);
        assert_eq!(labels(AggregateBy::Cpu), ["CPU0", "CPU1", "CPU2", "CPU3"]);
        assert_eq!(
            labels(AggregateBy::Core),
            ["S0-D0-C0", "S0-D0-C0", "S0-D0-C4", "S1-D0-C0"]
        );
        assert_eq!(labels(AggregateBy::Socket), ["S0", "S0", "S0", "S1"]);
    }

    #[test]
    fn threads_have_names() {
        let aggregation = two_sockets(AggregateBy::Thread);
        let label = |id| aggregation.id(&Part::of_thread(id)).to_string();
        assert_eq!(label(7), "worker-7");
        assert_eq!(label(8), "-8");
    }
}
