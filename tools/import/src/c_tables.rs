//! Reads the arrays of structures in a C header: names, numbers and flags, in the order of the file.

use std::collections::HashMap;

/// One structure: its fields, each as the tokens of its value.
pub(crate) type Structure = HashMap<String, Vec<Token>>;

/// A word, number, string or sign of C.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Number(u64),
    Text(String),
    Sign(char),
}

/// The arrays of some headers, and their macros.
#[derive(Default)]
pub(crate) struct Tables {
    arrays: HashMap<String, Vec<Structure>>,
    macros: HashMap<String, Vec<Token>>,
}

impl Tables {
    /// Adds what a header defines.
    pub(crate) fn read(&mut self, text: &str) {
        let text = without_comments(text);
        let mut rest = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                rest.push_str(line);
                rest.push('\n');
                continue;
            };
            let mut whole = directive.trim().to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole.push_str(lines.next().unwrap_or_default());
            }
            let Some((name, body)) = whole
                .strip_prefix("define")
                .and_then(|define| define.trim().split_once(char::is_whitespace))
            else {
                continue;
            };
            self.macros.insert(name.to_owned(), tokens(body));
        }
        let tokens = tokens(&rest);
        for at in 0..tokens.len() {
            if let [
                Token::Word(name),
                Token::Sign('['),
                Token::Sign(']'),
                Token::Sign('='),
                Token::Sign('{'),
                body @ ..,
            ] = &tokens[at..]
            {
                self.arrays.insert(name.clone(), structures(body));
            }
        }
    }

    /// Returns an array by name.
    pub(crate) fn array(&self, name: &str) -> &[Structure] {
        self.arrays.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the words that a value is made of, macros replaced.
    pub(crate) fn words(&self, value: Option<&Vec<Token>>) -> Vec<String> {
        let mut words = Vec::new();
        for token in value.into_iter().flatten() {
            if let Token::Word(word) = token {
                match self.macros.get(word) {
                    Some(body) => words.extend(self.words(Some(body))),
                    None => words.push(word.clone()),
                }
            }
        }
        words
    }

    /// Returns a value as a number; 0 for none.
    ///
    /// # Errors
    /// The word that has no value.
    pub(crate) fn number(&self, value: Option<&Vec<Token>>) -> Result<u64, String> {
        let mut all = value.map_or(&[][..], Vec::as_slice);
        if all.is_empty() {
            return Ok(0);
        }
        self.either(&mut all)
    }

    /// Reads alternatives joined by `|`.
    fn either(&self, tokens: &mut &[Token]) -> Result<u64, String> {
        let mut value = self.shifted(tokens)?;
        while let [Token::Sign('|'), rest @ ..] = *tokens {
            *tokens = rest;
            value |= self.shifted(tokens)?;
        }
        Ok(value)
    }

    fn shifted(&self, tokens: &mut &[Token]) -> Result<u64, String> {
        let mut value = self.sum(tokens)?;
        while let [Token::Sign('<'), rest @ ..] = *tokens {
            *tokens = rest;
            value <<= self.sum(tokens)?;
        }
        Ok(value)
    }

    fn sum(&self, tokens: &mut &[Token]) -> Result<u64, String> {
        let mut value = self.atom(tokens)?;
        while let [Token::Sign('+'), rest @ ..] = *tokens {
            *tokens = rest;
            value += self.atom(tokens)?;
        }
        Ok(value)
    }

    fn atom(&self, tokens: &mut &[Token]) -> Result<u64, String> {
        let (first, rest) = tokens.split_first().ok_or("a value ends early")?;
        *tokens = rest;
        match first {
            Token::Number(number) => Ok(*number),
            Token::Sign('(') => {
                let value = self.either(tokens)?;
                match tokens.split_first() {
                    Some((Token::Sign(')'), rest)) => *tokens = rest,
                    other => return Err(format!("{other:?} in the place of `)`")),
                }
                Ok(value)
            }
            Token::Word(word) => match self.macros.get(word) {
                Some(body) => self.number(Some(body)),
                None => Err(format!("`{word}` has no value")),
            },
            other => Err(format!("{other:?} is no value")),
        }
    }
}

/// Returns the text of a value, strings that follow each other put together.
pub(crate) fn text(value: Option<&Vec<Token>>) -> String {
    let strings = value.into_iter().flatten().filter_map(|token| match token {
        Token::Text(text) => Some(text.as_str()),
        _ => None,
    });
    strings.collect()
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        rest = rest[start..]
            .split_once("*/")
            .map_or("", |(_, after)| after);
    }
    out + rest
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                let end = at.min(bytes.len());
                tokens.push(Token::Text(text[start + 1..end].to_owned()));
                at += 1;
            }
            byte if byte.is_ascii_digit() => {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                let digits = text[start..at].trim_end_matches(['u', 'l', 'U', 'L']);
                let number = match digits.get(..2) {
                    Some("0x" | "0X") => u64::from_str_radix(&digits[2..], 16),
                    _ => digits.parse(),
                };
                tokens.push(number.map_or(Token::Word(digits.to_owned()), Token::Number));
            }
            byte if word(byte) => {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                tokens.push(Token::Word(text[start..at].to_owned()));
            }
            b'<' => {
                at += 1 + usize::from(bytes.get(at + 1) == Some(&b'<'));
                tokens.push(Token::Sign('<'));
            }
            byte => {
                at += 1;
                if !byte.is_ascii_whitespace() {
                    tokens.push(Token::Sign(char::from(byte)));
                }
            }
        }
    }
    tokens
}

/// Reads the structures of an array: what follows its opening brace.
fn structures(tokens: &[Token]) -> Vec<Structure> {
    let mut all = Vec::new();
    let mut open: Option<(Structure, Vec<Token>)> = None;
    let mut depth = 0;
    for token in tokens {
        match (token, &mut open) {
            (Token::Sign('{'), None) => open = Some((Structure::new(), Vec::new())),
            (Token::Sign('}'), None) => break,
            (_, None) => {}
            (Token::Sign('}'), Some((structure, value))) if depth == 0 => {
                add_field(structure, &std::mem::take(value));
                all.push(std::mem::take(structure));
                open = None;
            }
            (Token::Sign(','), Some((structure, value))) if depth == 0 => {
                add_field(structure, &std::mem::take(value));
            }
            (token, Some((_, value))) => {
                match token {
                    Token::Sign('{' | '(' | '[') => depth += 1,
                    Token::Sign('}' | ')' | ']') => depth -= 1,
                    _ => {}
                }
                value.push(token.clone());
            }
        }
    }
    all
}

fn add_field(structure: &mut Structure, tokens: &[Token]) {
    if let [
        Token::Sign('.'),
        Token::Word(name),
        Token::Sign('='),
        value @ ..,
    ] = tokens
    {
        structure.insert(name.clone(), value.to_vec());
    }
}
