//! What is under test: a backend, together with what it takes to know the right answers.

use quipu_hal::{DynBackend, Event, EventSpec, Filter, Result, Target};

/// Work that has been prepared and is yet to be done, on the thread that prepared it.
pub type Workload = Box<dyn FnOnce()>;

/// A backend on a machine of which the right answers are known.
///
/// The required methods are enough for most checks. Every optional one that is left out costs the
/// checks that need it: they are skipped, and say which [`Ability`](crate::Ability) is missing.
pub trait Subject: Send + Sync {
    /// The backend under test.
    fn backend(&self) -> &dyn DynBackend;

    /// The target to count on where a check does not care: one that fans out into one part and
    /// covers the work the calling thread does.
    fn target(&self) -> Target;

    /// Events that [`workload`](Self::workload) can cause; the filters are such that an ordinary
    /// user may count them.
    fn exact_events(&self) -> Vec<EventSpec>;

    /// Prepares work on the calling thread in which `event` occurs exactly `times` times, and the
    /// other exact events not at all. Whatever else the preparation needs happens before it
    /// returns.
    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload>;

    /// Whether something else than its workload may cause an exact event, as memory allocation
    /// causes page faults.
    fn has_other_causes(&self, event: &EventSpec) -> bool {
        let _ = event;
        false
    }

    /// Lets the target run for about that many nanoseconds, and the backend rotate meanwhile.
    fn pass(&self, nanoseconds: u64);

    /// Like [`workload`](Self::workload), with every occurrence at one privilege level.
    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let _ = (event, level, times);
        None
    }

    /// An event that occurs all the time at a steady rate and takes one slot of the PMU, whichever
    /// is free.
    fn slot_event(&self) -> Option<EventSpec> {
        None
    }

    /// How many slot events can be on the PMU at once, where that is not the number of slots that the
    /// backend says.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// Nanoseconds after which groups that wait for the PMU get their turn.
    fn rotation_interval(&self) -> u64 {
        4_000_000
    }

    /// The time in nanoseconds, where it stands still but for [`pass`](Self::pass) and workloads.
    fn now(&self) -> Option<u64> {
        None
    }

    /// How often an event has occurred on the target so far, counted or not.
    fn occurred(&self, event: &EventSpec) -> Option<u64> {
        let _ = event;
        None
    }

    /// After how many occurrences the register behind an exact event starts over at 0.
    fn wraps_after(&self, event: &EventSpec) -> Option<u64> {
        let _ = event;
        None
    }

    /// An event, how often it is to occur, and the work in which it does: its register wraps in one
    /// go, which takes longer than it need to at the fastest the event is stated to be.
    fn hidden_wrap(&self) -> Option<(EventSpec, u64, Workload)> {
        None
    }

    /// An event, and a loop of so many rounds, each of which makes it occur equally often, however
    /// long it takes: retired instructions of user mode.
    fn counted_loop(&self, rounds: u64) -> Option<(EventSpec, Workload)> {
        let _ = rounds;
        None
    }

    /// Events that cannot be in one group, because they need the same slot.
    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        None
    }

    /// Exact events that fit into one group, but not when slots are given out first come, first
    /// served.
    fn puzzle(&self) -> Option<Vec<EventSpec>> {
        None
    }

    /// Events that the backend does not have.
    fn unsupported_events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// How much the backend holds of what can leak: open files, slots.
    fn resources(&self) -> Option<u64> {
        None
    }

    /// How much of it a program started by this one would inherit.
    fn inheritable_resources(&self) -> Option<u64> {
        None
    }

    /// Leaves something in registers that are free, as somebody who used them before would have.
    /// False when it cannot.
    fn scribble(&self) -> bool {
        false
    }

    /// What the registers hold that the backend takes and puts back, for comparison.
    fn registers(&self) -> Option<String> {
        None
    }

    /// The id of the calling thread, as [`Target::Thread`] takes it.
    fn thread_id(&self) -> Option<i32> {
        None
    }

    /// Makes the device fail once, with this error number, after `operations` more operations
    /// that succeed; a fault that was not reached yet is replaced. False when it cannot.
    fn inject(&self, operations: u64, errno: i32) -> bool {
        let _ = (operations, errno);
        false
    }

    /// Whether an injected fault is still waiting to happen; it is withdrawn.
    fn withdraw(&self) -> bool {
        false
    }

    /// Tries to take the device a second time while the backend holds it.
    fn second_owner(&self) -> Option<Result<()>> {
        None
    }

    /// Changes the registers behind the backend's back. False when it cannot.
    fn interfere(&self) -> bool {
        false
    }
}
