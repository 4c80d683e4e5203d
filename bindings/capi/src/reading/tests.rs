use super::exact::write_exact;
use super::*;

/// Compares the shorter way to exact counts with the rules.
#[test]
fn a_count_of_one_reading_is_that_of_the_rules() {
    const NUMBERS: [u64; 6] = [0, 1, 7, 1_000_000_000, 10 << 47, u64::MAX];
    let rates = [MaxRate::NONE, MaxRate::CYCLES, MaxRate::EVENTS];
    let mut met = [0; 4];
    for (value, enabled) in NUMBERS.iter().flat_map(|v| NUMBERS.map(|e| (*v, e))) {
        for (running, rate) in NUMBERS.iter().flat_map(|r| rates.map(|rate| (*r, rate))) {
            let reading = Reading::new(value, enabled, running).with_max_rate(rate);
            let rules = quipu_count::new(reading.scaled(), enabled, running);
            let found = quipu_count::of(&reading);
            assert_eq!(format!("{found:?}"), format!("{rules:?}"), "{reading:?}");
            met[match reading.scaled() {
                Count::Exact(_) => 0,
                Count::Estimated(_) => 1,
                Count::NotCounted => 2,
                _ => 3,
            }] += 1;
        }
    }
    assert!(met.iter().all(|times| *times > 0), "{met:?}");
}

/// Writes each value to its place, once, and nothing after the last.
#[test]
fn exact_counts_are_in_the_order_of_their_values() {
    for events in 0..=13 {
        let values: Vec<u64> = (1..=events).map(|value| value * 10).collect();
        let mut counts = vec![quipu_count::default(); values.len() + 1];
        // SAFETY: there are more counts than values.
        unsafe { write_exact(&values, 7, counts.as_mut_ptr()) };
        let expected = values.iter().map(|value| quipu_count::exact(*value, 7, 7));
        let expected: Vec<_> = expected.chain([quipu_count::default()]).collect();
        assert_eq!(format!("{counts:?}"), format!("{expected:?}"), "{events}");
    }
}
