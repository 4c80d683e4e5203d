//! Numbers for people: digits in groups of three, whatever the locale.

/// Returns a whole number: `1,234,567`.
pub fn grouped(value: u128) -> String {
    group(&value.to_string())
}

/// Returns a number with decimals: `1,234.50`.
pub fn fixed(value: f64, decimals: usize) -> String {
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
