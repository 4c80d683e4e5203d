//! Numbers for people: digits in groups of three, whatever the locale.

use quipu_shell::terminal::Layout;

use super::super::rows::Metric;

/// Powers of ten, by the number of decimals that are shown at most.
const TENS: [u64; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Returns a whole number: `1,234,567`.
pub fn grouped(value: u128) -> String {
    let mut text = String::new();
    push_whole(&mut text, value, true);
    text
}

/// Returns a number with decimals: `1,234.50`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let mut text = String::new();
    push_fixed(&mut text, value, decimals, true);
    text
}

/// Appends a whole number, with its digits in groups of three if `is_grouped`.
pub fn push_whole(out: &mut String, value: u128, is_grouped: bool) {
    match u64::try_from(value) {
        Ok(value) => push_digits(out, value, 0, is_grouped),
        Err(_) => push_text(out, &value.to_string(), is_grouped),
    }
}

/// Appends a number with decimals, as the standard library rounds it, with the digits before them in groups of three if
/// `is_grouped`.
pub fn push_fixed(out: &mut String, value: f64, decimals: usize, is_grouped: bool) {
    match units_of_last_decimal(value, decimals) {
        Some(units) => push_digits(out, units, decimals, is_grouped),
        None => push_text(out, &format!("{value:.decimals$}"), is_grouped),
    }
}

/// Returns the value of a metric: `~25.0%`.
pub(super) fn metric_value(metric: &Metric, layout: Layout) -> String {
    let mut text = String::new();
    push_metric_value(&mut text, metric, layout);
    text
}

/// Appends the value of a metric.
pub(super) fn push_metric_value(out: &mut String, metric: &Metric, layout: Layout) {
    if metric.uncertain {
        out.push('~');
    }
    push_fixed(out, metric.value, metric.decimals, layout.grouped);
    if metric.percent {
        out.push('%');
    }
}

/// Returns a number in units of its last decimal, rounded to nearest and ties to even: exact, with integers. `None` for
/// numbers below zero or as large as 2^53, and of more than 9 decimals.
fn units_of_last_decimal(value: f64, decimals: usize) -> Option<u64> {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    let tens = *TENS.get(decimals)?;
    let bits = value.to_bits();
    // The sign is the highest bit, so that a number with it set has a larger exponent than any other.
    let exponent = u32::try_from(bits >> MANTISSA).ok()?;
    if exponent == 0 {
        return (bits == 0).then_some(0);
    }
    // The value is the mantissa divided by 2^shift.
    let shift = 1075_u32.checked_sub(exponent).filter(|shift| *shift > 0)?;
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let product = u128::from(mantissa) * u128::from(tens);
    // The product has 83 bits at most: shifted by more, nothing is left of it.
    let shift = shift.min(100);
    let (whole, rest) = ((product >> shift) as u64, product & ((1 << shift) - 1));
    if product >> shift > u128::from(u64::MAX) {
        return None;
    }
    let half = 1 << (shift - 1);
    let up = rest > half || rest == half && whole & 1 == 1;
    Some(whole + u64::from(up))
}

/// Returns a size in the largest binary unit that leaves a whole part: `3.4 MiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut size = value as f64 / 1024.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while size >= 1024.0
        && let Some(next) = units.next()
    {
        size /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", fixed(size, 1))
}

/// Appends a number of units of its last decimal.
fn push_digits(out: &mut String, units: u64, decimals: usize, is_grouped: bool) {
    // 20 digits, 6 commas and a point at most.
    let mut text = [0; 27];
    let mut at = text.len();
    let mut put = |byte| {
        at -= 1;
        text[at] = byte;
    };
    let mut whole = units;
    if decimals > 0 {
        let mut rest = units % TENS[decimals];
        whole /= TENS[decimals];
        for _ in 0..decimals {
            put(b'0' + (rest % 10) as u8);
            rest /= 10;
        }
        put(b'.');
    }
    let group = if is_grouped { 1000 } else { u64::MAX };
    while whole >= group {
        let mut digits = whole % group;
        for _ in 0..3 {
            put(b'0' + (digits % 10) as u8);
            digits /= 10;
        }
        put(b',');
        whole /= group;
    }
    put(b'0' + (whole % 10) as u8);
    while whole >= 10 {
        whole /= 10;
        put(b'0' + (whole % 10) as u8);
    }
    out.extend(text[at..].iter().map(|byte| char::from(*byte)));
}

/// Appends the text of a number, with the digits before its point in groups of three if `is_grouped`.
fn push_text(out: &mut String, number: &str, is_grouped: bool) {
    let start = out.len();
    out.push_str(number);
    let mut at = number.find('.').unwrap_or(number.len());
    while is_grouped && at > 3 && number.as_bytes()[at - 4].is_ascii_digit() {
        at -= 3;
        out.insert(start + at, ',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of bits without a pattern (Marsaglia, Xorshift RNGs).
    struct Bits(u64);

    impl Bits {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }
    }

    fn ungrouped(value: f64, decimals: usize) -> String {
        let mut text = String::new();
        push_fixed(&mut text, value, decimals, false);
        text
    }

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        let mut bits = Bits(0x9e37_79b9_7f4a_7c15);
        let ties = (0..4000).map(|n| f64::from(n) / 64.0);
        let edges = [
            0.0,
            -0.0,
            -1.5,
            f64::NAN,
            f64::INFINITY,
            f64::MIN_POSITIVE,
            f64::MIN_POSITIVE / 2.0,
            f64::MAX,
            4_503_599_627_370_495.5,
            9_007_199_254_740_992.0,
            18_446_744_073.709_551,
            999.999_999_999_9,
            0.5,
            0.95,
            0.999_999_999_5,
        ];
        let everywhere: Vec<f64> = (0..20_000).map(|_| f64::from_bits(bits.next())).collect();
        let usual = (0..20_000).map(|_| (bits.next() >> 20) as f64 / 1e6);
        let usual: Vec<f64> = usual.collect();
        let all = ties.chain(edges).chain(everywhere).chain(usual);
        for value in all {
            for decimals in 0..=10 {
                let expected = format!("{value:.decimals$}");
                assert_eq!(ungrouped(value, decimals), expected, "{value:e}");
                assert_eq!(
                    fixed(value, decimals).replace(',', ""),
                    expected,
                    "{value:e}"
                );
            }
        }
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (123_456, "123,456"),
            (u64::MAX.into(), "18,446,744,073,709,551,615"),
            (1 << 64, "18,446,744,073,709,551,616"),
        ] {
            assert_eq!(grouped(value), expected);
        }
        assert_eq!(fixed(1_234_567.125, 2), "1,234,567.12");
        assert_eq!(fixed(-1234.5, 1), "-1,234.5");
        assert_eq!(fixed(1e15, 3), "1,000,000,000,000,000.000");
        assert_eq!(fixed(1e16, 0), "10,000,000,000,000,000");
    }
}
