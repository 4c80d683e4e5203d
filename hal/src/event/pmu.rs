//! Events of a PMU that the operating system names, described by terms.

/// An event of a named PMU: `cpu/event=0xc0,umask=1/`.
///
/// The terms are resolved when the event is opened: on Linux from
/// `/sys/bus/event_source/devices/PMU/format` and `events`.
///
/// Exhaustive: the text of such an event has these two parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PmuEvent {
    /// The PMU: `cpu`, `cpu_core`, `msr`, `uncore_imc_0`.
    pub pmu: String,
    /// Its terms, in the order written.
    pub terms: Vec<Term>,
}

/// One term of a [`PmuEvent`].
///
/// Exhaustive: it is a name, or a name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    /// A format field (`umask`), a named event (`cache-misses`), or `config`, `config1` and so on.
    pub name: String,
    /// The value; a term without one is a named event, or a field set to 1.
    pub value: Option<TermValue>,
}

/// The value of a [`Term`].
///
/// Exhaustive: whatever is no number is text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TermValue {
    /// A number.
    Number(u64),
    /// Anything else: a path or a symbol.
    Text(String),
}

impl PmuEvent {
    /// An event of `pmu` with no terms yet.
    pub fn new(pmu: impl Into<String>) -> Self {
        Self {
            pmu: pmu.into(),
            terms: Vec::new(),
        }
    }

    /// Adds a named event of the PMU, or a one-bit field that is set.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>) -> Self {
        self.terms.push(Term {
            name: name.into(),
            value: None,
        });
        self
    }

    /// Adds a field set to a number.
    #[must_use]
    pub fn with_value(mut self, name: impl Into<String>, value: u64) -> Self {
        self.terms.push(Term {
            name: name.into(),
            value: Some(TermValue::Number(value)),
        });
        self
    }
}
