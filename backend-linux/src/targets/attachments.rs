//! Resolves a target to the threads, CPUs, or cgroup on CPUs that counters are attached to.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, gettid};
use quipu_hal::{Error, ErrorKind, Part, Result, Target};

use crate::machine::cgroups::mount_point;
use crate::machine::kernel_file;
use crate::machine::topology::Topology;
use crate::sys::{Attach, current_cpu};

/// A point to attach counters to: a thread, a CPU, a cgroup on a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) attach: Attach,
    pub(crate) part: Part,
}

/// The attachments of a target, and what has to stay open while counters are attached to them.
#[derive(Debug)]
pub(crate) struct Attachments {
    pub(crate) list: Cow<'static, [Attachment]>,
    /// The directory of a cgroup that was given by path.
    _cgroup: Option<File>,
}

/// The attachment of the calling thread.
static CALLING_THREAD: [Attachment; 1] = [Attachment {
    attach: Attach::thread(0),
    part: Part::whole(),
}];

/// Returns the attachments of a target. A process gives the threads it has at this moment.
pub(crate) fn attachments(target: &Target) -> Result<Attachments> {
    let mut cgroup = None;
    let list = match target {
        Target::CurrentThread => {
            return Ok(Attachments {
                list: Cow::Borrowed(&CALLING_THREAD),
                _cgroup: None,
            });
        }
        Target::Thread(tid) => vec![thread(checked_id(target, *tid)?)],
        Target::ThreadOnCpu { thread: tid, cpu } => {
            let mut one = match tid {
                Some(tid) => thread(checked_id(target, *tid)?),
                None => thread(0),
            };
            one.attach.cpu = Attach::cpu(*cpu).cpu;
            one.part.cpu = Some(*cpu);
            vec![one]
        }
        Target::Process(pid) => {
            let threads =
                threads_of(checked_id(target, *pid)?).map_err(|e| no_such_process(target, &e))?;
            let mut list = Vec::with_capacity(threads.len());
            for tid in threads {
                list.push(thread(tid));
            }
            list
        }
        Target::CurrentCpu => cpus(&[current_cpu()]),
        Target::Cpu(cpu) => cpus(&[*cpu]),
        Target::Cpus(list) if list.is_empty() => {
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, attempted(target))
                    .with_reason("the list of CPUs is empty"),
            );
        }
        Target::Cpus(list) => cpus(list),
        Target::AllCpus => cpus(&Topology::new().online()?),
        Target::Cgroup { path, cpus: list } => {
            let dir = cgroup.insert(open_cgroup(target, path)?).as_raw_fd();
            let mut list = match list.is_empty() {
                true => cpus(&Topology::new().online()?),
                false => cpus(list),
            };
            for attachment in &mut list {
                attachment.attach.pid = dir;
                attachment.attach.cgroup = true;
            }
            list
        }
        other => {
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted(other))
                .with_reason("this backend does not support this kind of target"));
        }
    };
    Ok(Attachments {
        list: Cow::Owned(list),
        _cgroup: cgroup,
    })
}

/// Returns true if a target is the calling thread alone, which may read its counters in user space.
pub(crate) fn is_calling_thread(target: &Target) -> bool {
    match target {
        Target::CurrentThread => true,
        Target::Thread(tid) => *tid == gettid().as_raw(),
        _ => false,
    }
}

/// The threads of a process (`/proc/PID/task`, proc(5)), in ascending order.
pub(crate) fn threads_of(pid: i32) -> io::Result<Vec<i32>> {
    let mut threads: Vec<i32> = Vec::new();
    let listing = format!("/proc/{pid}/task");
    kernel_file::each_name(Path::new(&listing), &mut |name| {
        // The kernel makes no other names than numbers.
        if let Ok(thread) = name.parse() {
            threads.push(thread);
        }
    })?;
    threads.sort_unstable();
    Ok(threads)
}

/// The attachment of one thread.
pub(crate) fn thread(tid: i32) -> Attachment {
    Attachment {
        attach: Attach::thread(tid),
        part: Part::of_thread(tid),
    }
}

/// Returns an attachment for each CPU, once, in the order given.
fn cpus(list: &[u32]) -> Vec<Attachment> {
    let mut seen = BTreeSet::new();
    let once = list.iter().filter(|cpu| seen.insert(**cpu));
    once.map(|cpu| Attachment {
        attach: Attach::cpu(*cpu),
        part: Part::on_cpu(*cpu),
    })
    .collect()
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
    if e.raw_os_error() == Some(libc::EMFILE) {
        return kernel_file::too_many_open_files(attempted(target));
    }
    let error = if kernel_file::is_there(Path::new("/proc/self")).is_ok_and(|there| !there) {
        Error::new(ErrorKind::UnsupportedFeature, attempted(target))
            .with_reason("/proc, which lists its threads, is not mounted")
            .with_hint("as root: mount -t proc proc /proc")
    } else if is_of_another_user(target) {
        Error::new(ErrorKind::NoPermission, attempted(target))
            .with_reason("it belongs to another user, and /proc does not show it (hidepid)")
            .with_hint(
                "count it as root, or as a member of the group for which /proc is mounted (gid=)",
            )
    } else if kernel_file::is_missing(e) {
        Error::new(ErrorKind::NoSuchTarget, attempted(target)).with_reason("no such process")
    } else {
        Error::new(ErrorKind::Os, attempted(target)).with_reason("listing its threads")
    };
    match e.raw_os_error() {
        Some(errno) => error.with_errno(errno),
        None => error,
    }
}

/// Returns true if a process is there to which this one may send no signal (kill(2), `EPERM`).
fn is_of_another_user(target: &Target) -> bool {
    match target {
        Target::Process(id) => kill(Pid::from_raw(*id), None) == Err(Errno::EPERM),
        _ => false,
    }
}

fn attempted(target: &Target) -> String {
    match target {
        Target::Process(_) | Target::Thread(_) => format!("count {target}"),
        _ => format!("count on {target}"),
    }
}

/// Opens the directory of a cgroup: an absolute path, or one below a mount of the cgroup file
/// system.
fn open_cgroup(target: &Target, path: &Path) -> Result<File> {
    let fail = |kind| Error::new(kind, attempted(target));
    let full = if path.is_absolute() {
        path.to_owned()
    } else {
        mount_point()
            .map_err(|e| match e.kind() {
                ErrorKind::NoSuchTarget => fail(ErrorKind::NoSuchTarget)
                    .with_reason("no cgroup file system is mounted")
                    .with_hint("give the absolute path of the cgroup's directory"),
                _ => e,
            })?
            .join(path)
    };
    File::open(&full).map_err(|e| {
        let directory = full.display();
        let (kind, reason) = match e.kind() {
            io::ErrorKind::PermissionDenied => (
                ErrorKind::NoPermission,
                format!("this user may not open {directory}"),
            ),
            io::ErrorKind::NotFound => (
                ErrorKind::NoSuchTarget,
                format!("there is no directory {directory}"),
            ),
            _ => (ErrorKind::NoSuchTarget, format!("opening {directory}: {e}")),
        };
        fail(kind)
            .with_errno(e.raw_os_error().unwrap_or(libc::EIO))
            .with_reason(reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not a process, though the thread may be its only one, nor the CPU that it is on.
    #[test]
    fn the_calling_thread_is_no_other_target() {
        let tid = gettid().as_raw();
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
                path: "/".into(),
                cpus: vec![0],
            },
        ] {
            assert!(!is_calling_thread(&other), "{other}");
        }
        let elsewhere = std::thread::spawn(move || is_calling_thread(&Target::Thread(tid)));
        assert!(!elsewhere.join().expect("no panic"));
    }
}
