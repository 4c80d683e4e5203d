//! An open group: a meter of this thread or process, or a child.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use quipu_hal::{Error, ErrorKind, EventInfo, Group, Part, ReadBuf, Reading, Result, Simultaneity};

use crate::Quantity;
use crate::child::Child;
use crate::meter::{Meter, Scope};
use crate::sys;

/// A group of a [`PosixBackend`](crate::PosixBackend).
///
/// A group on the calling thread answers [`WrongThread`](ErrorKind::WrongThread) on any other.
#[derive(Debug)]
pub struct PosixGroup {
    quantities: Box<[Quantity]>,
    infos: Box<[EventInfo]>,
    parts: Arc<[Part]>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// This process; the thread, where only that one can meter itself.
    Own(Meter, Option<ThreadId>),
    Child(Child),
}

impl PosixGroup {
    pub(crate) fn of_own(quantities: Vec<Quantity>, scope: Scope, counts: bool) -> Result<Self> {
        let meter = Meter::new(&quantities, scope, counts)?;
        let thread = (scope == Scope::Thread).then(|| thread::current().id());
        let mut infos: Vec<EventInfo> = quantities.iter().map(|q| q.info()).collect();
        if scope == Scope::ProcessAndChildren {
            note(&mut infos, "children count once they have been waited for");
        }
        note_where(
            &mut infos,
            &quantities,
            Quantity::is_of_counters,
            "of threads that run on other CPUs meanwhile it has what they did up to their last entry of the kernel",
        );
        note_sampled(&mut infos, &quantities, |quantity| {
            quantity.is_sampled_time() || scope == Scope::ProcessAndChildren
        });
        Ok(Self::new(quantities, infos, Kind::Own(meter, thread)))
    }

    pub(crate) fn of_child(quantities: Vec<Quantity>, pid: i32, counts: bool) -> Result<Self> {
        let child = Child::new(pid, &quantities, counts)?;
        let mut infos: Vec<EventInfo> = quantities.iter().map(|q| q.info()).collect();
        note_where(
            &mut infos,
            &quantities,
            |quantity| !quantity.is_of_counters(),
            "as wait4(2) reports it: of the process and the children it waited for, from fork to end, known \
             once it has ended",
        );
        note_where(
            &mut infos,
            &quantities,
            Quantity::is_of_counters,
            "as proc_pid_rusage(2) reports it: of the process alone, from fork to exit(2), at least that if it waited for \
             children; known if it was read between its end and the wait for it",
        );
        note_sampled(&mut infos, &quantities, |_| true);
        Ok(Self::new(quantities, infos, Kind::Child(child)))
    }

    fn new(quantities: Vec<Quantity>, infos: Vec<EventInfo>, kind: Kind) -> Self {
        Self {
            quantities: quantities.into(),
            infos: infos.into(),
            parts: [Part::whole()].into(),
            kind,
        }
    }
}

/// Notes a sentence on some of the quantities.
fn note_where(
    infos: &mut [EventInfo],
    quantities: &[Quantity],
    is_noted: impl Fn(Quantity) -> bool,
    sentence: &str,
) {
    for (info, &quantity) in infos.iter_mut().zip(quantities) {
        if is_noted(quantity) {
            note(std::slice::from_mut(info), sentence);
        }
    }
}

fn note(infos: &mut [EventInfo], sentence: &str) {
    for info in infos {
        info.errata.push(sentence.to_owned());
    }
}

/// Notes the resolution of those times among quantities that the system samples.
fn note_sampled(
    infos: &mut [EventInfo],
    quantities: &[Quantity],
    from_rusage: impl Fn(Quantity) -> bool,
) {
    const SAMPLED: &str = "this system samples CPU times: they are right within some 10 ms";
    if !sys::HAS_SAMPLED_TIMES {
        return;
    }
    let is_sampled = |quantity: Quantity| {
        let is_cpu_time = quantity.is_sampled_time() || quantity == Quantity::TaskClock;
        is_cpu_time && from_rusage(quantity)
    };
    note_where(infos, quantities, is_sampled, SAMPLED);
}

impl Kind {
    /// The meter, on the thread it can be used on.
    fn meter(meter: &mut Meter, thread: Option<ThreadId>) -> Result<&mut Meter> {
        if thread.is_some_and(|t| t != thread::current().id()) {
            return Err(
                Error::new(ErrorKind::WrongThread, "count the usage of another thread")
                    .with_reason("getrusage(2) reports the calling thread only"),
            );
        }
        Ok(meter)
    }
}

impl Group for PosixGroup {
    fn members(&self) -> &[EventInfo] {
        &self.infos
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        match &self.kind {
            Kind::Own(meter, _) if !meter.is_one_snapshot() => Simultaneity::Sequential,
            _ => Simultaneity::Atomic,
        }
    }

    fn read_buf(&self) -> ReadBuf {
        ReadBuf::new(self.quantities.len(), Arc::clone(&self.parts))
    }

    fn enable(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Own(meter, thread) => Kind::meter(meter, *thread)?.enable(),
            Kind::Child(child) => child.enable(),
        }
    }

    fn disable(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Own(meter, thread) => Kind::meter(meter, *thread)?.disable(),
            Kind::Child(child) => child.disable(),
        }
    }

    fn reset(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Own(meter, thread) => Kind::meter(meter, *thread)?.reset(),
            Kind::Child(child) => child.reset(),
        }
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.quantities.len(), &self.parts)?;
        let out = &mut out[0];
        match &mut self.kind {
            Kind::Own(meter, thread) => {
                let metered = Kind::meter(meter, *thread)?.read()?;
                let (time, raw) = (metered.usage.cpu, metered.cpu_since_opening);
                for (out, quantity) in out.iter_mut().zip(&self.quantities) {
                    let value = metered.usage.value(*quantity);
                    *out = Reading::new(value, time, time).with_raw_times(raw, raw);
                }
                Ok(())
            }
            Kind::Child(child) => child.read(&self.quantities, out),
        }
    }
}
