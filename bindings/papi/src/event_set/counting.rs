//! Counting: the counters of a set, opened when its events or options change.

use std::ffi::{c_int, c_longlong};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu::{
    Count, Counts, Event, EventCount, EventSet, EventSpec, Filter, GroupSpec, Part, Reading, Target,
};

use crate::boundary::call::refused;
use crate::code::{ECNFLCT, EINVAL, EISRUN, ENOSUPP, ENOTRUN, Outcome};
use crate::component::{CPU, DOM_USER, UNCORE};
use crate::event::native::{Together, is_native, native};
use crate::event::{preset, user_events};
use crate::event_set::builder;
use crate::event_set::builder::counted_here;
use crate::event_set::counters::Counters;
use crate::event_set::set::{ATTACHED, CPU_ATTACHED, MULTIPLEXING, RUNNING, STOPPED, Set};
use crate::overflow;

/// Returns true if an event, or a term of it, was never on a counter. A rate of no cycles has no value, either.
fn was_never_on(event: &EventCount<'_>) -> bool {
    let never = |term: &Vec<(&Part, &Reading)>| {
        let mut parts = term.iter();
        parts.all(|(_, reading)| reading.count() == Count::NotCounted)
    };
    matches!(event.total(), Ok(Count::NotCounted))
        && event
            .term_readings()
            .is_ok_and(|terms| terms.iter().any(never))
}

impl Set {
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
            let event = Event::Named(name.to_owned());
            return Ok(EventSpec::new(event).with_filter(self.filter()));
        }
        let (spec, has_levels) = native(code, |native| (native.spec.clone(), native.has_levels))?;
        // getrusage(2) of the BSDs has one number for all modes.
        let in_all_modes = cfg!(not(target_os = "linux"))
            && self.domain & DOM_USER != 0
            && matches!(spec.event, Event::Software(_));
        if has_levels || in_all_modes || self.component == Some(UNCORE) {
            return Ok(spec);
        }
        let levels = self.filter().intersection(Filter::LEVELS);
        let filter = spec.filter.with_levels(levels);
        Ok(spec.with_filter(filter))
    }

    /// Opens the counters of the set as it is now; a set of no events has none.
    pub(crate) fn open(&mut self) -> Outcome {
        self.counters = None;
        self.open_added()
    }

    /// Opens the counters of the set as it is now; those of its first events may be open.
    pub(crate) fn open_added(&mut self) -> Outcome {
        self.overflow.forget_counters();
        let before = self.counters.take();
        self.values.resize(self.events.len(), 0);
        if self.events.is_empty() {
            return Ok(());
        }
        self.counters = Some(self.opened(before)?);
        Ok(())
    }

    fn opened(&self, before: Option<Counters>) -> Outcome<Counters> {
        let mut specs = Vec::with_capacity(self.events.len());
        for code in &self.events {
            specs.push(self.spec(*code)?);
        }
        let together = Together::of(&self.events);
        let target = self.target();
        // A pinned group never waits for a counter: the time it does not run is time on other CPUs.
        let on_one_cpu = matches!(target, Target::ThreadOnCpu { .. });
        let mut builder = counted_here(target);
        for own in self
            .events
            .iter()
            .filter_map(|code| user_events::by_code(*code))
        {
            let defined = builder.preset(&*own.name, &own.formula.to_string());
            defined.map_err(|error| refused(&error))?;
        }
        builder
            .pinned(together.pinned || on_one_cpu)
            .exclusive(together.exclusive)
            .inherit(self.inherit != 0);
        let apart =
            self.state & MULTIPLEXING != 0 || self.inherit != 0 || self.component != Some(CPU);
        let counted_by_hardware = specs
            .iter()
            .any(|spec| !matches!(spec.event, Event::Software(_) | Event::Tracepoint { .. }));
        let added = match apart || specs.len() == 1 {
            true => builder.events(specs),
            false => builder.events(GroupSpec::new(specs)),
        };
        added.map_err(|error| refused(&error))?;
        let opened = match before {
            Some(before) => builder.extend(before.set),
            None => builder.open(),
        };
        let mut set = opened.map_err(|error| refused(&error))?;
        if let Some(error) = set.events().iter().find_map(|event| event.error()) {
            return Err(refused(error));
        }
        let fits = |set: &mut EventSet, counts: &mut Counts| -> Outcome {
            // A group that never gets onto the counters does not fit.
            set.enable().map_err(|error| refused(&error))?;
            std::thread::sleep(Duration::ZERO);
            let read = set.read(counts);
            set.disable().and(read).map_err(|error| refused(&error))?;
            match counts.events().any(|event| was_never_on(&event)) {
                true => Err(ECNFLCT),
                false => Ok(()),
            }
        };
        let mut counts = set.counts();
        if !apart && self.runs_here() && counted_by_hardware && !on_one_cpu {
            fits(&mut set, &mut counts)?;
        }
        let scales = set
            .events()
            .iter()
            .map(|event| event.info().map_or(1.0, |info| info.scale));
        let scales: Vec<f64> = scales.collect();
        Ok(Counters {
            set,
            counts,
            scales,
            on_one_cpu,
        })
    }

    /// Returns the overflows of an event, if the kernel reports them.
    #[cfg(target_os = "linux")]
    pub(crate) fn overflows(&self, index: usize) -> Option<Arc<dyn quipu::Overflows>> {
        self.counters.as_ref()?.set.overflows(index)
    }

    /// Starts counting from zero; the set has this number.
    pub(crate) fn start(&mut self, number: c_int) -> Outcome {
        let component = self.component()?;
        let taken = self.runs_here() && self.master.running[component].load(Ordering::Relaxed);
        if taken || self.is_running() {
            return Err(EISRUN);
        }
        if self.events.is_empty() {
            return Err(EINVAL);
        }
        if self.counters.is_none() {
            self.open()?;
        }
        overflow::arm(self, number)?;
        let Some(counters) = &mut self.counters else {
            return Err(EINVAL);
        };
        counters
            .set
            .reset()
            .and_then(|()| counters.set.enable())
            .map_err(|error| {
                self.overflow.disarm();
                refused(&error)
            })?;
        self.values.fill(0);
        self.state = (self.state & !STOPPED) | RUNNING;
        self.mark_master(true);
        Ok(())
    }

    /// Returns true if the thread that made the set is what it counts, which one set does at a time.
    fn runs_here(&self) -> bool {
        self.state & (ATTACHED | CPU_ATTACHED) == 0
    }

    /// Notes that the thread which made the set counts with it, where that is what it counts.
    fn mark_master(&self, running: bool) {
        if let (Some(component), true) = (self.component, self.runs_here()) {
            self.master.running[component].store(running, Ordering::Relaxed);
        }
    }

    /// Stops counting and keeps the values.
    pub(crate) fn stop(&mut self) -> Outcome {
        self.component()?;
        if !self.is_running() {
            return Err(ENOTRUN);
        }
        let counters = self.counters.as_mut().ok_or(ENOTRUN)?;
        counters.set.disable().map_err(|error| refused(&error))?;
        let read = counters.read(&mut self.values);
        self.state = (self.state & !RUNNING) | STOPPED;
        self.mark_master(false);
        read
    }

    /// Returns the values: of a stopped set, the last ones.
    pub(crate) fn values(&mut self) -> Outcome<&[c_longlong]> {
        self.component()?;
        if self.is_running() {
            let counters = self.counters.as_mut().ok_or(ENOTRUN)?;
            counters.read(&mut self.values)?;
        }
        Ok(&self.values)
    }

    /// Writes the values into an array: of a stopped set, the last ones.
    ///
    /// # Safety
    /// The array has an element for each event of the set.
    pub(crate) unsafe fn read_into(&mut self, out: *mut c_longlong) -> Outcome {
        let values = self.values()?;
        // SAFETY: there is a value for each event, and the caller's promise.
        unsafe { out.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Ok(())
    }

    /// Returns the values as they were when they were last read or the set was stopped.
    pub(crate) fn last_values(&self) -> &[c_longlong] {
        &self.values
    }

    /// Sets the values to zero.
    pub(crate) fn reset(&mut self) -> Outcome {
        self.component()?;
        if self.is_running() {
            let counters = self.counters.as_mut().ok_or(ENOTRUN)?;
            counters.set.reset().map_err(|error| refused(&error))?;
        }
        self.values.fill(0);
        Ok(())
    }

    /// Returns a code where counters cannot be written, which they cannot while they count.
    pub(crate) fn write(&self) -> Outcome {
        self.component()?;
        match self.is_running() {
            true => Err(ENOSUPP),
            false => Ok(()),
        }
    }

    /// Returns a code if nothing could be counted with the options as they are.
    pub(crate) fn check_permission(&self) -> Outcome {
        if self.component == Some(UNCORE) {
            return Ok(());
        }
        let target = self.target();
        if cfg!(not(target_os = "linux")) && builder::are_counted(&target) {
            return builder::check(&target);
        }
        let clock = EventSpec::new(quipu::Software::TaskClock).with_filter(self.filter());
        let mut builder = counted_here(target);
        builder.inherit(self.inherit != 0);
        builder.events(clock).map_err(|error| refused(&error))?;
        let set = builder.open().map_err(|error| refused(&error))?;
        match set.events().iter().find_map(|event| event.error()) {
            Some(error) => Err(refused(error)),
            None => Ok(()),
        }
    }

    /// Changes options, and opens the counters again; where they cannot be, the options are as before.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Self)) -> Outcome {
        let before = (
            self.domain,
            self.granularity,
            self.attached,
            self.cpu,
            self.inherit,
            self.multiplexing,
            self.state,
        );
        change(self);
        let checked = self.check_permission();
        if let Err(code) = checked.and_then(|()| self.open()) {
            (
                self.domain,
                self.granularity,
                self.attached,
                self.cpu,
                self.inherit,
                self.multiplexing,
                self.state,
            ) = before;
            // It could be opened before.
            let _ = self.open();
            return Err(code);
        }
        Ok(())
    }
}
