//! Numbers for people: digits in groups of three, whatever the locale.

/// Returns a whole number: `1,234,567`.
pub fn grouped(value: u128) -> String {
    let text = match u64::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => value.to_string(),
    };
    let digits = text.len();
    group(text, digits)
}

/// Returns a number with decimals: `1,234.50`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let digits = text.find('.').unwrap_or(text.len());
    group(text, digits)
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

/// Separates the digits before the position `end` in threes.
fn group(mut text: String, end: usize) -> String {
    let mut at = end;
    while at > 3 && text.as_bytes()[at - 4].is_ascii_digit() {
        at -= 3;
        text.insert(at, ',');
    }
    text
}
