//! Targets: threads, processes, CPUs and cgroups to measure.

use std::fmt;
use std::path::PathBuf;

use bitflags::bitflags;

/// The thread, process, CPU or cgroup that a group of counters is attached to.
///
/// A target that the operating system cannot count as one fans out into [parts](crate::Part):
/// [`Process`](Self::Process) into one part a thread, [`AllCpus`](Self::AllCpus) into one a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// The calling thread, on whatever CPU it runs.
    CurrentThread,
    /// One thread, by its id.
    Thread(i32),
    /// One thread while it runs on one CPU. Its time enabled goes on while it is on others, so that the
    /// [value](crate::Reading::value) of a reading is what it counted there, and a count that is scaled an
    /// estimate for all CPUs.
    ThreadOnCpu {
        /// The id of the thread; `None` for the calling one.
        thread: Option<i32>,
        /// The number of the CPU.
        cpu: u32,
    },
    /// A process with all the threads it has now; with
    /// [`inherit`](crate::Attributes::inherit) those it makes later too.
    Process(i32),
    /// The CPU that the calling thread runs on when the group is opened.
    CurrentCpu,
    /// One CPU, everything that runs on it.
    Cpu(u32),
    /// Several CPUs, a part each.
    Cpus(Vec<u32>),
    /// Every CPU that is online, a part each.
    AllCpus,
    /// The tasks of a control group, on some CPUs (all that are online when the list is empty).
    Cgroup {
        /// Its directory: absolute, or relative to the mount point of the cgroup file system. Of a
        /// directory that is open already, `/proc/self/fd/N`.
        path: PathBuf,
        /// The CPUs to count on; empty means all that are online.
        cpus: Vec<u32>,
    },
}

impl Target {
    /// The kind of this target, for comparing with [`Capabilities`](crate::Capabilities).
    pub const fn kind(&self) -> TargetKinds {
        match self {
            Self::CurrentThread => TargetKinds::CURRENT_THREAD,
            Self::Thread(_) => TargetKinds::THREAD,
            Self::ThreadOnCpu { .. } => TargetKinds::THREAD.union(TargetKinds::CPU),
            Self::Process(_) => TargetKinds::PROCESS,
            Self::CurrentCpu => TargetKinds::CURRENT_CPU,
            Self::Cpu(_) | Self::Cpus(_) => TargetKinds::CPU,
            Self::AllCpus => TargetKinds::ALL_CPUS,
            Self::Cgroup { .. } => TargetKinds::CGROUP,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CurrentThread => f.write_str("this thread"),
            Self::Thread(tid) => write!(f, "thread {tid}"),
            Self::ThreadOnCpu { thread, cpu } => match thread {
                Some(tid) => write!(f, "thread {tid} on CPU {cpu}"),
                None => write!(f, "this thread on CPU {cpu}"),
            },
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::CurrentCpu => f.write_str("this CPU"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Self::Cpus(cpus) => {
                f.write_str("CPUs ")?;
                write_list(f, cpus)
            }
            Self::AllCpus => f.write_str("all CPUs"),
            Self::Cgroup { path, cpus } => {
                write!(f, "cgroup {}", path.display())?;
                if !cpus.is_empty() {
                    f.write_str(" on CPUs ")?;
                    write_list(f, cpus)?;
                }
                Ok(())
            }
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, cpus: &[u32]) -> fmt::Result {
    for (i, cpu) in cpus.iter().enumerate() {
        write!(f, "{}{cpu}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

bitflags! {
    /// Kinds of target a backend can count on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct TargetKinds: u8 {
        /// [`Target::CurrentThread`].
        const CURRENT_THREAD = 1;
        /// [`Target::Thread`].
        const THREAD = 1 << 1;
        /// [`Target::Process`].
        const PROCESS = 1 << 2;
        /// [`Target::CurrentCpu`].
        const CURRENT_CPU = 1 << 3;
        /// [`Target::Cpu`] and [`Target::Cpus`].
        const CPU = 1 << 4;
        /// [`Target::AllCpus`].
        const ALL_CPUS = 1 << 5;
        /// [`Target::Cgroup`].
        const CGROUP = 1 << 6;
    }
}
