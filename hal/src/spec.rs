//! Specifications: an event with its filter, and a group of them with its attributes.

use crate::{Event, Filter, OverflowSignal};

/// An event, where it is to be counted, and how precisely.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventSpec {
    /// The event to count.
    pub event: Event,
    /// The modes it is counted in: `:u`, `:k` and so on.
    pub filter: Filter,
    /// The distance a sample's instruction pointer may be off: `:p`, `:pp`, `:ppp`, `:P`.
    pub precision: Precision,
    /// Which occurrences of a tracepoint count, in the language of its fields: `fd == 1 && count >
    /// 100` (`Documentation/trace/events.rst`, event filtering). Other events take none.
    pub condition: Option<String>,
    /// The signal for its overflows, where there is to be one. Samplers have none.
    pub overflow: Option<OverflowSignal>,
}

impl EventSpec {
    /// An event counted everywhere, at no particular precision.
    pub fn new(event: impl Into<Event>) -> Self {
        Self {
            event: event.into(),
            filter: Filter::default(),
            precision: Precision::default(),
            condition: None,
            overflow: None,
        }
    }

    /// Returns another event counted in the same way.
    #[must_use]
    pub fn with_event(mut self, event: impl Into<Event>) -> Self {
        self.event = event.into();
        self
    }

    /// Sets the [condition](Self::condition) that its fields have to meet.
    #[must_use]
    pub fn with_condition(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// Sets the [signal](Self::overflow) for its overflows.
    #[must_use]
    pub fn with_overflow(mut self, overflow: OverflowSignal) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Sets the filter.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the precision.
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

/// The distance of the instruction pointer of a sample from the instruction that caused it
/// (`precise_ip`, perf_event_open(2)).
///
/// It constrains which counters an event may use, so it matters for counting too.
///
/// Exhaustive: `precise_ip` has two bits, and `:P` tries their values.
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
#[non_exhaustive]
pub struct GroupSpec {
    /// The events in order; the first leads.
    pub members: Vec<EventSpec>,
    /// Settings for opening and scheduling the group.
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
        Self {
            members: vec![event.into()],
            attributes: Attributes::default(),
        }
    }

    /// Sets the attributes.
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

/// Settings for opening and scheduling a group. By default a group counts from the moment it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Attributes {
    /// Threads and processes that the target makes later are counted too; their counts are added
    /// when they end.
    pub inherit: bool,
    /// Of what [`inherit`](Self::inherit) follows, threads are counted and processes are not.
    pub inherit_thread: bool,
    /// Always on the PMU or in the error state (`:D`).
    pub pinned: bool,
    /// Alone on the PMU while scheduled (`:e`).
    pub exclusive: bool,
    /// Counted event by event where it cannot be counted as a group (`:W`). Who opens several groups does that;
    /// a backend opens it as any group.
    pub weak: bool,
    /// Sampled by its first event alone, whose samples hold the counts of the others (`:S`). It changes nothing
    /// where nothing is sampled.
    pub sampled_by_leader: bool,
    /// Enabled when the target executes a new program (execve(2)).
    pub enable_on_exec: bool,
    /// Taken off a task that executes a new program (execve(2)): what it does from then on is not counted, and what was
    /// counted before stays.
    pub remove_on_exec: bool,
    /// Opened without counting; [`enable`](crate::Group::enable) starts it.
    pub disabled: bool,
}

impl Attributes {
    /// Sets [`inherit`](Self::inherit).
    #[must_use]
    pub const fn with_inherit(mut self, inherit: bool) -> Self {
        self.inherit = inherit;
        self
    }

    /// Sets [`inherit_thread`](Self::inherit_thread).
    #[must_use]
    pub const fn with_inherit_thread(mut self, inherit_thread: bool) -> Self {
        self.inherit_thread = inherit_thread;
        self
    }

    /// Sets [`pinned`](Self::pinned).
    #[must_use]
    pub const fn with_pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Sets [`exclusive`](Self::exclusive).
    #[must_use]
    pub const fn with_exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets [`weak`](Self::weak).
    #[must_use]
    pub const fn with_weak(mut self, weak: bool) -> Self {
        self.weak = weak;
        self
    }

    /// Sets [`sampled_by_leader`](Self::sampled_by_leader).
    #[must_use]
    pub const fn with_sampled_by_leader(mut self, sampled_by_leader: bool) -> Self {
        self.sampled_by_leader = sampled_by_leader;
        self
    }

    /// Sets [`enable_on_exec`](Self::enable_on_exec).
    #[must_use]
    pub const fn with_enable_on_exec(mut self, enable_on_exec: bool) -> Self {
        self.enable_on_exec = enable_on_exec;
        self
    }

    /// Sets [`remove_on_exec`](Self::remove_on_exec).
    #[must_use]
    pub const fn with_remove_on_exec(mut self, remove_on_exec: bool) -> Self {
        self.remove_on_exec = remove_on_exec;
        self
    }

    /// Sets [`disabled`](Self::disabled).
    #[must_use]
    pub const fn with_disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }
}
