//! Keys, from the bytes that a terminal sends for them.

/// A key that something is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C, which is no signal in the raw mode of the terminal.
    Interrupt,
    Char(char),
}

/// Bytes that keys send beyond one character, with the prefix of xterm's normal and application mode (ECMA-48, CSI and SS3).
const SEQUENCES: [(&str, Key); 9] = [
    ("[A", Key::Up),
    ("OA", Key::Up),
    ("[B", Key::Down),
    ("OB", Key::Down),
    ("[5~", Key::PageUp),
    ("[6~", Key::PageDown),
    ("[H", Key::Home),
    ("OH", Key::Home),
    ("[1~", Key::Home),
];

/// Returns the keys of what has been read at once; others are left out.
pub(super) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = &*text;
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        keys.extend(match first {
            '\x1b' => escape(&mut rest),
            '\r' | '\n' => Some(Key::Enter),
            '\x03' => Some(Key::Interrupt),
            '\x7f' | '\x08' => Some(Key::Backspace),
            c if c.is_control() => None,
            c => Some(Key::Char(c)),
        });
    }
    keys
}

/// Takes the rest of a sequence that begins with the character of the Escape key.
fn escape(rest: &mut &str) -> Option<Key> {
    for (sequence, key) in SEQUENCES {
        if let Some(after) = rest.strip_prefix(sequence) {
            *rest = after;
            return Some(key);
        }
    }
    if !rest.starts_with(['[', 'O']) {
        return Some(Key::Escape);
    }
    // A key of no use here: up to the final byte of its sequence.
    let end = rest[1..].find(|c: char| ('@'..='~').contains(&c));
    *rest = end.map_or("", |end| &rest[end + 2..]);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_are_keys() {
        assert_eq!(
            keys(b"q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\r\x7f\x03"),
            [
                Key::Char('q'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::PageDown,
                Key::Home,
                Key::Enter,
                Key::Backspace,
                Key::Interrupt
            ]
        );
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys("\u{e9}".as_bytes()), [Key::Char('\u{e9}')]);
    }

    #[test]
    fn unknown_and_cut_sequences_are_left_out() {
        for bytes in [
            &b"\x1b[15~"[..],
            b"\x1b[<0;1;1M",
            b"\x1b[",
            b"\x1bO",
            b"\x1b[1;5",
        ] {
            assert_eq!(keys(bytes), [], "{bytes:?}");
        }
        assert_eq!(keys(b"\x1b[15~q"), [Key::Char('q')]);
        // Each run of bytes, valid or not, ends.
        for first in 0..=255 {
            for second in 0..=255 {
                keys(&[0x1b, first, second]);
            }
        }
    }
}
