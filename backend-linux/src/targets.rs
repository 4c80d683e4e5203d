//! From a target to the places counters are attached to: threads, CPUs, a cgroup on CPUs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use quipu_hal::{Cgroup, Error, ErrorKind, Part, Result, Target};

use crate::kernel_file;
use crate::parts::Place;
use crate::sys::{Attach, last_errno};
use crate::topology::Topology;

/// The places of a target, and what has to stay open while counters are attached to them.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) list: Vec<Place>,
    /// The directory of a cgroup that was given by path.
    _cgroup: Option<File>,
}

impl Places {
    fn new(list: Vec<Place>) -> Self {
        Self {
            list,
            _cgroup: None,
        }
    }
}

/// Where to attach for a target. A process gives the threads it has at this moment.
pub(crate) fn places(target: &Target) -> Result<Places> {
    Ok(match target {
        Target::CurrentThread => Places::new(vec![Place {
            attach: Attach::thread(0),
            part: Part::whole(),
        }]),
        Target::Thread(tid) => Places::new(vec![thread(checked_id(target, *tid)?)]),
        Target::Process(pid) => {
            let threads =
                threads_of(checked_id(target, *pid)?).map_err(|e| no_such_process(target, &e))?;
            Places::new(threads.into_iter().map(thread).collect())
        }
        Target::CurrentCpu => Places::new(cpus(&[current_cpu()?])),
        Target::Cpu(cpu) => Places::new(cpus(&[*cpu])),
        Target::Cpus(list) if list.is_empty() => {
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, attempted(target))
                    .with_reason("the list of CPUs is empty"),
            );
        }
        Target::Cpus(list) => Places::new(cpus(list)),
        Target::AllCpus => Places::new(cpus(&online(target)?)),
        Target::Cgroup { cgroup, cpus: list } => {
            let dir = match cgroup {
                Cgroup::Fd(_) => None,
                Cgroup::Path(path) => Some(open_cgroup(target, path)?),
            };
            let fd = match (cgroup, &dir) {
                (Cgroup::Fd(fd), _) => *fd,
                (_, Some(dir)) => dir.as_raw_fd(),
                (Cgroup::Path(_), None) => -1,
            };
            let mut list = match list.is_empty() {
                true => cpus(&online(target)?),
                false => cpus(list),
            };
            for place in &mut list {
                place.attach.pid = fd;
                place.attach.cgroup = true;
            }
            Places { list, _cgroup: dir }
        }
        other => {
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted(other))
                .with_reason("this backend does not know this kind of target"));
        }
    })
}

/// Whether a target is the thread that asks, and nothing else: what it may read in user space.
pub(crate) fn is_calling_thread(target: &Target) -> bool {
    match target {
        Target::CurrentThread => true,
        // SAFETY: the call takes nothing and touches no memory of ours.
        Target::Thread(tid) => *tid == unsafe { libc::gettid() },
        _ => false,
    }
}

/// The threads of a process (`/proc/PID/task`, proc(5)), in ascending order.
pub(crate) fn threads_of(pid: i32) -> io::Result<Vec<i32>> {
    let mut threads: Vec<i32> = kernel_file::names(Path::new(&format!("/proc/{pid}/task")))?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    threads.sort_unstable();
    Ok(threads)
}

/// The place of one thread.
pub(crate) fn thread(tid: i32) -> Place {
    Place {
        attach: Attach::thread(tid),
        part: Part::of_thread(tid),
    }
}

/// The CPUs that are at work.
fn online(target: &Target) -> Result<Vec<u32>> {
    Topology::new().online().map_err(|e| match e.errno() {
        Some(libc::ENOENT) => Error::new(ErrorKind::UnsupportedFeature, attempted(target))
            .with_reason("there is no /sys that would list the CPUs")
            .with_hint("as root: mount -t sysfs sysfs /sys"),
        _ => e,
    })
}

/// A place for each CPU, once, in the order given.
fn cpus(list: &[u32]) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    list.iter()
        .filter(|cpu| seen.insert(**cpu))
        .map(|&cpu| Place {
            attach: Attach::cpu(cpu),
            part: Part::on_cpu(cpu),
        })
        .collect()
}

fn current_cpu() -> Result<u32> {
    // SAFETY: the call takes nothing and touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| {
        Error::new(ErrorKind::Os, "find the CPU this thread runs on").with_errno(last_errno())
    })
}

/// Ids below 1 mean other things to the kernel: the calling thread, or every task.
fn checked_id(target: &Target, id: i32) -> Result<i32> {
    if id > 0 {
        return Ok(id);
    }
    Err(
        Error::new(ErrorKind::InvalidConfiguration, attempted(target))
            .with_reason("ids of threads and processes start at 1"),
    )
}

fn no_such_process(target: &Target, e: &io::Error) -> Error {
    let error = if !Path::new("/proc/self").exists() {
        Error::new(ErrorKind::UnsupportedFeature, attempted(target))
            .with_reason("there is no /proc that would list its threads")
            .with_hint("as root: mount -t proc proc /proc")
    } else if kernel_file::is_missing(e) {
        Error::new(ErrorKind::NoSuchTarget, attempted(target))
            .with_reason("there is no such process")
    } else {
        Error::new(ErrorKind::Os, attempted(target)).with_reason("listing its threads")
    };
    match e.raw_os_error() {
        Some(errno) => error.with_errno(errno),
        None => error,
    }
}

fn attempted(target: &Target) -> String {
    format!("count on {target}")
}

/// Opens the directory of a cgroup: an absolute path, or one below a mount of the cgroup file
/// system.
fn open_cgroup(target: &Target, path: &Path) -> Result<File> {
    let fail = |kind| Error::new(kind, attempted(target));
    let full = if path.is_absolute() {
        path.to_owned()
    } else {
        let mounts = kernel_file::read(Path::new("/proc/self/mounts")).map_err(|e| {
            kernel_file::error(attempted(target), Path::new("/proc/self/mounts"), &e)
        })?;
        cgroup_mount(&mounts)
            .ok_or_else(|| {
                fail(ErrorKind::NoSuchTarget)
                    .with_reason("no cgroup file system is mounted")
                    .with_hint("give the absolute path of the cgroup's directory")
            })?
            .join(path)
    };
    File::open(&full).map_err(|e| {
        let error = match e.kind() {
            io::ErrorKind::PermissionDenied => fail(ErrorKind::NoPermission),
            _ => fail(ErrorKind::NoSuchTarget),
        };
        error
            .with_errno(e.raw_os_error().unwrap_or(libc::EIO))
            .with_reason(format!("opening {}", full.display()))
    })
}

/// Where cgroups are that counters can be attached to: the version 1 hierarchy with the
/// `perf_event` controller, else version 2, which always has it (cgroups(7)).
fn cgroup_mount(mounts: &str) -> Option<PathBuf> {
    let mut unified = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(dir), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|o| o == "perf_event") => {
                return Some(unescape(dir));
            }
            "cgroup2" if unified.is_none() => unified = Some(unescape(dir)),
            _ => {}
        }
    }
    unified
}

/// A path of `/proc/mounts`, in which white space and backslashes are written in octal (proc(5)).
fn unescape(path: &str) -> PathBuf {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = rest.get(..3).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) => {
                out.push(code.into());
                rest = &rest[3..];
            }
            None => out.push('\\'),
        }
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_event_hierarchy_goes_before_the_unified_one() {
        let unified = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0";
        let cpu = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0";
        let perf = "cgroup /sys/fs/cgroup/perf\\040event cgroup rw,perf_event 0 0";
        let mount = |lines: &[&str]| cgroup_mount(&lines.join("\n"));
        assert_eq!(mount(&[cpu]), None);
        assert_eq!(
            mount(&["", "x", cpu, unified]),
            Some("/sys/fs/cgroup/unified".into())
        );
        assert_eq!(
            mount(&[unified, perf]),
            Some("/sys/fs/cgroup/perf event".into())
        );
    }

    #[test]
    fn escapes_that_are_none_stay_as_they_are() {
        for (text, path) in [
            ("/a\\134b", "/a\\b"),
            ("/a\\9", "/a\\9"),
            ("/a\\", "/a\\"),
            ("\\04ü", "\\04ü"),
        ] {
            assert_eq!(unescape(text), PathBuf::from(path), "{text}");
        }
    }

    #[test]
    fn every_thread_is_a_part_and_every_cpu_once() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let list = places(&Target::Process(pid)).expect("this process").list;
        assert!(list.iter().any(|p| p.part.thread == Some(pid)));
        let list = places(&Target::Cpus(vec![1, 0, 1])).expect("two CPUs").list;
        assert_eq!(
            list.iter().map(|p| p.attach.cpu).collect::<Vec<_>>(),
            [1, 0]
        );
    }

    /// Not a process, though the thread may be its only one, nor the CPU that it is on.
    #[test]
    fn the_calling_thread_is_no_other_target() {
        // SAFETY: the call takes nothing and touches no memory of ours.
        let tid = unsafe { libc::gettid() };
        assert!(is_calling_thread(&Target::CurrentThread));
        assert!(is_calling_thread(&Target::Thread(tid)));
        let pid = i32::try_from(std::process::id()).expect("a pid");
        for other in [
            Target::Thread(0),
            Target::Process(pid),
            Target::Process(tid),
            Target::CurrentCpu,
            Target::Cpu(0),
            Target::Cpus(vec![0]),
            Target::AllCpus,
            Target::Cgroup {
                cgroup: Cgroup::Path("/".into()),
                cpus: vec![0],
            },
        ] {
            assert!(!is_calling_thread(&other), "{other}");
        }
        let elsewhere = std::thread::spawn(move || is_calling_thread(&Target::Thread(tid)));
        assert!(!elsewhere.join().expect("no panic"));
    }

    #[test]
    fn targets_that_mean_nothing_are_refused() {
        let kind = |target| places(&target).expect_err("no such target").kind();
        assert_eq!(kind(Target::Thread(0)), ErrorKind::InvalidConfiguration);
        assert_eq!(kind(Target::Process(-1)), ErrorKind::InvalidConfiguration);
        assert_eq!(kind(Target::Cpus(vec![])), ErrorKind::InvalidConfiguration);
        assert_eq!(kind(Target::Process(i32::MAX)), ErrorKind::NoSuchTarget);
        let cgroup = Cgroup::Path("/nowhere/at/all".into());
        let cpus = vec![];
        assert_eq!(
            kind(Target::Cgroup { cgroup, cpus }),
            ErrorKind::NoSuchTarget
        );
    }
}
