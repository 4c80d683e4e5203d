//! Texts of files in messages.

/// Returns a piece of a file fit for a message: short, and without characters that control a terminal.
pub fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    printable(&short)
}

/// Returns a text with its control characters escaped: `\u{1b}`.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => printable.extend(c.escape_unicode()),
            false => printable.push(c),
        }
    }
    printable
}
