//! Event sets: what is in one, its state, and the functions that make, fill and empty one.

mod counting;
pub(crate) mod cpus;
pub(crate) mod functions;

use std::ffi::{c_int, c_longlong, c_ulong};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quipu::{EventSpec, Filter, Target};

use crate::abi::NULL;
use crate::code::{ECMP_DISABLED, ECNFLCT, EINVAL, EISRUN, ENOCMP, ENOEVNT, Outcome, is_handling};
use crate::component::{
    CPU, DEFAULTS, DOM_KERNEL, DOM_SUPERVISOR, DOM_USER, GRN_SYS, UNCORE, disabled,
};
use crate::library::LIBRARY;
use crate::native::{Together, is_native, native};
use crate::overflow::Overflow;
use crate::preset;
use crate::profile::Profile;
use crate::thread::Thread;
use crate::user_events;
use counting::Counting;
pub(crate) use counting::counted_here;

pub(crate) const STOPPED: c_int = 0x01;
pub(crate) const RUNNING: c_int = 0x02;
pub(crate) const OVERFLOWING: c_int = 0x10;
pub(crate) const PROFILING: c_int = 0x20;
pub(crate) const MULTIPLEXING: c_int = 0x40;
pub(crate) const ATTACHED: c_int = 0x80;
pub(crate) const CPU_ATTACHED: c_int = 0x100;

/// The options of multiplexing, as the program gave them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Multiplexing {
    pub(crate) ns: c_int,
    pub(crate) flags: c_int,
}

/// One event set.
pub(crate) struct Set {
    pub(crate) state: c_int,
    pub(crate) component: Option<usize>,
    pub(crate) events: Vec<c_int>,
    pub(crate) domain: c_int,
    pub(crate) granularity: c_int,
    pub(crate) attached: c_ulong,
    pub(crate) cpu: Option<u32>,
    pub(crate) inherit: c_int,
    pub(crate) multiplexing: Multiplexing,
    /// The thread that made it.
    master: Arc<Thread>,
    counting: Option<Counting>,
    /// The values when it was stopped or last read by the library itself.
    values: Vec<c_longlong>,
    pub(crate) overflow: Overflow,
    pub(crate) profile: Profile,
}

impl Set {
    fn new(master: Arc<Thread>) -> Self {
        Self {
            state: STOPPED,
            component: None,
            events: Vec::new(),
            domain: 0,
            granularity: 0,
            attached: 0,
            cpu: None,
            inherit: 0,
            multiplexing: Multiplexing::default(),
            master,
            counting: None,
            values: Vec::new(),
            overflow: Overflow::default(),
            profile: Profile::default(),
        }
    }

    /// Returns an empty set of the calling thread.
    pub(crate) fn for_this_thread() -> Outcome<Self> {
        Ok(Self::new(LIBRARY.threads.current()?))
    }

    /// Returns the component the set is assigned to.
    pub(crate) fn component(&self) -> Outcome<usize> {
        self.component.ok_or(ENOCMP)
    }

    /// Returns true if it is running.
    pub(crate) fn is_running(&self) -> bool {
        self.state & RUNNING != 0
    }

    /// Returns a code if it may not be changed: it is running, or a handler of overflows asks, which may stop it only.
    pub(crate) fn require_stopped(&self) -> Outcome {
        match self.state & STOPPED != 0 && !is_handling() {
            true => Ok(()),
            false => Err(EISRUN),
        }
    }

    /// Assigns it to a component, whose defaults it takes.
    pub(crate) fn assign(&mut self, component: usize) {
        self.component = Some(component);
        self.domain = DEFAULTS[component].domain.load(Ordering::Relaxed);
        self.granularity = DEFAULTS[component].granularity.load(Ordering::Relaxed);
    }

    /// Returns what is counted.
    pub(crate) fn target(&self) -> Target {
        let counts_cpus = self.cpu.is_some()
            || self.attached == 0 && self.granularity == GRN_SYS
            || self.component == Some(UNCORE)
            || cfg!(not(target_os = "linux"));
        let thread = match self.attached {
            0 => None,
            tid => Some(i32::try_from(tid).unwrap_or(i32::MAX)),
        };
        match (Together::of(&self.events).cpu.or(self.cpu), thread) {
            (Some(cpu), _) if counts_cpus => Target::Cpu(cpu),
            (Some(cpu), thread) => Target::ThreadOnCpu { thread, cpu },
            (None, None) if self.component == Some(UNCORE) => Target::AllCpus,
            (None, None) if self.granularity == GRN_SYS => Target::CurrentCpu,
            (None, None) => Target::CurrentThread,
            (None, Some(tid)) => Target::Thread(tid),
        }
    }

    /// Returns the filter of the set's domain.
    pub(crate) fn filter(&self) -> Filter {
        if self.component == Some(UNCORE) {
            return Filter::default();
        }
        let levels = [
            (DOM_USER, Filter::USER),
            (DOM_KERNEL, Filter::KERNEL),
            (DOM_SUPERVISOR, Filter::HYPERVISOR),
        ];
        let counted = levels
            .iter()
            .filter(|(domain, _)| self.domain & domain != 0);
        let levels = counted.fold(Filter::empty(), |all, (_, level)| all | *level);
        Filter::default().with_levels(levels)
    }

    /// Returns what to count for an event, with a signal if its overflows are looked for.
    fn spec(&self, code: c_int) -> Outcome<EventSpec> {
        let spec = self.counted(code)?;
        Ok(self.with_signal(code, spec))
    }

    fn counted(&self, code: c_int) -> Outcome<EventSpec> {
        if !is_native(code) {
            let name = match user_events::by_code(code) {
                Some(event) => &event.name,
                None => preset::by_code(code)?.1,
            };
            let event = quipu::Event::Named(name.to_owned());
            return Ok(EventSpec::new(event).with_filter(self.filter()));
        }
        let (spec, has_levels) = native(code, |native| (native.spec.clone(), native.has_levels))?;
        // getrusage(2) of the BSDs has one number for all modes.
        let in_all_modes = cfg!(not(target_os = "linux"))
            && self.domain & DOM_USER != 0
            && matches!(spec.event, quipu::Event::Software(_));
        if has_levels || in_all_modes || self.component == Some(UNCORE) {
            return Ok(spec);
        }
        let levels = self.filter().intersection(Filter::LEVELS);
        let filter = spec.filter.with_levels(levels);
        Ok(spec.with_filter(filter))
    }

    /// Adds an event, if it can be counted with the others.
    pub(crate) fn add(&mut self, code: c_int) -> Outcome {
        self.join(code)?;
        if let Err(code) = self.open_added() {
            self.events.pop();
            // What was there before counts again; it did so before.
            let _ = self.open();
            return Err(code);
        }
        Ok(())
    }

    /// Adds events in the order given, up to the first that cannot be added: returns how many, and why not more.
    pub(crate) fn add_all(&mut self, mut codes: impl Iterator<Item = c_int>) -> (usize, Outcome) {
        let before = self.events.len();
        let joined = codes.try_for_each(|code| self.join(code));
        let added = self.events.len() - before;
        // Opened at once they cost less; where that fails, adding one by one tells which of them is in the way.
        if added > 1 && self.open_added().is_ok() {
            return (added, joined);
        }
        let added = self.events.split_off(before);
        for (at, code) in added.iter().enumerate() {
            if let Err(code) = self.add(*code) {
                return (at, Err(code));
            }
        }
        (added.len(), joined)
    }

    /// Puts an event behind the others, not opened yet.
    fn join(&mut self, code: c_int) -> Outcome {
        let component = match is_native(code) {
            true => native(code, |native| native.component).ok(),
            false => (preset::is_preset(code) || preset::is_user_defined(code)).then_some(CPU),
        };
        if component.is_none() && !is_native(code) {
            return Err(EINVAL);
        }
        self.require_stopped()?;
        let component = component.ok_or(ENOCMP)?;
        let own = user_events::by_code(code);
        if preset::is_user_defined(code) && own.is_none() {
            return Err(EINVAL);
        }
        if disabled(component).is_some() {
            return Err(ECMP_DISABLED);
        }
        match self.component {
            None => self.assign(component),
            Some(assigned) if assigned != component => return Err(EINVAL),
            Some(_) => {}
        }
        if self.events.contains(&code) {
            return Err(ECNFLCT);
        }
        // Events of one set are counted in one place.
        let of_one = |code: c_int| Together::of(&[code]).cpu;
        if self
            .events
            .first()
            .is_some_and(|first| of_one(*first) != of_one(code))
        {
            return Err(EINVAL);
        }
        // A code that no preset has is here one that cannot be counted.
        let known = match is_native(code) {
            true => native(code, |_| ()),
            // Its terms were found when it was defined.
            false if own.is_some() => Ok(()),
            false => {
                preset::by_code(code).and_then(|(index, _)| preset::query_on(index, &self.target()))
            }
        };
        known.map_err(|_| ENOEVNT)?;
        self.events.push(code);
        Ok(())
    }

    /// Removes an event.
    pub(crate) fn remove(&mut self, code: c_int) -> Outcome {
        let is_event = is_native(code) || preset::is_preset(code);
        if !is_event && user_events::by_code(code).is_none() {
            return Err(EINVAL);
        }
        self.require_stopped()?;
        let at = self.index(code).ok_or(EINVAL)?;
        self.overflow.forget(code);
        self.profile.forget(code);
        self.note_overflow();
        self.events.remove(at);
        self.open()
    }

    /// Removes events in the order given, up to the first that cannot be removed: returns how many, and why not more.
    pub(crate) fn remove_all(&mut self, codes: impl Iterator<Item = c_int>) -> (usize, Outcome) {
        let mut removed = 0;
        for code in codes {
            if let Err(code) = self.remove(code) {
                return (removed, Err(code));
            }
            removed += 1;
        }
        (removed, Ok(()))
    }

    /// Brings the state in line with what overflows and is profiled.
    pub(crate) fn note_overflow(&mut self) {
        let mut note = |bit: c_int, on: bool| match on {
            true => self.state |= bit,
            false => self.state &= !bit,
        };
        note(OVERFLOWING, !self.overflow.is_empty());
        note(PROFILING, !self.profile.is_empty());
    }

    /// Returns true if an event is a preset of several others.
    pub(crate) fn is_derived(code: c_int) -> bool {
        let preset = || preset::formula(preset::by_code(code).ok()?.0);
        let own = user_events::by_code(code).map(|event| &event.formula);
        own.or_else(preset)
            .is_some_and(|formula| formula.single().is_none())
    }

    /// Returns the position of an event.
    pub(crate) fn index(&self, code: c_int) -> Option<usize> {
        self.events
            .iter()
            .position(|event| *event == code && code != NULL)
    }

    /// Removes all events; the component stays unassigned from then on, and so do options.
    pub(crate) fn clean_up(&mut self) -> Outcome {
        if self.component.is_none() {
            return Ok(());
        }
        self.require_stopped()?;
        let master = Arc::clone(&self.master);
        *self = Self::new(master);
        Ok(())
    }
}
