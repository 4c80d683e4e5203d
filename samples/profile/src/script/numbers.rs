//! Numbers of lines, right-justified: a recording has many, and formatting them is most of printing them.

/// The most digits of a number, in base 10.
const DIGITS: usize = 20;

/// Appends a number in base 10, with blanks before it up to a width.
pub(super) fn push(text: &mut String, value: u64, width: usize) {
    push_filled(text, value, width, ' ');
}

/// Appends a signed number, with blanks before it up to a width.
pub(super) fn push_signed(text: &mut String, value: i32, width: usize) {
    match u64::try_from(value) {
        Ok(value) => push(text, value, width),
        Err(_) => text.push_str(&format!("{value:>width$}")),
    }
}

/// Appends a number in base 10, with zeros before it up to a width.
pub(super) fn push_zeros(text: &mut String, value: u64, width: usize) {
    push_filled(text, value, width, '0');
}

fn push_filled(text: &mut String, mut value: u64, width: usize, fill: char) {
    let mut digits = [0; DIGITS];
    let mut at = DIGITS;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    push_digits(text, &digits[at..], width, fill);
}

/// Appends a number in base 16, with blanks before it up to a width.
pub(super) fn push_hex(text: &mut String, value: u64, width: usize) {
    let len = (64 - (value | 1).leading_zeros()).div_ceil(4) as usize;
    let mut digits = [0; 16];
    for (place, digit) in digits[..len].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (4 * place) & 0xf) as usize];
    }
    push_digits(text, &digits[..len], width, ' ');
}

fn push_digits(text: &mut String, digits: &[u8], width: usize, fill: char) {
    for _ in digits.len()..width {
        text.push(fill);
    }
    // They are digits.
    text.push_str(std::str::from_utf8(digits).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_standard_library_formats_them() {
        let powers = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in powers.chain([u64::MAX, 1_000_000_000, 999_999_999]) {
            for width in [0, 3, 16, 25] {
                let mut text = String::from("x");
                push(&mut text, value, width);
                push_zeros(&mut text, value, width);
                push_hex(&mut text, value, width);
                let expected = format!("x{value:>width$}{value:0width$}{value:>width$x}");
                assert_eq!(text, expected);
            }
        }
        let mut text = String::new();
        push_signed(&mut text, -1, 5);
        push_signed(&mut text, i32::MAX, 5);
        assert_eq!(text, "   -12147483647");
    }
}
