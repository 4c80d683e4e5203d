//! Opening samplers: which counters, which rings, and who writes where.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, EventInfo, GroupSpec, Part, Result, Target};
use quipu_perf_data::{ReadFormat, RecordLayout};

use super::counter::SampledCounter;
use super::ring::Ring;
use super::sampled_attr::{attr, layout};
use super::sampler::Sampler;
use super::sampler_error;
use super::spec::SamplerSpec;
use crate::backend::LinuxBackend;
use crate::events::{EventBits, Placement, TracedProbe, condition, make_inheritable};
use crate::group::open_part::{RefusedMember, precise_levels};
use crate::machine::topology::Topology;
use crate::sys::{Attach, CounterFd, OpenFailure, PerfEventAttr, perf_event_open};
use crate::targets;
use crate::targets::{Attachment, PlannedPart, plan};

/// The most listings of the threads of a process until no new one appears.
const MOST_LISTINGS: usize = 100;

impl LinuxBackend {
    /// Opens a sampler on a target, in every part of it or not at all. It samples from the moment
    /// that all counters are open, unless its attributes say otherwise.
    ///
    /// A thread has one ring; with [`inherit`](quipu_hal::Attributes::inherit) it has one for each
    /// CPU that is online, because the kernel lets threads on different CPUs not share one. Threads
    /// of the same process then share those of the CPUs. For a command that is to be sampled from its
    /// start, open it on a process that is held before it executes, with `enable_on_exec`, `inherit`
    /// and `disabled`.
    ///
    /// # Errors
    /// Any [`ErrorKind`]; the error names the event that was refused
    /// ([`Error::member`]), and nothing is left open.
    pub fn open_sampler(&self, spec: &SamplerSpec, target: &Target) -> Result<Sampler> {
        sampler_error::check(spec)?;
        let layout = layout(spec, spec.read_format);
        let (mut opener, infos) = self.opener(spec, target, layout)?;
        opener.open_everywhere()?;
        let Opener {
            layout,
            counters,
            rings,
            first,
            ..
        } = opener;
        let mut sampler = Sampler::new(infos, layout, spec, counters, rings);
        sampler.wait_for(&first);
        if !spec.attributes.disabled {
            sampler.enable()?;
        }
        Ok(sampler)
    }

    /// Has a sampler take the same samples of a further target, in every part of it or not at all. Parts on a CPU or thread
    /// that has a ring write into that.
    ///
    /// Sampling there starts as it did when the sampler was opened: at once, or when the sampler is
    /// [enabled](Sampler::enable) the next time.
    ///
    /// ```
    /// # fn main() -> quipu_hal::Result<()> {
    /// use quipu_hal::{Attributes, EventSpec, Filter, Software, Target};
    /// use quipu_linux::LinuxBackend;
    /// use quipu_linux::sampling::{Rate, SamplerSpec};
    ///
    /// let Ok(backend) = LinuxBackend::new() else {
    ///     return Ok(()); // This process may not count.
    /// };
    /// let faults = EventSpec::new(Software::PageFaults).with_filter(Filter::USER_ONLY);
    /// let mut spec = SamplerSpec::new([(faults, Rate::Period(1))]);
    /// spec.attributes = Attributes::default().with_inherit(true);
    /// let mut sampler = backend.open_sampler(&spec, &Target::CurrentThread)?;
    /// let rings = sampler.rings().len();
    /// let mut child = std::process::Command::new("sleep").arg("1").spawn().expect("a process");
    /// let pid = child.id().cast_signed();
    /// backend.attach_sampler(&mut sampler, &Target::Process(pid))?;
    /// assert_eq!(sampler.rings().len(), rings); // One for each CPU.
    /// # child.kill().and_then(|()| child.wait()).expect("it is our own");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`open_sampler`](Self::open_sampler); the sampler is as it was then.
    pub fn attach_sampler(&self, sampler: &mut Sampler, target: &Target) -> Result<()> {
        let spec = sampler.spec().clone();
        let (mut opener, _) = self.opener(&spec, target, *sampler.layout())?;
        (opener.counters, opener.rings) = sampler.take();
        opener.kept = (opener.counters.len(), opener.rings.len());
        let opened = opener.open_everywhere();
        if opened.is_err() {
            opener.give_up();
        }
        let Opener {
            counters,
            rings,
            first,
            kept: (known, _),
            ..
        } = opener;
        sampler.put(counters, rings);
        opened?;
        sampler.wait_for(&first);
        match spec.attributes.disabled {
            true => Ok(()),
            false => sampler.enable_from(known),
        }
    }

    /// Resolves the events of a sampler, and returns what opens them, and their descriptions.
    fn opener<'a>(
        &'a self,
        spec: &'a SamplerSpec,
        target: &'a Target,
        layout: RecordLayout,
    ) -> Result<(Opener<'a>, Vec<EventInfo>)> {
        let mut placements = Vec::with_capacity(spec.events.len());
        let mut infos = Vec::with_capacity(spec.events.len());
        for (i, sampled) in spec.events.iter().enumerate() {
            let resolved = self.events.resolve(&sampled.event);
            let resolved = resolved.map_err(|e| e.with_member(i))?;
            placements.push(resolved.placement);
            infos.push(resolved.info);
        }
        let as_probes = placements.iter().map(Placement::probe).collect();
        let events = spec.events.iter().map(|sampled| &sampled.event);
        let (placements, probes) = make_inheritable(events, placements, spec.attributes, target)?;
        let opener = Opener {
            backend: self,
            spec,
            target,
            placements,
            as_probes,
            probes: probes.into(),
            layout,
            counters: Vec::new(),
            rings: Vec::new(),
            kept: (0, 0),
            first: Vec::new(),
        };
        Ok((opener, infos))
    }
}

/// One call that opens counters of samplers, its events resolved.
struct Opener<'a> {
    backend: &'a LinuxBackend,
    spec: &'a SamplerSpec,
    target: &'a Target,
    placements: Vec<Placement>,
    /// The events that are probes, also those that were made tracepoints.
    as_probes: Vec<Option<EventBits>>,
    probes: Arc<[TracedProbe]>,
    layout: RecordLayout,
    counters: Vec<Arc<SampledCounter>>,
    rings: Vec<Ring>,
    /// The numbers of the counters and rings that a sampler has already.
    kept: (usize, usize),
    /// The first counter at each attachment, by position: it hangs up when its thread ends.
    first: Vec<usize>,
}

impl Opener<'_> {
    fn open_everywhere(&mut self) -> Result<()> {
        let attachments = targets::attachments(self.target)?;
        let inherit = self.spec.attributes.inherit;
        let mut known: BTreeSet<i32> = BTreeSet::new();
        known.extend(
            attachments
                .list
                .iter()
                .filter_map(|attachment| attachment.part.thread),
        );
        let mut planned = 0;
        for attachment in &*attachments.list {
            planned += self.open_at(attachment)?;
        }
        if let Target::Process(pid) = self.target
            && !inherit
        {
            for _ in 0..MOST_LISTINGS {
                // The process may have ended; what was sampled of it is still there to be read.
                let mut threads = targets::threads_of(*pid).unwrap_or_default();
                threads.retain(|tid| known.insert(*tid));
                if threads.is_empty() {
                    break;
                }
                for tid in threads {
                    planned += self.open_at(&targets::thread(tid))?;
                }
            }
        }
        if self.counters.len() > self.kept.0 {
            return Ok(());
        }
        let attempted = format!("sample {} on {}", self.names(), self.target);
        Err(if planned == 0 {
            Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("no CPU of the target can count all of these events")
        } else {
            Error::new(ErrorKind::NoSuchTarget, attempted).with_reason("it has ended")
        })
    }

    fn names(&self) -> String {
        let names = self.spec.events.iter().map(|e| e.event.to_string());
        names.collect::<Vec<_>>().join(",")
    }

    /// Opens the events at an attachment, on each CPU if they are inherited; how many parts that were to
    /// be.
    fn open_at(&mut self, attachment: &Attachment) -> Result<usize> {
        if !self.spec.attributes.inherit || attachment.attach.cpu >= 0 {
            return self.open_parts(attachment);
        }
        let mut planned = 0;
        for cpu in Topology::new().online()? {
            let mut part = Part::on_cpu(cpu);
            part.thread = attachment.part.thread;
            let attach = Attach {
                cpu: cpu.cast_signed(),
                ..attachment.attach
            };
            planned += self.open_parts(&Attachment { attach, part })?;
        }
        Ok(planned)
    }

    fn open_parts(&mut self, attachment: &Attachment) -> Result<usize> {
        let first = self.counters.len();
        let planned = self.open_events(attachment)?;
        if self.counters.len() > first {
            self.first.push(first);
        }
        Ok(planned)
    }

    fn open_events(&mut self, attachment: &Attachment) -> Result<usize> {
        let cores = self.backend.events.core_pmus().of(&self.placements);
        let mut planned = 0;
        let mut first = 0;
        let groups = self.spec.events.chunk_by(|_, next| next.is_member);
        for len in groups.map(<[_]>::len) {
            let group = first..first + len;
            first = group.end;
            let placements = &self.placements[group.clone()];
            let parts = plan(placements, cores, std::slice::from_ref(attachment));
            planned += parts.len();
            for part in &parts {
                self.open_part(part, group.clone())?;
            }
        }
        Ok(planned)
    }

    /// Opens a group in one part, and has its events write into the ring of that.
    fn open_part(&mut self, part: &PlannedPart, group: Range<usize>) -> Result<()> {
        let mut leader: Option<Arc<SampledCounter>> = None;
        for (event, bits) in group.zip(&*part.bits) {
            let leader_fd = leader.as_deref().map(SampledCounter::fd);
            let opened = self.open_counter(event, *bits, part.attach, leader_fd);
            let counter = match opened {
                Ok(counter) => Arc::new(counter),
                Err(refused)
                    if refused.failure == OpenFailure::Errno(libc::ESRCH)
                        && matches!(self.target, Target::Process(_)) =>
                {
                    return Ok(());
                }
                Err(refused) => return Err(self.explain(&refused, part)),
            };
            condition::set(counter.fd(), &self.spec.events[event].event)
                .map_err(|e| e.with_member(event))?;
            self.connect(&counter, part)?;
            self.counters.push(counter.clone());
            leader.get_or_insert(counter);
        }
        Ok(())
    }

    fn open_counter(
        &mut self,
        event: usize,
        bits: EventBits,
        attach: Attach,
        leader: Option<&CounterFd>,
    ) -> Result<SampledCounter, RefusedMember> {
        let levels = precise_levels(self.spec.events[event].event.precision);
        let mut last = PerfEventAttr::default();
        let mut opened = Err(OpenFailure::Errno(libc::EINVAL));
        for level in levels {
            last = attr(self.spec, event, bits, *level, &self.layout);
            opened = perf_event_open(&last, attach, leader);
            let format = self.layout.read_format();
            if matches!(opened, Err(OpenFailure::Errno(libc::EINVAL)))
                && format.contains(ReadFormat::LOST)
                && self.counters.is_empty()
            {
                // Kernels before 6.0 do not have it. All counters have the same layout, so only the
                // first one decides.
                let without = self.layout.with_read_format(format - ReadFormat::LOST);
                let less = attr(self.spec, event, bits, *level, &without);
                if let Ok(fd) = perf_event_open(&less, attach, leader) {
                    (self.layout, last, opened) = (without, less, Ok(fd));
                }
            }
            if opened.is_ok() {
                break;
            }
        }
        let refused = |failure| RefusedMember {
            member: event,
            attr: Box::new(last),
            attach,
            failure,
        };
        let fd = opened.map_err(refused)?;
        SampledCounter::new(fd, event, last, self.as_probes[event], &self.probes)
            .map_err(|errno| refused(OpenFailure::NoId(errno)))
    }

    /// Gives a counter the ring of its CPU or thread, or maps that.
    fn connect(&mut self, counter: &Arc<SampledCounter>, part: &PlannedPart) -> Result<()> {
        let here = match part.part.cpu {
            Some(cpu) => Part::on_cpu(cpu),
            None => {
                let mut here = part.part.clone();
                here.core = None;
                here
            }
        };
        if let Some(ring) = self.rings.iter().find(|ring| *ring.part() == here) {
            return counter.set_output(Some(ring.counter()));
        }
        let (bytes, when_full) = (self.spec.ring_bytes, self.spec.when_full);
        let ring = Ring::map(here, counter.clone(), bytes, when_full)
            .map_err(|errno| sampler_error::of_ring(errno, bytes))?;
        self.rings.push(ring);
        Ok(())
    }

    /// Closes what this call has opened.
    fn give_up(&mut self) {
        let (counters, rings) = self.kept;
        self.rings.truncate(rings);
        self.counters.truncate(counters);
    }

    fn explain(&mut self, refused: &RefusedMember, part: &PlannedPart) -> Error {
        // The counters that did open may be what there was no room beside.
        self.give_up();
        let events = self.spec.events.iter().map(|e| e.event.clone());
        let group = GroupSpec::new(events);
        let events = &self.backend.events;
        sampler_error::explain(refused, self.spec, &group, self.target, part, events)
    }
}
