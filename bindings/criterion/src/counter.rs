//! The measurement: what an event counts between two moments.

use std::cell::RefCell;
use std::time::Instant;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use quipu::{Count, Counts, Error, ErrorKind, EventSet, EventSetBuilder, Result};

use crate::units::Units;
use crate::{additive, note};

/// A [`Measurement`] that counts an event, or measures wall time where there is no counter for it.
///
/// The thread that opens it is counted, with the threads and processes that it starts from then on.
pub struct Counter(Measures);

enum Measures {
    WallTime,
    Event(Box<Opened>),
}

struct Opened {
    /// The name of what is counted, of which results are comparable.
    name: String,
    /// The factor that turns counts into the unit.
    scale: f64,
    units: Units,
    counting: RefCell<Running>,
}

/// A set that counts all the time, and buffers that wait for a reading. Nothing is allocated between two readings.
struct Running {
    set: EventSet,
    spare: Vec<Counts>,
}

/// The beginning of a measurement.
pub struct Start(Began);

enum Began {
    At(Instant),
    Counted(Result<Counts>),
}

/// A measured value: a sum of counts or nanoseconds, or none where one of them was not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value(Option<f64>);

impl Counter {
    /// Makes one that measures wall time, as criterion does by itself.
    pub fn wall_time() -> Self {
        Self(Measures::WallTime)
    }

    /// Opens the set of a builder, which has to have one event.
    pub(crate) fn open(builder: &EventSetBuilder) -> Result<Self> {
        let mut builder = builder.clone();
        builder.user_mode_fallback(true).inherit(true);
        let (mut set, without_threads) = match builder.open_all() {
            Ok(set) => (set, None),
            Err(why) => (builder.inherit(false).open_all()?, Some(why)),
        };
        let [event] = set.events() else {
            let reason = format!("these are {} events", set.events().len());
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, "measure a benchmark")
                    .with_reason(reason),
            );
        };
        additive::check(event)?;
        let mut name = event.name().to_owned();
        if event.fell_back_to_user() {
            note::once(format!(
                "{name} is counted in user mode only: the kernel may not be counted here"
            ));
            name += ":u";
        }
        let info = event.info();
        let (unit, scale) = info.map_or(("", 1.0), |info| (info.unit.as_ref(), info.scale));
        let (unit, scale) = match unit {
            "ns" => ("s", scale * 1e-9),
            unit => (unit, scale),
        };
        let units = Units::of(&name, unit);
        if let Some(why) = without_threads {
            note::once(format!(
                "{name} is counted without threads that benchmarks start: {why:#}"
            ));
            name += "-without-threads";
        }
        set.enable()?;
        // The first reading touches the pages of its buffer.
        let mut spare = vec![set.counts(), set.counts()];
        for counts in &mut spare {
            set.read(counts)?;
        }
        Ok(Self(Measures::Event(Box::new(Opened {
            name,
            scale,
            units,
            counting: RefCell::new(Running { set, spare }),
        }))))
    }

    /// Returns the name of what is counted; none if that is wall time.
    pub fn event(&self) -> Option<&str> {
        match &self.0 {
            Measures::WallTime => None,
            Measures::Event(opened) => Some(&opened.name),
        }
    }
}

impl Running {
    fn read(&mut self) -> Result<Counts> {
        let mut counts = match self.spare.pop() {
            Some(counts) => counts,
            None => self.set.counts(),
        };
        self.set.read(&mut counts)?;
        Ok(counts)
    }

    /// Returns what was counted since a reading.
    fn since(&mut self, before: Counts) -> Result<Count> {
        let mut now = self.read()?;
        now.subtract(&before)?;
        let count = match now.get(0) {
            Some(event) => event.total(),
            None => Ok(Count::NotCounted),
        };
        self.spare.extend([before, now]);
        count
    }
}

impl Opened {
    /// Returns the value that criterion gets of a count, which cannot say of a number what it is.
    fn value(&self, count: Result<Count>) -> Value {
        let name = &self.name;
        match &count {
            Ok(Count::Exact(_)) => {}
            Ok(count @ Count::AtLeast(_)) => {
                self.units.mark(">=");
                note::once(format!(
                    "{name} is a lower bound, {count}, and marked >=: a part of the time may not have been counted"
                ));
            }
            Ok(count) if count.value().is_some() => {
                self.units.mark("~");
                note::once(format!(
                    "{name} is an estimate, {count}, and marked ~ from here on: it had a counter for a part of the time; count \
                     less at the same time"
                ));
            }
            Ok(_) => note::once(format!(
                "{name} had no counter in a sample: the benchmark has no results"
            )),
            Err(why) => note::once(format!("{name}: the benchmark has no results: {why:#}")),
        }
        let value = count.ok().and_then(Count::value);
        Value(value.map(|value| value as f64 * self.scale))
    }
}

impl Measurement for Counter {
    type Intermediate = Start;
    type Value = Value;

    fn start(&self) -> Start {
        Start(match &self.0 {
            Measures::WallTime => Began::At(Instant::now()),
            Measures::Event(opened) => Began::Counted(opened.counting.borrow_mut().read()),
        })
    }

    fn end(&self, start: Start) -> Value {
        match (&self.0, start.0) {
            (Measures::Event(opened), Began::Counted(before)) => {
                let count = before.and_then(|before| opened.counting.borrow_mut().since(before));
                opened.value(count)
            }
            (_, Began::At(start)) => Value(Some(start.elapsed().as_nanos() as f64)),
            // It was started by another counter.
            (Measures::WallTime, Began::Counted(_)) => Value(None),
        }
    }

    fn add(&self, one: &Value, other: &Value) -> Value {
        Value(one.0.zip(other.0).map(|(one, other)| one + other))
    }

    fn zero(&self) -> Value {
        Value(Some(0.0))
    }

    /// Returns 0 where there is no value: criterion leaves a benchmark out that has a sample of 0.
    fn to_f64(&self, value: &Value) -> f64 {
        if let (Some(0.0), Some(event)) = (value.0, self.event()) {
            note::once(format!(
                "{event} did not occur in a sample: criterion has no results of a benchmark with a sample of 0"
            ));
        }
        value.0.unwrap_or(0.0)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        match &self.0 {
            Measures::WallTime => WallTime.formatter(),
            Measures::Event(opened) => &opened.units,
        }
    }
}
