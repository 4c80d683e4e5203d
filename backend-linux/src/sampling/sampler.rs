//! An open sampler: its counters and rings, on every part of the target.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, EventInfo, Result, Woken};
use quipu_perf_data::RecordLayout;

use super::counter::SampledCounter;
use super::notices::Throttled;
use super::ring::Ring;
use super::spec::SamplerSpec;
use crate::sys::{Readiness, poll};

/// Samples being taken. Dropping it closes everything.
///
/// Opened by [`LinuxBackend::open_sampler`](crate::LinuxBackend::open_sampler). It has a ring for
/// each part of the target, into which all events of that part write.
///
/// ```
/// # fn main() -> quipu_hal::Result<()> {
/// use quipu_hal::{Software, Target};
/// use quipu_linux::LinuxBackend;
/// use quipu_linux::sampling::{Rate, Record, SamplerSpec};
///
/// let Ok(backend) = LinuxBackend::new() else {
///     return Ok(()); // This process may not count.
/// };
/// let faults = quipu_hal::EventSpec::new(Software::PageFaults)
///     .with_filter(quipu_hal::Filter::USER_ONLY);
/// let spec = SamplerSpec::new([(faults, Rate::Period(1))]);
/// let mut sampler = backend.open_sampler(&spec, &Target::CurrentThread)?;
/// std::hint::black_box(vec![1u8; 1 << 20]);
/// sampler.disable()?;
/// let layout = *sampler.layout();
/// for ring in sampler.rings_mut() {
///     for record in &mut ring.records() {
///         if let Record::Sample(sample) = record?.decode(&layout)? {
///             println!("a page fault at {:x?}", sample.ip());
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sampler {
    events: Box<[EventInfo]>,
    layout: RecordLayout,
    spec: SamplerSpec,
    counters: Vec<Arc<SampledCounter>>,
    rings: Vec<Ring>,
    /// The descriptors to wait for: a counter of each thread on each CPU, -1 once it has hung up.
    waiting: Vec<libc::pollfd>,
}

impl Sampler {
    pub(super) fn new(
        events: Vec<EventInfo>,
        layout: RecordLayout,
        spec: &SamplerSpec,
        counters: Vec<Arc<SampledCounter>>,
        rings: Vec<Ring>,
    ) -> Self {
        Self {
            events: events.into(),
            layout,
            spec: spec.clone(),
            counters,
            rings,
            waiting: Vec::new(),
        }
    }

    /// Waits for these counters too, each the first of a thread or CPU.
    pub(super) fn wait_for(&mut self, first: &[usize]) {
        let waiting = first.iter().map(|counter| libc::pollfd {
            fd: self.counters[*counter].fd().raw(),
            events: libc::POLLIN,
            revents: 0,
        });
        self.waiting.extend(waiting);
    }

    /// Returns the spec it was opened with.
    pub(super) fn spec(&self) -> &SamplerSpec {
        &self.spec
    }

    /// Takes the counters and rings out, to which others are added.
    pub(super) fn take(&mut self) -> (Vec<Arc<SampledCounter>>, Vec<Ring>) {
        (mem::take(&mut self.counters), mem::take(&mut self.rings))
    }

    /// Puts counters and rings back.
    pub(super) fn put(&mut self, counters: Vec<Arc<SampledCounter>>, rings: Vec<Ring>) {
        (self.counters, self.rings) = (counters, rings);
    }

    /// Starts the counters from this position on.
    pub(super) fn enable_from(&self, first: usize) -> Result<()> {
        let mut switched = self.switched(first);
        switched.try_for_each(|counter| counter.enable())
    }

    /// Returns the sampled events, in the order of the spec.
    pub fn events(&self) -> &[EventInfo] {
        &self.events
    }

    /// Returns the layout of the records of every event. Copy it to decode while rings are borrowed.
    pub fn layout(&self) -> &RecordLayout {
        &self.layout
    }

    /// The counters: for each part of the target all events, in order.
    pub fn counters(&self) -> &[Arc<SampledCounter>] {
        &self.counters
    }

    /// The position of the event whose counter has this id ([`Sample::id`](super::Sample::id)).
    pub fn event_of(&self, id: u64) -> Option<usize> {
        let counter = self.counters.iter().find(|counter| counter.id() == id)?;
        Some(counter.event())
    }

    /// The rings.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The rings, to take records out of them.
    pub fn rings_mut(&mut self) -> &mut [Ring] {
        &mut self.rings
    }

    /// Takes it apart: for reading each ring on a thread of its own.
    pub fn into_rings(self) -> Vec<Ring> {
        self.rings
    }

    /// Returns how an event was throttled, by its position, as far as the records read from all rings say.
    pub fn throttled(&self, event: usize) -> Throttled {
        let mut all = Throttled::default();
        for counter in self
            .counters
            .iter()
            .filter(|counter| counter.event() == event)
        {
            for ring in &self.rings {
                all.add(ring.throttled(counter.id()));
            }
        }
        all
    }

    /// Starts every counter.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> Result<()> {
        self.enable_from(0)
    }

    /// Stops every counter.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self) -> Result<()> {
        let mut switched = self.switched(0);
        switched.try_for_each(|counter| counter.disable())
    }

    /// The counters from this position on that start and stop the others with them.
    fn switched(&self, first: usize) -> impl Iterator<Item = &Arc<SampledCounter>> {
        let leads = |counter: &&Arc<SampledCounter>| !self.spec.events[counter.event()].is_member;
        self.counters[first..].iter().filter(leads)
    }

    /// Waits until a ring has data as the spec says, but not longer than `timeout`. Allocates
    /// nothing.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken> {
        wait(&mut self.waiting, timeout)
    }

    /// Waits as [`wait`](Self::wait) does until any of several samplers has data, or every thread that they sample has ended.
    /// Look into all of them then.
    ///
    /// ```
    /// # fn main() -> quipu_hal::Result<()> {
    /// use std::time::Duration;
    ///
    /// use quipu_hal::{EventSpec, Filter, Software, Target};
    /// use quipu_linux::LinuxBackend;
    /// use quipu_linux::sampling::{Rate, Sampler, SamplerSpec, Woken};
    ///
    /// let Ok(backend) = LinuxBackend::new() else {
    ///     return Ok(()); // This process may not count.
    /// };
    /// let each = |event| {
    ///     let event = EventSpec::new(event).with_filter(Filter::USER_ONLY);
    ///     backend.open_sampler(&SamplerSpec::new([(event, Rate::Period(1))]), &Target::CurrentThread)
    /// };
    /// let (mut faults, mut switches) = (each(Software::PageFaults)?, each(Software::ContextSwitches)?);
    /// std::hint::black_box(vec![1u8; 1 << 22]);
    /// let woken = Sampler::wait_any(&mut [&mut faults, &mut switches], Some(Duration::ZERO))?;
    /// assert!(matches!(woken, Woken::Data | Woken::TimedOut));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait_any(samplers: &mut [&mut Self], timeout: Option<Duration>) -> Result<Woken> {
        let mut all: Vec<_> = samplers
            .iter()
            .flat_map(|s| s.waiting.iter().copied())
            .collect();
        let woken = wait(&mut all, timeout)?;
        let mut rest = &all[..];
        for sampler in samplers {
            let (own, others) = rest.split_at(sampler.waiting.len());
            sampler.waiting.copy_from_slice(own);
            rest = others;
        }
        Ok(woken)
    }
}

/// Waits for counters, and leaves those out of later waits that have hung up.
fn wait(waiting: &mut [libc::pollfd], timeout: Option<Duration>) -> Result<Woken> {
    if waiting.iter().all(|counter| counter.fd < 0) {
        return Ok(Woken::Ended);
    }
    let ready = poll(waiting, timeout)
        .map_err(|errno| Error::new(ErrorKind::Os, "wait for samples").with_errno(errno))?;
    match ready {
        Readiness::TimedOut => return Ok(Woken::TimedOut),
        Readiness::Interrupted => return Ok(Woken::Interrupted),
        Readiness::Ready => {}
    }
    let mut data = false;
    for counter in &mut *waiting {
        data |= counter.revents != 0;
        if counter.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            // The kernel would not stop saying so.
            counter.fd = -1;
        }
    }
    let ended = waiting.iter().all(|counter| counter.fd < 0);
    Ok(match (ended, data) {
        (true, _) => Woken::Ended,
        (false, true) => Woken::Data,
        (false, false) => Woken::TimedOut,
    })
}
