//! Opening one kernel group: the attr of each member, and the order of the calls.

use quipu_hal::{Attributes, Error, ErrorKind, EventSpec, GroupSpec, Precision};

use super::kernel_group::KernelGroup;
use super::overflow;
use crate::events::{EventBits, exclusions};
use crate::read::{Fds, ReadPlan, Source};
use crate::sys::{Attach, AttrFlags, CounterFd, OpenFailure, PerfEventAttr};
use crate::targets::PlannedPart;

/// True where the driver skips a disabled leader when it checks that a group fits (`validate_event`,
/// `drivers/perf/arm_pmu.c`): a group of one too many opens then, and never counts.
pub(crate) const LEADERS_ARE_OVERLOOKED: bool =
    cfg!(any(target_arch = "arm", target_arch = "aarch64"));

/// A member that the kernel refused.
#[derive(Debug, Clone)]
pub(crate) struct RefusedMember {
    /// Its position in the group.
    pub(crate) member: usize,
    /// The attr that was refused.
    pub(crate) attr: Box<PerfEventAttr>,
    /// The target of that attr.
    pub(crate) attach: Attach,
    /// The kernel's answer.
    pub(crate) failure: OpenFailure,
}

/// The system call by which a counter is opened: [`perf_event_open`](crate::sys::perf_event_open).
pub(crate) trait Open:
    FnMut(&PerfEventAttr, Attach, Option<&CounterFd>) -> Result<CounterFd, OpenFailure>
{
}

impl<F> Open for F where
    F: FnMut(&PerfEventAttr, Attach, Option<&CounterFd>) -> Result<CounterFd, OpenFailure>
{
}

/// Opens the counters of one part, not counting yet. When a member is refused, those before it are closed again.
pub(crate) fn open_part(
    spec: &GroupSpec,
    planned: &PlannedPart,
    mut open: impl Open,
) -> Result<Source, RefusedMember> {
    if spec.members.len() == 1 {
        return open_as(ReadPlan::Single, spec, planned, &mut open);
    }
    match open_as(ReadPlan::Snapshot, spec, planned, &mut open) {
        // Kernels before 4.13 refuse an inherited counter that reads its whole group
        // (`perf_event_alloc`, `kernel/events/core.c`).
        Err(refused)
            if refused.failure == OpenFailure::Errno(libc::EINVAL)
                && refused.member == 0
                && spec.attributes.inherit =>
        {
            open_as(ReadPlan::OneByOne, spec, planned, &mut open).map_err(|_| refused)
        }
        other => other,
    }
}

/// Opens the counters that a kernel group, whose leader reads all members, lacks of a part. When a member is refused, the
/// group is as it was.
pub(crate) fn extend_part(
    group: &mut KernelGroup,
    spec: &GroupSpec,
    planned: &PlannedPart,
    mut open: impl Open,
) -> Result<(), OpenFailure> {
    let fds = group.fds();
    let there = (fds.leader(), fds.len());
    let more = open_siblings(group.plan(), spec, planned, there, &mut open);
    group
        .add(more.map_err(|refused| refused.failure)?, planned.has_live())
        .map_err(OpenFailure::NoId)
}

fn open_as(
    plan: ReadPlan,
    spec: &GroupSpec,
    planned: &PlannedPart,
    open: &mut impl Open,
) -> Result<Source, RefusedMember> {
    let leader = open_member(plan, spec, planned, (0, None), open)?;
    let siblings = match plan {
        ReadPlan::Single => Vec::new(),
        ReadPlan::Snapshot | ReadPlan::OneByOne => {
            open_siblings(plan, spec, planned, (&leader, 1), open)?
        }
    };
    Source::new(plan, Fds::new(leader, siblings)).map_err(|errno| RefusedMember {
        member: 0,
        attr: Box::new(attr(
            &spec.members[0],
            planned.bits[0],
            spec.attributes,
            plan,
            true,
        )),
        attach: planned.attach,
        failure: OpenFailure::NoId(errno),
    })
}

/// Opens a member, by its position, under the leader if that is another one.
fn open_member(
    plan: ReadPlan,
    spec: &GroupSpec,
    planned: &PlannedPart,
    (member, leader): (usize, Option<&CounterFd>),
    open: &mut impl Open,
) -> Result<CounterFd, RefusedMember> {
    let (event, bits) = (&spec.members[member], planned.bits[member]);
    let mut attr = attr(event, bits, spec.attributes, plan, leader.is_none());
    let flags = attr.flags;
    let mut failure = OpenFailure::Errno(libc::EINVAL);
    for level in precise_levels(event.precision) {
        attr.flags = flags | AttrFlags::precise_ip(*level);
        match open(&attr, planned.attach, leader) {
            Ok(fd) => return Ok(fd),
            Err(refused) => failure = refused,
        }
    }
    Err(RefusedMember {
        member,
        attr: Box::new(attr),
        attach: planned.attach,
        failure,
    })
}

/// Opens the members behind the first ones, of which there are so many, under the leader.
fn open_siblings(
    plan: ReadPlan,
    spec: &GroupSpec,
    planned: &PlannedPart,
    (leader, there): (&CounterFd, usize),
    open: &mut impl Open,
) -> Result<Vec<CounterFd>, RefusedMember> {
    let attach = planned.attach;
    let group = leader;
    let mut siblings = Vec::with_capacity(spec.members.len() - there);
    for member in there..spec.members.len() {
        siblings.push(open_member(
            plan,
            spec,
            planned,
            (member, Some(leader)),
            open,
        )?);
    }
    if LEADERS_ARE_OVERLOOKED
        && let [leader, .., bits] = &*planned.bits
        && (leader.is_core_event() || planned.part.core.is_some())
        && !spec.attributes.enable_on_exec
    {
        let again = |event, bits: &EventBits| attr(event, *bits, spec.attributes, plan, false);
        let stand_in = again(&spec.members[0], leader);
        let last = spec.members.len() - 1;
        fits(&stand_in, attach, group, open).map_err(|failure| RefusedMember {
            member: last,
            attr: Box::new(again(&spec.members[last], bits)),
            attach,
            failure,
        })?;
    }
    Ok(siblings)
}

/// Checks that there is room for the leader, too: its event is a member for a moment, which the driver
/// does not skip.
pub(crate) fn fits(
    leader: &PerfEventAttr,
    attach: Attach,
    group: &CounterFd,
    open: &mut impl Open,
) -> Result<(), OpenFailure> {
    match open(leader, attach, Some(group)) {
        Err(failure) if failure == OpenFailure::Errno(libc::EINVAL) => Err(failure),
        _ => Ok(()),
    }
}

/// The values of `precise_ip` to try, in order.
pub(crate) fn precise_levels(precision: Precision) -> &'static [u8] {
    match precision {
        Precision::Any => &[0],
        Precision::Constant => &[1],
        Precision::RequestedZero => &[2],
        Precision::RequiredZero => &[3],
        Precision::Best => &[3, 2, 1, 0],
    }
}

/// Refuses attributes that contradict each other, which the kernel answers with EINVAL alone.
pub(crate) fn check(attributes: Attributes, attempted: &str) -> Result<(), Error> {
    let contradiction = match attributes {
        Attributes {
            inherit_thread: true,
            inherit: false,
            ..
        } => "inherit_thread says what inherit follows: set that too",
        Attributes {
            remove_on_exec: true,
            enable_on_exec: true,
            ..
        } => "it cannot be both enabled and removed when a program is executed",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidConfiguration, attempted).with_reason(contradiction))
}

/// Returns the flags that say which tasks are counted.
pub(crate) fn following(attributes: Attributes) -> AttrFlags {
    let mut flags = AttrFlags::empty();
    flags.set(AttrFlags::INHERIT, attributes.inherit);
    flags.set(AttrFlags::INHERIT_THREAD, attributes.inherit_thread);
    flags.set(AttrFlags::REMOVE_ON_EXEC, attributes.remove_on_exec);
    flags
}

/// The attr of one member. The leader starts disabled, so that no member counts before all are
/// there; what schedules the group as a whole is the leader's alone.
fn attr(
    event: &EventSpec,
    bits: EventBits,
    attributes: Attributes,
    plan: ReadPlan,
    leader: bool,
) -> PerfEventAttr {
    let mut flags = exclusions(event.filter);
    flags |= following(attributes);
    if leader {
        flags |= AttrFlags::DISABLED;
        flags.set(AttrFlags::PINNED, attributes.pinned);
        flags.set(AttrFlags::EXCLUSIVE, attributes.exclusive);
        flags.set(AttrFlags::ENABLE_ON_EXEC, attributes.enable_on_exec);
    }
    let mut attr = PerfEventAttr {
        read_format: plan.format(),
        flags,
        ..bits.attr()
    };
    overflow::request(&mut attr, event);
    attr
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{Hardware, Part, Software};

    fn part<const N: usize>(bits: [EventBits; N]) -> PlannedPart {
        PlannedPart {
            attach: Attach::thread(0),
            part: Part::whole(),
            bits: bits.into_iter().collect(),
        }
    }

    fn two() -> (GroupSpec, PlannedPart) {
        let clock = EventBits::software(Software::TaskClock);
        let faults = EventBits::software(Software::PageFaults);
        let spec = GroupSpec::new([Software::TaskClock, Software::PageFaults]);
        (spec, part([clock, faults]))
    }

    fn some_fd() -> CounterFd {
        CounterFd::new(
            std::fs::File::open("/dev/null")
                .expect("it is there")
                .into(),
        )
    }

    #[test]
    fn scheduling_is_asked_of_the_leader_only() {
        let (mut spec, part) = two();
        spec.attributes = Attributes::default()
            .with_inherit(true)
            .with_pinned(true)
            .with_exclusive(true)
            .with_enable_on_exec(true)
            .with_disabled(false);
        let mut seen = Vec::new();
        // The second is refused, which ends it before the ids are asked for.
        let refused = open_part(&spec, &part, |attr, _, leader| {
            seen.push((attr.flags, leader.is_some()));
            if leader.is_some() {
                return Err(OpenFailure::Errno(libc::ENOSPC));
            }
            Ok(some_fd())
        })
        .expect_err("the second was refused");
        assert_eq!(refused.member, 1);
        let common = AttrFlags::INHERIT;
        let leaders = AttrFlags::DISABLED
            | AttrFlags::PINNED
            | AttrFlags::EXCLUSIVE
            | AttrFlags::ENABLE_ON_EXEC;
        assert_eq!(seen, [(common | leaders, false), (common, true)]);
    }

    #[test]
    fn members_are_read_one_by_one_where_the_kernel_has_no_inherited_group_read() {
        let (mut spec, part) = two();
        let old_kernel = |attr: &PerfEventAttr, _: Attach, _: Option<&CounterFd>| {
            let group = attr.read_format.contains(crate::sys::ReadFormat::GROUP);
            if group && attr.flags.contains(AttrFlags::INHERIT) {
                return Err(OpenFailure::Errno(libc::EINVAL));
            }
            Ok(some_fd())
        };
        spec.attributes.inherit = true;
        let opened = open_part(&spec, &part, old_kernel).expect("opened one by one");
        assert_eq!(KernelGroup::new(opened, false).plan(), ReadPlan::OneByOne);
        // Refused either way, it says what the first try said.
        let refused = open_part(&spec, &part, |_, _, _| {
            Err(OpenFailure::Errno(libc::EINVAL))
        })
        .expect_err("refused");
        assert_eq!(refused.attr.read_format, ReadPlan::Snapshot.format());
    }

    #[test]
    fn a_leader_for_which_there_is_no_room_is_refused_and_other_trouble_is_not() {
        let leader = PerfEventAttr::default();
        let refused = |errno| {
            let mut open = |_: &PerfEventAttr, _: Attach, group: Option<&CounterFd>| {
                assert!(group.is_some(), "it stands in as a member");
                Err(OpenFailure::Errno(errno))
            };
            fits(&leader, Attach::thread(0), &some_fd(), &mut open).is_err()
        };
        assert!(refused(libc::EINVAL));
        assert!(!refused(libc::EMFILE));
    }

    #[test]
    fn the_best_precision_is_the_first_that_opens() {
        let event = EventSpec::new(Hardware::Cycles).with_precision(Precision::Best);
        let part = part([EventBits::hardware(Hardware::Cycles)]);
        let mut tried = Vec::new();
        open_part(&GroupSpec::single(event), &part, |attr, _, _| {
            tried.push(attr.flags - AttrFlags::DISABLED);
            if tried.len() < 3 {
                return Err(OpenFailure::Errno(libc::EOPNOTSUPP));
            }
            Ok(some_fd())
        })
        .expect("the third opens");
        assert_eq!(tried, [3, 2, 1].map(AttrFlags::precise_ip));
    }
}
