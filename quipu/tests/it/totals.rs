//! Totals of events of one reading, which are found a shorter way, beside the rules for any number of parts.

use std::sync::{Arc, Mutex};

use quipu::{
    Count, Counts, Error, ErrorKind, EventInfo, EventSet, GroupSpec, Reading, Result, Target,
};
use quipu_hal::{Backend, MaxRate, ReadBuf, ValueKind, total};
use quipu_scripted::{Scripted, ScriptedGroup};

const MENDED: u64 = 99;

/// Returns a backend whose events all have the reading that is given.
fn backend(given: &Arc<Mutex<Reading>>) -> Arc<dyn Backend> {
    let given = Arc::clone(given);
    let open = move |spec: &GroupSpec, _: &Target| open(spec, Arc::clone(&given));
    Arc::new(Scripted::new("given", open))
}

/// Opens every event but `refused`.
fn open(spec: &GroupSpec, given: Arc<Mutex<Reading>>) -> Result<ScriptedGroup> {
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
    let fails = infos.iter().any(|info| &*info.name == "failing");
    let group = ScriptedGroup::of_members(infos);
    Ok(group.reading(move |out| read(out, *given.lock().expect("no test panics with it"), fails)))
}

/// Gives each member one more than the one before it, so that a reading is not taken for another's; the group of `failing`
/// can only be read where the first has [`MENDED`].
fn read(out: &mut ReadBuf, mut given: Reading, fails: bool) -> Result<()> {
    if fails && given.value != MENDED {
        return Err(Error::new(ErrorKind::CounterInErrorState, "read it"));
    }
    for reading in &mut out[0] {
        *reading = given;
        given.value = given.value.wrapping_add(1);
    }
    Ok(())
}

/// Every event's total is what the rules say of its parts, whatever the reading, and wherever the event stands
/// beside others that have no reading or a level.
#[test]
fn the_total_of_one_reading_is_that_of_the_rules() -> Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let reading = Arc::new(Mutex::new(Reading::default()));
    let mut builder = EventSet::builder();
    builder.backends([backend(&reading)]);
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
    let mut kinds = [0; 5];
    for value in numbers {
        for (enabled, running) in numbers.iter().flat_map(|e| numbers.map(|r| (*e, r))) {
            for rate in rates.map(MaxRate::per_second) {
                *reading.lock().expect("no test panics with it") =
                    Reading::new(value, enabled, running)
                        .with_max_rate(rate)
                        .with_at_least(value == 7);
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
                        Count::AtLeast(_) => 3,
                        _ => 4,
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
    let mut builder = EventSet::builder();
    builder.backends([backend(reading)]);
    builder.preset("sum", "a + b")?;
    builder.events(events)?.open()
}

/// Exact values are those of all events in their order, in one group or several, or there are none.
#[test]
fn exact_values_are_of_all_events_in_their_order() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let exact = |events: &str| -> Result<Option<Vec<u64>>> {
        let mut set = opened(events, &reading)?;
        let mut counts = set.counts();
        let mut values = vec![0; set.events().len()];
        let all = set.read_exact(&mut counts, &mut values)?;
        Ok(all.then_some(values))
    };
    for (events, values) in [
        ("a", &[7][..]),
        ("{a,b,c}", &[7, 8, 9]),
        ("a,b", &[7, 7]),
        ("{a,b},c", &[7, 8, 7]),
        ("a,{b,c}", &[7, 7, 8]),
        ("{a,gauge}", &[7, 8]),
        ("sum", &[15]),
    ] {
        assert_eq!(exact(events)?.as_deref(), Some(values), "{events}");
    }
    for events in ["refused", "refused,a", "a,refused", "failing", "a,failing"] {
        assert_eq!(exact(events)?, None, "{events}");
    }
    for inexact in [
        Reading::new(7, 10, 9),
        Reading::new(0, 10, 0),
        Reading::new(10 << 47, 10, 10).with_max_rate(MaxRate::EVENTS),
    ] {
        *reading.lock().expect("no test panics with it") = inexact;
        for events in ["a", "{a,b}", "a,b"] {
            assert_eq!(exact(events)?, None, "{inexact:?}");
        }
    }
    Ok(())
}

#[test]
fn exact_values_are_as_many_as_events() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let mut set = opened("{a,b}", &reading)?;
    let mut counts = set.counts();
    for length in [0, 1, 3] {
        let refused = set.read_exact(&mut counts, &mut vec![0; length]);
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidConfiguration), "{length}");
    }
    let mut other = opened("{a,b}", &reading)?.counts();
    assert!(
        set.read_exact(&mut other, &mut [0; 2]).is_err(),
        "of another set"
    );
    Ok(())
}

/// An id is that of its event, wherever that stands and whatever was opened of the others.
#[test]
fn counts_are_found_by_the_ids_of_events() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let mut builder = EventSet::builder();
    builder.backends([backend(&reading)]);
    let a = builder.event("a")?;
    builder.events("{b,c}")?;
    assert!(builder.event("d,e").is_err(), "they are two");
    assert!(builder.event("{d,e}").is_err(), "they are two");
    let [refused, f] = [builder.event("refused")?, builder.event("f")?];
    let mut set = builder.open()?;
    let mut counts = set.counts();
    set.read(&mut counts)?;
    let names = counts.events().map(|event| event.name().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c", "refused", "f"]);
    for (id, name) in [(a, "a"), (refused, "refused"), (f, "f")] {
        assert_eq!(counts.of(id).name(), name);
    }
    assert_eq!(counts.of(f).total(), Ok(Count::Exact(7)));
    assert!(counts.of(refused).total().is_err());
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
    // More than the C library keeps of what was given back (mallopt(3), DEFAULT_MMAP_THRESHOLD_MAX), so that pages are fresh.
    std::hint::black_box(vec![1_u8; 1 << 26]);
    set.read(&mut counts)?;
    let totals = |counts: &Counts| -> Result<Vec<_>> {
        let totals = counts.events().map(|event| event.total());
        totals.map(|total| Ok(total?.exact())).collect()
    };
    let before = totals(&counts)?;
    assert!(before.iter().all(|total| *total > Some(0)), "{before:?}");
    let earlier = counts.clone();
    let mut difference = set.counts();
    counts.since(&earlier, &mut difference)?;
    assert_eq!(totals(&difference)?, [Some(0), Some(0)]);
    counts.subtract(&earlier)?;
    assert_eq!(totals(&counts)?, [Some(0), Some(0)]);
    Ok(())
}
