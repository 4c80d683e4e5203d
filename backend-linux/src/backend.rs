//! The backend: opening groups on targets.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
#[cfg(feature = "names")]
use std::sync::Arc;
use std::sync::OnceLock;

#[cfg(feature = "names")]
use quipu_hal::EventMap;
use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, EventInfo, EventSpec, Features, Group, GroupSpec,
    MaxRate, Part, Result, Target,
};

#[cfg(feature = "names")]
use crate::condition;
use crate::counter_test::{self, CounterTest};
use crate::event_source::{EventSource, Resolved};
use crate::group::LinuxGroup;
use crate::kernel_group::KernelGroup;
#[cfg(feature = "names")]
use crate::native::NativeNames;
use crate::open::{event_attr, exclusions, extend_part, open_part};
use crate::open_error;
use crate::parts::{Attachment, Placement, PlannedPart, plan};
use crate::rates::Rates;
use crate::read::{KnownPages, Obstacle};
use crate::sys::{AttrFlags, OpenFailure, PerfEventAttr, ReadFormat, perf_event_open};
use crate::sysfs::SysfsPmus;
#[cfg(feature = "names")]
use crate::traced_probe::make_inheritable;
use crate::{capabilities, overflow, targets};

/// The most listings of the threads of a process until no new one appears.
const MOST_LISTINGS: usize = 100;

/// Counting with perf_event_open(2).
///
/// Cheap to make: events and targets are looked up when a group is opened.
///
/// ```
/// use quipu_hal::{Backend, EventSpec, Filter, GroupSpec, Software, Target};
/// use quipu_linux::LinuxBackend;
///
/// match LinuxBackend::new() {
///     Ok(backend) => {
///         let clock = EventSpec::new(Software::TaskClock).with_filter(Filter::USER_ONLY);
///         let group = backend.open(&GroupSpec::single(clock), &Target::CurrentThread);
///         println!("{} counts in {} part", backend.name(), group.unwrap().parts().len());
///     }
///     Err(error) => println!("{error:#}"),
/// }
/// ```
pub struct LinuxBackend {
    pub(crate) events: EventSource,
    rates: Rates,
    capabilities: OnceLock<Capabilities>,
    user_reads: bool,
    known_pages: KnownPages,
    counter_test: bool,
}

impl LinuxBackend {
    /// The backend for this machine.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the kernel was built without perf_event_open;
    /// [`NoPermission`](ErrorKind::NoPermission) when this process may not even count its own user
    /// mode, with the reason: the setting of the kernel, or a filter of the sandbox it runs in.
    pub fn new() -> Result<Self> {
        capabilities::check_usable()?;
        Ok(Self {
            events: EventSource::new(SysfsPmus::new()),
            rates: Rates::default(),
            capabilities: OnceLock::new(),
            user_reads: true,
            known_pages: KnownPages::default(),
            counter_test: true,
        })
    }

    /// Returns the backend with every read by a system call, also where the machine allows to read
    /// counters [in user space](crate::user_read): the members of a group are of one moment then.
    #[must_use]
    pub fn without_user_reads(mut self) -> Self {
        self.user_reads = false;
        self
    }

    /// Returns the backend that takes every counter of the PMU to count, without a test (the module `counter_test`).
    #[must_use]
    pub fn without_counter_test(mut self) -> Self {
        self.counter_test = false;
        self
    }

    /// Returns what is known of the counters of each core PMU; tests them if that is neither known nor
    /// switched off, and this process has no counters open.
    fn known_counters(&self) -> &'static [CounterTest] {
        if self.counter_test {
            counter_test::known(|| self.events.core_pmus().to_vec())
        } else {
            &[]
        }
    }

    /// Returns the tests of core PMUs with counters that do not count, if a group needs any counter, and tells
    /// of such a PMU what its events mean.
    fn dead_counters(
        &self,
        placements: &[Placement],
        infos: &mut [EventInfo],
    ) -> Vec<&'static CounterTest> {
        let needs = |placement: &Placement| self.events.takes_core_counter(placement);
        if !placements.iter().any(needs) {
            return Vec::new();
        }
        #[cfg(not(feature = "counter-test"))]
        if self.counter_test {
            counter_test::tell(&self.events, placements, infos);
        }
        let tests = self.known_counters().iter();
        let dead: Vec<_> = tests.filter(|test| test.has_dead_counters()).collect();
        for test in &dead {
            for (placement, info) in placements.iter().zip(&mut *infos) {
                if self.events.takes_counter_of(placement, &test.pmu) {
                    info.errata.push(test.erratum());
                }
            }
        }
        dead
    }

    /// Returns the backend with native event names from a database, for a machine with one kind of core.
    #[cfg(feature = "names")]
    #[must_use]
    pub fn with_event_map(self, map: Arc<dyn EventMap>) -> Self {
        self.with_event_maps(move || Ok(vec![Arc::clone(&map)]))
    }

    /// Returns the backend with native event names from a database: a map for each kind of core, made
    /// at most once, when the first name is looked up that is no portable one.
    ///
    /// A name is counted on every core PMU whose map knows it: by the map's core type (`core` is
    /// `cpu_core`), or on ARM by the main id register of the PMU's CPUs. When `make` fails, such names
    /// are refused for its reason.
    #[cfg(feature = "names")]
    #[must_use]
    pub fn with_event_maps(
        mut self,
        make: impl Fn() -> Result<Vec<Arc<dyn EventMap>>> + Send + Sync + 'static,
    ) -> Self {
        self.events.set_native(NativeNames::new(make));
        self
    }

    /// Returns the `struct perf_event_attr` of an event in memory order, as a `perf.data` file stores it: what is
    /// counted, and in which modes, but nothing that depends on a target. Of several PMUs it is that of the first.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when this kernel has no such event.
    pub fn attr_bytes(&self, event: &EventSpec) -> Result<Vec<u8>> {
        let placement = self.events.resolve(event)?.placement;
        let attr = PerfEventAttr {
            sample_type: quipu_perf_data::SampleType::IDENTIFIER.bits(),
            read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
            flags: exclusions(event.filter) | AttrFlags::DISABLED,
            ..event_attr(placement.first_bits().unwrap_or_default())
        };
        Ok(attr.bytes())
    }

    /// Opens a group, in every part of the target. All members of a part start at the same moment.
    ///
    /// A process is counted thread by thread. Threads it starts meanwhile are found by listing them
    /// again; with [`inherit`](quipu_hal::Attributes::inherit) they are counted by those that
    /// started them, so they are listed once only, to avoid double counting. A thread that ends
    /// meanwhile is left out.
    ///
    /// # Errors
    /// As [`Backend::open`].
    pub fn open_group(&self, spec: &GroupSpec, target: &Target) -> Result<LinuxGroup> {
        if spec.members.is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfiguration, "open a group")
                .with_reason("it has no members"));
        }
        let (placements, mut infos) = self.resolve(spec)?;
        // Before the counters, so that probes of a group that is refused are removed after them.
        #[cfg(feature = "names")]
        let (placements, probes) =
            make_inheritable(spec.members.iter(), placements, spec.attributes, target)?;
        overflow::check(spec, targets::is_calling_thread(target))?;
        let request = self.request(spec, target, &placements, &mut infos);
        let (parts, kernel_groups) = request.open_everywhere()?.into_iter().unzip();
        let group = LinuxGroup::new(infos, parts, kernel_groups);
        #[cfg(feature = "names")]
        let group = group.with_probes(probes);
        if !spec.attributes.disabled {
            group.start()?;
        }
        Ok(group)
    }

    /// Returns where each member of a group can be counted, and its description.
    fn resolve(&self, spec: &GroupSpec) -> Result<(Vec<Placement>, Vec<EventInfo>)> {
        let members = spec.members.iter().enumerate().map(|(i, member)| {
            let resolved = self.events.resolve(member);
            let Resolved { placement, info } = resolved.map_err(|error| error.with_member(i))?;
            Ok((placement, info))
        });
        members.collect()
    }

    /// Returns what is asked for, of members that were resolved.
    fn request<'a>(
        &'a self,
        spec: &'a GroupSpec,
        target: &'a Target,
        placements: &'a [Placement],
        infos: &'a mut [EventInfo],
    ) -> OpenRequest<'a> {
        let dead_counters = self.dead_counters(placements, infos);
        OpenRequest {
            spec,
            infos,
            target,
            events: &self.events,
            rates: &self.rates,
            placements,
            dead_counters,
            known_pages: &self.known_pages,
            user_reads: if !self.user_reads {
                Err(Obstacle::SwitchedOff)
            } else if overflow::is_asked_for(spec) {
                Err(Obstacle::Overflows)
            } else if spec.attributes.inherit || !targets::is_calling_thread(target) {
                Err(Obstacle::Target)
            } else {
                Ok(())
            },
        }
    }
}

impl Backend for LinuxBackend {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn capabilities(&self) -> &Capabilities {
        self.capabilities.get_or_init(|| {
            let mut capabilities = capabilities::find();
            if capabilities.features.contains(Features::HARDWARE_EVENTS) {
                let tests = self.known_counters();
                // A group on every kind of core has the room of the smallest.
                if tests.len() == self.events.cores().len().max(1) {
                    capabilities.slots = tests.iter().map(|test| test.advertised).min();
                }
                // Unless others hold some.
                let sure =
                    |test: &CounterTest| test.has_dead_counters() || test.tested == test.advertised;
                if capabilities.slots.is_some() && tests.iter().all(sure) {
                    capabilities.counting_slots = tests.iter().map(|test| test.counting).min();
                }
            }
            capabilities
        })
    }

    /// Opens a group as [`LinuxBackend::open_group`] does.
    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(self.open_group(spec, target)?))
    }

    /// Keeps the counters of a group of several events in one part, and opens those that it lacks beside them.
    fn extend(
        &self,
        group: Box<dyn Group>,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        let group: Box<dyn Any> = group;
        if let Ok(mut group) = group.downcast::<LinuxGroup>()
            && group.only_kernel_group().is_some()
            && spec.attributes.disabled
        {
            let (placements, mut infos) = self.resolve(spec)?;
            #[cfg(feature = "names")]
            let placements = {
                let members = spec.members.iter();
                let (placements, probes) =
                    make_inheritable(members, placements, spec.attributes, target)?;
                group = Box::new(group.with_probes(probes));
                placements
            };
            overflow::check(spec, targets::is_calling_thread(target))?;
            let request = self.request(spec, target, &placements, &mut infos);
            if request.extend(&mut group).is_some() {
                group.set_members(infos);
                return Ok(group);
            }
        }
        // Where that is not possible, opening all anew tells why.
        self.open(spec, target)
    }
}

impl fmt::Debug for LinuxBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinuxBackend")
            .field("capabilities", &self.capabilities.get())
            .field("user_reads", &self.user_reads)
            .field("counter_test", &self.counter_test)
            .finish_non_exhaustive()
    }
}

/// One call of [`LinuxBackend::open_group`], its members resolved.
struct OpenRequest<'a> {
    spec: &'a GroupSpec,
    target: &'a Target,
    events: &'a EventSource,
    rates: &'a Rates,
    placements: &'a [Placement],
    /// The core PMUs that have counters which do not count.
    dead_counters: Vec<&'static CounterTest>,
    infos: &'a [EventInfo],
    /// Why the counters may not be read in user space.
    user_reads: Result<(), Obstacle>,
    known_pages: &'a KnownPages,
}

impl OpenRequest<'_> {
    /// Returns a kernel group for each part of the target.
    fn open_everywhere(&self) -> Result<Vec<(Part, KernelGroup)>> {
        let attachments = targets::attachments(self.target)?;
        let mut opened = Vec::with_capacity(attachments.list.len());
        let mut planned = self.open_at(&attachments.list, &mut opened)?;
        if let Target::Process(pid) = self.target
            && !self.spec.attributes.inherit
        {
            let known = attachments
                .list
                .iter()
                .filter_map(|attachment| attachment.part.thread);
            planned += self.open_new_threads(*pid, known.collect(), &mut opened)?;
        }
        if !opened.is_empty() {
            return Ok(opened);
        }
        let names: Vec<_> = self.spec.members.iter().map(EventSpec::to_string).collect();
        let attempted = format!("open {} on {}", names.join(","), self.target);
        Err(if planned == 0 {
            Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("no CPU of the target can count all of these events")
        } else {
            Error::new(ErrorKind::NoSuchTarget, attempted).with_reason("it has ended")
        })
    }

    /// Opens the group in the threads that have appeared since, until there are none. Returns the number of parts planned.
    fn open_new_threads(
        &self,
        pid: i32,
        mut known: BTreeSet<i32>,
        opened: &mut Vec<(Part, KernelGroup)>,
    ) -> Result<usize> {
        let mut planned = 0;
        for _ in 0..MOST_LISTINGS {
            // The process may have ended; what was counted of it is still there to be read.
            let mut threads = targets::threads_of(pid).unwrap_or_default();
            threads.retain(|tid| known.insert(*tid));
            if threads.is_empty() {
                break;
            }
            let new: Vec<_> = threads.into_iter().map(targets::thread).collect();
            planned += self.open_at(&new, opened)?;
        }
        Ok(planned)
    }

    /// Refuses a part that needs more counters than count on its core PMU.
    fn check_counters(&self, part: &PlannedPart) -> Result<()> {
        let core = part.part.core.as_deref();
        let of_part = |test: &&&CounterTest| core.is_none_or(|core| core == test.pmu);
        let Some(test) = self.dead_counters.iter().find(of_part) else {
            return Ok(());
        };
        let takes = |placement: &&Placement| self.events.takes_core_counter(placement);
        let needed = self.placements.iter().filter(takes).count();
        if needed > test.counting {
            return Err(test.refusal(needed));
        }
        Ok(())
    }

    /// Opens the group at each of these attachments, and adds what it opens; returns the number of parts planned.
    fn open_at(
        &self,
        attachments: &[Attachment],
        opened: &mut Vec<(Part, KernelGroup)>,
    ) -> Result<usize> {
        let cores = self.events.cores_of(self.placements);
        let planned = plan(self.placements, cores, attachments);
        let number = planned.len();
        for mut part in planned {
            self.check_counters(&part)?;
            if self.user_reads.is_ok() {
                part.request_user_reads();
            }
            match open_part(self.spec, &part, perf_event_open) {
                Ok(source) => {
                    let mut group = KernelGroup::new(source, part.has_live());
                    self.set_up(&mut group, &part, 0)?;
                    self.map_pages(&mut group, &part);
                    opened.push((part.part, group));
                }
                Err(refused)
                    if refused.failure == OpenFailure::Errno(libc::ESRCH)
                        && matches!(self.target, Target::Process(_)) => {}
                Err(refused) => {
                    // The counters that did open may be what there was no room beside.
                    opened.clear();
                    let (spec, target) = (self.spec, self.target);
                    return Err(open_error::explain(
                        &refused,
                        spec,
                        target,
                        &part,
                        self.events,
                    ));
                }
            }
        }
        Ok(number)
    }

    /// Maps the pages of a part that was just opened, where it may be read in user space.
    fn map_pages(&self, group: &mut KernelGroup, part: &PlannedPart) {
        let known = self
            .user_reads
            .and_then(|()| self.known_pages.of(&part.bits));
        match known {
            Ok(known) => {
                let shown = group.read_in_user_space(known);
                if known.is_none() {
                    self.known_pages.remember(&part.bits, shown);
                }
            }
            Err(obstacle) => group.read_by_calls(obstacle),
        }
    }

    /// Sets up the counters of a part from this member on, which have just been opened.
    fn set_up(&self, group: &mut KernelGroup, part: &PlannedPart, first: usize) -> Result<()> {
        group.send_signals(self.spec, &part.bits)?;
        for i in first..part.bits.len() {
            #[cfg(feature = "names")]
            if let Some(fd) = group.fds().of(i) {
                condition::set(fd, &self.spec.members[i]).map_err(|e| e.with_member(i))?;
            }
            // What its map says itself, or else.
            let rate = match self.infos[i].max_rate {
                Some(rate) => MaxRate::per_second(rate),
                None => self.rates.of(&part.bits[i], self.events),
            };
            group.set_max_rate(i, rate);
        }
        Ok(())
    }

    /// Opens the members that a group lacks, where all are in the one part that it has; it knows only its first ones then.
    fn extend(&self, group: &mut LinuxGroup) -> Option<()> {
        let attachments = targets::attachments(self.target).ok()?;
        let cores = self.events.cores_of(self.placements);
        let mut parts = plan(self.placements, cores, &attachments.list);
        let mut part = parts.pop_if(|part| group.parts() == [part.part.clone()])?;
        if !parts.is_empty() || overflow::is_asked_for(self.spec) {
            return None;
        }
        self.check_counters(&part).ok()?;
        if self.user_reads.is_ok() {
            part.request_user_reads();
        }
        let first = group.members().len();
        let kernel_group = group.only_kernel_group()?;
        extend_part(kernel_group, self.spec, &part, perf_event_open).ok()?;
        self.set_up(kernel_group, &part, first).ok()
    }
}

#[cfg(all(test, feature = "counter-test"))]
mod tests;
