//! The topology of CPUs: cores, clusters, caches, dies, sockets, NUMA nodes.
//!
//! `Documentation/admin-guide/cputopology.rst`: `/sys/devices/system/cpu/online` and
//! `cpuN/topology/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use quipu_hal::{Error, ErrorKind, Result};
use quipu_text::parse_cpu_list;

use crate::machine::kernel_file;

/// The CPUs of the machine, read from sysfs when asked.
///
/// ```
/// use quipu_linux::topology::Topology;
///
/// for place in Topology::new().places().unwrap_or_default() {
///     println!("CPU {}: core {} of socket {}", place.cpu, place.core, place.socket);
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Topology {
    root: PathBuf,
    /// Second sources of the CPUs that are online.
    elsewhere: Elsewhere,
}

/// Second sources of the CPUs that are online, of containers and sandboxes that do not show sysfs.
#[derive(Debug, Clone, Default)]
struct Elsewhere {
    /// `/proc/stat`.
    stat: Option<PathBuf>,
    /// True on this machine: the CPUs that the calling thread may run on (sched_getaffinity(2)) are online.
    affinity: bool,
}

impl Topology {
    /// The topology of this machine.
    pub fn new() -> Self {
        Self::under(Path::new("/"))
    }

    /// The topology of the machine whose `/sys` and `/proc` are below a directory.
    pub fn under(root: &Path) -> Self {
        Self {
            root: root.join("sys/devices/system/cpu"),
            elsewhere: Elsewhere {
                stat: Some(root.join("proc/stat")),
                affinity: root == Path::new("/"),
            },
        }
    }

    /// The topology under another directory than `/sys/devices/system/cpu`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            elsewhere: Elsewhere::default(),
        }
    }

    /// Returns the CPUs that are online, in ascending order: those that sysfs lists, else those of `/proc/stat`
    /// (proc_stat(5)). If neither is there, they are the CPUs that the calling thread may run on, of which there may be fewer.
    ///
    /// # Errors
    /// When none of these can be read, or the first that can holds no list.
    pub fn online(&self) -> Result<Vec<u32>> {
        let path = self.root.join("online");
        match kernel_file::read(&path) {
            Ok(text) => parse_cpu_list(&text),
            Err(e) => {
                let hidden = kernel_file::is_hidden(&e).then(|| self.elsewhere.online());
                hidden
                    .flatten()
                    .ok_or_else(|| kernel_file::error("find the CPUs that are online", &path, &e))
            }
        }
    }

    /// Returns the position of a CPU.
    ///
    /// # Errors
    /// [`NoSuchTarget`](ErrorKind::NoSuchTarget) when there is no such CPU or it is not online (the
    /// kernel shows the topology of online CPUs only), [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) without sysfs;
    /// else when a file cannot be read or holds no number.
    pub fn place(&self, cpu: u32) -> Result<CpuPlace> {
        let dir = self.root.join(format!("cpu{cpu}/topology"));
        let core = number(&dir, "core_id", cpu)?.ok_or_else(|| match self.root.try_exists() {
            Ok(false) => Error::new(ErrorKind::UnsupportedFeature, attempted(cpu))
                .with_reason("/sys, which shows cores and sockets, is not mounted")
                .with_hint("as root: mount -t sysfs sysfs /sys"),
            _ => Error::new(ErrorKind::NoSuchTarget, attempted(cpu))
                .with_reason(format!("CPU {cpu} does not exist or is not online")),
        })?;
        Ok(CpuPlace {
            socket: number(&dir, "physical_package_id", cpu)?.unwrap_or(-1),
            die: number(&dir, "die_id", cpu)?.unwrap_or(-1),
            core,
            cpu,
        })
    }

    /// Returns the position of every online CPU, ordered by socket, die, core and CPU.
    ///
    /// # Errors
    /// As [`online`](Self::online) and [`place`](Self::place).
    pub fn places(&self) -> Result<Vec<CpuPlace>> {
        let mut places = self
            .online()?
            .into_iter()
            .map(|cpu| self.place(cpu))
            .collect::<Result<Vec<_>>>()?;
        places.sort();
        Ok(places)
    }

    /// Returns the cluster of cores that a CPU is in; -1 where the kernel reports none.
    ///
    /// # Errors
    /// When the file holds no number.
    pub fn cluster(&self, cpu: u32) -> Result<i32> {
        let dir = self.root.join(format!("cpu{cpu}/topology"));
        Ok(number(&dir, "cluster_id", cpu)?.unwrap_or(-1))
    }

    /// Returns the NUMA node of a CPU; 0 where the kernel reports none
    /// (`Documentation/ABI/stable/sysfs-devices-node`).
    ///
    /// # Errors
    /// When the CPU's directory cannot be read.
    pub fn node(&self, cpu: u32) -> Result<i32> {
        let dir = self.root.join(format!("cpu{cpu}"));
        let entries =
            std::fs::read_dir(&dir).map_err(|e| kernel_file::error(attempted(cpu), &dir, &e))?;
        let nodes = entries.filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        });
        Ok(nodes.min().unwrap_or(0))
    }

    /// Returns the caches of data that a CPU uses, by level: the first of the CPUs that share each
    /// (`Documentation/ABI/testing/sysfs-devices-system-cpu`). None where the kernel reports none.
    ///
    /// # Errors
    /// When a file holds no number or no list.
    pub fn caches(&self, cpu: u32) -> Result<BTreeMap<u8, u32>> {
        let mut caches = BTreeMap::new();
        for index in 0.. {
            let dir = self.root.join(format!("cpu{cpu}/cache/index{index}"));
            let Some(level) =
                number(&dir, "level", cpu)?.and_then(|level| u8::try_from(level).ok())
            else {
                break;
            };
            let read = |file: &str| {
                let path = dir.join(file);
                kernel_file::read_if_there(&path)
                    .map_err(|e| kernel_file::error(attempted(cpu), &path, &e))
            };
            if read("type")?.is_some_and(|kind| kind == "Instruction") {
                continue;
            }
            let shared = parse_cpu_list(&read("shared_cpu_list")?.unwrap_or_default())?;
            caches.insert(level, shared.first().copied().unwrap_or(cpu));
        }
        Ok(caches)
    }

    /// Returns the number of sockets that have a CPU online.
    ///
    /// # Errors
    /// As [`places`](Self::places).
    pub fn sockets(&self) -> Result<usize> {
        let places = self.places()?;
        let sockets: BTreeSet<_> = places.iter().map(|place| place.socket).collect();
        Ok(sockets.len())
    }
}

impl Elsewhere {
    fn online(&self) -> Option<Vec<u32>> {
        let stat = self.stat.as_deref().map(kernel_file::read);
        match stat {
            Some(Ok(text)) => of_stat(&text),
            Some(Err(e)) if kernel_file::is_hidden(&e) && self.affinity => of_this_thread(),
            _ => None,
        }
    }
}

/// Returns the CPUs that have a line in `/proc/stat`, as those do that are online.
fn of_stat(text: &str) -> Option<Vec<u32>> {
    let words = text.lines().filter_map(|line| line.split(' ').next());
    let mut cpus: Vec<u32> = words
        .filter_map(|word| word.strip_prefix("cpu")?.parse().ok())
        .collect();
    cpus.sort_unstable();
    (!cpus.is_empty()).then_some(cpus)
}

/// Returns the CPUs that the calling thread may run on.
fn of_this_thread() -> Option<Vec<u32>> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let allowed = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false));
    Some(allowed.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

impl Default for Topology {
    fn default() -> Self {
        Self::new()
    }
}

/// The position of a CPU. Ids are the kernel's, -1 where it does not know; they need not be contiguous,
/// and a core's is unique within its die only.
///
/// Exhaustive: a new level would change its order, and so its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuPlace {
    /// The socket (physical package).
    pub socket: i32,
    /// The die within the socket; -1 before Linux 5.2.
    pub die: i32,
    /// The core within the die.
    pub core: i32,
    /// The CPU's number.
    pub cpu: u32,
}

fn attempted(cpu: u32) -> String {
    format!("find the socket and core of CPU {cpu}")
}

fn number(dir: &Path, file: &str, cpu: u32) -> Result<Option<i32>> {
    let path = dir.join(file);
    let text = kernel_file::read_if_there(&path)
        .map_err(|e| kernel_file::error(attempted(cpu), &path, &e))?;
    text.map(|text| {
        text.parse().map_err(|_| {
            Error::new(ErrorKind::Os, attempted(cpu))
                .with_reason(format!("{} holds no number", path.display()))
        })
    })
    .transpose()
}
