//! The backend: what a crate of one's own would have.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::system::{COUNTERS, EVENTS, System};
use quipu_hal::{
    Attributes, Backend, Capabilities, Error, ErrorKind, Event, EventInfo, EventSpec, Features,
    Group, GroupSpec, Part, ReadBuf, Result, Simultaneity, Target, TargetKinds,
};
use quipu_pmu::assign::{Matching, Shortage};

pub(crate) struct ThreadCounters<S> {
    capabilities: Capabilities,
    system: Arc<S>,
    /// The counters of open groups, a bit each.
    taken: Arc<Mutex<u64>>,
}

impl<S: System> ThreadCounters<S> {
    pub(crate) fn new(system: Arc<S>) -> Self {
        let mut capabilities = Capabilities::none();
        capabilities.targets = TargetKinds::CURRENT_THREAD;
        capabilities.features = Features::HARDWARE_EVENTS;
        capabilities.simultaneity = Simultaneity::Atomic;
        capabilities.slots = Some(COUNTERS);
        Self {
            capabilities,
            system,
            taken: Arc::default(),
        }
    }
}

impl<S: System> Backend for ThreadCounters<S> {
    fn name(&self) -> &'static str {
        "thread-counters"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        check(spec, target)?;
        let (mut infos, mut events) = (Vec::new(), Vec::new());
        for (index, member) in spec.members.iter().enumerate() {
            events.push(resolve(member).map_err(|error| error.with_member(index))?);
            infos.push(EventInfo::counter(member.event.to_string()));
        }
        let mut group = ThreadGroup {
            counters: assign(&events, &self.taken)?,
            now: ReadBuf::new(events.len(), [Part::whole()]),
            infos,
            system: Arc::clone(&self.system),
            taken: Arc::clone(&self.taken),
            thread: thread::current().id(),
            since: None,
        };
        for (&counter, (event, _)) in group.counters.iter().zip(events) {
            self.system.select(counter, event);
        }
        if !spec.attributes.disabled {
            group.enable()?;
        }
        Ok(Box::new(group))
    }
}

fn error(kind: ErrorKind, reason: impl Into<String>) -> Error {
    Error::new(kind, "open a group").with_reason(reason)
}

/// Refuses what the system cannot do: an attribute that is ignored would be a wrong number.
fn check(spec: &GroupSpec, target: &Target) -> Result<()> {
    let unsupported = |reason| Err(error(ErrorKind::UnsupportedFeature, reason));
    if spec.members.is_empty() {
        Err(error(ErrorKind::InvalidConfiguration, "it has no members"))
    } else if *target != Target::CurrentThread {
        unsupported("a thread can only read its own counters")
    } else if spec.attributes != Attributes::default().with_disabled(spec.attributes.disabled) {
        unsupported("the system has no scheduler of counters")
    } else {
        Ok(())
    }
}

/// Returns the number of an event and the counters that can count it.
fn resolve(member: &EventSpec) -> Result<(u64, u64)> {
    let error = |kind, reason| Error::new(kind, format!("count {member}")).with_reason(reason);
    let is_named = |name: &str| member.event == Event::Named(name.into());
    let Some((_, number, counters)) = EVENTS.into_iter().find(|(name, ..)| is_named(name)) else {
        let reason = "this CPU has no such event";
        return Err(error(ErrorKind::UnsupportedEvent, reason));
    };
    if *member != EventSpec::new(member.event.clone()) {
        let reason = "it counts in every mode, and does not sample";
        return Err(error(ErrorKind::UnsupportedFeature, reason));
    }
    Ok((number, counters))
}

/// Takes a free counter for each event, or none.
fn assign(events: &[(u64, u64)], taken: &Mutex<u64>) -> Result<Vec<usize>> {
    let place = |kind, free: u64| -> Result<Matching> {
        let mut matching = Matching::new();
        let added = matching.add_all(events.iter().map(|event| (event.1 & free, None)));
        let last = |shortage: &Shortage| shortage.events().last().unwrap_or_default();
        added.map_err(|s| error(kind, s.to_string()).with_member(last(&s)))?;
        Ok(matching)
    };
    place(ErrorKind::TooManyEvents, u64::MAX)?;
    let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    let matching = place(ErrorKind::Busy, !*taken)?;
    let slots = (0..events.len()).map(|event| matching.slot_of(event));
    *taken |= slots.clone().fold(0, |mask, slot| mask | 1 << slot);
    Ok(slots.collect())
}

/// A group: the sums of what its counters counted while it was enabled.
struct ThreadGroup<S: System> {
    system: Arc<S>,
    taken: Arc<Mutex<u64>>,
    counters: Vec<usize>,
    infos: Vec<EventInfo>,
    thread: ThreadId,
    now: ReadBuf,
    /// The counters and the time up to which `now` goes, if the group is enabled.
    since: Option<([u64; COUNTERS], u64)>,
}

impl<S: System> ThreadGroup<S> {
    /// Brings `now` up to date.
    fn update(&mut self) -> Result<()> {
        if self.thread != thread::current().id() {
            let error = Error::new(ErrorKind::WrongThread, "use a group of another thread");
            return Err(error.with_reason("a thread can only read its own counters"));
        }
        if let Some((counters, time)) = &mut self.since {
            let (new, new_time) = self.system.read();
            for (reading, &counter) in self.now[0].iter_mut().zip(&self.counters) {
                reading.value += new[counter] - counters[counter];
                // Without multiplexing it counts all the time.
                reading.time_enabled += new_time - *time;
                reading.time_running = reading.time_enabled;
                reading.raw_time_enabled += new_time - *time;
                reading.raw_time_running = reading.raw_time_enabled;
            }
            (*counters, *time) = (new, new_time);
        }
        Ok(())
    }
}

impl<S: System> Group for ThreadGroup<S> {
    fn members(&self) -> &[EventInfo] {
        &self.infos
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        self.update()?;
        self.since.get_or_insert_with(|| self.system.read());
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        self.update()?;
        self.since = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.update()?;
        for reading in &mut self.now[0] {
            (reading.value, reading.time_enabled, reading.time_running) = (0, 0, 0);
        }
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.infos.len(), self.parts())?;
        self.update()?;
        out[0].copy_from_slice(&self.now[0]);
        Ok(())
    }
}

impl<S: System> Drop for ThreadGroup<S> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for &counter in &self.counters {
            self.system.select(counter, 0);
            *taken &= !(1 << counter);
        }
    }
}
