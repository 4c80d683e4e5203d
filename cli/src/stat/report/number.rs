//! Numbers for people: digits in groups of three, whatever the locale.

/// Returns a whole number: `1,234,567`.
pub(super) fn grouped(value: u128) -> String {
    group(&value.to_string())
}

/// Returns a number with decimals: `1,234.50`.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", group(digits))
}

/// Returns a size in the largest binary unit that leaves a whole part: `3.4 MiB`.
pub(super) fn bytes(value: u64) -> String {
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

fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
            (u128::from(u64::MAX), "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(fixed(1234.5, 2), "1,234.50");
        assert_eq!(fixed(-1234.5, 0), "-1,234");
        assert_eq!(fixed(0.0004, 3), "0.000");
        assert_eq!(fixed(f64::INFINITY, 2), "inf");
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        assert_eq!(bytes(512), "0.5 KiB");
        assert_eq!(bytes(1024 * 1024), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16,384.0 PiB");
    }
}
