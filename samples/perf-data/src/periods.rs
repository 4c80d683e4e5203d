//! Periods of samples that are beyond what their counters can have counted.

use foldhash::HashMap;

use quipu_hal::{Encoding, MaxRate, PerfConfig};

use crate::{EventAttr, Sample};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The counters of an event, and when each gave its last sample.
///
/// A sample stands for as many events as its period says, which the kernel computes from what the counter counted. A
/// counter that jumped makes it absurd, and so is a period longer than the event ([`MaxRate`]) can have filled
/// since the counter's sample before. If it is unknown which counter gave a sample, as with inherited events
/// without `PERF_SAMPLE_STREAM_ID`, or for the first sample of one, the time counts from the beginning of the
/// recording if the event was enabled by exec(2), and else from that of the clock.
///
/// A period that the kernel adjusts to a frequency may be the one that begins with the sample instead of the one that
/// ended (`x86_pmu_handle_irq` before Linux 6.16), and is meant to last for a turn of the frequency: while it
/// grows, it is beyond the time since the sample before. A turn is always allowed.
///
/// ```
/// use quipu_perf_data::Periods;
/// use quipu_hal::MaxRate;
///
/// let mut periods = Periods::of(MaxRate::CYCLES);
/// let counter = Some(7);
/// assert!(periods.check(counter, 1_000_000_000, 4_000_000).is_none());
/// // A millisecond later; 2^47 cycles take hours.
/// let excess = periods.check(counter, 1_001_000_000, 1 << 47).expect("a jump");
/// assert!(excess.is_beyond(0));
/// ```
#[derive(Debug, Clone)]
pub struct Periods {
    rate: MaxRate,
    is_inherited: bool,
    is_enabled_by_exec: bool,
    /// A turn of the frequency, in nanoseconds; 0 for a fixed period.
    turn: u64,
    last: HashMap<u64, u64>,
}

/// A period that may be beyond what the counter can have counted.
#[derive(Debug, Clone, Copy)]
pub struct Excess {
    rate: MaxRate,
    turn: u64,
    /// `None` for the beginning of the recording.
    since: Option<u64>,
    time: u64,
    period: u64,
}

impl Periods {
    /// Begins with no sample, for the event of an attribute.
    pub fn new(attr: &EventAttr) -> Self {
        let config = PerfConfig::new(attr.event_type(), attr.config());
        let turn = match attr.is_frequency() {
            true => SECOND.div_ceil(attr.period_or_frequency().max(1)),
            false => 0,
        };
        Self {
            turn,
            is_inherited: attr.is_inherited(),
            is_enabled_by_exec: attr.is_enabled_by_exec(),
            ..Self::of(MaxRate::of(&Encoding::Perf(config)))
        }
    }

    /// Begins with no sample, for an event that counts at most so fast and is not inherited.
    pub fn of(rate: MaxRate) -> Self {
        Self {
            rate,
            is_inherited: false,
            is_enabled_by_exec: false,
            turn: 0,
            last: HashMap::default(),
        }
    }

    /// Checks a sample with its own period. Samples of a counter come in the order of their times.
    #[inline]
    pub fn check_sample(&mut self, sample: &Sample<'_>) -> Option<Excess> {
        if self.rate == MaxRate::NONE {
            return None;
        }
        let counter = sample.stream_id().or_else(|| self.counter(sample.id()?));
        self.check(counter, sample.time()?, sample.period()?)
    }

    /// Checks what a sample read of a counter with this id, as a difference to the sample before.
    pub fn check_read(&mut self, id: u64, time: Option<u64>, count: u64) -> Option<Excess> {
        self.check(self.counter(id), time?, count)
    }

    /// Returns the counter that has an id; `None` where the counters of several threads have it.
    fn counter(&self, id: u64) -> Option<u64> {
        (!self.is_inherited).then_some(id)
    }

    /// Checks a period that a counter, if it is known, filled up to a time.
    pub fn check(&mut self, counter: Option<u64>, time: u64, period: u64) -> Option<Excess> {
        if self.rate == MaxRate::NONE {
            return None;
        }
        let before = counter.and_then(|counter| self.last.insert(counter, time));
        let since = match before {
            None if self.is_enabled_by_exec => None,
            before => Some(before.unwrap_or(0)),
        };
        let excess = Excess {
            rate: self.rate,
            turn: self.turn,
            since,
            time,
            period,
        };
        excess.is_beyond(time).then_some(excess)
    }
}

impl Excess {
    /// Returns true if the period is beyond what the counter can have counted in a recording that began at this
    /// time or earlier.
    pub fn is_beyond(&self, begun: u64) -> bool {
        let time = self.time.saturating_sub(self.since.unwrap_or(begun));
        !self.rate.allows(self.period, time.max(self.turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: u64 = MaxRate::LAG;

    /// Returns true if a period of a counter is reported as impossible, in a recording from 100 s on.
    fn told(periods: &mut Periods, counter: Option<u64>, time: u64, period: u64) -> bool {
        let excess = periods.check(counter, time, period);
        excess.is_some_and(|excess| excess.is_beyond(100 * SECOND))
    }

    #[test]
    fn a_period_is_as_long_as_the_time_since_the_sample_before_allows() {
        let mut periods = Periods::of(MaxRate::CYCLES);
        // The first: since the clock began.
        assert!(!told(
            &mut periods,
            Some(1),
            200 * SECOND,
            10 * (200 * SECOND + LAG)
        ));
        assert!(told(
            &mut periods,
            Some(2),
            200 * SECOND,
            10 * (200 * SECOND + LAG) + 1
        ));
        for (after, period, is_told) in [
            (1_000, 10 * (1_000 + LAG), false),
            (1_000, 10 * (1_000 + LAG) + 1, true),
            // After one that was reported the next is as exact.
            (2_000, 10 * (2_000 + LAG), false),
            (0, 10 * LAG, false),
            (0, 10 * LAG + 1, true),
            (1, u64::MAX, true),
        ] {
            let time = *periods.last.get(&1).expect("the first") + after;
            assert_eq!(
                told(&mut periods, Some(1), time, period),
                is_told,
                "{period}"
            );
        }
        // Another counter has not counted since then, but all the time.
        assert!(!told(
            &mut periods,
            Some(3),
            200 * SECOND,
            10 * 200 * SECOND
        ));
    }

    #[test]
    fn counters_that_are_not_known_count_since_the_recording_began() {
        let mut periods = Periods {
            is_inherited: true,
            is_enabled_by_exec: true,
            ..Periods::of(MaxRate::CYCLES)
        };
        assert_eq!(periods.counter(5), None);
        for _ in 0..2 {
            let most = 10 * (SECOND + LAG);
            assert!(!told(&mut periods, None, 101 * SECOND, most));
            assert!(told(&mut periods, None, 101 * SECOND, most + 1));
        }
        let mut attached = Periods::of(MaxRate::CYCLES);
        assert!(!told(&mut attached, None, 101 * SECOND, 10 * 101 * SECOND));
    }

    /// Threads that inherit a counter have its id, and streams of their own.
    #[test]
    fn the_samples_of_a_counter_are_found_by_its_ids() {
        use crate::record::kind;
        use crate::{RawRecord, Record, RecordLayout, SampleType};

        let sampled = |periods: &mut Periods, of: SampleType, period: u64| {
            let layout = RecordLayout::new(SampleType::TIME | SampleType::PERIOD | of);
            let mut words = vec![u64::from(kind::SAMPLE), 200 * SECOND];
            words.extend((of.bits() != 0).then_some(7));
            words.push(period);
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let len = (8 * words.len() as u16).to_ne_bytes();
            bytes[..8].copy_from_slice(&[&kind::SAMPLE.to_ne_bytes()[..], &[0; 2], &len].concat());
            let record = RawRecord::at_start(&bytes).expect("a record");
            match record.decode(&layout) {
                Ok(Record::Sample(sample)) => periods.check_sample(&sample).is_some(),
                other => panic!("{other:?}"),
            }
        };
        let read = |periods: &mut Periods, _: SampleType, count: u64| {
            let excess = periods.check_read(7, Some(200 * SECOND), count);
            assert!(periods.check_read(8, None, count).is_none());
            excess.is_some()
        };
        let none = SampleType::empty();
        type Check<'a> = &'a dyn Fn(&mut Periods, SampleType, u64) -> bool;
        for (check, of, is_inherited, is_found) in [
            (&sampled as Check<'_>, SampleType::ID, false, true),
            (&sampled, SampleType::ID, true, false),
            (&sampled, SampleType::STREAM_ID, true, true),
            (&sampled, none, false, false),
            (&read, none, false, true),
            (&read, none, true, false),
        ] {
            let mut periods = Periods {
                is_inherited,
                ..Periods::of(MaxRate::CYCLES)
            };
            // The second at the time of the first.
            assert!(!check(&mut periods, of, 10 * LAG + 1));
            assert!(!check(&mut periods, of, 10 * LAG));
            assert_eq!(check(&mut periods, of, 10 * LAG + 1), is_found, "{of:?}");
        }
    }

    /// As the kernel's first steps to one sample a second, of cycles at 3 GHz: each says the next period.
    #[test]
    fn a_period_that_is_adjusted_may_be_a_turn_of_the_frequency_long() {
        let attr = |rate: u64, flags: u64| {
            let mut bytes = [0; 128];
            bytes[4..8].copy_from_slice(&128u32.to_ne_bytes());
            bytes[16..24].copy_from_slice(&rate.to_ne_bytes());
            bytes[40..48].copy_from_slice(&flags.to_ne_bytes());
            EventAttr::from_bytes(&bytes).expect("good")
        };
        const FREQUENCY: u64 = if cfg!(target_endian = "big") {
            1 << 53
        } else {
            1 << 10
        };
        let once_a_second = || Periods::new(&attr(1, FREQUENCY));
        let mut ramp = once_a_second();
        let mut time = 200 * SECOND;
        for period in [1, 125_000, 375_109_375, 703_220_703, 990_318_115] {
            assert!(!told(&mut ramp, Some(1), time, period), "{period}");
            time += 100_000;
        }
        for (mut periods, turn) in [
            (once_a_second(), SECOND),
            (Periods::new(&attr(3, FREQUENCY)), 333_333_334),
            (Periods::new(&attr(1 << 40, FREQUENCY)), 1_000),
            // A fixed period of one event.
            (Periods::new(&attr(1, 0)), 1_000),
        ] {
            assert!(!told(&mut periods, Some(1), 200 * SECOND, 1));
            let most = 10 * (turn + LAG);
            let mut again = periods.clone();
            assert!(!told(&mut periods, Some(1), 200 * SECOND + 1_000, most));
            assert!(told(&mut again, Some(1), 200 * SECOND + 1_000, most + 1));
        }
    }

    #[test]
    fn what_has_no_bound_has_any_period() {
        let mut periods = Periods::of(MaxRate::NONE);
        assert!(periods.check(Some(1), 0, u64::MAX).is_none());
        assert!(periods.check(None, 0, u64::MAX).is_none());
    }
}
