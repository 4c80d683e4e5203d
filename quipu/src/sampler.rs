//! Samples: where the events of a program happen, while it runs.

#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Attributes, Error, ErrorKind, EventSpec, Result, Target, Woken};

use crate::{IntoGroups, Machine, NativeEvents, SharedNativeEvents};

cfg_if::cfg_if! {
    if #[cfg(all(feature = "linux", target_os = "linux"))] {
        mod linux;

        use linux::Open;
    } else if #[cfg(target_os = "freebsd")] {
        mod hwpmc;

        use hwpmc::Open;
    } else {
        mod elsewhere;

        use elsewhere::Open;
    }
}

/// A period or frequency at which an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleRate {
    /// Once in so many events; 1 takes each of them.
    Period(u64),
    /// So many times in a second, for which the period is adjusted.
    Frequency(u64),
}

/// Samples being taken of events on a target. Dropping it closes everything.
///
/// ```no_run
/// use quipu::{SampleRate, Sampler};
///
/// let mut sampler = Sampler::builder()
///     .events("cpu-clock:u")?
///     .rate(SampleRate::Frequency(999))
///     .call_chains(true)
///     .open()?;
/// sampler.enable()?;
/// let squares: u64 = (0..1_000_000u64).map(|i| i.wrapping_mul(i)).fold(0, u64::wrapping_add);
/// sampler.disable()?;
/// sampler.drain(|sample| println!("{:#x}, called from {} others", sample.ip, sample.callers.len()))?;
/// println!("{squares}; {} samples lost", sampler.lost());
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    open: Open,
}

/// One sample: the part of it that every system that samples has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The position of the event among those asked for.
    pub event: usize,
    /// The address of the instruction.
    pub ip: u64,
    /// True if it is one of the kernel.
    pub in_kernel: bool,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: u32,
    /// When it was taken, in nanoseconds of a clock that never goes back.
    pub time: u64,
    /// The number of events it stands for; 0 where the counter [jumped](Sampler::jumped), so that it is not known.
    pub period: u64,
    /// The address that the event is about, if it is about one and
    /// [addresses](SamplerBuilder::addresses) were asked for.
    pub address: Option<u64>,
    /// The callers of the function of `ip`, the innermost first, if
    /// [call chains](SamplerBuilder::call_chains) were asked for.
    pub callers: &'a [Caller],
}

/// A caller in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Caller {
    /// The address to which the call returns: the instruction after the call.
    pub return_address: u64,
    /// True if it is in the kernel.
    pub in_kernel: bool,
}

impl Sampler {
    /// Returns a description of a sampler of the calling thread, at the usual [rate](SamplerBuilder::rate).
    pub fn builder() -> SamplerBuilder {
        SamplerBuilder {
            events: Vec::new(),
            rate: None,
            call_chains: false,
            addresses: false,
            target: Target::CurrentThread,
            attributes: Attributes::default().with_disabled(true),
            room: 512 << 10,
            wake_after: None,
            backend: None,
            machine: None,
        }
    }

    /// Takes the same samples of a further target: a process that was started meanwhile, or another thread. It starts when
    /// the sampler is [enabled](Self::enable) the next time; what is sampled already goes on.
    ///
    /// ```no_run
    /// use quipu::{Sampler, Target};
    ///
    /// let mut sampler = Sampler::builder().events("cpu-clock:u")?.inherit(true).open()?;
    /// sampler.enable()?;
    /// let child = std::process::Command::new("make").spawn().expect("a process");
    /// sampler.attach(&Target::Process(child.id().cast_signed()))?;
    /// sampler.enable()?;
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SamplerBuilder::open`]; the sampler is as it was then.
    pub fn attach(&mut self, target: &Target) -> Result<()> {
        self.open.attach(target)
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn enable(&mut self) -> Result<()> {
        self.open.enable()
    }

    /// Stops sampling. What was taken can still be [drained](Self::drain).
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn disable(&mut self) -> Result<()> {
        self.open.disable()
    }

    /// Calls `each` with the samples taken since the last time, and makes room for others. Each part of the
    /// target (a CPU, a thread) has its own in the order of their times, one part after the other.
    ///
    /// # Errors
    /// If the kernel wrote something that is no record; the samples taken so far are given up then.
    pub fn drain(&mut self, each: impl FnMut(&Sample<'_>)) -> Result<()> {
        self.open.drain(each)
    }

    /// Waits until samples are to be [drained](Self::drain), but not longer than `timeout`.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken> {
        Self::wait_any(&mut [self], timeout)
    }

    /// Waits as [`wait`](Self::wait) does until any of several samplers has samples, or every thread of all of them has
    /// ended. Drain all of them then.
    ///
    /// ```no_run
    /// use quipu::{SampleRate, Sampler, Woken};
    ///
    /// let each = |event: &str| {
    ///     Sampler::builder().events(event)?.rate(SampleRate::Period(1)).open()
    /// };
    /// let (mut faults, mut switches) = (each("page-faults:u")?, each("context-switches")?);
    /// faults.enable()?;
    /// switches.enable()?;
    /// loop {
    ///     let woken = Sampler::wait_any(&mut [&mut faults, &mut switches], None)?;
    ///     for sampler in [&mut faults, &mut switches] {
    ///         sampler.drain(|sample| println!("{:#x} at {}", sample.ip, sample.time))?;
    ///     }
    ///     if woken != Woken::Data {
    ///         break;
    ///     }
    /// }
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn wait_any(samplers: &mut [&mut Self], timeout: Option<Duration>) -> Result<Woken> {
        let mut open: Vec<_> = samplers
            .iter_mut()
            .map(|sampler| &mut sampler.open)
            .collect();
        Open::wait_any(&mut open, timeout)
    }

    /// Returns the descriptors to wait on: poll(2) finds one readable when samples are to be
    /// [drained](Self::drain), as many as [`wake_after`](SamplerBuilder::wake_after) says, and hung up
    /// when the thread it is of has ended. There is one for each part of the target. FreeBSD has one, which is readable when
    /// a buffer of 256 KB is full, or [`wait`](Self::wait) has asked for what there is.
    #[cfg(unix)]
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.descriptors()
    }

    /// Returns the number of samples that were lost so far because the buffer was full. On FreeBSD these are the interrupts and
    /// records for which its driver had no room, of everyone who samples; there may be more.
    pub fn lost(&self) -> u64 {
        self.open.lost()
    }

    /// Returns the number of samples drained so far with a period beyond what their counter can have counted
    /// ([`MaxRate`](quipu_hal::MaxRate)) since its sample before: it jumped, as counters of virtual machines may.
    pub fn jumped(&self) -> u64 {
        self.open.jumped()
    }
}

/// Describes a [`Sampler`] and opens it.
#[derive(Debug, Clone)]
pub struct SamplerBuilder {
    events: Vec<EventSpec>,
    /// `None` is the usual one.
    rate: Option<SampleRate>,
    call_chains: bool,
    addresses: bool,
    target: Target,
    attributes: Attributes,
    room: usize,
    wake_after: Option<u32>,
    backend: Option<String>,
    machine: Option<Arc<Machine>>,
}

impl SamplerBuilder {
    /// Adds events; may be called again.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when a text is malformed, or names a
    /// group: events are sampled one by one.
    pub fn events(&mut self, events: impl IntoGroups) -> Result<&mut Self> {
        for group in events.into_groups(&**native_events(self.machine.as_deref()))? {
            let [event] = group.members.as_slice() else {
                let attempted = format!("sample {group}");
                return Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
                    .with_reason("it is a group, and events are sampled one by one"));
            };
            self.events.push(event.clone());
        }
        Ok(self)
    }

    /// Sets how often each event is sampled. By default that is 1000 times in a second, or as often as the system takes
    /// samples at present, if that is less (`kernel.perf_event_max_sample_rate` of Linux). A rate that is set is refused
    /// where it is beyond that. FreeBSD takes periods alone, by default once in 1,000,003 events.
    pub fn rate(&mut self, rate: SampleRate) -> &mut Self {
        self.rate = Some(rate);
        self
    }

    /// Sets whether samples have call chains, by following frame pointers. Off by default.
    pub fn call_chains(&mut self, yes: bool) -> &mut Self {
        self.call_chains = yes;
        self
    }

    /// Sets whether samples have the address that the event is about: the page that was missing, the data
    /// that a breakpoint watches. Off by default.
    pub fn addresses(&mut self, yes: bool) -> &mut Self {
        self.addresses = yes;
        self
    }

    /// Sets what is sampled; the calling thread by default.
    pub fn target(&mut self, target: Target) -> &mut Self {
        self.target = target;
        self
    }

    /// Sets whether threads and processes that the target makes later are sampled too
    /// ([`Attributes::inherit`]). Off by default.
    pub fn inherit(&mut self, yes: bool) -> &mut Self {
        self.attributes.inherit = yes;
        self
    }

    /// Sets whether, of what [`inherit`](Self::inherit) follows, only threads are sampled
    /// ([`Attributes::inherit_thread`]; Linux since 5.13). Off by default.
    pub fn inherit_thread(&mut self, yes: bool) -> &mut Self {
        self.attributes.inherit_thread = yes;
        self
    }

    /// Sets whether every event is on the PMU or in the error state ([`Attributes::pinned`]). Off by default.
    pub fn pinned(&mut self, yes: bool) -> &mut Self {
        self.attributes.pinned = yes;
        self
    }

    /// Sets whether every event is alone on the PMU while it is sampled ([`Attributes::exclusive`]). Off by
    /// default.
    pub fn exclusive(&mut self, yes: bool) -> &mut Self {
        self.attributes.exclusive = yes;
        self
    }

    /// Sets whether sampling starts when the target executes a program
    /// ([`Attributes::enable_on_exec`]). Off by default: [`Sampler::enable`] starts it.
    pub fn enable_on_exec(&mut self, yes: bool) -> &mut Self {
        self.attributes.enable_on_exec = yes;
        self
    }

    /// Sets whether a task is sampled no longer once it executes a program
    /// ([`Attributes::remove_on_exec`]; Linux since 5.13). Off by default.
    pub fn remove_on_exec(&mut self, yes: bool) -> &mut Self {
        self.attributes.remove_on_exec = yes;
        self
    }

    /// Sets the bytes of room for samples in each part of the target; 512 KiB by default.
    pub fn room(&mut self, bytes: usize) -> &mut Self {
        self.room = bytes;
        self
    }

    /// Sets the number of samples in a part of the target after which a waiting thread is woken; by default
    /// it is when the room is half full.
    pub fn wake_after(&mut self, samples: u32) -> &mut Self {
        self.wake_after = Some(samples);
        self
    }

    /// Sets the backend to sample with, by its [name](crate::BackendStatus::name); by default one that can.
    pub fn backend(&mut self, name: impl Into<String>) -> &mut Self {
        self.backend = Some(name.into());
        self
    }

    /// Sets the machine whose native events are sampled; by default [`Machine::this`]. Text that is
    /// [added](Self::events) later is read with its names.
    pub fn machine(&mut self, machine: Arc<Machine>) -> &mut Self {
        self.machine = Some(machine);
        self
    }

    /// Opens a sampler.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if no backend samples, or the one that was
    /// asked for does not; else the error of the backend.
    pub fn open(&self) -> Result<Sampler> {
        if self.events.is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfiguration, "sample")
                .with_reason("there are no events"));
        }
        if let Some(name) = self
            .backend
            .as_deref()
            .filter(|name| *name != Open::BACKEND)
        {
            Machine::this().named(name)?;
            let attempted = format!("sample with the backend {name}");
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it counts and takes no samples"));
        }
        if self.backend.is_none() {
            let machine = self.machine.as_deref();
            let machine = machine.unwrap_or_else(|| Machine::this());
            self.events
                .iter()
                .try_for_each(|event| machine.check_sampling(event))?;
        }
        Ok(Sampler {
            open: Open::new(self)?,
        })
    }
}

impl Machine {
    /// Checks that the event database lists the backend that takes samples, if the event is one of the CPU's counters.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if it lists others alone; as
    /// [`for_counters`](Self::for_counters) if none of those can be used.
    pub fn check_sampling(&self, event: &EventSpec) -> Result<()> {
        if Open::BACKEND.is_empty() || !self.is_of_counters(&event.event) {
            return Ok(());
        }
        let backends = self.for_counters()?;
        if backends.iter().any(|b| b.name() == Open::BACKEND) {
            return Ok(());
        }
        let listed: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
        Err(
            Error::new(ErrorKind::UnsupportedFeature, format!("sample {event}"))
                .with_reason(format!(
                    "the event database lists {} for this CPU, which takes no samples",
                    listed.join(", ")
                ))
                .with_hint(format!(
                    "list the backend {} for it in an event file, or name it where one can",
                    Open::BACKEND
                )),
        )
    }
}

/// Returns the native events of a machine, or of this one.
fn native_events(machine: Option<&Machine>) -> &SharedNativeEvents {
    match machine {
        Some(machine) => &machine.native,
        None => NativeEvents::this(),
    }
}
