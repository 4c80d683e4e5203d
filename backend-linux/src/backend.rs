//! The backend: opening groups on targets.

mod open_request;

use std::any::Any;
use std::fmt;
#[cfg(feature = "names")]
use std::sync::Arc;
use std::sync::OnceLock;

#[cfg(feature = "names")]
use quipu_hal::EventMap;
use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, EventInfo, EventSpec, Features, Group, GroupSpec,
    PerfConfig, Result, Target,
};

use self::open_request::OpenRequest;
use crate::capabilities;
use crate::counter_test::{self, CounterTest};
use crate::events::{EventSource, Placement, Rates, Resolved, exclusions};
#[cfg(feature = "names")]
use crate::events::{NativeNames, make_inheritable};
use crate::group::{LinuxGroup, open_part, overflow};
use crate::machine::sysfs::SysfsPmus;
use crate::read::{KnownPages, Obstacle};
use crate::sys::{AttrFlags, PerfEventAttr, ReadFormat};
use crate::targets::is_calling_thread;

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
            counter_test::known(|| self.events.core_pmus().all().to_vec())
        } else {
            &[]
        }
    }

    /// Returns the tests of core PMUs with counters that do not count, if a group needs any counter, and adds an erratum to
    /// its events on such a PMU.
    fn dead_counters(
        &self,
        placements: &[Placement],
        infos: &mut [EventInfo],
    ) -> Vec<&'static CounterTest> {
        let needs = |placement: &Placement| self.events.core_pmus().give_counter(placement);
        if !placements.iter().any(needs) {
            return Vec::new();
        }
        #[cfg(not(feature = "counter-test"))]
        if self.counter_test {
            counter_test::add_errata(&self.events, placements, infos);
        }
        let tests = self.known_counters().iter();
        let dead: Vec<_> = tests.filter(|test| test.has_dead_counters()).collect();
        for test in &dead {
            for (placement, info) in placements.iter().zip(&mut *infos) {
                if self
                    .events
                    .core_pmus()
                    .one_gives_counter(&test.pmu, placement)
                {
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
        Ok(self.attr(event)?.bytes())
    }

    /// Returns the words by which this kernel is asked for an event. Of several PMUs they are those of the first.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when this kernel has no such event.
    pub fn encode(&self, event: &EventSpec) -> Result<PerfConfig> {
        let placement = self.events.resolve(event)?.placement;
        Ok(placement.first_bits().unwrap_or_default().config)
    }

    fn attr(&self, event: &EventSpec) -> Result<PerfEventAttr> {
        let placement = self.events.resolve(event)?.placement;
        Ok(PerfEventAttr {
            sample_type: quipu_perf_data::SampleType::IDENTIFIER.bits(),
            read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
            flags: exclusions(event.filter) | AttrFlags::DISABLED,
            ..placement.first_bits().unwrap_or_default().attr()
        })
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
        open_part::check(spec.attributes, "open a group")?;
        let (placements, mut infos) = self.resolve(spec)?;
        // Before the counters, so that probes of a group that is refused are removed after them.
        #[cfg(feature = "names")]
        let (placements, probes) =
            make_inheritable(spec.members.iter(), placements, spec.attributes, target)?;
        overflow::check(spec, is_calling_thread(target))?;
        let request = self.request(spec, target, &placements, &mut infos);
        let (parts, kernel_groups) = request.open_everywhere()?;
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
            } else if spec.attributes.inherit || !is_calling_thread(target) {
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
                if tests.len() == self.events.core_pmus().several().len().max(1) {
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
            overflow::check(spec, is_calling_thread(target))?;
            let request = self.request(spec, target, &placements, &mut infos);
            if request.extend(&mut group).is_some() {
                group.set_members(infos);
                return Ok(group);
            }
        }
        // Where that is not possible, the error of opening all of them says why.
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
