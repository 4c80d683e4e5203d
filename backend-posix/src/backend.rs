//! The backend: the targets and requests that it accepts, and the reasons for refusing others.

use quipu_hal::{
    Attributes, Backend, Capabilities, Error, ErrorKind, EventSpec, Features, Filter, Group,
    GroupSpec, Precision, Result, Simultaneity, Target, TargetKinds,
};

use crate::events::Quantity;
use crate::group::PosixGroup;
use crate::meter::Scope;
use crate::process_counts;
use crate::sys;

/// Counts software events with getrusage(2) and clock_gettime(2).
///
/// - [`Target::CurrentThread`]: this thread. On NetBSD, DragonFly and macOS only its clocks: their
///   getrusage(2) knows no threads.
/// - [`Target::Process`] with this process's id: all its threads, those it makes later too; with
///   [`inherit`](Attributes::inherit) also each child, from the moment it was waited for.
/// - [`Target::Process`] or [`Target::Thread`] with the id of a child, and `inherit`: the child and those it has waited
///   for, from fork to end, as wait4(2) reports them. It has a value once it has been waited for, by
///   whatever call; until then it reads as not counted. What other children used that were
///   waited for in the same span is in it too. It cannot be disabled or reset before it has ended.
///
/// macOS 13 and later have counts of the CPU's counters too, from [`Quantity::Instructions`] on, of this process and of
/// children. The kernel has those of a child until it is waited for: they are known if the group was read between its end and that, and
/// are those of the child alone, at least so much where it has waited for children of its own.
///
/// Counters never wait for a turn, so time running always equals time enabled. Both are CPU time:
/// they stand still while the target sleeps.
///
/// ```
/// use quipu_hal::{Backend, GroupSpec, Software, Target};
/// use quipu_posix::PosixBackend;
///
/// let backend = PosixBackend::new();
/// let spec = GroupSpec::new([Software::TaskClock, Software::PageFaults]);
/// let me = Target::Process(std::process::id() as i32);
/// let mut group = backend.open(&spec, &me)?;
/// let mut counts = group.read_buf();
/// let pages = vec![1u8; 64 << 12];
/// group.read(&mut counts)?;
/// println!("{} faults for {} bytes", counts[0][1].value, pages.len());
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PosixBackend {
    capabilities: Capabilities,
}

impl PosixBackend {
    /// Creates the backend. It holds no resource and works on any POSIX system.
    pub fn new() -> Self {
        let mut capabilities = Capabilities::none();
        capabilities.targets = TargetKinds::CURRENT_THREAD | TargetKinds::PROCESS;
        capabilities.features = Features::SOFTWARE_EVENTS | Features::PINNED;
        capabilities.filters = Filter::empty();
        capabilities.simultaneity = Simultaneity::Atomic;
        Self { capabilities }
    }

    /// Opens a group of counters on a target, as [`Backend::open`] does, with its own type.
    ///
    /// # Errors
    /// As [`Backend::open`].
    pub fn open_group(&self, spec: &GroupSpec, target: &Target) -> Result<PosixGroup> {
        let Some(leader) = spec.members.first() else {
            return Err(Error::new(
                ErrorKind::InvalidConfiguration,
                "open a group without events",
            ));
        };
        let mut quantities = Vec::with_capacity(spec.members.len());
        for (index, member) in spec.members.iter().enumerate() {
            let quantity = quantity(member)
                .map_err(|refused| opening(member, target, refused).with_member(index))?;
            quantities.push(quantity);
        }
        let source = usage_source(target, &spec.attributes)
            .map_err(|refused| opening(leader, target, refused).with_member(0))?;
        for (index, quantity) in quantities.iter().enumerate() {
            if let Err(reason) = source.can_tell(*quantity) {
                let refused = (ErrorKind::UnsupportedFeature, reason);
                return Err(opening(&spec.members[index], target, refused).with_member(index));
            }
        }
        let counts = !spec.attributes.disabled || spec.attributes.enable_on_exec;
        match source {
            UsageSource::Own(scope) => PosixGroup::of_own(quantities, scope, counts),
            UsageSource::Child(pid) => PosixGroup::of_child(quantities, pid, counts),
        }
    }
}

impl Default for PosixBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for PosixBackend {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(self.open_group(spec, target)?))
    }
}

/// The kind and the reason of an error.
type Rejection = (ErrorKind, &'static str);

fn opening(member: &EventSpec, target: &Target, (kind, reason): Rejection) -> Error {
    Error::new(kind, format!("open {member} on {target}")).with_reason(reason)
}

/// The source of the usage of a target.
enum UsageSource {
    Own(Scope),
    Child(i32),
}

impl UsageSource {
    fn can_tell(&self, quantity: Quantity) -> Result<(), &'static str> {
        match self {
            Self::Own(Scope::Thread) if !sys::HAS_THREAD_USAGE && quantity.is_from_rusage() => {
                Err("getrusage(2) of this system reports whole processes only")
            }
            Self::Own(Scope::Thread) if quantity == Quantity::PeakMemory => {
                Err("memory belongs to a process, not to a thread")
            }
            Self::Child(_) if quantity == Quantity::WallTime => Err(
                "the system does not report when a child ended; take the time around waiting for it",
            ),
            _ if quantity.is_of_counters() => {
                process_counts::can_count(quantity)?;
                self.has_counts(quantity)
            }
            _ => Ok(()),
        }
    }

    /// Returns the reason if what the kernel counts with the CPU's counters does not tell a quantity of this.
    fn has_counts(&self, quantity: Quantity) -> Result<(), &'static str> {
        match self {
            Self::Own(Scope::Thread) => Err("proc_pid_rusage(2) reports whole processes only"),
            Self::Own(Scope::ProcessAndChildren) => {
                Err("proc_pid_rusage(2) does not add up a process and its children")
            }
            Self::Own(Scope::Process) if quantity.is_energy() => Err(
                "the kernel adds it up when a thread leaves its CPU, so that a part of a process has that of others",
            ),
            Self::Own(Scope::Process) | Self::Child(_) => Ok(()),
        }
    }
}

fn usage_source(target: &Target, attributes: &Attributes) -> Result<UsageSource, Rejection> {
    let unsupported = |reason| Err((ErrorKind::UnsupportedFeature, reason));
    if attributes.exclusive {
        return unsupported("exclusive mode is not supported");
    }
    if attributes.inherit_thread {
        return unsupported("getrusage(2) adds up processes, not some threads of one");
    }
    if attributes.remove_on_exec {
        return unsupported("counting cannot end at execve(2) here");
    }
    let source = match *target {
        Target::CurrentThread if attributes.inherit => {
            return unsupported("getrusage(2) does not add up a thread and those it makes");
        }
        Target::CurrentThread => UsageSource::Own(Scope::Thread),
        Target::Process(pid) if i64::from(pid) == i64::from(std::process::id()) => {
            UsageSource::Own(if attributes.inherit {
                Scope::ProcessAndChildren
            } else {
                Scope::Process
            })
        }
        // A child is known by its main thread just as well.
        Target::Process(pid) | Target::Thread(pid) => return child(pid, attributes),
        _ => {
            return unsupported(
                "getrusage(2) reports this thread, this process and its children only",
            );
        }
    };
    if attributes.enable_on_exec {
        return unsupported("counting cannot start at execve(2) here, only when opened");
    }
    Ok(source)
}

fn child(pid: i32, attributes: &Attributes) -> Result<UsageSource, Rejection> {
    match sys::is_unwaited_child(pid) {
        Ok(true) if attributes.inherit => Ok(UsageSource::Child(pid)),
        Ok(true) => Err((
            ErrorKind::UnsupportedFeature,
            "wait4(2) adds up a child and those it has waited for; ask with inherit",
        )),
        _ if sys::process_exists(pid) => Err((
            ErrorKind::UnsupportedFeature,
            "getrusage(2) reports this process and its children only",
        )),
        _ => Err((ErrorKind::NoSuchTarget, "no such process")),
    }
}

/// The quantity a member asks for, if it can be had as it is asked for.
fn quantity(member: &EventSpec) -> Result<Quantity, Rejection> {
    let Some(quantity) = Quantity::of(&member.event) else {
        return Err((
            ErrorKind::UnsupportedEvent,
            "getrusage(2) and clock_gettime(2) do not report it",
        ));
    };
    if member.precision != Precision::Any {
        return Err((
            ErrorKind::UnsupportedFeature,
            "precision is a matter of hardware events",
        ));
    }
    if member.overflow.is_some() {
        return Err((
            ErrorKind::UnsupportedFeature,
            "what is only read sends no signal for overflows",
        ));
    }
    let where_it_counts = quantity
        .info()
        .occurs_in
        .difference(Filter::HYPERVISOR)
        .union(Filter::WORLDS);
    if !quantity.is_clock() && !member.filter.contains(where_it_counts) {
        return Err((
            ErrorKind::UnsupportedFeature,
            "the system does not split it by privilege level",
        ));
    }
    Ok(quantity)
}
