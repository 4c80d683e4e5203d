//! The abilities of this kernel for this process, found by trying.

use std::os::fd::AsRawFd;
use std::path::Path;

use quipu_hal::{
    Breakpoint, BreakpointAccess, Capabilities, Error, ErrorKind, Features, Filter, Hardware,
    Result, Simultaneity, Software, TargetKinds,
};

use crate::events::{EventBits, HARDWARE_FILTER};
use crate::machine::kernel_file;
use crate::machine::privileges::{Privileges, Seccomp};
use crate::machine::sysfs::SysfsPmus;
use crate::machine::topology::Topology;
#[cfg(feature = "names")]
use crate::machine::tracefs::Tracefs;
use crate::sys::{Attach, AttrFlags, OpenFailure, perf_event_open};
use crate::user_read;

/// Checks that this process can count anything at all: its own user mode, without a PMU.
pub(crate) fn check_usable() -> Result<()> {
    let dummy = EventBits::software(Software::Dummy);
    // No counter can be of no cgroup on no CPU: EINVAL comes after what forbids the call altogether
    // (`perf_event_open`, `kernel/events/core.c`), and before anything is allocated.
    let nothing = Attach {
        pid: -1,
        cpu: -1,
        cgroup: true,
    };
    if try_open(dummy, nothing) == Err(OpenFailure::Errno(libc::EINVAL)) {
        return Ok(());
    }
    let failure = match try_open(dummy, Attach::thread(0)) {
        Ok(()) => return Ok(()),
        Err(failure) => failure,
    };
    let error = |kind| Error::new(kind, "use perf_event_open");
    let OpenFailure::Errno(errno) = failure else {
        return Err(error(ErrorKind::NoSuchDevice).with_reason("the kernel is too old"));
    };
    let error = match errno {
        // A kernel that has it has its setting, so this is the word of a filter.
        libc::ENOSYS if Privileges::rights(false).perf_event_paranoid.is_some() => {
            refused_altogether(errno)
        }
        libc::ENOSYS => error(ErrorKind::NoSuchDevice)
            .with_reason("the kernel was built without it (CONFIG_PERF_EVENTS)"),
        libc::EACCES | libc::EPERM => refused_altogether(errno),
        _ => error(ErrorKind::Os),
    };
    Err(error.with_errno(errno))
}

/// The kernel's own setting gives EACCES, seccomp filters usually EPERM and some ENOSYS.
fn refused_altogether(errno: i32) -> Error {
    let privileges = Privileges::rights(false);
    let error = Error::new(ErrorKind::NoPermission, "use perf_event_open");
    if let (libc::EACCES, Some(why)) = (errno, privileges.why_perfmon_is_refused()) {
        return error.with_reason(why).with_hint("set it to 2 or lower");
    }
    match privileges.perf_event_paranoid {
        Some(level) if !privileges.may_count_user() => error
            .with_reason(format!("kernel.perf_event_paranoid is {level}"))
            .with_hint(format!(
                "set it to 2 or lower, or {}",
                privileges.run_with(privileges.counting_capability())
            )),
        _ if errno != libc::EACCES && privileges.seccomp == Some(Seccomp::Filter) => {
            error.with_reason("a seccomp filter forbids it").with_hint(
                "allow perf_event_open in the profile of the container or service this runs in",
            )
        }
        _ => error.with_reason("a security module forbids it"),
    }
}

/// Finds the targets, features and filters of this machine.
pub(crate) fn find() -> Capabilities {
    let thread = Attach::thread(0);
    let opens = |bits, attach| try_open(bits, attach).is_ok();
    let dummy = EventBits::software(Software::Dummy);

    let mut targets = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD;
    // A process is its threads, as /proc lists them; all CPUs are those that /sys lists.
    let threads = kernel_file::is_there(Path::new("/proc/self/task"));
    targets.set(TargetKinds::PROCESS, threads.unwrap_or(true));
    if opens(dummy, Attach::cpu(0)) {
        targets |= TargetKinds::CURRENT_CPU | TargetKinds::CPU;
        let listed = Topology::new().online().is_ok();
        targets.set(TargetKinds::ALL_CPUS, listed);
        targets.set(TargetKinds::CGROUP, listed && knows_cgroups(dummy));
    }

    let mut features = Features::INHERIT
        | Features::PINNED
        | Features::EXCLUSIVE
        | Features::ENABLE_ON_EXEC
        | Features::MULTIPLEXING
        | Features::SOFTWARE_EVENTS
        | Features::ANY_THREAD;
    // Bits of an attr that older kernels refuse.
    for (feature, flags) in [
        (
            Features::INHERIT_THREAD,
            AttrFlags::INHERIT | AttrFlags::INHERIT_THREAD,
        ),
        (Features::REMOVE_ON_EXEC, AttrFlags::REMOVE_ON_EXEC),
    ] {
        let mut attr = dummy.idle_attr();
        attr.flags |= flags;
        features.set(feature, perf_event_open(&attr, thread, None).is_ok());
    }
    let mut hardware = Hardware::ALL.iter().copied().map(EventBits::hardware);
    let has_pmu =
        !SysfsPmus::new().core_pmus().is_empty() || hardware.any(|bits| opens(bits, thread));
    features.set(Features::HARDWARE_EVENTS, has_pmu);
    let word = 0u64;
    let watched = Breakpoint {
        address: std::ptr::from_ref(&word).addr() as u64,
        len: 8,
        access: BreakpointAccess::Write,
    };
    let breakpoints = opens(EventBits::breakpoint(watched), thread);
    features.set(Features::BREAKPOINTS, breakpoints);
    features.set(
        Features::USER_READS,
        has_pmu && user_read::available().is_ok(),
    );
    #[cfg(feature = "names")]
    {
        features.set(Features::TRACEPOINTS, Tracefs::find().is_ok());
        let pmus = SysfsPmus::new().names().unwrap_or_default();
        features.set(Features::NAMED_PMUS, !pmus.is_empty());
    }

    let mut capabilities = Capabilities::none();
    capabilities.targets = targets;
    capabilities.features = features;
    capabilities.filters = if has_pmu {
        HARDWARE_FILTER
    } else {
        Filter::USER | Filter::KERNEL
    };
    capabilities.simultaneity = Simultaneity::Atomic;
    capabilities
}

/// Returns true if counters can be attached to cgroups: a kernel that can refuses a descriptor that is
/// no cgroup's with EBADF, one that cannot with EINVAL (`perf_cgroup_connect`).
fn knows_cgroups(bits: EventBits) -> bool {
    let Ok(dir) = std::fs::File::open("/") else {
        return false;
    };
    let attach = Attach {
        pid: dir.as_raw_fd(),
        cpu: 0,
        cgroup: true,
    };
    try_open(bits, attach) == Err(OpenFailure::Errno(libc::EBADF))
}

/// Opens a counter of user mode that does not count, and closes it again.
fn try_open(bits: EventBits, attach: Attach) -> Result<(), OpenFailure> {
    perf_event_open(&bits.idle_attr(), attach, None).map(drop)
}
