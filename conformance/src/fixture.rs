//! A fixture: a backend under test, with workloads of which the right counts are known.

use quipu_hal::{Backend, Event, EventSpec, Filter, Reading, Result, Target};

use crate::context::{has_jumped, pinned};

/// Work that has been prepared and is yet to be done, on the thread that prepared it.
pub type Workload = Box<dyn FnOnce()>;

/// The number of a PMU's counters that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkingCounters {
    /// The number of counters that can be on the PMU at once.
    pub advertised: usize,
    /// The number of those that were seen to count.
    pub working: usize,
}

impl WorkingCounters {
    /// Counts the same work on all counters, several times. A counter does not count if it says less than
    /// half of what another does, or twice less by a twentieth: members start one after the other, and this
    /// thread may be interrupted in between.
    ///
    /// Returns `None` if `advertised` counters of the event cannot be pinned to the PMU, or none of
    /// them counts, which says nothing of the PMU.
    pub fn find(
        backend: &dyn Backend,
        target: &Target,
        event: &EventSpec,
        advertised: usize,
        work: impl Fn(),
    ) -> Option<Self> {
        const TRIES: usize = 5;
        let spec = pinned(vec![event.clone(); advertised]);
        let mut short = vec![0; advertised];
        for _ in 0..TRIES {
            let mut group = backend.open(&spec, target).ok()?;
            work();
            group.disable().ok()?;
            let mut buf = group.read_buf();
            group.read(&mut buf).ok()?;
            let readings = &buf[0];
            let possible = |reading: &&Reading| !has_jumped(reading);
            let most = readings.iter().filter(possible).map(|r| r.value).max()?;
            if most == 0 {
                return None;
            }
            for (times, reading) in short.iter_mut().zip(readings) {
                if reading.value < most / 2 {
                    *times += 2;
                } else if reading.value < most - most / 20 {
                    *times += 1;
                }
            }
        }
        let working = short.iter().filter(|times| **times < 2).count();
        Some(Self {
            advertised,
            working,
        })
    }
}

/// A backend on a machine of which the right answers are known.
///
/// The required methods are enough for most checks. Every optional one that is left out costs the
/// checks that need it: they are skipped, and say which [`Ability`](crate::Ability) is missing.
pub trait Fixture: Send + Sync {
    /// Returns the backend under test.
    fn backend(&self) -> &dyn Backend;

    /// Returns the target to count on where a check has no target of its own: one that has one part
    /// and covers the work of the calling thread.
    fn target(&self) -> Target;

    /// Returns events that [`workload`](Self::workload) can cause; the filters are such that an ordinary
    /// user may count them.
    fn exact_events(&self) -> Vec<EventSpec>;

    /// Returns an event of each kind that the backend counts here, with
    /// [`inherit`](quipu_hal::Attributes::inherit) where it has that: any, also those without a workload.
    fn countable_events(&self) -> Vec<EventSpec> {
        let mut events = self.exact_events();
        events.extend(self.slot_event());
        events
    }

    /// Prepares work on the calling thread in which `event` occurs exactly `times` times, and the
    /// other exact events not at all. Whatever else the preparation needs happens before it
    /// returns. Returns None for an event without such work, and for so many occurrences that
    /// their count need not differ from that of one more.
    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload>;

    /// Returns true if something else than its workload may cause an exact event, as memory allocation
    /// causes page faults.
    fn has_other_causes(&self, event: &EventSpec) -> bool {
        let _ = event;
        false
    }

    /// Returns true if the backend counts the whole process for the calling thread, and refuses to read a group of it with
    /// [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature) once other threads have run.
    fn counts_other_threads(&self) -> bool {
        false
    }

    /// Lets about that many nanoseconds go by, and the backend rotate meanwhile.
    fn pass(&self, nanoseconds: u64);

    /// Returns the number of calls of which a check of many makes one, where calls work on the target in amounts that
    /// differ, as threads do that get to each of many CPUs to read it.
    fn calls_in_one(&self) -> u64 {
        1
    }

    /// Returns the nanoseconds for which the target has run so far, where it shares its CPU and so runs
    /// for less time than [`pass`](Self::pass) lets go by. Checks then pass more.
    fn time_on_cpu(&self) -> Option<u64> {
        None
    }

    /// Returns how many counters the PMU is said to have and how many of them count, where that is
    /// not beyond doubt. It is asked before each check that relies on all of them, and again when
    /// one has failed.
    fn working_counters(&self) -> Option<WorkingCounters> {
        None
    }

    /// Returns true where a counter of the machine may jump to a value that it cannot have reached,
    /// as virtual ones have been seen to. A check that meets such a value is skipped.
    fn counters_may_jump(&self) -> bool {
        false
    }

    /// Like [`workload`](Self::workload), with every occurrence at one privilege level.
    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let _ = (event, level, times);
        None
    }

    /// Returns an event that occurs all the time at a steady rate and takes one slot of the PMU, any
    /// that is free.
    fn slot_event(&self) -> Option<EventSpec> {
        None
    }

    /// Returns the number of slot events that can be on the PMU at once, where that is not the number of
    /// slots in the backend's capabilities.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// Returns the number of counters that can count an exact event at the same time, where that is not
    /// the number of slots: a fixed counter that groups cannot share is one. Checks that would count the
    /// event more often are skipped.
    fn counters_of(&self, event: &EventSpec) -> Option<usize> {
        let _ = event;
        None
    }

    /// Returns the nanoseconds after which groups that wait for the PMU are rotated in.
    fn rotation_interval(&self) -> u64 {
        4_000_000
    }

    /// Returns the time in nanoseconds, where it stands still but for [`pass`](Self::pass) and workloads.
    fn now(&self) -> Option<u64> {
        None
    }

    /// Returns the number of times that an event has occurred on the target so far, counted or not.
    fn expected_count(&self, event: &EventSpec) -> Option<u64> {
        let _ = event;
        None
    }

    /// Returns the number of occurrences after which the register of an exact event wraps to 0.
    fn wraps_after(&self, event: &EventSpec) -> Option<u64> {
        let _ = event;
        None
    }

    /// Returns an event, a number of occurrences, and a workload with as many, in which the register
    /// wraps more than once between two reads.
    fn hidden_wrap(&self) -> Option<(EventSpec, u64, Workload)> {
        None
    }

    /// Returns an event, and a loop of so many rounds, each of which makes it occur equally often, however
    /// long it takes: retired instructions of user mode.
    fn counted_loop(&self, rounds: u64) -> Option<(EventSpec, Workload)> {
        let _ = rounds;
        None
    }

    /// Returns events that cannot be in one group, because they need the same slot.
    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        None
    }

    /// Returns exact events that fit into one group, but not if slots are assigned first come, first
    /// served.
    fn needs_backtracking(&self) -> Option<Vec<EventSpec>> {
        None
    }

    /// Returns events that the backend does not have.
    fn unsupported_events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// Returns the number of resources that the backend holds and could leak: open files, slots.
    fn resources(&self) -> Option<u64> {
        None
    }

    /// Returns the number of them that a program started by this one would inherit.
    fn inheritable_resources(&self) -> Option<u64> {
        None
    }

    /// Leaves values in free registers, as an earlier user of them would have. Returns false if it
    /// cannot.
    fn dirty_registers(&self) -> bool {
        false
    }

    /// Returns the contents of the registers that the backend takes and restores, for comparison.
    fn registers(&self) -> Option<String> {
        None
    }

    /// Returns the id of the calling thread, as [`Target::Thread`] takes it.
    fn thread_id(&self) -> Option<i32> {
        None
    }

    /// Makes the device fail once, with this error number, after `operations` more operations
    /// that succeed; a fault that was not reached yet is replaced. Returns false if it cannot.
    fn inject(&self, operations: u64, errno: i32) -> bool {
        let _ = (operations, errno);
        false
    }

    /// Withdraws an injected fault. Returns true if it had not happened yet.
    fn withdraw(&self) -> bool {
        false
    }

    /// Tries to take the device a second time while the backend holds it.
    fn second_owner(&self) -> Option<Result<()>> {
        None
    }

    /// Changes registers that the backend uses, as another process would. Returns false if it cannot.
    fn interfere(&self) -> bool {
        false
    }

    /// Sets the functions that the counters have once more, as another process would, which zeroes them.
    /// Returns false if it cannot.
    fn zero_counters(&self) -> bool {
        false
    }

    /// Suspends the machine and resumes it. Returns false if it cannot.
    fn suspend(&self) -> bool {
        false
    }

    /// Moves the register of a counter that counts, the slot event's if it is counted alone, further than that can
    /// occur in the time. Returns false if it cannot.
    fn jump(&self) -> bool {
        false
    }
}
