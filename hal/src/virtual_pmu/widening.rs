//! How long a narrow counter may go unread.

/// The rate assumed for scheduling reads of events that state none, in events a second: 16 every
/// nanosecond, more than any CPU retires.
pub(super) const UNSTATED_RATE: u64 = 16_000_000_000;

/// The longest time, in nanoseconds, in which a counter that counts at most `rate` events a second
/// cannot come round to the same raw value.
pub(super) fn patience(mask: u64, rate: u64) -> u64 {
    if rate == 0 {
        return u64::MAX;
    }
    // elapsed x rate must stay below 2^width x 10^9.
    let events = (u128::from(mask) + 1) * 1_000_000_000;
    u64::try_from((events - 1) / u128::from(rate)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_the_last_nanosecond_that_is_safe() {
        let mask = u64::from(u32::MAX);
        assert_eq!(patience(mask, 1 << 32), 999_999_999);
        assert_eq!(patience(mask, 4_000_000_000), 1_073_741_823);
        assert_eq!(patience(mask, 0), u64::MAX);
        assert_eq!(patience(u64::MAX, 1), u64::MAX);
    }
}
