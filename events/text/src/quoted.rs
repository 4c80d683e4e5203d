//! Text in quotes.

use crate::cursor::{Cursor, Fault};

impl Cursor<'_, '_> {
    /// Reads text in single quotes if there is any; `\\`, `\'` and `\u{7f}` stand for a character.
    pub(crate) fn take_quoted(&mut self) -> Result<Option<String>, Fault> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoNames;

    fn read(text: &str) -> Result<Option<String>, String> {
        let mut cursor = Cursor::new(text, &NoNames);
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
}
