//! Differences of readings, sums of those, and plain values, where every reading is given.

use std::sync::{Arc, Mutex};

use quipu::{
    Count, Counts, Error, ErrorKind, EventInfo, EventSet, GroupSpec, Reading, Result, Target,
};
use quipu_hal::{Backend, MaxRate, ValueKind};
use quipu_scripted::{Scripted, ScriptedGroup};

/// A set whose events all have the reading that is given, and the one after each other member one more. A group with
/// `failing` can be read while the value is even.
struct Given {
    reading: Arc<Mutex<Reading>>,
    set: EventSet,
}

impl Given {
    fn new(events: &str) -> Self {
        let reading = Arc::new(Mutex::new(Reading::default()));
        let given = Arc::clone(&reading);
        let open = move |spec: &GroupSpec, _: &Target| Ok(group(spec, &given));
        let backend: Arc<dyn Backend> = Arc::new(Scripted::new("given", open));
        let mut builder = EventSet::builder();
        let builder = builder.preset("sum", "a + failing").expect("a formula");
        let builder = builder.backends([backend]).events(events).expect("a list");
        let set = builder.open().expect("a backend");
        Self { reading, set }
    }

    fn read(&mut self, reading: Reading) -> Counts {
        *self.reading.lock().expect("no test panics with it") = reading;
        let mut counts = self.set.counts();
        self.set.read(&mut counts).expect("its own counts");
        counts
    }

    /// Reads a value that was counted for as many nanoseconds.
    fn at(&mut self, value: u64) -> Counts {
        self.read(Reading::new(value, value, value))
    }
}

fn group(spec: &GroupSpec, given: &Arc<Mutex<Reading>>) -> ScriptedGroup {
    let names = spec.members.iter().map(|member| member.event.to_string());
    let infos = names.map(|name| {
        let is_gauge = name == "gauge";
        let mut info = EventInfo::counter(name);
        if is_gauge {
            info.kind = ValueKind::Gauge;
        }
        info
    });
    let infos: Vec<EventInfo> = infos.collect();
    let fails = infos.iter().any(|info| info.name == "failing");
    let given = Arc::clone(given);
    ScriptedGroup::of_members(infos).reading(move |out| {
        let mut reading = *given.lock().expect("no test panics with it");
        if fails && reading.value % 2 == 1 {
            let error = Error::new(ErrorKind::CounterInErrorState, "read it");
            return Err(error.with_reason(reading.value.to_string()));
        }
        for member in &mut out[0] {
            *member = reading;
            reading.value += 1;
        }
        Ok(())
    })
}

/// Returns the exact values, or the reasons why there are none.
fn totals(counts: &Counts) -> Vec<Result<u128, String>> {
    let total = |event: quipu::EventCount<'_>| match event.total() {
        Ok(Count::Exact(value)) => Ok(value),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.reason().unwrap_or_default().to_owned()),
    };
    counts.events().map(total).collect()
}

fn refused(outcome: Result<()>) -> ErrorKind {
    outcome.expect_err("it is of another set").kind()
}

#[test]
fn a_difference_is_put_into_other_counts_of_the_set() -> Result<()> {
    let mut given = Given::new("{a,gauge},b,failing");
    let (earlier, later) = (given.at(100), given.at(131));
    let failed = Err("131".to_owned());
    let mut out = given.set.counts();
    later.since(&earlier, &mut out)?;
    assert_eq!(totals(&out), [Ok(31), Ok(132), Ok(31), failed.clone()]);
    let (_, reading) = out.get(0).expect("an event").parts()?.next().expect("one");
    assert_eq!((reading.time_enabled, reading.time_running), (31, 31));
    assert_eq!(totals(&later), [Ok(131), Ok(132), Ok(131), failed.clone()]);
    // What was there before is gone.
    earlier.since(&earlier, &mut out)?;
    assert_eq!(totals(&out), [Ok(0), Ok(101), Ok(0), Ok(0)]);
    let again = given.at(150);
    again.since(&later, &mut out)?;
    assert_eq!(totals(&out), [Ok(19), Ok(151), Ok(19), failed]);

    let other = Given::new("{a,gauge},b,failing").at(100);
    let kind = refused(later.since(&other, &mut out));
    assert_eq!(kind, ErrorKind::InvalidConfiguration);
    Ok(())
}

#[test]
fn spans_are_summed_up() -> Result<()> {
    let mut given = Given::new("{a,gauge},b");
    let mut sum = given.set.counts();
    for (from, to) in [(10, 15), (100, 130), (200, 200)] {
        let (earlier, later) = (given.at(from), given.at(to));
        sum.add_since(&earlier, &later)?;
    }
    assert_eq!(totals(&sum), [Ok(35), Ok(201), Ok(35)]);
    for event in [0, 2] {
        let event = sum.get(event).expect("an event");
        let (_, reading) = event.parts()?.next().expect("one part");
        assert_eq!((reading.time_enabled, reading.time_running), (35, 35));
    }
    let other = Given::new("{a,gauge},b").at(100);
    let own = given.at(300);
    for (earlier, later) in [(&other, &own), (&own, &other), (&other, &other)] {
        let kind = refused(sum.add_since(earlier, later));
        assert_eq!(kind, ErrorKind::InvalidConfiguration);
    }
    assert_eq!(totals(&sum), [Ok(35), Ok(201), Ok(35)]);
    Ok(())
}

/// The first error stays, whichever end of a span it was at.
#[test]
fn a_sum_of_spans_one_of_which_could_not_be_read_has_no_total() -> Result<()> {
    for (from, to, first) in [(10, 15, "15"), (15, 20, "15"), (15, 17, "15")] {
        let mut given = Given::new("failing,b");
        let mut sum = given.set.counts();
        let (earlier, later) = (given.at(2), given.at(8));
        sum.add_since(&earlier, &later)?;
        assert_eq!(totals(&sum), [Ok(6), Ok(6)]);
        let (earlier, later) = (given.at(from), given.at(to));
        sum.add_since(&earlier, &later)?;
        let told = Err(first.to_owned());
        assert_eq!(
            totals(&sum),
            [told.clone(), Ok(6 + u128::from(to - from))],
            "{from} to {to}"
        );
        let (earlier, later) = (given.at(20), given.at(31));
        sum.add_since(&earlier, &later)?;
        assert_eq!(totals(&sum)[0], told, "{from} to {to}");
    }
    Ok(())
}

#[test]
fn a_preset_with_a_term_that_could_not_be_read_names_it() {
    let mut given = Given::new("sum");
    assert_eq!(totals(&given.at(8)), [Ok(8 + 9)]);
    let counts = given.at(7);
    let preset = counts.get(0).expect("an event");
    for refused in [
        preset.total().map(drop),
        preset.value().map(drop),
        preset.no_value().map(drop),
        preset.term_readings().map(drop),
    ] {
        let error = refused.expect_err("it could not be read");
        assert_eq!(
            (error.kind(), error.attempted(), error.reason()),
            (
                ErrorKind::CounterInErrorState,
                "count sum",
                Some("its term a: 7")
            )
        );
    }
}

#[test]
fn plain_values_are_those_that_were_counted_all_the_time() -> Result<()> {
    let mut given = Given::new("{a,b},c");
    let counts = given.at(40);
    assert_eq!(counts.values::<3>()?, [40, 41, 40]);
    let too_few = counts.values::<2>().expect_err("there are three");
    assert_eq!(too_few.kind(), ErrorKind::InvalidConfiguration);
    assert!(counts.values::<4>().is_err());
    assert!(!counts.is_empty());
    let seven = |enabled, running| Reading::new(7, enabled, running);
    for (reading, kind, reason) in [
        (
            seven(10, 5),
            ErrorKind::Busy,
            "it had a counter for a part of the time, from which 14 is estimated",
        ),
        (
            Reading::new(0, 10, 0),
            ErrorKind::Busy,
            "it never had a counter",
        ),
        (
            seven(10, 10).with_at_least(true),
            ErrorKind::UnsupportedFeature,
            "it was at least 7: a part of the time may not have been counted",
        ),
    ] {
        let counts = given.read(reading);
        for refused in [
            counts.get(0).expect("an event").value().map(drop),
            counts.values::<3>().map(drop),
        ] {
            let error = refused.expect_err("it was not counted all the time");
            assert_eq!((error.kind(), error.reason()), (kind, Some(reason)));
            assert_eq!(error.attempted(), "return the plain value of a");
        }
    }
    let jumped = Reading::new(10 << 47, 10, 10).with_max_rate(MaxRate::EVENTS);
    let jumped = given.read(jumped);
    let error = jumped.values::<3>().expect_err("it jumped");
    assert_eq!(error.kind(), ErrorKind::CounterJumped);
    Ok(())
}
