//! The backend: what a crate of one's own would have.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use quipu_hal::{
    Attributes, Backend, Capabilities, CounterBank, CpuIdentity, CpuModel, Encoding, Error,
    ErrorKind, Event, EventInfo, EventMap, Features, Filter, Group, GroupSpec, Part, Precision,
    ReadBuf, Reading, ResolvedEvent, Result, Scheme, Simultaneity, SlotClass, SlotSet, Target,
    TargetKinds,
};

/// The number of counters: the fixed ones, then the configurable ones.
pub(crate) const COUNTERS: usize = 10;
const FIXED: usize = 2;
/// The name of the encoding's scheme.
const SCHEME: &str = "thread-counters";

/// The system calls, which a simulated implementation can replace.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Selects the event of a configurable counter in all threads; 0 is none.
    fn select(&self, counter: usize, event: u64);
    /// Reads the counters of the calling thread, which never go back.
    fn counters(&self) -> [u64; COUNTERS];
    /// Reads the nanoseconds for which the calling thread has had a CPU.
    fn thread_time(&self) -> u64;
}

/// The events of the CPU by name, with number and counters.
pub(crate) const EVENTS: [(&str, u64, SlotSet); 4] = [
    ("CYCLES", 1, SlotSet::one(SlotClass::Fixed, 0)),
    ("INSTRUCTIONS", 2, SlotSet::one(SlotClass::Fixed, 1)),
    ("LOADS", 3, SlotSet::ANY_GENERAL),
    ("DIVIDES", 4, SlotSet::general(0b0011)),
];

/// The event map, which an event database can replace.
#[derive(Debug)]
pub(crate) struct Events(CpuModel);

impl Events {
    fn new() -> Self {
        let bank = |class, number| CounterBank {
            class,
            number,
            width: 64,
        };
        let identity = CpuIdentity::Other {
            scheme: SCHEME,
            id: "simulated".into(),
        };
        let counters = vec![bank(SlotClass::Fixed, 2), bank(SlotClass::General, 8)];
        Self(CpuModel::new(identity, Scheme::Other(SCHEME), counters))
    }
}

impl EventMap for Events {
    fn cpu(&self) -> &CpuModel {
        &self.0
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let refuse = |kind, reason: &str| {
            Err(Error::new(kind, format!("count {event}")).with_reason(reason))
        };
        let named = |name: &str| *event == Event::Named(name.into());
        let Some((name, number, slots)) = EVENTS.into_iter().find(|(name, ..)| named(name)) else {
            return refuse(ErrorKind::UnsupportedEvent, "this CPU has no such event");
        };
        if filter != Filter::default() {
            return refuse(
                ErrorKind::UnsupportedFeature,
                "the counters count in every mode",
            );
        }
        let encoding = Encoding::Other {
            scheme: SCHEME,
            words: [number, 0, 0, 0],
        };
        Ok(ResolvedEvent::new(
            encoding,
            slots,
            EventInfo::counter(name),
        ))
    }
}

/// The event of each counter, and the number of group members that read it.
#[derive(Debug, Default)]
struct Selected {
    event: [u64; COUNTERS],
    readers: [usize; COUNTERS],
}

#[derive(Debug)]
struct System<T> {
    transport: T,
    selected: Mutex<Selected>,
}

impl<T: Transport> System<T> {
    fn selected(&self) -> MutexGuard<'_, Selected> {
        self.selected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a counter for an event and selects it. A counter that goes on counting can be read by any
    /// number of groups, so an event that is selected already shares its counter.
    fn take(&self, event: u64, slots: SlotSet) -> Option<usize> {
        let mut selected = self.selected();
        let is_allowed = |counter: usize| {
            let (class, number) = match counter.checked_sub(FIXED) {
                None => (SlotClass::Fixed, counter),
                Some(number) => (SlotClass::General, number),
            };
            u8::try_from(number).is_ok_and(|number| slots.contains(class, number))
        };
        let shared = |&counter: &usize| selected.event[counter] == event;
        let free = |&counter: &usize| selected.readers[counter] == 0 && is_allowed(counter);
        let counter = (0..COUNTERS)
            .find(shared)
            .or_else(|| (0..COUNTERS).find(free))?;
        if selected.readers[counter] == 0 {
            self.transport.select(counter, event);
        }
        selected.event[counter] = event;
        selected.readers[counter] += 1;
        Some(counter)
    }

    fn give_back(&self, counter: usize) {
        let mut selected = self.selected();
        selected.readers[counter] -= 1;
        if selected.readers[counter] == 0 {
            selected.event[counter] = 0;
            self.transport.select(counter, 0);
        }
    }
}

/// The backend.
#[derive(Debug)]
pub(crate) struct ThreadCounters<T> {
    system: Arc<System<T>>,
    events: Events,
    capabilities: Capabilities,
}

impl<T: Transport> ThreadCounters<T> {
    /// Creates the backend over a system.
    pub(crate) fn new(transport: T) -> Self {
        let mut capabilities = Capabilities::none();
        capabilities.targets = TargetKinds::CURRENT_THREAD;
        capabilities.features = Features::HARDWARE_EVENTS;
        capabilities.simultaneity = Simultaneity::Atomic;
        let selected = Mutex::default();
        Self {
            system: Arc::new(System {
                transport,
                selected,
            }),
            events: Events::new(),
            capabilities,
        }
    }
}

impl<T: Transport> Backend for ThreadCounters<T> {
    fn name(&self) -> &'static str {
        "thread-counters"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        check(spec, target)?;
        let mut group = ThreadGroup {
            members: Vec::new(),
            values: vec![0; spec.members.len()],
            counters: Vec::new(),
            system: Arc::clone(&self.system),
            parts: [Part::whole()],
            thread: thread::current().id(),
            since: None,
            enabled: 0,
            raw_enabled: 0,
        };
        // An error drops the group, which gives back what it has.
        for (index, member) in spec.members.iter().enumerate() {
            let resolved = self.events.resolve(&member.event, member.filter);
            let resolved = resolved.map_err(|error| error.with_member(index))?;
            let Encoding::Other { words, .. } = resolved.encoding else {
                unreachable!("the map has one scheme");
            };
            let counter = self.system.take(words[0], resolved.slots).ok_or_else(|| {
                Error::new(ErrorKind::Busy, format!("count {member}"))
                    .with_reason("the counters that can count it are in use")
                    .with_member(index)
            })?;
            group.counters.push(counter);
            group.members.push(resolved.info);
        }
        if !spec.attributes.disabled {
            group.enable()?;
        }
        Ok(Box::new(group))
    }
}

/// Refuses what a system of this kind cannot do: an attribute that is ignored would be a wrong number.
fn check(spec: &GroupSpec, target: &Target) -> Result<()> {
    let refuse = |kind, reason: &str| {
        Err(Error::new(kind, format!("open a group on {target}")).with_reason(reason))
    };
    let known = Attributes::default().with_disabled(spec.attributes.disabled);
    if spec.members.is_empty() {
        refuse(ErrorKind::InvalidConfiguration, "it has no members")
    } else if *target != Target::CurrentThread {
        refuse(
            ErrorKind::UnsupportedFeature,
            "a thread can read its own counters only",
        )
    } else if spec.attributes != known {
        refuse(
            ErrorKind::UnsupportedFeature,
            "the system has no scheduler of counters",
        )
    } else if spec
        .members
        .iter()
        .any(|m| m.condition.is_some() || !matches!(m.precision, Precision::Any | Precision::Best))
    {
        refuse(ErrorKind::UnsupportedFeature, "the system does not sample")
    } else {
        Ok(())
    }
}

/// A group: counters that go on all the time, and their values when it was enabled.
struct ThreadGroup<T: Transport> {
    system: Arc<System<T>>,
    members: Vec<EventInfo>,
    parts: [Part; 1],
    thread: ThreadId,
    counters: Vec<usize>,
    /// The values up to the last time it was disabled.
    values: Vec<u64>,
    enabled: u64,
    raw_enabled: u64,
    /// The counters and the time when it was enabled last, if it is.
    since: Option<([u64; COUNTERS], u64)>,
}

impl<T: Transport> ThreadGroup<T> {
    /// Brings values and times up to now.
    fn update(&mut self) -> Result<()> {
        if self.thread != thread::current().id() {
            let error = Error::new(
                ErrorKind::WrongThread,
                "read the counters of another thread",
            );
            return Err(error.with_reason("a thread can read its own counters only"));
        }
        if let Some((counters, time)) = &mut self.since {
            let (now, thread_time) = (
                self.system.transport.counters(),
                self.system.transport.thread_time(),
            );
            for (value, &counter) in self.values.iter_mut().zip(&self.counters) {
                *value += now[counter] - counters[counter];
            }
            self.enabled += thread_time - *time;
            self.raw_enabled += thread_time - *time;
            (*counters, *time) = (now, thread_time);
        }
        Ok(())
    }
}

impl<T: Transport> Group for ThreadGroup<T> {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        self.update()?;
        let transport = &self.system.transport;
        self.since
            .get_or_insert_with(|| (transport.counters(), transport.thread_time()));
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        self.update()?;
        self.since = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.update()?;
        self.values.fill(0);
        self.enabled = 0;
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        if out.members() != self.members.len() || out.parts() != self.parts {
            return Err(Error::new(ErrorKind::InvalidConfiguration, "read a group")
                .with_reason("the buffer is of another group"));
        }
        self.update()?;
        for (reading, &value) in out[0].iter_mut().zip(&self.values) {
            *reading = Reading::new(value, self.enabled, self.enabled)
                .with_raw_times(self.raw_enabled, self.raw_enabled);
        }
        Ok(())
    }
}

impl<T: Transport> Drop for ThreadGroup<T> {
    fn drop(&mut self) {
        for &counter in &self.counters {
            self.system.give_back(counter);
        }
    }
}
