//! Counting: the counters of a set, opened when its events or options change.

use std::ffi::{c_int, c_longlong};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu::{
    Count, Counts, Event, EventCount, EventSet, EventSetBuilder, GroupSpec, Part, Reading, Target,
};

use super::{ATTACHED, CPU_ATTACHED, MULTIPLEXING, RUNNING, STOPPED, Set, cpus};
use crate::code::{ECLOST, ECNFLCT, EINVAL, EISRUN, ENOSUPP, ENOTRUN, Outcome, refused};
use crate::component::{CPU, UNCORE};
use crate::native::Together;
use crate::overflow;
use crate::user_events;

/// Returns a description of what is counted of a target, in user mode where no more is permitted. The counters of the BSDs are
/// those of CPUs, which are counted in the place of the thread.
pub(crate) fn counted_here(target: Target) -> EventSetBuilder {
    let mut builder = EventSet::builder();
    cpus::reach(&mut builder, &target);
    builder.target(target).user_mode_fallback(true);
    builder.cpu_fallback(cfg!(not(target_os = "linux")));
    builder
}

/// The counters of a set, and the buffer they are read into.
pub(super) struct Counting {
    set: EventSet,
    counts: Counts,
    /// The factor from counts to values, event by event: presets with fractions count in millionths.
    scales: Vec<f64>,
    /// True if a thread is counted on one CPU, and values are not scaled up for the time on others.
    on_one_cpu: bool,
}

impl Counting {
    /// Reads the counters into values.
    fn read(&mut self, values: &mut [c_longlong]) -> Outcome {
        self.set
            .read(&mut self.counts)
            .map_err(|error| refused(&error))?;
        let mut lost = Ok(());
        for ((event, scale), value) in self.counts.events().zip(&self.scales).zip(values) {
            let count = match self.on_one_cpu {
                true => event.parts().map(|parts| {
                    let counted = parts.map(|(_, reading)| u128::from(reading.value));
                    Count::Exact(counted.sum())
                }),
                false => event.total(),
            };
            let count = count.map_err(|error| refused(&error))?;
            let number = match count {
                Count::Exact(number) | Count::Estimated(number) => number,
                Count::Partial { value, .. } => value,
                // What was never on a counter has no value, and 0 would look like one.
                _ => {
                    lost = Err(ECLOST);
                    0
                }
            };
            *value = match *scale == 1.0 {
                true => c_longlong::try_from(number).unwrap_or(c_longlong::MAX),
                false => (number as f64 * scale).round() as c_longlong,
            };
        }
        lost
    }
}

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
    /// Opens the counters of the set as it is now; a set of no events has none.
    pub(crate) fn open(&mut self) -> Outcome {
        self.counting = None;
        self.open_added()
    }

    /// Opens the counters of the set as it is now; those of its first events may be open.
    pub(crate) fn open_added(&mut self) -> Outcome {
        self.overflow.forget_counters();
        let before = self.counting.take();
        self.values.resize(self.events.len(), 0);
        if self.events.is_empty() {
            return Ok(());
        }
        self.counting = Some(self.opened(before)?);
        Ok(())
    }

    fn opened(&self, before: Option<Counting>) -> Outcome<Counting> {
        let mut specs = Vec::with_capacity(self.events.len());
        for code in &self.events {
            specs.push(self.spec(*code)?);
        }
        let together = Together::of(&self.events);
        let target = self.target();
        // It is told from waiting for a counter that a thread is on other CPUs by never having to wait.
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
        Ok(Counting {
            set,
            counts,
            scales,
            on_one_cpu,
        })
    }

    /// Returns the overflows of an event, if the kernel tells of them.
    #[cfg(target_os = "linux")]
    pub(crate) fn overflows(&self, index: usize) -> Option<Arc<dyn quipu::Overflows>> {
        self.counting.as_ref()?.set.overflows(index)
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
        if self.counting.is_none() {
            self.open()?;
        }
        overflow::arm(self, number)?;
        let Some(counting) = &mut self.counting else {
            return Err(EINVAL);
        };
        counting
            .set
            .reset()
            .and_then(|()| counting.set.enable())
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
        let counting = self.counting.as_mut().ok_or(ENOTRUN)?;
        counting.set.disable().map_err(|error| refused(&error))?;
        let read = counting.read(&mut self.values);
        self.state = (self.state & !RUNNING) | STOPPED;
        self.mark_master(false);
        read
    }

    /// Returns the values: of a stopped set, the last ones.
    pub(crate) fn values(&mut self) -> Outcome<&[c_longlong]> {
        self.component()?;
        if self.is_running() {
            let counting = self.counting.as_mut().ok_or(ENOTRUN)?;
            counting.read(&mut self.values)?;
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
            let counting = self.counting.as_mut().ok_or(ENOTRUN)?;
            counting.set.reset().map_err(|error| refused(&error))?;
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
        if cfg!(not(target_os = "linux")) && cpus::are_counted(&target) {
            return cpus::check(&target);
        }
        let clock = quipu::EventSpec::new(quipu::Software::TaskClock).with_filter(self.filter());
        let mut builder = counted_here(target);
        builder.inherit(self.inherit != 0);
        builder.events(clock).map_err(|error| refused(&error))?;
        let set = builder.open().map_err(|error| refused(&error))?;
        match set.events().iter().find_map(|event| event.error()) {
            Some(error) => Err(refused(error)),
            None => Ok(()),
        }
    }

    /// Changes options, and opens the counters anew; where they cannot be, the options are as before.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_hal::{
        Backend, Capabilities, EventInfo, Group, ReadBuf, Reading, Result, Simultaneity, Target,
    };

    use super::*;

    /// Counts 7 of the first member in the whole time, 5 of the second in half of it, and was never able to count others.
    struct Busy(Capabilities);

    struct Turns(Vec<EventInfo>);

    impl Backend for Busy {
        fn name(&self) -> &'static str {
            "busy"
        }

        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
            let info = |_| EventInfo::counter("event");
            Ok(Box::new(Turns(spec.members.iter().map(info).collect())))
        }
    }

    impl Group for Turns {
        fn members(&self) -> &[EventInfo] {
            &self.0
        }

        fn simultaneity(&self) -> Simultaneity {
            Simultaneity::Sequential
        }

        fn enable(&mut self) -> Result<()> {
            Ok(())
        }

        fn disable(&mut self) -> Result<()> {
            Ok(())
        }

        fn reset(&mut self) -> Result<()> {
            Ok(())
        }

        fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
            let readings = [
                Reading::new(7, 100, 100),
                Reading::new(5, 100, 50),
                Reading::new(0, 100, 0),
            ];
            for (to, reading) in out[0].iter_mut().zip(readings) {
                *to = reading;
            }
            Ok(())
        }
    }

    #[test]
    fn an_event_that_was_never_counted_is_lost_and_the_others_have_their_values() {
        let values_of = |events: usize| {
            let backend: Arc<dyn Backend> = Arc::new(Busy(Capabilities::none()));
            let event = quipu::Software::PageFaults;
            let mut builder = EventSet::builder();
            let group = GroupSpec::new(std::iter::repeat_n(event, events));
            let set = builder
                .backends([backend])
                .events(group)
                .and_then(|builder| builder.open())
                .expect("it opens everything");
            let mut counting = Counting {
                counts: set.counts(),
                scales: vec![1.0; events],
                on_one_cpu: false,
                set,
            };
            let mut values = vec![-1; events];
            (counting.read(&mut values), values)
        };
        assert_eq!(values_of(2), (Ok(()), vec![7, 10]));
        assert_eq!(values_of(3), (Err(ECLOST), vec![7, 10, 0]));
    }
}
