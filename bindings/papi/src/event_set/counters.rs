//! The open counters of a set, and the values they have.

use std::ffi::c_longlong;

use quipu::{Count, Counts, EventSet};

use crate::boundary::call::refused;
use crate::code::{ECLOST, Outcome};

/// The counters of a set, and the buffer they are read into.
pub(crate) struct Counters {
    pub(crate) set: EventSet,
    pub(crate) counts: Counts,
    /// The factor from counts to values, event by event: presets with fractions count in millionths.
    pub(crate) scales: Vec<f64>,
    /// True if a thread is counted on one CPU, and values are not scaled up for the time on others.
    pub(crate) on_one_cpu: bool,
}

impl Counters {
    /// Reads the counters into values.
    pub(crate) fn read(&mut self, values: &mut [c_longlong]) -> Outcome {
        self.set
            .read(&mut self.counts)
            .map_err(|error| refused(&error))?;
        let mut lost = Ok(());
        for ((event, scale), value) in self.counts.events().zip(&self.scales).zip(values) {
            let count = match self.on_one_cpu {
                true => event.parts().map(|parts| {
                    let counted = parts.map(|(_, reading)| u128::from(reading.value));
                    Count::Exact(counted.sum())
                }),
                false => event.total(),
            };
            let count = count.map_err(|error| refused(&error))?;
            let number = match count {
                Count::Exact(number) | Count::Estimated(number) => number,
                Count::Partial { value, .. } => value,
                // PAPI has no word for the least that it can be, and it must not pass for the count.
                Count::AtLeast(value) => {
                    lost = Err(ECLOST);
                    value
                }
                // What was never on a counter has no value, and 0 would look like one.
                _ => {
                    lost = Err(ECLOST);
                    0
                }
            };
            *value = match *scale == 1.0 {
                true => c_longlong::try_from(number).unwrap_or(c_longlong::MAX),
                false => (number as f64 * scale).round() as c_longlong,
            };
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu::GroupSpec;
    use quipu_hal::{
        Backend, Capabilities, EventInfo, Group, ReadBuf, Reading, Result, Simultaneity, Target,
    };

    use super::*;

    /// Counts 7 of the first member in the whole time, 5 of the second in half of it, and was never able to count others.
    struct Busy(Capabilities);

    struct Turns(Vec<EventInfo>);

    impl Backend for Busy {
        fn name(&self) -> &'static str {
            "busy"
        }

        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
            let info = |_| EventInfo::counter("event");
            Ok(Box::new(Turns(spec.members.iter().map(info).collect())))
        }
    }

    impl Group for Turns {
        fn members(&self) -> &[EventInfo] {
            &self.0
        }

        fn simultaneity(&self) -> Simultaneity {
            Simultaneity::Sequential
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

        fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
            let readings = [
                Reading::new(7, 100, 100),
                Reading::new(5, 100, 50),
                Reading::new(0, 100, 0),
            ];
            for (to, reading) in out[0].iter_mut().zip(readings) {
                *to = reading;
            }
            Ok(())
        }
    }

    #[test]
    fn an_event_that_was_never_counted_is_lost_and_the_others_have_their_values() {
        let values_of = |events: usize| {
            let backend: Arc<dyn Backend> = Arc::new(Busy(Capabilities::none()));
            let event = quipu::Software::PageFaults;
            let mut builder = EventSet::builder();
            let group = GroupSpec::new(std::iter::repeat_n(event, events));
            let set = builder
                .backends([backend])
                .events(group)
                .and_then(|builder| builder.open())
                .expect("it opens everything");
            let mut counting = Counters {
                counts: set.counts(),
                scales: vec![1.0; events],
                on_one_cpu: false,
                set,
            };
            let mut values = vec![-1; events];
            (counting.read(&mut values), values)
        };
        assert_eq!(values_of(2), (Ok(()), vec![7, 10]));
        assert_eq!(values_of(3), (Err(ECLOST), vec![7, 10, 0]));
    }
}
