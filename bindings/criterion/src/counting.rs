//! Configurations of criterion that count.

use std::process;

use criterion::Criterion;
use quipu::{ErrorKind, EventSet, EventSetBuilder, IntoGroups, Result};

use crate::{Counter, folder, note};

/// A description of what benchmarks are measured in, from which criterion's configuration is made.
///
/// ```
/// use quipu_criterion::Counting;
///
/// let mut formula = quipu::EventSet::builder();
/// formula.preset("ALL_FAULTS", "minor-faults + major-faults")?.events("ALL_FAULTS:u")?;
/// let criterion = Counting::of_set(formula).skip_without_counter().criterion();
/// # drop(criterion);
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Counting {
    set: EventSetBuilder,
    skip: bool,
}

/// Returns criterion's configuration for benchmarks that are measured in an event, a preset or anything else that
/// `quipu stat -e` takes. Where there is no counter for it, a line on standard error says why, and wall time is measured.
///
/// It belongs into [`criterion_group!`](criterion::criterion_group). What no machine can count so, as a malformed name or a ratio,
/// ends the program with status 2, as criterion ends it for arguments that it does not know.
pub fn counting(event: &str) -> Criterion<Counter> {
    match Counting::of(event) {
        Ok(counting) => counting.criterion(),
        Err(why) => refuse(&why),
    }
}

fn refuse(why: &quipu::Error) -> ! {
    note::once(format!("{why:#}"));
    process::exit(2);
}

impl Counting {
    /// Describes benchmarks that are measured in one event.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if a text is malformed.
    pub fn of(event: impl IntoGroups) -> Result<Self> {
        let mut set = EventSet::builder();
        set.events(event)?;
        Ok(Self::of_set(set))
    }

    /// Describes benchmarks that are measured in the only event of a set: a formula
    /// ([`preset`](EventSetBuilder::preset)), or one with backends of its own.
    pub fn of_set(set: EventSetBuilder) -> Self {
        Self { set, skip: false }
    }

    /// Leaves benchmarks out where there is no counter: the program ends with status 0 after a line that begins with SKIP.
    #[must_use]
    pub fn skip_without_counter(mut self) -> Self {
        self.skip = true;
        self
    }

    /// Opens the counter, for [`Criterion::with_measurement`].
    ///
    /// # Errors
    /// The reason why the event cannot be counted here;
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if no machine can count it for each iteration: it is a ratio, a
    /// gauge, or not one event.
    pub fn counter(&self) -> Result<Counter> {
        Counter::open(&self.set)
    }

    /// Returns criterion's configuration, as [`counting`] does. Results of each event are in a folder of their own
    /// (`target/criterion/counted`), so that they are compared with those of the same event.
    pub fn criterion(&self) -> Criterion<Counter> {
        let counter = match self.counter() {
            Ok(counter) => counter,
            Err(why) if why.kind() == ErrorKind::InvalidConfiguration => refuse(&why),
            Err(why) if self.skip => {
                note::once(format!("SKIP: {why:#}"));
                process::exit(0);
            }
            Err(why) => {
                note::once(format!("wall time is measured instead: {why:#}"));
                Counter::wall_time()
            }
        };
        let criterion = Criterion::default();
        match counter.event() {
            Some(event) => criterion.output_directory(&folder::of(event)),
            None => criterion,
        }
        .with_measurement(counter)
    }
}
