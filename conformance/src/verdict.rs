//! Verdicts of checks, and the reasons of skips.

use std::fmt;

use quipu_hal::{Capabilities, Error, Features, Filter, Simultaneity, TargetKinds};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The backend does what the check requires.
    Pass,
    /// It does not; the text says what was seen instead.
    Fail(String),
    /// The check could not be run.
    Skip(Missing),
}

impl Verdict {
    /// Returns the verdict in one word: `pass`, `fail` or `skip`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Skip(_) => "skip",
        }
    }

    /// Returns the reason of a failure or a skip.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Pass => None,
            Self::Fail(reason) => Some(reason.clone()),
            Self::Skip(missing) => Some(missing.to_string()),
        }
    }
}

/// The requirement that was missing where a check was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// Abilities of the backend.
    Features(Features),
    /// A kind of target.
    Target(TargetKinds),
    /// A part of a filter.
    Filter(Filter),
    /// Readings as simultaneous as this.
    Simultaneity(Simultaneity),
    /// The number of slots is not known.
    Slots,
    /// An optional ability of the [`Fixture`](crate::Fixture).
    Ability(Ability),
    /// Counters that count: a PMU may advertise some that a hypervisor or firmware holds.
    WorkingCounters {
        /// The number of counters that the PMU is said to have.
        advertised: usize,
        /// The number of those that were seen to count.
        working: usize,
    },
    /// Possible values: a counter said more than 64 events in each nanosecond that it ran.
    PossibleValue {
        /// The value read.
        value: u64,
        /// The nanoseconds the counter ran.
        time_running: u64,
    },
    /// Turns that take less time, as where each has to go through the CPUs.
    Turns {
        /// The nanoseconds of one.
        interval: u64,
        /// The number that the check wants.
        wanted: u64,
    },
    /// The backend offers what the check would see refused.
    Inapplicable(&'static str),
}

impl Missing {
    /// Returns true if the backend claims to have it: a suite that skips for it hides something.
    pub fn is_claimed_by(&self, capabilities: &Capabilities) -> bool {
        match *self {
            Self::Features(features) => capabilities.features.contains(features),
            Self::Target(kinds) => capabilities.targets.contains(kinds),
            Self::Filter(filter) => capabilities.filters.contains(filter),
            Self::Simultaneity(wanted) => capabilities.simultaneity >= wanted,
            Self::Slots => capabilities.slots.is_some(),
            Self::Ability(_)
            | Self::WorkingCounters { .. }
            | Self::PossibleValue { .. }
            | Self::Turns { .. }
            | Self::Inapplicable(_) => false,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Features(features) => {
                write!(
                    f,
                    "the backend does not offer {}",
                    flags(features.iter_names())
                )
            }
            Self::Target(kinds) => {
                write!(f, "the backend has no target {}", flags(kinds.iter_names()))
            }
            Self::Filter(filter) => {
                write!(
                    f,
                    "the backend cannot filter {}",
                    flags(filter.iter_names())
                )
            }
            Self::Simultaneity(wanted) => write!(f, "readings are not {wanted:?}"),
            Self::Slots => f.write_str("the backend does not say how many slots there are"),
            Self::Ability(ability) => write!(f, "the fixture has no {ability}"),
            Self::WorkingCounters {
                advertised,
                working,
            } => write!(
                f,
                "{advertised} counters advertised, {working} of them count"
            ),
            Self::PossibleValue {
                value,
                time_running,
            } => write!(
                f,
                "a counter of the machine jumped: {value} events in {time_running} ns"
            ),
            Self::Turns { interval, wanted } => write!(
                f,
                "it wants {wanted} turns, and one takes {} ms here",
                interval / 1_000_000
            ),
            Self::Inapplicable(why) => f.write_str(why),
        }
    }
}

fn flags<T>(names: impl Iterator<Item = (&'static str, T)>) -> String {
    let names: Vec<_> = names
        .map(|(name, _)| name.to_lowercase().replace('_', "-"))
        .collect();
    names.join(", ")
}

/// An optional ability that a [`Fixture`](crate::Fixture) offers for the checks' sake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ability {
    /// An event with a workload that makes it occur an exact number of times.
    ExactEvent,
    /// One whose workload makes it occur so often, where its count differs from that of one more.
    SoManyOccurrences,
    /// One that nothing but its workload causes.
    UndisturbedEvent,
    /// Two such events that do not disturb each other.
    TwoExactEvents,
    /// An exact workload at a chosen privilege level.
    WorkAtLevel,
    /// An event that takes a slot.
    SlotEvent,
    /// A clock that stands still.
    ManualClock,
    /// The number of times that an event occurred, counted or not.
    ExpectedCount,
    /// A register narrow enough to see it wrap.
    NarrowRegister,
    /// A workload in which a register wraps unseen.
    HiddenWrap,
    /// An event that every round of a loop makes occur equally often.
    CountedLoop,
    /// Events that exclude each other.
    Conflict,
    /// Events that fit onto their slots only with backtracking.
    Backtracking,
    /// Events that do not exist.
    UnsupportedEvent,
    /// A count of what the backend holds.
    ResourceProbe,
    /// A view of the registers that are put back.
    Registers,
    /// A count of what a new program would inherit.
    InheritanceProbe,
    /// Thread ids.
    ThreadIds,
    /// Faults on demand.
    FaultInjection,
    /// A device that can be taken a second time.
    SecondOwner,
    /// A way to change registers that the backend uses.
    Interference,
    /// [`Fixture::jump`](crate::Fixture::jump).
    Jump,
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExactEvent => "event with an exact workload",
            Self::SoManyOccurrences => {
                "workload of so many occurrences whose count differs from that of one more"
            }
            Self::UndisturbedEvent => "event that nothing but its workload causes",
            Self::TwoExactEvents => "two events with exact workloads",
            Self::WorkAtLevel => "exact workload at a chosen privilege level",
            Self::SlotEvent => "steady event that takes a slot",
            Self::ManualClock => "clock that stands still",
            Self::ExpectedCount => "expected count of a steady event",
            Self::NarrowRegister => "register narrow enough to wrap",
            Self::HiddenWrap => "workload in which a register wraps unseen",
            Self::CountedLoop => "loop whose rounds are counted",
            Self::Conflict => "events that exclude each other",
            Self::Backtracking => "events that need backtracking to fit",
            Self::UnsupportedEvent => "event known not to exist",
            Self::ResourceProbe => "count of what the backend holds",
            Self::Registers => "view of the registers",
            Self::InheritanceProbe => "count of what a new program would inherit",
            Self::ThreadIds => "thread ids",
            Self::FaultInjection => "faults on demand",
            Self::SecondOwner => "device that can be taken twice",
            Self::Interference => "way to change registers in use",
            Self::Jump => "way to make a counter jump",
        })
    }
}

/// Why a check ends before its last line.
#[derive(Debug)]
pub(crate) enum Stop {
    Fail(String),
    Skip(Missing),
}

/// The result of a check or of a step of it.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fail(format!("{error:#}"))
    }
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        Self::Skip(missing)
    }
}

impl From<Ability> for Stop {
    fn from(ability: Ability) -> Self {
        Self::Skip(Missing::Ability(ability))
    }
}

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::verdict::Stop::Fail(format!($($message)+)));
        }
    };
}

/// Fails the check unless both sides are equal; the message says what was compared.
macro_rules! ensure_eq {
    ($seen:expr, $wanted:expr, $($message:tt)+) => {
        match (&$seen, &$wanted) {
            (seen, wanted) => {
                if seen != wanted {
                    return Err($crate::verdict::Stop::Fail(format!(
                        "{}: {seen:?} instead of {wanted:?}",
                        format_args!($($message)+)
                    )));
                }
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq};

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(()) => Self::Pass,
            Err(Stop::Fail(reason)) => Self::Fail(reason),
            Err(Stop::Skip(missing)) => Self::Skip(missing),
        }
    }
}
