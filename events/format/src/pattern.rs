//! Patterns of identifications: `*` is any text, `[...]` one character of a list, as in a shell.

/// Returns true if the whole of a text matches a pattern.
///
/// ```
/// use quipu_events_format::pattern::matches;
///
/// assert!(matches("0x489-0x8000000000000[1-9a-e]07-0xd*", "0x489-0x8000000000000207-0xd0010"));
/// assert!(!matches("0x004e????", "0x004d0200"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // After the last `*`, and the text that it has taken so far.
    let mut any: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            any = Some((p, t));
            continue;
        }
        if let Some(next) = one(pattern, p, text[t]) {
            (p, t) = (next, t + 1);
            continue;
        }
        let Some((after, taken)) = any else {
            return false;
        };
        any = Some((after, taken + 1));
        (p, t) = (after, taken + 1);
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Returns the place after what one character of the pattern takes, if that is this one.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => {
            let length = pattern[at..].iter().position(|end| *end == b']')?;
            let list = &pattern[at + 1..at + length];
            let in_range = list
                .windows(3)
                .any(|range| range[1] == b'-' && (range[0]..=range[2]).contains(&byte));
            (in_range || list.contains(&byte)).then_some(at + length + 1)
        }
        own => (own == byte).then_some(at + 1),
    }
}
