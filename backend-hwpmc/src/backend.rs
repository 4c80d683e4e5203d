//! The backend: the targets and requests that it accepts, and the reasons for refusing others.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use quipu_hal::{
    Attributes, Backend, Capabilities, Error, ErrorKind, EventMap, EventSpec, Features, Filter,
    Group, GroupSpec, Part, Result, Simultaneity, Target, TargetKinds,
};

use crate::abi::{AMD_CORE_COUNTERS, Class, FIRST_INTEL, FIRST_OTHER, MAJORS, WITHOUT_COUNTERS};
use crate::driver::{Driver, Held, Machine, Request, State};
use crate::events::{self, Countable};
use crate::group::{Counters, HwpmcGroup, Subject};
use crate::watch::Watch;

/// The pauses for other threads of this process, before counting the calling one is refused.
const PAUSES: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// The targets that are CPUs.
const CPUS: TargetKinds = TargetKinds::CURRENT_CPU
    .union(TargetKinds::CPU)
    .union(TargetKinds::ALL_CPUS);

/// The bits of counters that do not wrap within hours.
pub(crate) const WIDTH: u32 = 48;

/// Counts with hwpmc(4), as any user.
///
/// - [`Target::Process`], and [`Target::Thread`] with the id of a process: all its threads, those it makes later too; with
///   [`inherit`](Attributes::inherit) also its children.
/// - [`Target::CurrentThread`]: this process, as long as no other thread of it runs; then it is refused to be read.
/// - [`Target::CurrentCpu`], [`Cpu`](Target::Cpu), [`Cpus`](Target::Cpus) and [`AllCpus`](Target::AllCpus): whatever runs there; for root, unless
///   `sysctl security.bsd.unprivileged_syspmcs` allows it.
///
/// The driver does not count the first turn of a new thread or process, and reports of a process that runs elsewhere what it
/// had counted when it was last switched from. Such a count is [at least](quipu_hal::Count::AtLeast) so much. It is exact if
///
/// - no child that is counted is made, and the process has one thread, from opening to reading; or it is this process, and
///   other threads than the calling one sleep all the while; and
/// - the process is this one, or sleeps when counting begins, and sleeps or has ended when it is read. One that has ended is
///   read before it is waited for: later it is not known what it had made.
///
/// Counters do not take turns: a group for which there is no room is refused.
pub struct HwpmcBackend<D: Driver> {
    driver: Arc<D>,
    machine: Machine,
    classes: Vec<Class>,
    /// True if Intel's programmable counters keep large values of processes; set when first asked.
    keeps_values: OnceLock<bool>,
    events: Arc<dyn EventMap>,
    capabilities: Capabilities,
}

impl<D: Driver> HwpmcBackend<D> {
    /// Creates the backend over a driver, with the events of the machine's CPU.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) if the driver has no counters for this CPU;
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if it is of an unknown version, or would stop the kernel.
    pub fn new(driver: D, events: Arc<dyn EventMap>) -> Result<Self> {
        let attempted = "count with hwpmc(4)";
        let refused = |kind, reason: String| Err(Error::new(kind, attempted).with_reason(reason));
        let failed = |errno| os_error(attempted, errno);
        let version = driver.version().map_err(failed)?;
        if !MAJORS.contains(&(version >> 24)) {
            return refused(
                ErrorKind::UnsupportedFeature,
                format!(
                    "its version is {}.{}, and those of FreeBSD 12 to 15 are known: 9 and 10",
                    version >> 24,
                    version >> 16 & 0xff
                ),
            );
        }
        let machine = driver.machine().map_err(failed)?;
        if machine.cpu_type >= FIRST_OTHER && machine.cpu_type != WITHOUT_COUNTERS {
            return refused(
                ErrorKind::UnsupportedFeature,
                "the counters of x86 are known, and this is another CPU".to_owned(),
            );
        }
        let known = [Class::INTEL_FIXED, Class::INTEL, Class::AMD];
        let of = |class| {
            let known = machine.classes.iter().find(|known| known.class == class);
            known.map_or((0, 0), |known| (known.counters as usize, known.width))
        };
        let classes: Vec<Class> = known.into_iter().filter(|&class| of(class).0 > 0).collect();
        if classes.iter().all(|&class| class == Class::INTEL_FIXED) {
            return refused(
                ErrorKind::NoSuchDevice,
                "the driver has found no counters on this CPU".to_owned(),
            );
        }
        if let Some(&narrow) = classes.iter().find(|&&class| of(class).1 < WIDTH) {
            return refused(
                ErrorKind::UnsupportedFeature,
                format!(
                    "this CPU has counters of {} bits, which wrap within minutes, and the driver does not notice",
                    of(narrow).1
                ),
            );
        }
        if machine.cpu_type < FIRST_INTEL && !machine.has_amd_extended_counters {
            return refused(
                ErrorKind::UnsupportedFeature,
                "this CPU has four counters at most (CPUID has no PerfCtrExtCore); the driver takes six and stops the \
                 kernel"
                    .to_owned(),
            );
        }
        let mut capabilities = Capabilities::none();
        capabilities.targets =
            TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
        if may_count_cpus(&driver, &classes) {
            capabilities.targets |= CPUS;
        }
        capabilities.features = Features::HARDWARE_EVENTS;
        capabilities.filters = Filter::USER | Filter::KERNEL;
        capabilities.simultaneity = Simultaneity::Sequential;
        // AMD's number has the counters of the caches and of the memory too (`hwpmc_amd.h`).
        let amd = of(Class::AMD).0.min(AMD_CORE_COUNTERS);
        capabilities.slots = Some(of(Class::INTEL).0 + amd);
        Ok(Self {
            driver: Arc::new(driver),
            machine,
            classes,
            keeps_values: OnceLock::new(),
            events,
            capabilities,
        })
    }

    /// Returns the driver.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    pub(crate) fn shared_driver(&self) -> &Arc<D> {
        &self.driver
    }

    pub(crate) fn resolve(&self, member: &EventSpec) -> Result<Countable> {
        let software = || {
            let events = self.driver.software_events();
            events.map_err(|errno| os_error("list the kernel's own events", errno))
        };
        events::resolve(&*self.events, member, &self.classes, software)
    }

    /// Opens a group of counters on a target, as [`Backend::open`] does, with its own type.
    ///
    /// # Errors
    /// As [`Backend::open`].
    pub fn open_group(&self, spec: &GroupSpec, target: &Target) -> Result<HwpmcGroup<D>> {
        let attempted = || match spec.members.first() {
            Some(leader) if spec.members.len() == 1 => format!("open {leader} on {target}"),
            _ => format!("open a group on {target}"),
        };
        if spec.members.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidConfiguration,
                "open a group without events",
            ));
        }
        if let Some(reason) = refused_attribute(&spec.attributes) {
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted()).with_reason(reason));
        }
        let mut members = Vec::with_capacity(spec.members.len());
        for (index, member) in spec.members.iter().enumerate() {
            let member = self.resolve(member);
            members.push(member.map_err(|error| error.with_member(index))?);
        }
        let place = self
            .place(target, &spec.attributes)
            .map_err(|(kind, reason)| Error::new(kind, attempted()).with_reason(reason))?;
        if matches!(place, Place::Process { .. }) {
            self.leave_out_what_loses_values(spec, &mut members)?;
        }
        let mut group = self.take(spec, &members, &place, target)?;
        if !spec.attributes.disabled || spec.attributes.enable_on_exec {
            group.enable()?;
        }
        Ok(group)
    }

    /// Returns what a target is to the driver.
    pub(crate) fn place(
        &self,
        target: &Target,
        attributes: &Attributes,
    ) -> Result<Place, Rejection> {
        let cpus = |cpus: Vec<u32>| match cpus.iter().find(|&&cpu| cpu >= self.machine.cpus) {
            Some(cpu) => Err((ErrorKind::NoSuchTarget, format!("there is no CPU {cpu}"))),
            None if cpus.is_empty() => {
                Err((ErrorKind::InvalidConfiguration, "it has no CPUs".to_owned()))
            }
            None if attributes.inherit || attributes.enable_on_exec => Err((
                ErrorKind::UnsupportedFeature,
                "a CPU has neither children nor programs".to_owned(),
            )),
            None => {
                let mut once = Vec::with_capacity(cpus.len());
                for cpu in cpus {
                    if !once.contains(&cpu) {
                        once.push(cpu);
                    }
                }
                Ok(Place::Cpus(once))
            }
        };
        let own = self.driver.own_pid();
        match target {
            Target::CurrentThread | Target::Process(_) | Target::Thread(_)
                if attributes.enable_on_exec
                    && !matches!(target, Target::Process(pid) | Target::Thread(pid) if *pid != own) =>
            {
                Err((
                    ErrorKind::UnsupportedFeature,
                    "hwpmc(4) starts counting a command before it executes its program, and not this process"
                        .to_owned(),
                ))
            }
            Target::CurrentThread if attributes.inherit || attributes.inherit_thread => Err((
                ErrorKind::UnsupportedFeature,
                "hwpmc(4) does not count the first turns of the threads that this one makes; count the process".to_owned(),
            )),
            Target::CurrentThread => Ok(Place::Process {
                pid: own,
                as_thread: true,
            }),
            // The driver takes 0 for this process.
            Target::Process(pid) | Target::Thread(pid) if *pid < 1 => {
                Err((ErrorKind::NoSuchTarget, "ids are 1 or more".to_owned()))
            }
            Target::Process(pid) | Target::Thread(pid) => Ok(Place::Process {
                pid: *pid,
                as_thread: false,
            }),
            Target::CurrentCpu => match self.driver.current_cpu() {
                Ok(cpu) => cpus(vec![cpu]),
                Err(errno) => Err((ErrorKind::Os, errno.desc().to_owned())),
            },
            Target::Cpu(cpu) => cpus(vec![*cpu]),
            Target::Cpus(several) => cpus(several.clone()),
            Target::AllCpus => cpus((0..self.machine.cpus).collect()),
            _ => Err((
                ErrorKind::UnsupportedFeature,
                "hwpmc(4) counts processes and CPUs".to_owned(),
            )),
        }
    }

    /// Leaves out requests for counters that do not keep large values of a process.
    fn leave_out_what_loses_values(
        &self,
        spec: &GroupSpec,
        members: &mut [Countable],
    ) -> Result<()> {
        let is_lost = |request: &Request| request.class == Class::INTEL;
        if !members
            .iter()
            .flat_map(|member| &member.requests)
            .any(is_lost)
            || self.keeps_values_of_processes()
        {
            return Ok(());
        }
        for (index, member) in members.iter_mut().enumerate() {
            member.requests.retain(|request| !is_lost(request));
            if member.requests.is_empty() {
                let asked = &spec.members[index];
                return Err(Error::new(ErrorKind::UnsupportedFeature, format!("count {asked}"))
                    .with_reason(
                        "the programmable counters of this CPU take 32 bits, and the driver writes them at each switch \
                         of a process",
                    )
                    .with_hint("count a whole CPU, or what fixed counters count: instructions and cycles")
                    .with_member(index));
            }
        }
        Ok(())
    }

    /// Returns true if Intel's programmable counters keep large values of a process. The driver writes the value whenever a
    /// thread is switched to; without full-width writes a counter takes 32 bits and extends their sign (Intel SDM,
    /// "Full-Width Writes to Performance Counter Registers").
    fn keeps_values_of_processes(&self) -> bool {
        const LARGE: u64 = 1 << 40;
        if let Some(known) = self.keeps_values.get() {
            return *known;
        }
        let driver = &*self.driver;
        let mut counters = Counters::new(Arc::clone(&self.driver));
        let (any, on) = ([events::any(Class::INTEL, None)], Some(driver.own_pid()));
        let taken = self.take_counter(&mut counters, &any, (None, on), false);
        let (Ok(()), &[id, ..]) = (taken, counters.ids()) else {
            // If there is no counter to try, there is none to count with.
            return true;
        };
        let value = driver
            .set(id, LARGE)
            .and_then(|()| driver.start(id))
            .and_then(|()| driver.read(id));
        let keeps = value.is_ok_and(|value| (LARGE..2 * LARGE).contains(&value));
        *self.keeps_values.get_or_init(|| keeps)
    }

    /// Takes the counters of a group, or none.
    fn take(
        &self,
        spec: &GroupSpec,
        members: &[Countable],
        place: &Place,
        target: &Target,
    ) -> Result<HwpmcGroup<D>> {
        let driver = &*self.driver;
        let descendants = with_children(&spec.attributes);
        let (parts, subject) = match place {
            Place::Cpus(cpus) => (
                cpus.iter().map(|&cpu| Part::on_cpu(cpu)).collect(),
                Subject::Cpus,
            ),
            Place::Process { pid, as_thread } => {
                if spec.attributes.enable_on_exec {
                    self.wait_until_asleep(*pid);
                }
                let begin = || {
                    Watch::begin(driver, *pid, descendants).map_err(|errno| {
                        self.refusal(errno, &spec.members[0], target).with_member(0)
                    })
                };
                let mut watch = begin()?;
                for _ in 0..PAUSES {
                    if !as_thread || !watch.others_ran() {
                        break;
                    }
                    // Threads that are about to end or to wait get to it.
                    thread::sleep(PAUSE);
                    watch = begin()?;
                }
                if *as_thread && watch.others_ran() {
                    return Err(Error::new(
                        ErrorKind::UnsupportedFeature,
                        format!("count on {target}"),
                    )
                    .with_reason("hwpmc(4) counts processes, and other threads of this one run")
                    .with_hint("count the process"));
                }
                let subject = match as_thread {
                    true => Subject::Thread(watch),
                    false => Subject::Process(watch),
                };
                (vec![Part::whole()], subject)
            }
        };
        let pid = match place {
            Place::Process { pid, .. } => Some(*pid),
            Place::Cpus(_) => None,
        };
        let mut counters = Counters::new(Arc::clone(&self.driver));
        for part in &parts {
            for (index, member) in members.iter().enumerate() {
                let asked = &spec.members[index];
                let on = (part.cpu, pid);
                let outcome = self.take_counter(&mut counters, &member.requests, on, descendants);
                outcome
                    .map_err(|errno| self.not_taken(errno, asked, target, &members[..=index]))?;
            }
        }
        for &id in counters.ids() {
            let started = driver.start(id);
            started.map_err(|errno| self.refusal(errno, &spec.members[0], target))?;
        }
        let infos = members.iter().map(|member| member.info.clone()).collect();
        Ok(HwpmcGroup::new(counters, subject, infos, parts))
    }

    /// Waits until a process sleeps that is about to wait before it executes a program.
    pub(crate) fn wait_until_asleep(&self, pid: i32) {
        const PATIENCE: Duration = Duration::from_millis(500);
        const INTERVAL: Duration = Duration::from_micros(100);
        let begun = Instant::now();
        let runs = || {
            let task = self.driver.process(pid);
            task.is_ok_and(|task| task.state == State::Running)
        };
        while runs() && begun.elapsed() < PATIENCE {
            thread::sleep(INTERVAL);
        }
    }

    /// Takes a counter of a CPU, or one that is attached to a process. The driver gives the first that is free to this process, also
    /// where another program counts that process with it; while it is held the next is given.
    pub(crate) fn take_counter(
        &self,
        counters: &mut Counters<D>,
        requests: &[Request],
        (cpu, pid): (Option<u32>, Option<i32>),
        descendants: bool,
    ) -> Result<(), Errno> {
        let mut refused = Errno::EINVAL;
        let mut of_others = Counters::new(Arc::clone(&self.driver));
        for request in requests {
            let mut request = *request;
            (request.cpu, request.descendants) = (cpu, descendants);
            loop {
                let id = match self.driver.allocate(&request) {
                    Ok(id) => id,
                    Err(errno) if of_others.ids().is_empty() => {
                        refused = errno;
                        break;
                    }
                    Err(_) => break,
                };
                match pid.map_or(Ok(()), |pid| self.driver.attach(id, pid)) {
                    Ok(()) => {
                        counters.push(id);
                        return Ok(());
                    }
                    Err(errno) => {
                        of_others.push(id);
                        refused = errno;
                    }
                }
                if refused != Errno::EBUSY {
                    return Err(refused);
                }
            }
        }
        Err(refused)
    }

    /// Returns the refusal of the last of some members, which has got no counter.
    pub(crate) fn not_taken(
        &self,
        errno: Errno,
        asked: &EventSpec,
        target: &Target,
        members: &[Countable],
    ) -> Error {
        let no_room = [Errno::EINVAL, Errno::EEXIST, Errno::ENOMEM];
        match no_room.contains(&errno) {
            true => self.no_room(asked, target, members, errno),
            false => self.refusal(errno, asked, target),
        }
        .with_member(members.len().saturating_sub(1))
    }

    /// Returns the refusal of a member for which there is no counter. The driver does not say whether another has it:
    /// where the members before it may have taken them all, there are too many.
    fn no_room(
        &self,
        asked: &EventSpec,
        target: &Target,
        members: &[Countable],
        errno: Errno,
    ) -> Error {
        let attempted = format!("open {asked} on {target}");
        let names: Vec<&str> = members.iter().map(|member| &*member.info.name).collect();
        match names.as_slice() {
            [name, before @ .., _] => {
                let before = before
                    .iter()
                    .fold((*name).to_owned(), |all, name| all + ", " + name);
                Error::new(ErrorKind::TooManyEvents, attempted)
                    .with_reason(format!(
                        "no counter that counts it is left beside those of {before}"
                    ))
                    .with_hint(
                        "count fewer events at the same time: counters do not take turns here",
                    )
            }
            _ => Error::new(ErrorKind::Busy, attempted).with_reason(format!(
                "no counter that counts it is free: {}",
                self.holders(target)
            )),
        }
        .with_errno(errno as i32)
    }

    /// Returns who has counters that a target could have had, as far as the driver reports it.
    fn holders(&self, target: &Target) -> String {
        let rows = (0..self.machine.cpus).filter_map(|cpu| self.driver.rows(cpu).ok());
        let held: Vec<Held> = rows.flatten().map(|row| row.held).collect();
        let own = self.driver.own_pid();
        let other = held.iter().find_map(|held| match held {
            Held::ForCpus { owner: Some(pid) } if *pid != own => Some(*pid),
            _ => None,
        });
        match other {
            Some(pid) => format!("process {pid} counts CPUs with them"),
            None if CPUS.contains(target.kind()) && held.contains(&Held::ForProcesses) => {
                "processes are counted with them, and no CPU at the same time".to_owned()
            }
            None => "other groups of this process have them".to_owned(),
        }
    }

    pub(crate) fn refusal(&self, errno: Errno, asked: &dyn fmt::Display, target: &Target) -> Error {
        let attempted = format!("open {asked} on {target}");
        match (errno, target.kind()) {
            (Errno::EPERM | Errno::EACCES, kind) if CPUS.contains(kind) => {
                Error::new(ErrorKind::NoPermission, attempted)
                    .with_reason("counting whole CPUs is for root")
                    .with_hint(
                        "as root: sysctl security.bsd.unprivileged_syspmcs=1, or run it as root",
                    )
            }
            (Errno::EPERM | Errno::EACCES, _) => Error::new(ErrorKind::NoPermission, attempted)
                .with_reason("the process is another user's, or may not be debugged")
                .with_hint("run it as root or as that user"),
            (Errno::ESRCH, _) => {
                Error::new(ErrorKind::NoSuchTarget, attempted).with_reason("no such process")
            }
            (Errno::EBUSY, _) => Error::new(ErrorKind::Busy, attempted)
                .with_reason("other programs count the process with all counters that count it"),
            _ => os_error(&attempted, errno),
        }
        .with_errno(errno as i32)
    }
}

/// Returns true unless whole CPUs are for another user.
fn may_count_cpus(driver: &impl Driver, classes: &[Class]) -> bool {
    let general = classes.iter().find(|&&class| class != Class::INTEL_FIXED);
    let taken = general.map(|class| driver.allocate(&events::any(*class, Some(0))));
    if let Some(Ok(id)) = taken {
        // It has counted nothing.
        let _ = driver.release(id);
    }
    !matches!(taken, Some(Err(Errno::EPERM | Errno::EACCES)))
}

/// A target as the driver has it.
pub(crate) enum Place {
    Process {
        pid: i32,
        /// True if the process stands for the calling thread.
        as_thread: bool,
    },
    Cpus(Vec<u32>),
}

/// The kind and the reason of an error.
type Rejection = (ErrorKind, String);

/// Returns true if the children of a process are counted and sampled with it.
pub(crate) fn with_children(attributes: &Attributes) -> bool {
    attributes.inherit && !attributes.inherit_thread
}

pub(crate) fn refused_attribute(attributes: &Attributes) -> Option<&'static str> {
    if attributes.pinned {
        Some("a group has its counters from opening to closing here, or is refused")
    } else if attributes.exclusive {
        Some("hwpmc(4) has no exclusive mode")
    } else if attributes.remove_on_exec {
        Some("hwpmc(4) goes on counting after execve(2)")
    } else {
        None
    }
}

pub(crate) fn os_error(attempted: &str, errno: Errno) -> Error {
    Error::new(ErrorKind::Os, attempted).with_errno(errno as i32)
}

impl<D: Driver> Backend for HwpmcBackend<D> {
    fn name(&self) -> &'static str {
        "hwpmc"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(self.open_group(spec, target)?))
    }
}
