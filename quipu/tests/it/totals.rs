//! Totals of events of one reading, which are found a shorter way, beside the rules for any number of parts.

use std::sync::{Arc, Mutex};

use quipu::{
    Count, Error, ErrorKind, EventInfo, EventSet, GroupSpec, Part, Reading, Result, Target,
};
use quipu_hal::{Backend, Capabilities, Group, MaxRate, ReadBuf, Simultaneity, ValueKind, total};

/// Opens every event but `refused`; all events have the reading that it was given.
#[derive(Clone)]
struct Given {
    reading: Arc<Mutex<Reading>>,
    capabilities: Capabilities,
}

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
    /// of `failing` cannot be read.
    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        if self.infos.iter().any(|info| &*info.name == "failing") {
            return Err(Error::new(ErrorKind::CounterInErrorState, "read it"));
        }
        let mut given = *self.reading.lock().expect("no test panics with it");
        for reading in &mut out[0] {
            *reading = given;
            given.value = given.value.wrapping_add(1);
        }
        Ok(())
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

/// Readings are those of all events in their order, or there are none.
#[test]
fn readings_are_of_all_events_in_a_row() -> Result<()> {
    let reading = Arc::new(Mutex::new(Reading::new(7, 10, 10)));
    let values = |events: &str| -> Result<Option<Vec<u64>>> {
        let backend = Given {
            reading: Arc::clone(&reading),
            capabilities: Capabilities::none(),
        };
        let mut builder = EventSet::builder();
        builder.backends([Arc::new(backend) as Arc<dyn Backend>]);
        builder.preset("sum", "a + b")?;
        let mut set = builder.events(events)?.open()?;
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
