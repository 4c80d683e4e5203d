//! Aggregation of the parts of a target into lines: all, or those of a CPU, a core, a socket, a thread.

use std::collections::BTreeMap;
use std::fmt;

use quipu::Part;

use quipu_shell::Failure;

use super::options::PlaceOptions;
use super::system;

/// The unit of aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateBy {
    /// Everything in one line.
    Target,
    Cpu,
    Core,
    Cluster,
    /// The cache of a level, the last one if there is none.
    Cache(Option<u8>),
    Die,
    Socket,
    Node,
    Thread,
}

impl AggregateBy {
    /// Returns the unit that options ask for.
    pub fn of(options: &PlaceOptions) -> Result<Self, Failure> {
        let level = |text: &str| match text.trim_start_matches(['L', 'l']) {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| {
                Failure::usage(format_args!(
                    "{text} is not the level of a cache: write --per-cache=L2"
                ))
            }),
        };
        let asked = [
            (options.no_aggr, Self::Cpu),
            (options.per_core, Self::Core),
            (options.per_cluster, Self::Cluster),
            (options.per_die, Self::Die),
            (options.per_socket, Self::Socket),
            (options.per_node, Self::Node),
            (options.per_thread, Self::Thread),
        ];
        if let Some(text) = &options.per_cache {
            return level(text).map(Self::Cache);
        }
        let by = asked.into_iter().find(|(asked, _)| *asked);
        Ok(by.map_or(Self::Target, |(_, by)| by))
    }

    /// Returns true if lines are about CPUs.
    pub fn is_of_cpus(self) -> bool {
        !matches!(self, Self::Target | Self::Thread)
    }
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
    Cluster {
        socket: i32,
        die: i32,
        cluster: i32,
    },
    Cache {
        socket: i32,
        die: i32,
        level: u8,
        /// The first of the CPUs that share it.
        first: u32,
    },
    Die {
        socket: i32,
        die: i32,
    },
    Socket(i32),
    Node(i32),
    Thread {
        id: i32,
        name: String,
    },
}

impl AggregateId {
    /// Returns the kind of place in perf's words; none for the whole target.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Cpu(_) => Some("cpu"),
            Self::Core { .. } => Some("core"),
            Self::Cluster { .. } => Some("cluster"),
            Self::Cache { .. } => Some("cache"),
            Self::Die { .. } => Some("die"),
            Self::Socket(_) => Some("socket"),
            Self::Node(_) => Some("node"),
            Self::Thread { .. } => Some("thread"),
        }
    }

    /// Returns the key and the value that perf has for it in JSON; none for the whole target.
    pub fn json(&self) -> Option<(&'static str, String)> {
        let value = match self {
            Self::Cpu(cpu) => cpu.to_string(),
            _ => self.to_string(),
        };
        self.kind().map(|kind| (kind, value))
    }

    /// Returns true for a set of CPUs, which is shown with their number.
    pub fn is_of_cpus(&self) -> bool {
        !matches!(self, Self::Whole | Self::Cpu(_) | Self::Thread { .. })
    }
}

impl fmt::Display for AggregateId {
    /// Writes it as perf does: `CPU0`, `S0-D0-C1`, `S0-D0-L3-ID0`, `S0`, `N0`, `bash-1234`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Cpu(cpu) => write!(f, "CPU{cpu}"),
            Self::Core { socket, die, core } => {
                write!(f, "S{socket}-D{}-C{core}", (*die).max(0))
            }
            Self::Cluster {
                socket,
                die,
                cluster,
            } => write!(f, "S{socket}-D{}-CLS{cluster}", (*die).max(0)),
            Self::Cache {
                socket,
                die,
                level,
                first,
            } => write!(f, "S{socket}-D{}-L{level}-ID{first}", (*die).max(0)),
            Self::Die { socket, die } => write!(f, "S{socket}-D{}", (*die).max(0)),
            Self::Socket(socket) => write!(f, "S{socket}"),
            Self::Node(node) => write!(f, "N{node}"),
            Self::Thread { id, name } => write!(f, "{name}-{id}"),
        }
    }
}

/// The position of a CPU in the machine; -1 where the system does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPosition {
    pub cpu: u32,
    pub socket: i32,
    pub die: i32,
    pub cluster: i32,
    pub core: i32,
    pub node: i32,
    /// Its caches of data, by level: the first of the CPUs that share each.
    pub caches: BTreeMap<u8, u32>,
}

/// The assignment of parts to lines; looks at the machine once, and only as far as needed.
#[derive(Debug)]
pub struct Aggregation {
    pub by: AggregateBy,
    /// True if the instances of a unit outside of the cores are added up.
    pub merges_units: bool,
    /// True if the target is every thread that runs: those without counts are left out.
    pub every_thread: bool,
    /// By number.
    pub cpus: BTreeMap<u32, CpuPosition>,
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
            merges_units: true,
            every_thread: false,
            cpus: BTreeMap::new(),
            threads: BTreeMap::new(),
        };
        match by {
            AggregateBy::Thread => {
                let threads = parts.into_iter().filter_map(|part| part.thread);
                // As perf calls a thread without a name.
                let name = |id| match system::thread_name(id) {
                    none if none.is_empty() => format!(":{id}"),
                    name => name,
                };
                aggregation.threads = threads.map(|id| (id, name(id))).collect();
            }
            AggregateBy::Target | AggregateBy::Cpu => {}
            _ => {
                let places = system::cpu_topology()?.into_iter();
                aggregation.cpus = places.map(|place| (place.cpu, place)).collect();
            }
        }
        if let AggregateBy::Cache(Some(level)) = by
            && !aggregation
                .cpus
                .values()
                .any(|cpu| cpu.caches.contains_key(&level))
        {
            return Err(Failure::new(format_args!(
                "the system tells of no cache of level {level}: leave out the level for the last one"
            )));
        }
        Ok(aggregation)
    }

    /// Returns the aggregation with a line for each instance of a unit, if that is asked for.
    #[must_use]
    pub fn merging_units(mut self, yes: bool) -> Self {
        self.merges_units = yes;
        self
    }

    /// Returns the aggregation of every thread that runs, if it is that.
    #[must_use]
    pub fn of_every_thread(mut self, yes: bool) -> Self {
        self.every_thread = yes;
        self
    }

    /// Returns the instance of a unit that a part has a line of its own for.
    pub fn unit<'p>(&self, part: &'p Part) -> Option<&'p str> {
        part.pmu.as_deref().filter(|_| !self.merges_units)
    }

    /// Returns the line that a part belongs to.
    pub fn id(&self, part: &Part) -> AggregateId {
        let known = part.cpu.and_then(|cpu| self.cpus.get(&cpu));
        let (by, id) = match (self.by, part, known) {
            (
                AggregateBy::Thread,
                Part {
                    thread: Some(id), ..
                },
                _,
            ) => {
                let name = self.threads.get(id).cloned().unwrap_or_default();
                return AggregateId::Thread { id: *id, name };
            }
            (AggregateBy::Cpu, Part { cpu: Some(cpu), .. }, _) => return AggregateId::Cpu(*cpu),
            (by, _, Some(cpu)) => (by, cpu),
            _ => return AggregateId::Whole,
        };
        let (socket, die) = (id.socket, id.die);
        match by {
            AggregateBy::Core => AggregateId::Core {
                socket,
                die,
                core: id.core,
            },
            AggregateBy::Cluster => AggregateId::Cluster {
                socket,
                die,
                cluster: id.cluster,
            },
            AggregateBy::Cache(level) => {
                let last = id.caches.keys().next_back().copied();
                let level = level.or(last).unwrap_or_default();
                AggregateId::Cache {
                    socket,
                    die,
                    level,
                    first: id.caches.get(&level).copied().unwrap_or(id.cpu),
                }
            }
            AggregateBy::Die => AggregateId::Die { socket, die },
            AggregateBy::Socket => AggregateId::Socket(socket),
            AggregateBy::Node => AggregateId::Node(id.node),
            AggregateBy::Target | AggregateBy::Cpu | AggregateBy::Thread => AggregateId::Whole,
        }
    }
}
