//! The capabilities of a backend.

use bitflags::bitflags;

use crate::{Filter, TargetKinds};

bitflags! {
    /// Abilities that not every backend has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// [`Attributes::inherit`](crate::Attributes::inherit).
        const INHERIT = 1;
        /// [`Attributes::pinned`](crate::Attributes::pinned).
        const PINNED = 1 << 1;
        /// [`Attributes::exclusive`](crate::Attributes::exclusive).
        const EXCLUSIVE = 1 << 2;
        /// [`Attributes::enable_on_exec`](crate::Attributes::enable_on_exec).
        const ENABLE_ON_EXEC = 1 << 3;
        /// More groups can be open than fit on the PMU; they take turns.
        const MULTIPLEXING = 1 << 4;
        /// Events that need a PMU can be counted on this machine.
        const HARDWARE_EVENTS = 1 << 5;
        /// Software events can be counted.
        const SOFTWARE_EVENTS = 1 << 6;
        /// Breakpoints can be counted.
        const BREAKPOINTS = 1 << 7;
        /// Tracepoints can be counted.
        const TRACEPOINTS = 1 << 8;
        /// Named PMUs with terms can be counted.
        const NAMED_PMUS = 1 << 9;
        /// Groups can be used from any thread.
        const ANY_THREAD = 1 << 10;
        /// Groups of the calling thread can be read without a system call
        /// ([`UserReads`](crate::UserReads)).
        const USER_READS = 1 << 11;
        /// [`Attributes::inherit_thread`](crate::Attributes::inherit_thread).
        const INHERIT_THREAD = 1 << 12;
        /// [`Attributes::remove_on_exec`](crate::Attributes::remove_on_exec).
        const REMOVE_ON_EXEC = 1 << 13;
    }
}

/// Simultaneity of the members of a group's reading.
///
/// Exhaustive: members are read at one moment, or one after the other, or without any relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Simultaneity {
    /// No relation between the members.
    None,
    /// One after the other: skewed by the time the read itself takes.
    Sequential,
    /// One snapshot; members share both times.
    Atomic,
}

/// The capabilities of a backend on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The targets it can count on.
    pub targets: TargetKinds,
    /// Its other abilities.
    pub features: Features,
    /// The parts of a [`Filter`] it can honour for hardware events.
    pub filters: Filter,
    /// Simultaneity of its group readings at best; a group returns its own.
    pub simultaneity: Simultaneity,
    /// Number of counters that can be on the PMU at the same time, where it is known; on a machine with several
    /// kinds of core, the fewest of any kind.
    pub slots: Option<usize>,
    /// Number of counters that were shown to count, where it was tested, likewise; a hypervisor may hold the others.
    pub counting_slots: Option<usize>,
}

impl Capabilities {
    /// A backend that can do nothing but be asked; set what it can.
    pub const fn none() -> Self {
        Self {
            targets: TargetKinds::empty(),
            features: Features::empty(),
            filters: Filter::empty(),
            simultaneity: Simultaneity::None,
            slots: None,
            counting_slots: None,
        }
    }
}
