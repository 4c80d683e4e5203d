//! Aggregation of the parts of a target into lines: all, or those of a CPU, a core, a socket, a thread.

use std::collections::BTreeMap;
use std::fmt;

use quipu::Part;

use crate::failure::Failure;

use super::system;

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

/// The position of a CPU in the machine; -1 where the system does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTopology {
    pub cpu: u32,
    pub socket: i32,
    pub die: i32,
    pub core: i32,
}

/// The assignment of parts to lines; looks at the machine once, and only as far as needed.
#[derive(Debug)]
pub struct Aggregation {
    pub by: AggregateBy,
    /// By number.
    pub cpus: BTreeMap<u32, CpuTopology>,
    /// The names of threads by their id.
    pub threads: BTreeMap<i32, String>,
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
