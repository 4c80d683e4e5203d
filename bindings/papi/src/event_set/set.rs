//! An event set: what is in it, and its state.

use std::ffi::{c_int, c_longlong, c_ulong};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quipu::{Filter, Target};

use crate::abi::NULL;
use crate::boundary::inside::is_handling;
use crate::code::{EISRUN, ENOCMP, Outcome};
use crate::component::{DEFAULTS, DOM_KERNEL, DOM_SUPERVISOR, DOM_USER, GRN_SYS, UNCORE};
use crate::event::native::Together;
use crate::event::{preset, user_events};
use crate::event_set::counters::Counters;
use crate::overflow::watched::Overflow;
use crate::profile::buckets::Profiles;
use crate::thread::{THREADS, Thread};

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
    pub(crate) master: Arc<Thread>,
    pub(crate) counters: Option<Counters>,
    /// The values when it was stopped or last read by the library itself.
    pub(crate) values: Vec<c_longlong>,
    pub(crate) overflow: Overflow,
    pub(crate) profile: Profiles,
}

impl Set {
    pub(crate) fn new(master: Arc<Thread>) -> Self {
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
            counters: None,
            values: Vec::new(),
            overflow: Overflow::default(),
            profile: Profiles::default(),
        }
    }

    /// Returns an empty set of the calling thread.
    pub(crate) fn for_this_thread() -> Outcome<Self> {
        Ok(Self::new(THREADS.current()?))
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
}
