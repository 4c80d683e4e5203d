//! What is asked for: an event with its filter, and a group of them with its attributes.

use crate::{Event, Filter};

/// An event, where it is to be counted, and how precisely.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventSpec {
    /// What is counted.
    pub event: Event,
    /// Where it is counted: `:u`, `:k` and so on.
    pub filter: Filter,
    /// How far a sample's instruction pointer may be off: `:p`, `:pp`, `:ppp`, `:P`.
    pub precision: Precision,
    /// Which occurrences of a tracepoint count, in the language of its fields: `fd == 1 && count >
    /// 100` (`Documentation/trace/events.rst`, event filtering). Other events take none.
    pub condition: Option<String>,
}

impl EventSpec {
    /// An event counted everywhere, at no particular precision.
    pub fn new(event: impl Into<Event>) -> Self {
        Self {
            event: event.into(),
            filter: Filter::default(),
            precision: Precision::default(),
            condition: None,
        }
    }

    /// The same, counted only where its fields meet a [condition](Self::condition).
    #[must_use]
    pub fn with_condition(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// The same with another filter.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same with another precision.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }
}

impl<E: Into<Event>> From<E> for EventSpec {
    fn from(event: E) -> Self {
        Self::new(event)
    }
}

/// How far the instruction pointer of a sample may be from the instruction that caused it
/// (`precise_ip`, perf_event_open(2)).
///
/// It constrains which counters an event may use, so it matters for counting too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Arbitrary skid.
    #[default]
    Any,
    /// Constant skid (`:p`).
    Constant,
    /// No skid requested (`:pp`).
    RequestedZero,
    /// No skid, required (`:ppp`).
    RequiredZero,
    /// The best the hardware has for this event (`:P`).
    Best,
}

/// A group of events: scheduled onto the PMU together or not at all. The first is the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GroupSpec {
    /// The events in order; the first leads.
    pub members: Vec<EventSpec>,
    /// How the group is opened and scheduled.
    pub attributes: Attributes,
}

impl GroupSpec {
    /// A group of these events with default attributes.
    pub fn new<E: Into<EventSpec>>(members: impl IntoIterator<Item = E>) -> Self {
        Self {
            members: members.into_iter().map(Into::into).collect(),
            attributes: Attributes::default(),
        }
    }

    /// A group of one.
    pub fn single(event: impl Into<EventSpec>) -> Self {
        Self::new([event.into()])
    }

    /// The same group with other attributes.
    #[must_use]
    pub fn with_attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }
}

impl From<EventSpec> for GroupSpec {
    fn from(event: EventSpec) -> Self {
        Self::single(event)
    }
}

/// How a group is opened and scheduled. By default a group counts from the moment it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes {
    /// Threads and processes that the target makes later are counted too; their counts are added
    /// when they end.
    pub inherit: bool,
    /// Always on the PMU or in the error state (`:D`).
    pub pinned: bool,
    /// Alone on the PMU while scheduled (`:e`).
    pub exclusive: bool,
    /// Enabled when the target executes a new program (execve(2)).
    pub enable_on_exec: bool,
    /// Opened without counting; [`enable`](crate::Group::enable) starts it.
    pub disabled: bool,
}
