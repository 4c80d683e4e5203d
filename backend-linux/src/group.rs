//! An open group: its kernel groups, one for each part of the target.

mod counters_open;
pub(crate) mod kernel_group;
#[cfg(not(feature = "sampling"))]
pub(crate) mod no_overflow;
pub(crate) mod open_error;
pub(crate) mod open_part;
#[cfg(feature = "sampling")]
pub(crate) mod overflow;
pub(crate) mod own_counters;
mod reader;

#[cfg(not(feature = "sampling"))]
pub(crate) use self::no_overflow as overflow;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use quipu_hal::{
    Error, ErrorKind, EventInfo, Group, GroupReader, Overflows, Part, ReadBuf, Reading, Result,
    Simultaneity, UserReads, ValueKind,
};

use self::kernel_group::KernelGroup;
use self::reader::LinuxReader;
#[cfg(feature = "names")]
use crate::events::TracedProbe;
use crate::read::{ReadFailure, ReadPlan};

pub(crate) use self::counters_open::CountersOpen;

/// A group of counters opened by [`LinuxBackend`](crate::LinuxBackend). Dropping it closes them.
///
/// Any thread may use it. A read is one read(2) for each part, with both times and all members of
/// one moment (`PERF_FORMAT_GROUP`); see [`Group::simultaneity`] for the exceptions. A group that
/// counts the calling thread is read without a system call where the machine allows it (see
/// [`user_read`](crate::user_read)).
///
/// ```
/// # fn main() -> quipu_hal::Result<()> {
/// use quipu_hal::{EventSpec, Filter, Group, GroupSpec, Software, Target};
/// use quipu_linux::LinuxBackend;
///
/// let Ok(backend) = LinuxBackend::new() else {
///     return Ok(()); // This process may not count.
/// };
/// let events = [Software::TaskClock, Software::PageFaults];
/// let spec = GroupSpec::new(events.map(|e| EventSpec::new(e).with_filter(Filter::USER_ONLY)));
/// let mut group = backend.open_group(&spec, &Target::CurrentThread)?;
/// let [mut before, mut after] = [group.read_buf(), group.read_buf()];
/// group.read(&mut before)?;
/// std::hint::black_box(vec![1u8; 1 << 20]);
/// group.read(&mut after)?;
/// for (i, member) in group.members().iter().enumerate() {
///     let difference = after[0][i].since(&before[0][i]);
///     println!("{}: {}", member.name, difference.value);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LinuxGroup {
    members: Vec<EventInfo>,
    parts: Arc<[Part]>,
    /// One for each part.
    kernel_groups: Vec<KernelGroup>,
    /// The probes that the kernel groups count, which are removed after those.
    #[cfg(feature = "names")]
    probes: Vec<Arc<TracedProbe>>,
    _open: CountersOpen,
}

impl LinuxGroup {
    /// Returns a group of these members, which kernel groups count in each of these parts.
    pub(crate) fn new(
        members: Vec<EventInfo>,
        parts: Vec<Part>,
        kernel_groups: Vec<KernelGroup>,
    ) -> Self {
        Self {
            members,
            parts: parts.into(),
            kernel_groups,
            #[cfg(feature = "names")]
            probes: Vec::new(),
            _open: CountersOpen::new(),
        }
    }

    /// Returns the group with the probes that its kernel groups count.
    #[cfg(feature = "names")]
    pub(crate) fn with_probes(mut self, probes: Vec<TracedProbe>) -> Self {
        self.probes.extend(probes.into_iter().map(Arc::new));
        self
    }

    /// Takes all members of a group to whose kernel group counters were added.
    pub(crate) fn set_members(&mut self, members: Vec<EventInfo>) {
        self.members = members;
    }

    /// Returns the kernel group, if there is one alone and its leader reads all members.
    pub(crate) fn only_kernel_group(&mut self) -> Option<&mut KernelGroup> {
        let [group] = &mut self.kernel_groups[..] else {
            return None;
        };
        (group.plan() == ReadPlan::Snapshot).then_some(group)
    }

    /// Starts a group that has just been opened.
    pub(crate) fn start(&self) -> Result<()> {
        self.for_each("start the counters", KernelGroup::start)
    }

    /// Runs a BPF program whenever a member occurs (`PERF_EVENT_IOC_SET_BPF`): one of type
    /// `BPF_PROG_TYPE_TRACEPOINT` for a tracepoint, `KPROBE` for a probe, `PERF_EVENT` for a sampled
    /// event. It is given by its descriptor, which may be closed afterwards, and stays until the
    /// group is dropped.
    ///
    /// A program on a tracepoint or probe runs wherever that is reached, whatever the group's target
    /// is; an occurrence for which it returns 0 is not counted by any counter.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is no such member or the
    /// program is not of its kind, [`NoPermission`](ErrorKind::NoPermission), or when the kernel
    /// refuses for another reason.
    pub fn attach_bpf(&self, member: usize, program: BorrowedFd<'_>) -> Result<()> {
        let attempted = || format!("run a BPF program on member {member} of the group");
        self.check_member(member, attempted)?;
        for (part, group) in self.kernel_groups.iter().enumerate() {
            let Some(fd) = group.fds().of(member) else {
                continue;
            };
            match fd.set_bpf(program) {
                Ok(()) => {}
                // The parts of a tracepoint share its programs.
                Err(libc::EEXIST) if part > 0 => {}
                Err(errno) => {
                    let kind = match errno {
                        libc::EINVAL => ErrorKind::InvalidConfiguration,
                        libc::EPERM | libc::EACCES => ErrorKind::NoPermission,
                        _ => ErrorKind::Os,
                    };
                    let error = Error::new(kind, attempted()).with_errno(errno);
                    return Err(match errno {
                        libc::EINVAL => {
                            error.with_reason("the program is not of the type for this event")
                        }
                        libc::EEXIST => error.with_reason("a program is attached already"),
                        _ => error,
                    }
                    .with_member(member));
                }
            }
        }
        Ok(())
    }

    /// Returns the ids of the BPF programs that run whenever the tracepoint of a member is reached
    /// (`PERF_EVENT_IOC_QUERY_BPF`, Linux 4.16), whoever has attached them: the ids that bpf(2) and `bpftool prog` take.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is no such member or it is no tracepoint, and
    /// [`NoPermission`](ErrorKind::NoPermission) without `CAP_PERFMON`.
    pub fn bpf_programs(&self, member: usize) -> Result<Vec<u32>> {
        let attempted = || format!("list the BPF programs of member {member} of the group");
        self.check_member(member, attempted)?;
        // The parts of a tracepoint share its programs.
        let fd = self.kernel_groups.iter().find_map(|g| g.fds().of(member));
        let Some(fd) = fd else {
            return Ok(Vec::new());
        };
        fd.query_bpf().map_err(|errno| {
            let error = |kind| Error::new(kind, attempted()).with_errno(errno);
            match errno {
                libc::EINVAL => error(ErrorKind::InvalidConfiguration)
                    .with_reason("the kernel lists those of tracepoints alone"),
                libc::EPERM | libc::EACCES => error(ErrorKind::NoPermission),
                libc::ENOTTY => error(ErrorKind::UnsupportedFeature)
                    .with_reason("the kernel cannot list them (before Linux 4.16)"),
                _ => error(ErrorKind::Os),
            }
            .with_member(member)
        })
    }

    /// Refuses a position that no member has; `attempted` says what it is for.
    fn check_member(&self, member: usize, attempted: impl Fn() -> String) -> Result<()> {
        match self.members.len() {
            members if member < members => Ok(()),
            members => Err(Error::new(ErrorKind::InvalidConfiguration, attempted())
                .with_reason(format!("the group has {members} members"))),
        }
    }

    /// Applies an operation to every kernel group; `attempted` names it.
    fn for_each(
        &self,
        attempted: &str,
        operation: impl Fn(&KernelGroup) -> Result<(), i32>,
    ) -> Result<()> {
        for (part, group) in self.kernel_groups.iter().enumerate() {
            operation(group).map_err(|errno| {
                let attempted = format!("{attempted} ({})", self.parts[part]);
                Error::new(ErrorKind::Os, attempted).with_errno(errno)
            })?;
        }
        Ok(())
    }

    /// Reads every part of a buffer of the group's shape.
    fn read_each_part(
        &mut self,
        out: &mut ReadBuf,
        read: impl Fn(&mut KernelGroup, &mut [Reading]) -> Result<(), ReadFailure>,
    ) -> Result<()> {
        out.check_shape(self.members.len(), &self.parts)?;
        for (part, group) in self.kernel_groups.iter_mut().enumerate() {
            if let Err(failure) = read(group, &mut out[part]) {
                return Err(read_error(&self.parts[part], failure));
            }
        }
        Ok(())
    }
}

fn read_error(part: &Part, failure: ReadFailure) -> Error {
    let error = |kind| Error::new(kind, format!("read the counters ({part})"));
    match failure {
        ReadFailure::ErrorState => error(ErrorKind::CounterInErrorState)
            .with_reason("the group is pinned and could not be put on the PMU")
            .with_hint("disable and enable the group to try again"),
        ReadFailure::Malformed => {
            error(ErrorKind::Os).with_reason("the kernel returned malformed data")
        }
        ReadFailure::Errno(errno @ libc::ENODEV) => error(ErrorKind::NoSuchDevice)
            .with_errno(errno)
            .with_reason("the PMU is gone"),
        ReadFailure::Errno(errno) => error(ErrorKind::Os).with_errno(errno),
    }
}

impl Group for LinuxGroup {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// [`Atomic`](Simultaneity::Atomic) for events of a PMU. The kernel copies the counts of software
    /// events, tracepoints and breakpoints one after the other, and the members of an
    /// [inherited](quipu_hal::Attributes::inherit) group are read so before 4.13: sequential. So are
    /// groups that are read in user space, one register after the other while all go on counting.
    fn simultaneity(&self) -> Simultaneity {
        if self.kernel_groups.iter().all(KernelGroup::is_snapshot) {
            Simultaneity::Atomic
        } else {
            Simultaneity::Sequential
        }
    }

    fn read_buf(&self) -> ReadBuf {
        ReadBuf::new(self.members.len(), Arc::clone(&self.parts))
    }

    fn enable(&mut self) -> Result<()> {
        self.for_each("start the counters", KernelGroup::enable)
    }

    fn disable(&mut self) -> Result<()> {
        self.for_each("stop the counters", KernelGroup::disable)
    }

    fn reset(&mut self) -> Result<()> {
        let members = &self.members;
        let gauge = |i: usize| members[i].kind == ValueKind::Gauge;
        for (part, group) in self.kernel_groups.iter_mut().enumerate() {
            if let Err(failure) = group.reset(gauge) {
                return Err(read_error(&self.parts[part], failure));
            }
        }
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.read_each_part(out, KernelGroup::read)
    }

    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        Some(self)
    }

    fn reader(&self) -> Result<Arc<dyn GroupReader>> {
        if self.kernel_groups.iter().any(KernelGroup::sends_signals) {
            let error = Error::new(
                ErrorKind::UnsupportedFeature,
                "read a group on many threads at once",
            );
            return Err(error.with_reason(
                "its signals for overflows end with it, and a reader keeps counters open",
            ));
        }
        Ok(Arc::new(LinuxReader::of(self)))
    }

    fn overflows(&self, member: usize) -> Option<Arc<dyn Overflows>> {
        self.kernel_groups.first()?.overflows(member)
    }
}

impl UserReads for LinuxGroup {
    /// Finds the first part that has one. Which way is quicker is found out by the first reads.
    fn obstacle(&self) -> Option<Error> {
        let mut groups = self.kernel_groups.iter();
        groups.find_map(KernelGroup::no_user_reads)
    }

    fn read_in_user_space(&mut self, out: &mut ReadBuf) -> Result<bool> {
        out.check_shape(self.members.len(), &self.parts)?;
        let mut groups = self.kernel_groups.iter_mut().enumerate();
        Ok(groups.all(|(part, group)| group.read_pages(&mut out[part])))
    }

    fn read_by_system_call(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.read_each_part(out, KernelGroup::read_by_system_call)
    }
}
