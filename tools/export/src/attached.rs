//! Counters attached to one CPU list, control group or process, read as what happened since the read before.

use quipu::{Counts, Error, ErrorKind, EventSet, EventSetBuilder, Part, Reading, Target};
use quipu_hal::ValueKind;

/// The readings of an event's terms since the read before, part by part; an event that is no formula is its only term.
pub(crate) type Span = Vec<Vec<(Part, Reading)>>;

/// An open event set, and what was read of it last.
pub(crate) struct Attached {
    /// The instance, other than all before it of the same name.
    pub(crate) identity: String,
    pub(crate) set: EventSet,
    counts: Counts,
    /// By event, term and part.
    last: Vec<Vec<Vec<Reading>>>,
}

impl Attached {
    /// Attaches counters and starts them.
    pub(crate) fn open(
        builder: &EventSetBuilder,
        target: Target,
        identity: String,
    ) -> Result<Self, Error> {
        let mut builder = builder.clone();
        // Threads that a process makes later are followed; processes are found by themselves.
        let follows = matches!(target, Target::Process(_));
        builder
            .target(target)
            .inherit(follows)
            .inherit_thread(follows);
        let mut set = builder.open()?;
        set.enable()?;
        Ok(Self {
            identity,
            counts: set.counts(),
            last: vec![Vec::new(); set.events().len()],
            set,
        })
    }

    /// Reads all events. What cannot be read keeps its error, and is read from where it was read last the next time.
    pub(crate) fn read(&mut self) -> Vec<Result<Span, Error>> {
        if let Err(error) = self.set.read(&mut self.counts) {
            return vec![Err(error); self.last.len()];
        }
        let mut in_error_state = false;
        let events = self.counts.events().zip(&mut self.last);
        let spans = events
            .map(|(event, last)| {
                let terms = event.term_readings().inspect_err(|error| {
                    in_error_state |= error.kind() == ErrorKind::CounterInErrorState;
                })?;
                let info = event.event().info();
                let is_level = info.is_some_and(|info| info.kind == ValueKind::Gauge);
                last.resize(terms.len(), Vec::new());
                let since = terms.into_iter().zip(last).map(|(parts, last)| {
                    last.resize(parts.len(), Reading::default());
                    let parts = parts.into_iter().zip(last);
                    parts
                        .map(|((part, now), last)| match is_level {
                            true => (part.clone(), *now),
                            false => (part.clone(), since(now, last)),
                        })
                        .collect()
                });
                Ok(since.collect())
            })
            .collect();
        if in_error_state {
            // A pinned group gets its counters back when it is started again, if there are some by now.
            let _ = self.set.enable();
        }
        spans
    }
}

/// Returns what happened since the last reading, in whose place `now` is put. A counter that has gone back was not counted.
fn since(now: &Reading, last: &mut Reading) -> Reading {
    let since = now.checked_since(last);
    *last = *now;
    since.unwrap_or_else(|| Reading::new(0, 1, 0))
}
