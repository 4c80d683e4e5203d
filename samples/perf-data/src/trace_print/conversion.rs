//! Conversions of printf(3), as the kernel writes them (`Documentation/core-api/printk-formats.rst`).

use super::pointer;

/// A part of a format.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Conversion(Conversion),
}

/// A width or precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Fixed(usize),
    /// The next argument.
    Argument,
}

/// The conversion of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversion {
    left: bool,
    zeros: bool,
    prefixed: bool,
    plus: bool,
    space: bool,
    pub(super) width: Option<Amount>,
    pub(super) precision: Option<Amount>,
    /// Size of the number in bytes.
    size: u32,
    /// Letter of the conversion: one of `diuxXocsp`.
    pub(super) letter: char,
    /// Letters that say how a pointer is printed: `S`, `I4`.
    pub(super) pointer: String,
}

/// Returns the parts of a format; `None` where a conversion is not known.
pub(super) fn pieces(format: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        literal.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            literal.push('%');
            rest = after;
            continue;
        }
        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        let (conversion, after) = conversion(rest)?;
        pieces.push(Piece::Conversion(conversion));
        rest = after;
    }
    literal.push_str(rest);
    pieces.push(Piece::Literal(literal));
    Some(pieces)
}

/// Reads what follows a percent sign.
fn conversion(mut rest: &str) -> Option<(Conversion, &str)> {
    let flags = rest.len() - rest.trim_start_matches(['-', '0', '#', '+', ' ']).len();
    let (flags, after) = rest.split_at(flags);
    rest = after;
    let width = amount(&mut rest);
    let precision = match rest.strip_prefix('.') {
        Some(after) => {
            rest = after;
            Some(amount(&mut rest).unwrap_or(Amount::Fixed(0)))
        }
        None => None,
    };
    let size = rest.len()
        - rest
            .trim_start_matches(['h', 'l', 'L', 'q', 'z', 't', 'j'])
            .len();
    let (size, after) = rest.split_at(size);
    let letter = after.chars().next()?;
    rest = &after[letter.len_utf8()..];
    let mut pointer = "";
    if letter == 'p' {
        (pointer, rest) = rest.split_at(pointer::letters(rest));
    }
    let conversion = Conversion {
        left: flags.contains('-'),
        zeros: flags.contains('0'),
        prefixed: flags.contains('#'),
        plus: flags.contains('+'),
        space: flags.contains(' '),
        width,
        precision,
        size: match size {
            "hh" => 1,
            "h" => 2,
            "" => 4,
            _ => 8,
        },
        letter,
        pointer: pointer.to_owned(),
    };
    "diuxXocsp".contains(letter).then_some((conversion, rest))
}

/// Takes a number or an asterisk.
fn amount(rest: &mut &str) -> Option<Amount> {
    if let Some(after) = rest.strip_prefix('*') {
        *rest = after;
        return Some(Amount::Argument);
    }
    let len = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (digits, after) = rest.split_at(len);
    *rest = after;
    digits.parse().ok().map(Amount::Fixed)
}

impl Conversion {
    /// Appends a number.
    pub(super) fn number(
        &self,
        value: u64,
        width: usize,
        precision: Option<usize>,
        out: &mut String,
    ) {
        let bits = 8 * self.size;
        let value = value << (64 - bits);
        let (negative, value) = match self.letter {
            'd' | 'i' => {
                let value = value.cast_signed() >> (64 - bits);
                (value < 0, value.unsigned_abs())
            }
            _ => (false, value >> (64 - bits)),
        };
        let mut digits = match self.letter {
            'x' => format!("{value:x}"),
            'X' => format!("{value:X}"),
            'o' => format!("{value:o}"),
            _ => value.to_string(),
        };
        if let Some(precision) = precision {
            digits = match (precision, value) {
                (0, 0) => String::new(),
                _ => format!("{digits:0>precision$}"),
            };
        }
        let sign = match (negative, self.letter) {
            (true, _) => "-",
            (false, 'd' | 'i') if self.plus => "+",
            (false, 'd' | 'i') if self.space => " ",
            (false, 'x') if self.prefixed && value != 0 => "0x",
            (false, 'X') if self.prefixed && value != 0 => "0X",
            (false, 'o') if self.prefixed && !digits.starts_with('0') => "0",
            _ => "",
        };
        if self.zeros && !self.left && precision.is_none() {
            let zeros = width.saturating_sub(sign.len());
            digits = format!("{digits:0>zeros$}");
        }
        self.padded(&format!("{sign}{digits}"), width, out);
    }

    /// Appends text, as much of it as the precision allows.
    pub(super) fn text(
        &self,
        text: &str,
        width: usize,
        precision: Option<usize>,
        out: &mut String,
    ) {
        let end = precision.and_then(|most| text.char_indices().nth(most));
        let text = end.map_or(text, |(at, _)| &text[..at]);
        self.padded(text, width, out);
    }

    fn padded(&self, text: &str, width: usize, out: &mut String) {
        let missing = width.saturating_sub(text.chars().count());
        let spaces = || std::iter::repeat_n(' ', missing);
        if !self.left {
            out.extend(spaces());
        }
        out.push_str(text);
        if self.left {
            out.extend(spaces());
        }
    }
}
