//! Event sets: events and groups in request order, on the backends that count them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Event, Group, Overflows, Part, Result, Target};

use crate::counts::{Counts, of_another_set};
use crate::open::OpenGroup;
use crate::{EventSetBuilder, Reader, SetEvent};

/// Several groups of events on one target, possibly on several backends.
///
/// Each group is opened on the first backend that can count it. A group that no backend can count
/// is kept with its error; the others are still counted.
///
/// ```
/// use quipu::{EventSet, Target};
///
/// let mut set = EventSet::builder()
///     .events("task-clock,{page-faults,minor-faults},no-such-event")?
///     .target(Target::CurrentThread)
///     .open()?;
/// let mut counts = set.counts();
/// set.read(&mut counts)?;
/// for event in counts.events() {
///     match event.total() {
///         Ok(total) => println!("{}: {total:?}", event.name()),
///         Err(why) => println!("{}: {why:#}", event.name()),
///     }
/// }
/// # Ok::<(), quipu::Error>(())
/// ```
pub struct EventSet {
    events: Arc<[SetEvent]>,
    groups: Vec<OpenGroup>,
    /// The thread that can start all groups at once, where that makes a difference.
    started_at_once_by: Option<u64>,
}

/// Returns a number that only the calling thread has. [`std::thread::current`] would allocate a handle, which a
/// thread that C has started gives back at its end only.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl EventSet {
    /// Returns a description of a set of no events on the calling thread, opened without counting.
    pub fn builder() -> EventSetBuilder {
        EventSetBuilder::new()
    }

    pub(crate) fn new(events: Arc<[SetEvent]>, groups: Vec<OpenGroup>, target: &Target) -> Self {
        let own = |open: &OpenGroup| open.backend == "linux" && open.on_cpus.is_none();
        // Events of software do not occur in the calls that start groups.
        let counts_calls = |event: &SetEvent| {
            let software = matches!(
                event.spec().event,
                Event::Software(_) | Event::Breakpoint(_) | Event::Tracepoint { .. }
            );
            event.error().is_none() && !software
        };
        let at_once = groups.len() > 1
            && *target == Target::CurrentThread
            && groups.iter().all(own)
            && events.iter().any(counts_calls);
        Self {
            events,
            groups,
            started_at_once_by: at_once.then(this_thread),
        }
    }

    /// Returns the events and their group, if they are one group that counts its target in the modes asked for.
    pub(crate) fn into_only_group(mut self) -> Option<(Arc<[SetEvent]>, OpenGroup)> {
        let open = self.groups.pop()?;
        let is_as_asked = self.groups.is_empty() && open.on_cpus.is_none() && !open.in_user_mode;
        is_as_asked.then_some((self.events, open))
    }

    /// Returns every event asked for, in request order, whether it could be opened or not.
    pub fn events(&self) -> &[SetEvent] {
        &self.events
    }

    /// Returns a buffer to read this set into; make it once and reuse it.
    pub fn counts(&self) -> Counts {
        let bufs = self.groups.iter().map(|g| g.group.read_buf());
        Counts::new(Arc::clone(&self.events), bufs)
    }

    /// Returns the parts that the target of an open event fanned out into.
    pub fn parts(&self, event: usize) -> Option<&[Part]> {
        let index = self.events.get(event)?.index().ok()?;
        Some(self.groups[index.group].group.parts())
    }

    /// Returns how long an open event counts at a time, if it takes turns with others
    /// ([`Group::rotation_interval`]).
    pub fn rotation_interval(&self, event: usize) -> Option<Duration> {
        let index = self.events.get(event)?.index().ok()?;
        self.groups[index.group].group.rotation_interval()
    }

    /// Returns the reason why reading an open event takes a system call, if it always does
    /// ([`UserReads::obstacle`](quipu_hal::UserReads::obstacle)); `None` if its group is read in user space
    /// whenever that is possible, or it is not open. A read in user space is
    /// [not ordered](quipu_hal::UserReads) with the instructions around it.
    pub fn user_read_obstacle(&mut self, event: usize) -> Option<Error> {
        let index = self.events.get(event)?.index().ok()?;
        match self.groups[index.group].group.user_reads() {
            Some(reads) => reads.obstacle(),
            None => Some(
                Error::new(ErrorKind::UnsupportedFeature, "read without a system call")
                    .with_reason("the backend offers none"),
            ),
        }
    }

    /// Returns the overflows of an open event that was asked for with a signal for them
    /// ([`EventSpec::overflow`](quipu_hal::EventSpec::overflow)).
    pub fn overflows(&self, event: usize) -> Option<Arc<dyn Overflows>> {
        let index = self.events.get(event)?.index().ok()?;
        self.groups[index.group].group.overflows(index.member)
    }

    /// Starts counting, group by group. Several groups that count the CPU's events in the calling thread are
    /// started at once, so that none counts the calls that start the others, where this thread has opened
    /// the set and the process has no other counters; to find that out takes some microseconds for each
    /// descriptor it has open.
    ///
    /// # Errors
    /// The first error of a backend; the groups after it are still started.
    pub fn enable(&mut self) -> Result<()> {
        match self.start_at_once()? {
            true => Ok(()),
            false => self.each(Group::enable),
        }
    }

    /// Starts all groups in one system call, if that is possible and makes a difference.
    fn start_at_once(&self) -> Result<bool> {
        if self.started_at_once_by != Some(this_thread()) {
            return Ok(false);
        }
        cfg_if::cfg_if! {
            if #[cfg(all(feature = "linux", target_os = "linux"))] {
                let counters = |open: &OpenGroup| open.group.members().len() * open.group.parts().len();
                quipu_linux::start_if_alone(self.groups.iter().map(counters).sum())
            } else {
                Ok(false)
            }
        }
    }

    /// Starts only the groups that count on CPUs because their backend cannot follow the target
    /// ([`EventSetBuilder::cpu_fallback`]), where the others start by themselves when it executes.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn enable_on_cpus(&mut self) -> Result<()> {
        self.each_on_cpus(Group::enable)
    }

    /// Stops only the groups that [`enable_on_cpus`](Self::enable_on_cpus) starts. The others stop when the command ends.
    ///
    /// # Errors
    /// As [`disable`](Self::disable).
    pub fn disable_on_cpus(&mut self) -> Result<()> {
        self.each_on_cpus(Group::disable)
    }

    fn each_on_cpus(&mut self, apply: impl Fn(&mut dyn Group) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for open in self.groups.iter_mut().filter(|g| g.on_cpus.is_some()) {
            let done = apply(&mut *open.group);
            if first.is_ok() {
                first = done;
            }
        }
        first
    }

    /// Stops counting, group by group. Values and times are kept.
    ///
    /// # Errors
    /// The first error of a backend; the groups after it are still stopped.
    pub fn disable(&mut self) -> Result<()> {
        self.each(Group::disable)
    }

    /// Stops counting like [`disable`](Self::disable), and returns an error for every event whose group
    /// could not be stopped.
    pub fn disable_each(&mut self) -> Vec<(usize, Error)> {
        let mut refusals = Vec::new();
        for (index, open) in self.groups.iter_mut().enumerate() {
            let Err(error) = open.group.disable() else {
                continue;
            };
            let is_member = |event: &SetEvent| event.index().is_ok_and(|at| at.group == index);
            let events = self.events.iter().enumerate();
            let members = events.filter(|(_, event)| event.counted().iter().any(is_member));
            refusals.extend(members.map(|(event, _)| (event, error.clone())));
        }
        refusals
    }

    /// Sets all values to zero.
    ///
    /// # Errors
    /// The first error of a backend; the groups after it are still reset.
    pub fn reset(&mut self) -> Result<()> {
        self.each(Group::reset)
    }

    /// Reads every group: one system call or less for each, and no allocation unless one fails.
    ///
    /// A group that cannot be read keeps its error in `out`; the others are still read.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) if `out` was made by another set.
    pub fn read(&mut self, out: &mut Counts) -> Result<()> {
        if !out.belongs_to(&self.events) {
            return Err(of_another_set("read an event set"));
        }
        for (open, counts) in self.groups.iter_mut().zip(out.groups_mut()) {
            counts.error = open.group.read(&mut counts.buf).err();
        }
        Ok(())
    }

    /// Reads every group as [`read`](Self::read) does, and puts the totals of all events into `values`, in request order,
    /// where all of them are exact. False if one is not, or has none: `out` has the details, and what is in `values` means
    /// nothing.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut set = EventSet::builder().events("{task-clock,page-faults}")?.open()?;
    /// let mut counts = set.counts();
    /// set.enable()?;
    /// let mut values = [0; 2];
    /// if set.read_exact(&mut counts, &mut values)? {
    ///     println!("{} ns, {} faults", values[0], values[1]);
    /// } else {
    ///     counts.events().for_each(|event| println!("{}: {:?}", event.name(), event.total()));
    /// }
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `read`; [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) if `values` has not one element for each
    /// event.
    pub fn read_exact(&mut self, out: &mut Counts, values: &mut [u64]) -> Result<bool> {
        if values.len() != self.events.len() {
            let reason = format!("{} values for {} events", values.len(), self.events.len());
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, "read an event set")
                    .with_reason(reason),
            );
        }
        self.read(out)?;
        Ok(out.exact(values))
    }

    /// Returns a reader of the open events for any number of threads.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](crate::ErrorKind::UnsupportedFeature) if a group is on another backend than Linux's, whose
    /// reads have to be alone, or an event sends signals for overflows. Then a set for each thread is the way, or a lock.
    pub fn reader(&self) -> Result<Reader> {
        Reader::of(&self.events, &self.groups)
    }

    fn each(&mut self, f: impl Fn(&mut dyn Group) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for open in &mut self.groups {
            let done = f(&mut *open.group);
            if first.is_ok() {
                first = done;
            }
        }
        first
    }
}

impl fmt::Debug for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSet")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_number_of_its_own() {
        let others = [(); 3].map(|()| std::thread::spawn(this_thread));
        let mut numbers = others.map(|other| other.join().expect("no panic")).to_vec();
        numbers.push(this_thread());
        assert_eq!(this_thread(), numbers[3]);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 4);
    }
}
