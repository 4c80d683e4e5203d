//! The rights of this process and the kind of machine: facts for hints and reports.

use std::path::Path;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::utsname::uname;
use nix::unistd::geteuid;

use crate::machine::kernel_file;
use crate::machine::sysfs::SysfsPmus;
use crate::sys::{effective_capabilities, seccomp_mode};

/// Facts about this process and machine, read once. What cannot be read is `None`, not an error.
///
/// ```
/// use quipu_linux::privileges::Privileges;
///
/// let privileges = Privileges::read();
/// if !privileges.may_count_kernel() {
///     println!("perf_event_paranoid is {:?}", privileges.perf_event_paranoid);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Privileges {
    /// `/proc/sys/kernel/perf_event_paranoid`; `None` when the kernel has no perf_event_open.
    pub perf_event_paranoid: Option<i32>,
    /// The effective user id.
    pub uid: Option<u32>,
    /// The effective capabilities, a bit each (capabilities(7)).
    pub capabilities: Option<u64>,
    /// True if the process is in the initial user namespace. The kernel only honours capabilities
    /// for perf_event_open(2) there (user_namespaces(7)).
    pub initial_user_namespace: Option<bool>,
    /// The limit of open files (RLIMIT_NOFILE).
    pub open_files: Option<Limit>,
    /// The limit of locked memory in bytes (RLIMIT_MEMLOCK).
    pub locked_memory: Option<Limit>,
    /// The filter of system calls.
    pub seccomp: Option<Seccomp>,
    /// True if the kernel has a PMU of CPU cores.
    pub has_cpu_pmu: bool,
    /// The kernel's release: `6.12.9-amd64`.
    pub kernel: Option<String>,
    /// The CPU's name, as its vendor wrote it or as the kernel identifies it.
    pub cpu: Option<String>,
    /// True in a virtual machine, by the `hypervisor` flag of x86 CPUs; `None` elsewhere.
    pub virtual_machine: Option<bool>,
}

/// A resource limit (getrlimit(2)); `None` is unlimited.
///
/// Exhaustive: getrlimit(2) has these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The limit that is enforced.
    pub soft: Option<u64>,
    /// The limit that the process may raise it to.
    pub hard: Option<u64>,
}

/// The filter of system calls (seccomp(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seccomp {
    /// They are not.
    Disabled,
    /// Only read, write, `_exit` and sigreturn are allowed.
    Strict,
    /// A program decides; container engines often refuse perf_event_open so.
    Filter,
}

/// A capability that matters for counters (capabilities(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// `CAP_IPC_LOCK`: ring buffers of any size.
    IpcLock,
    /// `CAP_SYS_PTRACE`: counting other users' processes.
    SysPtrace,
    /// `CAP_SYS_ADMIN`: everything, on every kernel.
    SysAdmin,
    /// `CAP_PERFMON`: counting everywhere, since Linux 5.8.
    Perfmon,
}

impl Capability {
    /// Those above, by number.
    pub const ALL: &'static [Self] = &[
        Self::IpcLock,
        Self::SysPtrace,
        Self::SysAdmin,
        Self::Perfmon,
    ];

    /// Its number (`include/uapi/linux/capability.h`).
    pub const fn number(self) -> u8 {
        match self {
            Self::IpcLock => 14,
            Self::SysPtrace => 19,
            Self::SysAdmin => 21,
            Self::Perfmon => 38,
        }
    }

    /// Its name: `CAP_PERFMON`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
        }
    }
}

impl Privileges {
    /// Those of which nothing is known but whether there is a PMU of CPU cores.
    pub(crate) fn unknown(has_cpu_pmu: bool) -> Self {
        Self {
            perf_event_paranoid: None,
            uid: None,
            capabilities: None,
            initial_user_namespace: None,
            open_files: None,
            locked_memory: None,
            seccomp: None,
            has_cpu_pmu,
            kernel: None,
            cpu: None,
            virtual_machine: None,
        }
    }

    /// The facts about this process and machine.
    pub fn read() -> Self {
        Self::read_under(Path::new("/"))
    }

    /// As [`read`](Self::read), with `/proc` and `/sys` below another directory than `/`.
    pub fn read_under(root: &Path) -> Self {
        let cpuinfo = cpuinfo(root);
        let status = file(root, "proc/self/status").unwrap_or_default();
        let limits = file(root, "proc/self/limits").unwrap_or_default();
        let core_pmus = SysfsPmus::at(root.join("sys/bus/event_source/devices")).core_pmus();
        let here = Here::of(root);
        Self {
            uid: field(&status, "Uid")
                .and_then(|ids| ids.split_ascii_whitespace().nth(1)?.parse().ok())
                .or_else(|| here.map(|_| geteuid().as_raw())),
            open_files: limit(&limits, "Max open files")
                .or_else(|| here?.limit(Resource::RLIMIT_NOFILE)),
            locked_memory: limit(&limits, "Max locked memory")
                .or_else(|| here?.limit(Resource::RLIMIT_MEMLOCK)),
            kernel: file(root, "proc/sys/kernel/osrelease").or_else(|| here?.kernel()),
            cpu: cpu_name(&cpuinfo),
            virtual_machine: is_virtual(&cpuinfo),
            ..Self::rights_under(root, !core_pmus.is_empty())
        }
    }

    /// Returns the facts that may be why counting is refused, on a machine of which it is known whether it has a PMU of CPU cores.
    pub(crate) fn rights(has_cpu_pmu: bool) -> Self {
        Self::rights_under(Path::new("/"), has_cpu_pmu)
    }

    fn rights_under(root: &Path, has_cpu_pmu: bool) -> Self {
        let here = Here::of(root);
        let status = file(root, "proc/self/status").unwrap_or_default();
        Self {
            perf_event_paranoid: file(root, "proc/sys/kernel/perf_event_paranoid")
                .and_then(|text| text.parse().ok()),
            capabilities: field(&status, "CapEff")
                .and_then(|bits| u64::from_str_radix(bits, 16).ok())
                .or_else(|| here.and_then(|_| effective_capabilities().ok())),
            initial_user_namespace: file(root, "proc/self/uid_map").map(|map| {
                // Every id mapped to itself: only the initial namespace is so by default.
                let all = [Some("0"), Some("0"), Some("4294967295"), None];
                (0..)
                    .zip(all)
                    .all(|(at, id)| map.split_ascii_whitespace().nth(at) == id)
            }),
            seccomp: field(&status, "Seccomp")
                .and_then(|mode| mode.parse().ok())
                .or_else(|| here.and_then(|_| seccomp_mode().ok()))
                .and_then(|mode| match mode {
                    0 => Some(Seccomp::Disabled),
                    1 => Some(Seccomp::Strict),
                    2 => Some(Seccomp::Filter),
                    _ => None,
                }),
            ..Self::unknown(has_cpu_pmu)
        }
    }

    /// Returns true if a capability is effective; `false` where that is not known.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities
            .is_some_and(|bits| bits >> capability.number() & 1 == 1)
    }

    /// Returns true if perf_event_paranoid does not bind this process: it has `CAP_PERFMON` or
    /// `CAP_SYS_ADMIN`, in the initial user namespace (`perfmon_capable` in
    /// `include/linux/capability.h`).
    pub fn is_perfmon_capable(&self) -> bool {
        self.initial_user_namespace != Some(false)
            && (self.has(Capability::Perfmon) || self.has(Capability::SysAdmin))
    }

    /// Returns true if kernel mode may be counted: perf_event_paranoid is at most 1, or does not bind.
    pub fn may_count_kernel(&self) -> bool {
        self.allowed_up_to(1)
    }

    /// Returns true if whole CPUs may be counted, with everything that runs on them:
    /// perf_event_paranoid is at most 0, or does not bind.
    pub fn may_count_cpus(&self) -> bool {
        self.allowed_up_to(0)
    }

    /// Returns true if tracepoints may be counted that could show other users' data:
    /// perf_event_paranoid is -1, or does not bind.
    pub fn may_count_raw_tracepoints(&self) -> bool {
        self.allowed_up_to(-1)
    }

    /// Returns true if the process's own user mode may be counted. Up to perf_event_paranoid 2 it may.
    /// Higher values mean the same to the kernel as released, and nothing at all without privilege
    /// to those of Debian, Ubuntu and Android: then this answers `false`.
    pub fn may_count_user(&self) -> bool {
        self.allowed_up_to(2)
    }

    /// Returns the capability that permits counting: above perf_event_paranoid 2 some distributions' kernels ask for more than
    /// `CAP_PERFMON`, as Debian 12's does.
    pub(crate) fn counting_capability(&self) -> Capability {
        match self.perf_event_paranoid {
            Some(3..) => Capability::SysAdmin,
            _ => Capability::Perfmon,
        }
    }

    /// Returns the reason why such a kernel has refused a process that has `CAP_PERFMON` alone.
    pub(crate) fn why_perfmon_is_refused(&self) -> Option<String> {
        let level = self.perf_event_paranoid.filter(|level| *level > 2)?;
        let is_alone = self.is_perfmon_capable() && !self.has(Capability::SysAdmin);
        is_alone.then(|| {
            format!(
                "kernel.perf_event_paranoid is {level}, at which this kernel asks for CAP_SYS_ADMIN, not CAP_PERFMON"
            )
        })
    }

    /// Returns what has to be done for a capability to count, as the end of a sentence: capabilities of another user namespace
    /// than the initial one, as root has them in a container without root, permit no counting.
    pub(crate) fn run_with(&self, capability: Capability) -> String {
        let name = capability.name();
        match self.initial_user_namespace {
            Some(false) => format!("run with {name} outside of this user namespace"),
            _ => format!("run with {name}"),
        }
    }

    fn allowed_up_to(&self, paranoid: i32) -> bool {
        self.is_perfmon_capable()
            || self
                .perf_event_paranoid
                .is_some_and(|current| current <= paranoid)
    }
}

/// This machine and process, which system calls tell about too where no `/proc` is mounted.
#[derive(Debug, Clone, Copy)]
struct Here;

impl Here {
    /// Returns it if the files below this directory are its own.
    fn of(root: &Path) -> Option<Self> {
        (root == Path::new("/")).then_some(Self)
    }

    /// Returns a resource limit (getrlimit(2)).
    fn limit(self, resource: Resource) -> Option<Limit> {
        let (soft, hard) = getrlimit(resource).ok()?;
        #[allow(
            clippy::useless_conversion,
            reason = "rlim_t is as wide as long, which has 32 bits on some systems"
        )]
        let bound = |limit| (limit != RLIM_INFINITY).then_some(u64::from(limit));
        Some(Limit {
            soft: bound(soft),
            hard: bound(hard),
        })
    }

    /// Returns the kernel's release (uname(2)).
    fn kernel(self) -> Option<String> {
        let system = uname().ok()?;
        Some(system.release().to_str()?.to_owned())
    }
}

/// Returns the CPU's name, as its vendor wrote it or as the kernel identifies it.
#[cfg(feature = "counter-test")]
pub(crate) fn cpu() -> Option<String> {
    cpu_name(&cpuinfo(Path::new("/")))
}

/// Returns false on a machine that is known to be no virtual one.
#[cfg(not(feature = "counter-test"))]
pub(crate) fn may_be_virtual() -> bool {
    is_virtual(&cpuinfo(Path::new("/"))) != Some(false)
}

/// Returns true if a CPU's lines of `/proc/cpuinfo` name a hypervisor; `None` where they have no flags.
fn is_virtual(cpuinfo: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags")?;
    Some(flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The first CPU's lines of `/proc/cpuinfo`; those of all CPUs of a large machine fill megabytes.
fn cpuinfo(root: &Path) -> String {
    kernel_file::read_start(&root.join("proc/cpuinfo"), 8192).unwrap_or_default()
}

/// Returns the text of a file below a directory, if it can be read.
fn file(root: &Path, path: &str) -> Option<String> {
    kernel_file::read(&root.join(path)).ok()
}

/// The value of `name:` in a file of such lines.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_ascii() == name).then(|| value.trim_ascii())
    })
}

/// The soft and hard limit in a line of `/proc/self/limits`.
fn limit(limits: &str, name: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let bound = |at| match line.split_ascii_whitespace().nth(at)? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some(Limit {
        soft: bound(0)?,
        hard: bound(1)?,
    })
}

/// The CPU's name in `/proc/cpuinfo`: x86 and others have a line for it, ARM has the parts of its
/// MIDR only.
fn cpu_name(cpuinfo: &str) -> Option<String> {
    let named = ["model name", "cpu model", "uarch", "cpu"]
        .iter()
        .find_map(|name| field(cpuinfo, name));
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part")?;
    Some(format!("ARM implementer {implementer} part {part}"))
}
