//! Totals of events of one reading, which are found a shorter way, beside the rules for any number of parts.

use std::sync::{Arc, Mutex};

use quipu::{
    Count, Counts, Error, ErrorKind, EventInfo, EventSet, GroupSpec, Part, Reading, Result, Target,
};
use quipu_hal::{Backend, Capabilities, Group, MaxRate, ReadBuf, Simultaneity, ValueKind, total};

/// Opens every event but `refused`; all events have the reading that it was given.
#[derive(Clone)]
struct Given {
    reading: Arc<Mutex<Reading>>,
    capabilities: Capabilities,
}

const MENDED: u64 = 99;

struct GivenGroup {
    infos: Vec<EventInfo>,
    parts: [Part; 1],
    reading: Arc<Mutex<Reading>>,
}

impl Backend for Given {
    fn name(&self) -> &'static str {
        "given"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        let names = spec.members.iter().map(|member| member.event.to_string());
        let infos: Vec<EventInfo> = names
            .map(|name| match name.as_str() {
                "refused" => Err(Error::new(ErrorKind::UnsupportedEvent, "open it")),
                "gauge" => {
                    let mut info = EventInfo::counter(name);
                    info.kind = ValueKind::Gauge;
                    Ok(info)
                }
                _ => Ok(EventInfo::counter(name)),
            })
            .collect::<Result<_>>()?;
        Ok(Box::new(GivenGroup {
            infos,
            parts: [Part::whole()],
            reading: Arc::clone(&self.reading),
        }))
    }
}

impl Group for GivenGroup {
    fn members(&self) -> &[EventInfo] {
        &self.infos
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        Ok(())
    }

    /// Each member has one more than the one before it, so that a reading is not taken for another's; the group
    /// of `failing` can only be read where the first has [`MENDED`].
    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        let mut given = *self.reading.lock().expect("no test panics with it");
        let fails = self.infos.iter().any(|info| &*info.name == "failing");
        if fails && given.value != MENDED {
            return Err(Error::new(ErrorKind::CounterInErrorState, "read it"));
        }
        for reading in &mut out[0] {
            *reading = given;
            given.value = given.value.wrapping_add(1);
        }
        Ok(())
    }

    fn read_exact_timed(&mut self, values: &mut [u64]) -> Option<u64> {
        let mut readings = self.read_buf();
        if self.read(&mut readings).is_err() || values.len() != self.infos.len() {
            return None;
        }
        for (value, reading) in values.iter_mut().zip(&readings[0]) {
            *value = reading.exact()?;
        }
        Some(readings[0][0].time_enabled)
    }
}

/// Every event's total is what the rules say of its parts, whatever the reading, and wherever the event stands
/// beside others that have no reading or a level.
#[test]
fn the_total_of_one_reading_is_that_of_the_rules() -> Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let reading = Arc::new(Mutex::new(Reading::default()));
    let backend = Given {
        reading: Arc::clone(&reading),
        capabilities: Capabilities::none(),
    };
    let mut builder = EventSet::builder();
    builder.backends([Arc::new(backend) as Arc<dyn Backend>]);
    builder.events("{a,b,gauge},refused,c,{failing,d},{e,f},gauge")?;
    let mut set = builder.open()?;
    let mut counts = set.counts();
    let numbers = [
        0,
        1,
        7,
        10,
        SECOND - 1,
        SECOND,
        64 * SECOND,
        1 << 47,
        1 << 63,
        u64::MAX,
    ];
    let rates = [
        0,
        1,
        SECOND,
        (1 << 33) - 1,
        1 << 33,
        10 * SECOND,
        64 * SECOND,
        u64::MAX,
    ];
    let mut kinds = [0; 4];
    for value in numbers {
        for (enabled, running) in numbers.iter().flat_map(|e| numbers.map(|r| (*e, r))) {
            for rate in rates.map(MaxRate::per_second) {
                *reading.lock().expect("no test panics with it") =
                    Reading::new(value, enabled, running).with_max_rate(rate);
                set.read(&mut counts)?;
                for (index, event) in counts.events().enumerate() {
                    let (in_turn, alone) = (event.total(), counts.get(index).expect("it is there"));
                    let alone = alone.total();
                    let expected = match event.parts() {
                        Ok(mut parts) if event.name() == "gauge" => {
                            let (_, reading) = parts.next().expect("one part");
                            reading.level()
                        }
                        Ok(parts) => total(parts),
                        Err(error) => {
                            assert_eq!(
                                in_turn.expect_err("it has no reading").kind(),
                                error.kind()
                            );
                            assert_eq!(alone.expect_err("it has no reading").kind(), error.kind());
                            continue;
                        }
                    };
                    let told = |count: Result<Count>| count.unwrap_or(Count::Jumped);
                    let what = format!(
                        "{} of {value} in {enabled}, {running}, {rate:?}",
                        event.name()
                    );
                    assert_eq!((told(in_turn), told(alone)), (expected, expected), "{what}");
                    kinds[match expected {
                        Count::Exact(_) => 0,
                        Count::Estimated(_) => 1,
                        Count::NotCounted => 2,
                        _ => 3,
                    }] += 1;
                }
            }
        }
    }
    assert!(kinds.iter().all(|met| *met > 0), "{kinds:?}");
    Ok(())
}

/// Returns a set of events with this reading; `sum` is one of two events.
fn opened(events: &str, reading: &Arc<Mutex<Reading>>) -> Result<EventSet> {
    let backend = Given {
        reading: Arc::clone(reading),
        capabilities: Capabilities::none(),
    };
    let mut builder = EventSet::builder();
    builder.backends([Arc::new(backend) as Arc<dyn Backend>]);
    builder.preset("sum", "a + b")?;
    builder.events(events)?.open()
}

/// Readings are those of all events in their order, or there are none.
#[test]
fn readings_are_of_all_events_in_a_row() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let values = |events: &str| -> Result<Option<Vec<u64>>> {
        let mut set = opened(events, &reading)?;
        let mut counts = set.counts();
        set.read(&mut counts)?;
        let readings = counts.clone();
        let readings = readings.readings();
        Ok(readings.map(|all| all.iter().map(|reading| reading.value).collect()))
    };
    assert_eq!(values("a")?, Some(vec![7]));
    assert_eq!(values("{a,b,c}")?, Some(vec![7, 8, 9]));
    for events in [
        "a,b",
        "{a,b},c",
        "refused",
        "refused,a",
        "{a,gauge}",
        "failing",
        "sum",
    ] {
        assert_eq!(values(events)?, None, "{events}");
    }
    Ok(())
}

/// Values alone are those of all events in their order, in one group or several, or there are none.
#[test]
fn values_alone_are_of_all_events_in_their_order() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let alone = |events: &str, length: usize, with_time: bool| -> Result<Option<(Vec<u64>, u64)>> {
        let mut set = opened(events, &reading)?;
        let mut values = vec![0; length];
        let time = match with_time {
            true => set.read_exact_timed(&mut values),
            false => set.read_exact(&mut values).then_some(0),
        };
        Ok(time.map(|time| (values, time)))
    };
    for (events, values) in [
        ("a", &[7][..]),
        ("{a,b,c}", &[7, 8, 9]),
        ("a,b", &[7, 7]),
        ("{a,b},c", &[7, 8, 7]),
        ("a,{b,c}", &[7, 7, 8]),
    ] {
        let length = values.len();
        assert_eq!(alone(events, length, false)?, Some((values.into(), 0)));
        let set = opened(events, &reading)?;
        let groups = set
            .events()
            .iter()
            .filter_map(|event| Some(event.index().ok()?.group));
        let time_of_one = (groups.max() == Some(0)).then(|| (values.into(), 10));
        assert_eq!(alone(events, length, true)?, time_of_one, "{events}");
        for length in [0, length - 1, length + 1] {
            assert_eq!(alone(events, length, false)?, None, "{events}: {length}");
        }
    }
    for (events, length) in [
        ("refused", 1),
        ("refused,a", 2),
        ("a,refused", 2),
        ("{a,gauge}", 2),
        ("failing", 1),
        ("a,failing", 2),
        ("sum", 1),
        ("a,sum", 2),
    ] {
        for length in [length, length - 1, length + 1] {
            assert_eq!(alone(events, length, false)?, None, "{events}: {length}");
        }
    }
    for inexact in [
        Reading::new(7, 10, 9),
        Reading::new(0, 10, 0),
        Reading::new(10 << 47, 10, 10).with_max_rate(MaxRate::EVENTS),
    ] {
        *reading.lock().expect("no test panics with it") = inexact;
        for (events, length) in [("a", 1), ("{a,b}", 2), ("a,b", 2)] {
            assert_eq!(alone(events, length, false)?, None, "{inexact:?}");
        }
    }
    Ok(())
}

/// A group that could not be read has errors in place of totals, until it is read again; in a difference, if it could not be
/// read either time.
#[test]
fn what_could_not_be_read_has_no_total() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    for (events, fails) in [
        ("failing", &[true][..]),
        ("{a,failing}", &[true, true]),
        ("a,failing", &[false, true]),
        ("failing,{b,c}", &[true, false, false]),
    ] {
        let mut set = opened(events, &reading)?;
        let mut read = |value| -> Result<Counts> {
            *reading.lock().expect("no test panics with it") = Reading::new(value, 10, 10);
            let mut counts = set.counts();
            set.read(&mut counts)?;
            Ok(counts)
        };
        let failed = |counts: &Counts| -> Vec<bool> {
            let totals = counts.events().map(|event| event.total());
            totals.map(|total| total.is_err()).collect()
        };
        let (good, bad) = (read(MENDED)?, read(7)?);
        let none = vec![false; fails.len()];
        assert_eq!(failed(&good), none, "{events}");
        assert_eq!(failed(&bad), fails, "{events}");
        for (now, then) in [(&good, &bad), (&bad, &good), (&bad, &bad)] {
            let mut difference = now.clone();
            difference.subtract(then)?;
            assert_eq!(failed(&difference), fails, "{events}: {difference:?}");
        }
        let mut counts = bad.clone();
        *reading.lock().expect("no test panics with it") = Reading::new(MENDED, 10, 10);
        set.read(&mut counts)?;
        assert_eq!(failed(&counts), none, "{events}: {counts:?}");
    }
    Ok(())
}

#[test]
fn sets_of_several_groups_are_subtracted() -> Result<()> {
    let mut set = EventSet::builder()
        .events("page-faults:u,minor-faults:u")?
        .open()?;
    if let Some(error) = set.events().iter().find_map(quipu::SetEvent::error) {
        println!("SKIP differences of several groups: {error}");
        return Ok(());
    }
    let mut counts = set.counts();
    assert!(counts.buffer(1).is_some(), "the events are in one group");
    set.enable()?;
    std::hint::black_box(vec![1_u8; 1 << 22]);
    set.read(&mut counts)?;
    let totals = |counts: &Counts| -> Result<Vec<_>> {
        let totals = counts.events().map(|event| event.total());
        totals.map(|total| Ok(total?.exact())).collect()
    };
    let before = totals(&counts)?;
    assert!(before.iter().all(|total| *total > Some(0)), "{before:?}");
    let earlier = counts.clone();
    counts.subtract(&earlier)?;
    assert_eq!(totals(&counts)?, [Some(0), Some(0)]);
    Ok(())
}
