//! Calibration: what starting, reading and stopping a set adds to its own counts.

use quipu_hal::{Count, Error, ErrorKind, Result};

use crate::{Counts, EventSet, SetEvent};

/// Rounds that are not measured: the first ones meet cold caches and pages that are not mapped yet.
const WARM_UP: usize = 3;
/// Rounds that are measured, an odd number so that one of them is the median.
const ROUNDS: usize = 31;

/// The overhead that a set adds to the count of one of its events, measured where nothing else is done
/// ([`EventSet::calibrate`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overhead {
    /// In the count between [`enable`](EventSet::enable) and [`disable`](EventSet::disable).
    pub start_to_stop: Spread,
    /// In the difference between one [`read`](EventSet::read) and the next.
    pub read_to_read: Spread,
}

/// The spread of a measurement that was made several times, in the event's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spread {
    /// The lowest value.
    pub lowest: u128,
    /// The value that half of the others are not above, and half not below: the one to subtract.
    pub median: u128,
    /// The highest value.
    pub highest: u128,
}

impl Spread {
    /// Returns the spread of the values of all rounds.
    fn of(mut values: Vec<u128>) -> Self {
        values.sort_unstable();
        let at = |position: usize| values.get(position).copied().unwrap_or(0);
        Self {
            lowest: at(0),
            median: at(values.len() / 2),
            highest: at(values.len().saturating_sub(1)),
        }
    }

    /// Returns true if every value was the same, as that of instructions in user mode is as a rule.
    pub fn is_constant(&self) -> bool {
        self.lowest == self.highest
    }
}

/// The differences of one kind, by event.
struct Samples(Vec<Result<Vec<u128>>>);

impl Samples {
    fn new(events: usize) -> Self {
        Self(
            (0..events)
                .map(|_| Ok(Vec::with_capacity(ROUNDS)))
                .collect(),
        )
    }

    /// Adds the exact counts of one round; what is not one ends that event's.
    fn add(&mut self, counts: &Counts) {
        for (samples, event) in self.0.iter_mut().zip(counts.events()) {
            let Ok(values) = samples else { continue };
            match event.total().map(Count::exact) {
                Ok(_) if event.event().is_gauge() => *samples = Err(never_measured(event.event())),
                Ok(Some(value)) => values.push(value),
                Ok(None) => *samples = Err(not_exact(event.event())),
                Err(error) => *samples = Err(error),
            }
        }
    }

    fn spreads(self) -> impl Iterator<Item = Result<Spread>> {
        self.0.into_iter().map(|samples| samples.map(Spread::of))
    }
}

impl EventSet {
    /// Measures what the set itself adds to its counts, by starting, reading and stopping it with nothing in
    /// between, and returns it for each event, in request order.
    ///
    /// Instructions in user mode are the same in each round as a rule, so that the median can be subtracted to
    /// the last one; events of the kernel, and times, have a spread. It is a property of this set on this machine,
    /// in this build: more events take longer to start and to read.
    ///
    /// The set is stopped and its values are zero afterwards. It has to count the calling thread, or the CPU that
    /// it is on, to meet its own overhead.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut set = EventSet::builder().events("page-faults:u,task-clock:u")?.open()?;
    /// let overhead = set.calibrate()?;
    /// let mut counts = set.counts();
    /// set.enable()?;
    /// let pages = std::hint::black_box(vec![1u8; 1 << 20]);
    /// set.disable()?;
    /// set.read(&mut counts)?;
    /// for (event, overhead) in counts.events().zip(overhead) {
    ///     if let (Some(value), Ok(overhead)) = (event.total()?.exact(), overhead) {
    ///         let own = overhead.start_to_stop.median;
    ///         println!("{}: {} for {} bytes", event.name(), value.saturating_sub(own), pages.len());
    ///     }
    /// }
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first refusal to start, stop or reset. An event has an error of its own if it could not be opened or
    /// read, or [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if it was not counted all the time.
    pub fn calibrate(&mut self) -> Result<Vec<Result<Overhead>>> {
        self.disable()?;
        let stopped = self.rounds(|set| {
            set.enable()?;
            set.disable()
        })?;
        self.enable()?;
        let running = self.rounds(|_| Ok(()))?;
        self.disable()?;
        self.reset()?;
        let both = stopped.spreads().zip(running.spreads());
        let both = both.map(|(start_to_stop, read_to_read)| {
            Ok(Overhead {
                start_to_stop: start_to_stop?,
                read_to_read: read_to_read?,
            })
        });
        Ok(both.collect())
    }

    /// Measures what the set counts from one read to the next, with `between` in between.
    fn rounds(&mut self, between: impl Fn(&mut Self) -> Result<()>) -> Result<Samples> {
        let (mut before, mut after) = (self.counts(), self.counts());
        let mut samples = Samples::new(self.events().len());
        for round in 0..WARM_UP + ROUNDS {
            self.read(&mut before)?;
            between(self)?;
            self.read(&mut after)?;
            after.subtract(&before)?;
            if round >= WARM_UP {
                samples.add(&after);
            }
        }
        Ok(samples)
    }
}

fn not_exact(event: &SetEvent) -> Error {
    Error::new(
        ErrorKind::UnsupportedFeature,
        format!("calibrate {}", event.name()),
    )
    .with_reason("it was not counted all the time, so that its count is no exact one")
    .with_hint("calibrate fewer events at a time")
}

fn never_measured(event: &SetEvent) -> Error {
    let attempted = format!("calibrate {}", event.name());
    Error::new(ErrorKind::UnsupportedFeature, attempted)
        .with_reason("it is a gauge, which shows a level whatever the set does")
}
