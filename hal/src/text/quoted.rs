//! Words, and the quotes around what is not one.

use std::fmt;

use super::cursor::{Cursor, Fault};

/// The characters of words without quotes, which are ASCII: letters, digits, and what names of vendors, PAPI, libpfm4, sysfs
/// and tracefs have besides.
const WORD: [bool; 128] = {
    let mut word = [false; 128];
    let mut c = 0_u8;
    while c < 128 {
        word[c as usize] = c.is_ascii_alphanumeric();
        c += 1;
    }
    let besides = b"_.-+:=@#~*?[]";
    let mut i = 0;
    while i < besides.len() {
        word[besides[i] as usize] = true;
        i += 1;
    }
    word
};

/// Returns true if a character stands in a word without quotes.
pub(super) fn is_word(c: char) -> bool {
    WORD.get(c as usize) == Some(&true)
}

/// Returns true if a character is among some ASCII characters, as [`str::contains`] does with far more code.
pub(super) fn is_one_of(some: &str, c: char) -> bool {
    some.bytes().any(|one| char::from(one) == c)
}

/// Returns true if text is not empty and consists of such characters.
pub(super) fn consists_of(text: &str, allowed: fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(allowed)
}

/// Returns true if a character stands in the system or name of a tracepoint without quotes.
pub(super) fn is_part(c: char) -> bool {
    is_word(c) && c != ':'
}

/// Returns true if a character stands in the value of a term without quotes.
pub(super) fn is_value(c: char) -> bool {
    is_word(c) && c != '='
}

/// Returns true if a character stands in the name of a PMU or of a term without quotes.
pub(super) fn is_name(c: char) -> bool {
    is_part(c) && is_value(c)
}

impl Cursor<'_> {
    /// Reads text in single quotes if there is any; `\\`, `\'` and `\u{7f}` stand for a character.
    pub(super) fn take_quoted(&mut self) -> Result<Option<String>, Fault> {
        let open = self.at();
        if !self.eat('\'') {
            return Ok(None);
        }
        let mut text = String::new();
        loop {
            text += self.take_while(|c| c != '\'' && c != '\\');
            match self.next() {
                Some('\'') => return Ok(Some(text)),
                Some(_) => text.push(self.take_escaped()?),
                None => return Err(Fault::new(open, "this quote is never closed")),
            }
        }
    }

    /// Reads what follows a backslash.
    fn take_escaped(&mut self) -> Result<char, Fault> {
        for literal in ['\'', '\\'] {
            if self.eat(literal) {
                return Ok(literal);
            }
        }
        let at = self.at();
        if self.eat_prefix("u{") {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok();
            if let Some(c) = number.and_then(char::from_u32)
                && self.eat('}')
            {
                return Ok(c);
            }
            return Err(Fault::new(at, "no character has this number"));
        }
        Err(self.expected(r"\\, \' or \u{NUMBER} for one character"))
    }
}

/// Displays text as it is if it is `plain`, in quotes otherwise.
pub(super) struct MaybeQuoted<'a> {
    pub(super) text: &'a str,
    pub(super) plain: bool,
}

impl<'a> MaybeQuoted<'a> {
    /// Text that is plain when it is not empty and consists of `allowed` characters.
    pub(super) fn unless_all(text: &'a str, allowed: fn(char) -> bool) -> Self {
        Self {
            text,
            plain: consists_of(text, allowed),
        }
    }
}

impl fmt::Display for MaybeQuoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        if self.plain {
            return f.write_str(self.text);
        }
        f.write_char('\'')?;
        for c in self.text.chars() {
            match c {
                '\'' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<String>, String> {
        let mut cursor = Cursor::new(text);
        cursor
            .take_quoted()
            .map_err(|fault| fault.into_error(text, "text").to_string())
    }

    #[test]
    fn escapes_are_read_and_anything_else_is_refused() {
        assert_eq!(read("word"), Ok(None));
        assert_eq!(read("''"), Ok(Some(String::new())));
        assert_eq!(
            read(r"'a\'b\\c\u{7f}\u{1F600}d'"),
            Ok(Some("a'b\\c\u{7f}\u{1F600}d".to_owned()))
        );
        for (text, character) in [
            ("'open", 1),
            (r"'\'", 1),
            (r"'\n'", 3),
            (r"'\u{d800}'", 3),
            (r"'\u{123456789}'", 3),
            (r"'\u{}'", 3),
            (r"'\u{41'", 3),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains(&format!("at character {character}:")),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn control_characters_are_written_as_escapes() {
        let quoted = MaybeQuoted::unless_all("a b\n\u{1b}'\\é", is_word);
        assert_eq!(quoted.to_string(), r"'a b\u{a}\u{1b}\'\\é'");
    }
}
