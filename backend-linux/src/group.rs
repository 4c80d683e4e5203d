//! An open group: its kernel groups, one for each part of the target.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use quipu_hal::{
    Error, ErrorKind, EventInfo, Group, Overflows, Part, ReadBuf, Reading, Result, Simultaneity,
    UserReads, ValueKind,
};

use crate::counter_test::CountersOpen;
use crate::kernel_group::{KernelGroup, ReadFailure, ReadPlan};
use crate::one_or_more::OneOrMore;
#[cfg(feature = "names")]
use crate::traced_probe::TracedProbe;

mod ways;

use ways::Ways;

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
    members: OneOrMore<EventInfo>,
    parts: Arc<[Part]>,
    kernel_groups: OneOrMore<KernelGroup>,
    /// The probes that the kernel groups count, which are removed after those.
    #[cfg(feature = "names")]
    probes: Vec<TracedProbe>,
    /// The buffer that the kernel writes to; as long as the longest read of several members.
    words: Box<[u64]>,
    /// The readings of one part, which a reset counts from.
    at_reset: OneOrMore<Reading>,
    ways: Ways,
    /// False where it was not counted all the time, which will be so until it is reset.
    may_be_exact: bool,
    /// Set once it is complete.
    open: Option<CountersOpen>,
}

/// Returns the parts of groups that are in one, the whole target.
fn whole_target() -> &'static Arc<[Part]> {
    static WHOLE: OnceLock<Arc<[Part]>> = OnceLock::new();
    WHOLE.get_or_init(|| [Part::whole()].into())
}

impl LinuxGroup {
    /// Returns a group of nothing so far: its members and counters are put where they stay.
    #[inline]
    pub(crate) fn empty() -> Box<Self> {
        let place = Box::new_uninit();
        // Written there, it is not copied.
        let group = Self {
            members: OneOrMore::default(),
            parts: Arc::clone(whole_target()),
            kernel_groups: OneOrMore::default(),
            #[cfg(feature = "names")]
            probes: Vec::new(),
            words: Box::default(),
            at_reset: OneOrMore::default(),
            ways: Ways::ANY,
            may_be_exact: true,
            open: None,
        };
        Box::write(place, group)
    }

    /// Returns the places of the members and of the kernel groups, one for each part.
    #[inline]
    pub(crate) fn places(&mut self) -> (&mut OneOrMore<EventInfo>, &mut OneOrMore<KernelGroup>) {
        (&mut self.members, &mut self.kernel_groups)
    }

    /// Completes the group of what was filled in; where no parts are given, the only one is the whole target.
    pub(crate) fn complete(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.parts = parts.into();
        } else if self.members.only().is_none() {
            // Only groups of one member share their part: a buffer of another such group has room for their reading.
            self.parts = [Part::whole()].into();
        }
        self.make_room();
        self.open = Some(CountersOpen::new());
    }

    /// Keeps the probes that its kernel groups count.
    #[cfg(feature = "names")]
    pub(crate) fn keep(&mut self, probes: Vec<TracedProbe>) {
        self.probes.extend(probes);
    }

    /// Makes room for what its members are read into.
    fn make_room(&mut self) {
        self.at_reset = match &self.members {
            OneOrMore::One(_) => OneOrMore::One([Reading::default()]),
            OneOrMore::Other(members) => OneOrMore::Other(vec![Reading::default(); members.len()]),
        };
        let words = |group: &KernelGroup| group.plan().words(self.members.len());
        let longest = self.kernel_groups.iter().map(words).max().unwrap_or(0);
        self.words = vec![0; longest].into();
    }

    /// Takes all members of a group to whose kernel group counters were added.
    pub(crate) fn set_members(&mut self, members: OneOrMore<EventInfo>) {
        self.members = members;
        self.ways = Ways::ANY;
        self.may_be_exact = true;
        self.make_room();
    }

    /// Returns the kernel group, if there is one alone and its leader reads all members.
    pub(crate) fn only_kernel_group(&mut self) -> Option<&mut KernelGroup> {
        let group = self.kernel_groups.only_mut()?;
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
        if member >= self.members.len() {
            return Err(Error::new(ErrorKind::InvalidConfiguration, attempted())
                .with_reason(format!("the group has {} members", self.members.len())));
        }
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

    /// Applies an operation to every kernel group; `attempted` names it.
    fn for_each(
        &self,
        attempted: &str,
        operation: impl Fn(&KernelGroup) -> Result<(), i32>,
    ) -> Result<()> {
        match &self.kernel_groups {
            OneOrMore::One([group]) => {
                operation(group).map_err(|errno| self.refusal(attempted, 0, errno))
            }
            OneOrMore::Other(groups) => self.for_several(attempted, groups, &operation),
        }
    }

    #[inline(never)]
    fn for_several(
        &self,
        attempted: &str,
        groups: &[KernelGroup],
        operation: &dyn Fn(&KernelGroup) -> Result<(), i32>,
    ) -> Result<()> {
        for (i, group) in groups.iter().enumerate() {
            if let Err(errno) = operation(group) {
                return Err(self.refusal(attempted, i, errno));
            }
        }
        Ok(())
    }

    // Takes values, so that the loop need not keep any in memory for it.
    #[cold]
    #[inline(never)]
    fn refusal(&self, attempted: &str, part: usize, errno: i32) -> Error {
        let attempted = format!("{attempted} ({})", self.parts[part]);
        Error::new(ErrorKind::Os, attempted).with_errno(errno)
    }

    #[cold]
    fn read_error(&self, part: usize, failure: ReadFailure) -> Error {
        let error = |kind| Error::new(kind, format!("read the counters ({})", self.parts[part]));
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
        for (i, group) in self.kernel_groups.iter_mut().enumerate() {
            if let Err(failure) = group.reset(&mut self.words, &mut self.at_reset, gauge) {
                return Err(self.read_error(i, failure));
            }
        }
        self.may_be_exact = true;
        self.choose_ways();
        Ok(())
    }

    // The code of each way returns to the caller: with the mitigations of today's kernels every return after a system
    // call is mispredicted, and costs as much as all else here.
    #[inline(always)]
    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        (self.ways.read)(self, out)
    }

    #[inline(always)]
    fn read_exact(&mut self, values: &mut [u64]) -> bool {
        (self.ways.exact)(self, values).is_some()
    }

    fn read_exact_timed(&mut self, values: &mut [u64]) -> Option<u64> {
        (self.ways.exact_timed)(self, values)
    }

    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        Some(self)
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
        Ok(groups.all(|(i, group)| group.may_read_here() && group.read_pages(&mut out[i])))
    }

    fn read_by_system_call(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.members.len(), &self.parts)?;
        for (i, group) in self.kernel_groups.iter_mut().enumerate() {
            // What notes the times of a call reads a clock.
            group.may_read_here();
            if let Err(failure) = group.read_by_system_call(&mut self.words, &mut out[i]) {
                return Err(self.read_error(i, failure));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::PipeWriter;

    use quipu_hal::MaxRate;

    use super::*;
    use crate::kernel_group::tests::{from_pipe, write};

    /// A group of one or two counters that reads what is written into the pipe.
    fn group(plan: ReadPlan, ids: &[u64]) -> (PipeWriter, LinuxGroup) {
        let (pipe, mut kernel_group) = from_pipe(plan, ids);
        for member in 0..ids.len() {
            kernel_group.set_max_rate(member, MaxRate::EVENTS);
        }
        let mut group = LinuxGroup::empty();
        let (members, kernel_groups) = group.places();
        members.extend(ids.iter().map(|_| EventInfo::counter("event")));
        kernel_groups.push(kernel_group);
        group.complete(vec![Part::whole()]);
        (pipe, *group)
    }

    /// The values alone and their time, after these were written.
    fn exact(
        pipe: &mut PipeWriter,
        group: &mut LinuxGroup,
        reads: &[&[u64]],
    ) -> Option<(Vec<u64>, u64)> {
        reads.iter().for_each(|words| write(pipe, words));
        let mut values = vec![0; group.members.len()];
        let time = group.read_exact_timed(&mut values)?;
        Some((values, time))
    }

    #[test]
    fn values_alone_take_one_call() {
        let (mut pipe, mut one) = group(ReadPlan::Single, &[1]);
        let (mut other_pipe, mut two) = group(ReadPlan::Snapshot, &[1, 2]);
        for round in 1..4 {
            let time = round * 100;
            let of_one = exact(&mut pipe, &mut one, &[&[round, time, time]]);
            assert_eq!(of_one, Some((vec![round], time)));
            let words = [2, time, time, 5 * round, 1, 6 * round, 2];
            let of_two = exact(&mut other_pipe, &mut two, &[&words]);
            assert_eq!(of_two, Some((vec![5 * round, 6 * round], time)));
        }
        // As read(2) has them without a signal and in their order; else a second call has them.
        let reversed = [2, 400, 400, 24, 2, 20, 1];
        let of_two = exact(&mut other_pipe, &mut two, &[&reversed, &reversed]);
        assert_eq!(of_two, Some((vec![20, 24], 400)));
    }

    /// Reads a group that the kernel lists in another order from the beginning, and one that it takes a member out of.
    #[test]
    fn values_alone_are_of_their_members() {
        let (mut pipe, mut group) = group(ReadPlan::Snapshot, &[1, 2, 3]);
        let rounds: [_; 6] = [1, 2, 3, 4, 5, 6].map(|n| [3, 100, 100, 5 * n, 2, 6 * n, 1, 7, 3]);
        rounds.iter().for_each(|words| write(&mut pipe, words));
        for n in 1..4 {
            let values = exact(&mut pipe, &mut group, &[]);
            assert_eq!(values, Some((vec![6 * n, 5 * n, 7], 100)), "in one call");
        }
        let (mut pipe, mut group) = self::group(ReadPlan::Snapshot, &[1, 2]);
        let all = exact(&mut pipe, &mut group, &[&[2, 100, 100, 5, 1, 6, 2]]);
        assert_eq!(all, Some((vec![5, 6], 100)));
        let alone = [2, 200, 200, 7, 1, 0, 0];
        assert_eq!(exact(&mut pipe, &mut group, &[&alone, &alone]), None);
    }

    /// Gives none of a group that waited, until a reset: one more call finds out, and none after it.
    #[test]
    fn values_alone_are_those_that_were_counted_all_the_time() {
        let (mut pipe, mut group) = group(ReadPlan::Snapshot, &[1, 2]);
        let first = exact(&mut pipe, &mut group, &[&[2, 100, 100, 5, 1, 6, 2]]);
        assert_eq!(first, Some((vec![5, 6], 100)));
        let waited = [2, 200, 199, 7, 1, 8, 2];
        assert_eq!(exact(&mut pipe, &mut group, &[&waited, &waited]), None);
        let later = [8, 9, 10].map(|value| [2, 200, 199, value, 1, 8, 2]);
        let more: Vec<&[u64]> = later.iter().map(|words| &words[..]).collect();
        assert_eq!(exact(&mut pipe, &mut group, &more), None);
        let mut readings = group.read_buf();
        for unread in [8, 9] {
            assert_eq!(group.read(&mut readings), Ok(()));
            assert_eq!(readings[0][0].value, unread);
        }
        assert_eq!(group.reset(), Ok(()));
        let since_reset = [2, 300, 299, 12, 1, 10, 2];
        let after = exact(&mut pipe, &mut group, &[&since_reset]);
        assert_eq!(after, Some((vec![2, 2], 100)));
    }

    /// A value beyond what was possible so far is looked at with the time; one that jumped is not given.
    #[test]
    fn values_alone_have_not_jumped() {
        let (mut pipe, mut group) = group(ReadPlan::Single, &[1]);
        let at = |value, time| [value, time, time];
        let most = MaxRate::EVENTS.most(100);
        let first = exact(&mut pipe, &mut group, &[&at(1, 100)]);
        assert_eq!(first, Some((vec![1], 100)));
        let all = exact(&mut pipe, &mut group, &[&at(most, 100)]);
        assert_eq!(all, Some((vec![most], 100)), "in one call");
        let later = at(most + 1, 200);
        let beyond = exact(&mut pipe, &mut group, &[&later, &later]);
        assert_eq!(beyond, Some((vec![most + 1], 200)), "a second call tells");
        let jump = at(10 << 47, 300);
        assert_eq!(exact(&mut pipe, &mut group, &[&jump, &jump]), None);
        write(&mut pipe, &jump);
        assert_eq!(group.reset(), Ok(()));
        let after = exact(&mut pipe, &mut group, &[&at((10 << 47) + 3, 400)]);
        assert_eq!(after, Some((vec![3], 100)));
        // Backwards, as after a reset that another process made.
        let back = at(4, 500);
        let below = exact(&mut pipe, &mut group, &[&back, &back]);
        assert_eq!(below, Some((vec![0], 200)), "as readings have it");
    }

    #[test]
    fn values_alone_are_as_many_as_members() {
        let (mut pipe, mut group) = group(ReadPlan::Snapshot, &[1, 2]);
        for length in [0, 1, 3] {
            assert!(!group.read_exact(&mut vec![0; length]));
        }
        let words = [2, 100, 100, 5, 1, 6, 2];
        assert!(exact(&mut pipe, &mut group, &[&words]).is_some());
        for length in [0, 1, 3] {
            write(&mut pipe, &words);
            assert!(!group.read_exact(&mut vec![0; length]));
        }
    }
}
