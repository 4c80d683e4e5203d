//! Where CPUs are: cores, dies, sockets.
//!
//! `Documentation/admin-guide/cputopology.rst`: `/sys/devices/system/cpu/online` and
//! `cpuN/topology/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quipu_hal::{Error, ErrorKind, Result};

use crate::kernel_file;

/// The kernel's largest `NR_CPUS` is 8192; a list that goes beyond this is not one of CPUs.
const MAX_CPUS: u32 = 1 << 16;

/// The CPUs of the machine, read from sysfs when asked.
#[derive(Debug, Clone)]
pub struct Topology {
    root: PathBuf,
}

impl Topology {
    /// The topology of this machine.
    pub fn new() -> Self {
        Self::at("/sys/devices/system/cpu")
    }

    /// The topology under another directory than `/sys/devices/system/cpu`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The CPUs that are online, in ascending order.
    ///
    /// # Errors
    /// When the file cannot be read or holds no list.
    pub fn online(&self) -> Result<Vec<u32>> {
        let path = self.root.join("online");
        let text = kernel_file::read(&path)
            .map_err(|e| kernel_file::error("find the CPUs that are online", &path, &e))?;
        parse_cpu_list(&text)
    }

    /// Where a CPU is.
    ///
    /// # Errors
    /// [`NoSuchTarget`](ErrorKind::NoSuchTarget) when there is no such CPU or it is not online (the
    /// kernel shows the topology of online CPUs only); else when a file cannot be read or holds no
    /// number.
    pub fn place(&self, cpu: u32) -> Result<CpuPlace> {
        let dir = self.root.join(format!("cpu{cpu}/topology"));
        let core = number(&dir, "core_id", cpu)?.ok_or_else(|| {
            Error::new(ErrorKind::NoSuchTarget, attempted(cpu))
                .with_reason(format!("CPU {cpu} does not exist or is not online"))
        })?;
        Ok(CpuPlace {
            socket: number(&dir, "physical_package_id", cpu)?.unwrap_or(-1),
            die: number(&dir, "die_id", cpu)?.unwrap_or(-1),
            core,
            cpu,
        })
    }

    /// Where every online CPU is, ordered by socket, die, core and CPU.
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

    /// How many sockets have a CPU that is online.
    ///
    /// # Errors
    /// As [`places`](Self::places).
    pub fn sockets(&self) -> Result<usize> {
        let sockets: BTreeSet<i32> = self.places()?.iter().map(|place| place.socket).collect();
        Ok(sockets.len())
    }
}

impl Default for Topology {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a CPU is. Ids are the kernel's, -1 where it does not know; they need not be contiguous, and
/// a core's is unique within its die only.
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

/// Reads a list of CPUs as the kernel writes it and people type it: `0-3,8,10-11`.
///
/// The result is in ascending order, each CPU once. An empty text is an empty list.
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it is not such a list, or goes
/// beyond CPU 65535.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>> {
    let fail = |reason: String| {
        let shown: String = text.chars().take(40).collect();
        Error::new(
            ErrorKind::InvalidConfiguration,
            format!("read the list of CPUs `{}`", shown.escape_debug()),
        )
        .with_reason(reason)
    };
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let bounds = first
            .trim()
            .parse::<u32>()
            .ok()
            .zip(last.trim().parse().ok());
        let Some((first, last)) = bounds else {
            return Err(fail("it is written like 0-3,8".into()));
        };
        if first > last {
            return Err(fail(format!("{first}-{last} runs backwards")));
        }
        if last >= MAX_CPUS {
            return Err(fail(format!("there is no CPU {last}")));
        }
        ranges.push((first, last));
    }
    // Sorted and joined first, so that a list that repeats itself stays small.
    ranges.sort_unstable();
    let mut cpus = Vec::new();
    let mut next = 0;
    for (first, last) in ranges {
        cpus.extend(first.max(next)..=last);
        next = next.max(last + 1);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_sorted_and_without_repetition() {
        for (text, cpus) in [
            ("", vec![]),
            ("0\n", vec![0]),
            ("0-3,8,10-11", vec![0, 1, 2, 3, 8, 10, 11]),
            ("5,1-2, 2-4", vec![1, 2, 3, 4, 5]),
            ("0-5,1-2,7", vec![0, 1, 2, 3, 4, 5, 7]),
            ("65535", vec![65535]),
        ] {
            assert_eq!(parse_cpu_list(text).unwrap(), cpus, "{text}");
        }
        let repeated = "0-65535,".repeat(10_000) + "0";
        assert_eq!(parse_cpu_list(&repeated).unwrap().len(), 65536);
    }

    #[test]
    fn hostile_lists_are_refused_without_allocating() {
        for text in [
            "0-4294967295",
            "65536",
            "3-1",
            "-",
            "1-",
            "-1",
            "a",
            "0,,1",
            "0,",
            "99999999999",
            "1-2-3",
        ] {
            let e = parse_cpu_list(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{text}");
        }
    }
}
