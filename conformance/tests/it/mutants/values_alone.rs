//! Values alone that are not those of exact readings.

use quipu_hal::{Group, Reading};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "alone-too-high",
            "values alone are one too high",
            |reading, _| Some((reading.value + 1, reading.time_enabled)),
        ),
        mutant(
            "alone-stale",
            "values alone are those of the read before",
            |_, before| Some((before.value, before.time_enabled)),
        ),
        mutant(
            "alone-not-scaled",
            "values alone are given of groups that waited",
            |reading, _| Some((reading.value, reading.time_enabled)),
        ),
        mutant(
            "alone-ignore-reset",
            "the time of values alone goes on over a reset",
            |reading, _| Some((reading.exact()?, reading.raw_time_enabled)),
        ),
    ]
}

fn mutant(name: &'static str, defect: &'static str, alone: OfReading) -> Mutant {
    let before = Vec::new();
    Mutant::of(name, defect, Alone { alone, before })
}

/// Makes value and time of a reading and the one before; `None` gives no values.
type OfReading = fn(&Reading, &Reading) -> Option<(u64, u64)>;

#[derive(Clone)]
struct Alone {
    alone: OfReading,
    before: Vec<Reading>,
}

impl Defect for Alone {
    fn read_exact(&mut self, group: &mut dyn Group, values: &mut [u64], time: &mut u64) -> bool {
        let mut buf = group.read_buf();
        if buf.parts().len() != 1 || group.read(&mut buf).is_err() {
            return false;
        }
        let now = buf[0].to_vec();
        let before = std::mem::replace(&mut self.before, now.clone());
        for ((value, now), at) in values.iter_mut().zip(&now).zip(0..) {
            let before = before.get(at).copied().unwrap_or_default();
            match (self.alone)(now, &before) {
                Some((of_reading, since)) => (*value, *time) = (of_reading, since),
                None => return false,
            }
        }
        true
    }
}
