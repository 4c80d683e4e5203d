//! Splits an event file into pieces that are parsed one at a time, so that no more than a piece is ever there as a
//! tree of values.
//!
//! Tables with an entry for each event or preset are cut between two entries. Everything else of a CPU is one piece,
//! and so is an event with its masks.

use std::iter::Peekable;
use std::ops::Range;

use toml_parser::Source;
use toml_parser::lexer::{Lexer, TokenKind};

/// A piece from here on is ended where the next entry begins.
const ENOUGH: usize = 64 << 10;

/// The tables that are cut.
pub(crate) const LISTS: [&str; 3] = ["events", "generalized", "presets"];

/// The contents of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Whole tables, to be read as a file of their own.
    Tables,
    /// `[[cpu]]` or `[[aliases]]` and what follows it.
    Head(&'static str),
    /// More of the last of these: tables under it.
    More,
    /// Entries of one of the lists of the last of these, without a header.
    Entries(&'static str),
    /// Tables under one of the lists of the last of these, with their headers.
    Tabled(&'static str),
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) at: Range<usize>,
    /// The start of the header of the list, if this is the first piece of one.
    pub(crate) opens: Option<usize>,
}

/// The pieces of a file, in order.
pub(crate) struct Pieces<'t> {
    text: &'t str,
    tokens: Peekable<Lexer<'t>>,
    /// `cpu` or `aliases`, whichever array of tables was begun last.
    top: Option<&'static str>,
    current: Piece,
    /// The first key of the entry that the current piece ends with.
    entry: String,
    /// The bytes of empty lines and comments that it ends with.
    blank: usize,
}

impl<'t> Pieces<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            tokens: Source::new(text).lex().peekable(),
            top: None,
            current: Piece {
                kind: PieceKind::Tables,
                at: 0..0,
                opens: None,
            },
            entry: String::new(),
            blank: 0,
        }
    }

    /// Takes the tokens of the next line, or of several where a value goes over them.
    fn next_expression(&mut self) -> Option<Expression> {
        let start = self.tokens.peek()?.span().start();
        let mut expression = Expression {
            at: start..start,
            header: None,
            path: Vec::new(),
        };
        let mut depth = 0_usize;
        let mut in_key = true;
        let mut before = None;
        for token in self.tokens.by_ref() {
            let Range { start, end } = token.span().start()..token.span().end();
            expression.at.end = end;
            match token.kind() {
                TokenKind::Eof if expression.at.is_empty() => return None,
                TokenKind::Newline if depth == 0 => break,
                TokenKind::LeftSquareBracket if in_key && expression.path.is_empty() => {
                    expression.header = Some(before == Some(TokenKind::LeftSquareBracket));
                }
                TokenKind::RightSquareBracket if expression.header.is_some() => in_key = false,
                TokenKind::Equals => in_key = false,
                TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => depth += 1,
                TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Atom | TokenKind::BasicString | TokenKind::LiteralString if in_key => {
                    let quotes = ['"', '\''];
                    let key = self.text[start..end].trim_matches(quotes);
                    expression.path.push(key.to_owned());
                }
                _ => {}
            }
            before = Some(token.kind());
        }
        Some(expression)
    }

    /// Ends the current piece, and begins one of another kind.
    fn begin(&mut self, kind: PieceKind, at: Range<usize>, opens: Option<usize>) -> Option<Piece> {
        let next = Piece { kind, at, opens };
        let piece = std::mem::replace(&mut self.current, next);
        (!piece.at.is_empty() || piece.opens.is_some()).then_some(piece)
    }

    /// Adds an expression to the current piece, or ends that and begins another.
    fn add(&mut self, expression: Expression) -> Option<Piece> {
        let Expression { at, header, path } = expression;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let enough = self.current.at.len() >= ENOUGH;
        let Some(is_array) = header else {
            if let (PieceKind::Entries(_), [entry, ..]) = (&self.current.kind, &path[..]) {
                let another = *entry != self.entry;
                (*entry).clone_into(&mut self.entry);
                if another && enough {
                    return self.begin(self.current.kind.clone(), at, None);
                }
            }
            self.blank = match path[..] {
                [] => self.blank + at.len(),
                _ => 0,
            };
            let cut = matches!(self.current.kind, PieceKind::Entries(_) | PieceKind::Tables);
            if cut && self.blank >= ENOUGH {
                self.blank = 0;
                return self.begin(self.current.kind.clone(), at, None);
            }
            self.current.at.end = at.end;
            return None;
        };
        self.blank = 0;
        let list = |name: &str| LISTS.into_iter().find(|list| *list == name);
        let inside = self.top.is_some_and(|top| path.first() == Some(&top));
        let kind = match path[..] {
            ["cpu"] if is_array => PieceKind::Head("cpu"),
            ["aliases"] if is_array => PieceKind::Head("aliases"),
            [_, name] if inside && !is_array => {
                list(name).map_or(PieceKind::More, PieceKind::Entries)
            }
            [_, name, _, ..] if inside => list(name).map_or(PieceKind::More, PieceKind::Tabled),
            [_, _, ..] if inside => PieceKind::More,
            _ => PieceKind::Tables,
        };
        match kind {
            PieceKind::Head(top) => self.top = Some(top),
            PieceKind::Tables => self.top = None,
            PieceKind::Entries(_) => {
                self.entry.clear();
                // The header is no part of the entries.
                return self.begin(kind, at.end..at.end, Some(at.start));
            }
            PieceKind::Tabled(_) => {
                let same = path[2] == self.entry;
                path[2].clone_into(&mut self.entry);
                if kind == self.current.kind && (same || !enough) {
                    self.current.at.end = at.end;
                    return None;
                }
            }
            PieceKind::More
                if matches!(self.current.kind, PieceKind::Head(_) | PieceKind::More) =>
            {
                self.current.at.end = at.end;
                return None;
            }
            PieceKind::More => {}
        }
        if kind == PieceKind::Tables && self.current.kind == PieceKind::Tables {
            self.current.at.end = at.end;
            return None;
        }
        self.begin(kind, at, None)
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while let Some(expression) = self.next_expression() {
            if let Some(piece) = self.add(expression) {
                return Some(piece);
            }
        }
        let end = self.text.len();
        self.begin(PieceKind::Tables, end..end, None)
    }
}

/// A header, a key with its value, or an empty line.
struct Expression {
    at: Range<usize>,
    /// True for the header of an array's table, false for that of a table.
    header: Option<bool>,
    /// The key, in parts.
    path: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kinds and the texts of the pieces.
    fn split(text: &str) -> Vec<(PieceKind, &str)> {
        let pieces = Pieces::new(text);
        pieces.map(|piece| (piece.kind, &text[piece.at])).collect()
    }

    #[test]
    fn a_cpu_and_its_lists_are_pieces() {
        let text = "# a\n[[cpu]]\nid = \"x-a\"\n[cpu.counters]\ngeneral = 4\n[cpu.events]\nA = 1\n\
            B = { code = 2, masks = {\n C = 1 } }\n[cpu.events.D]\ncode = 3\n[cpu.events.D.masks.E]\nbits = 1\n\
            [cpu.backends]\nlinux = [\n\"linux\"]\n[[aliases]]\ncpus = []\n[other]\n";
        let wanted = [
            (PieceKind::Tables, "# a\n"),
            (
                PieceKind::Head("cpu"),
                "[[cpu]]\nid = \"x-a\"\n[cpu.counters]\ngeneral = 4\n",
            ),
            (
                PieceKind::Entries("events"),
                "A = 1\nB = { code = 2, masks = {\n C = 1 } }\n",
            ),
            (
                PieceKind::Tabled("events"),
                "[cpu.events.D]\ncode = 3\n[cpu.events.D.masks.E]\nbits = 1\n",
            ),
            (PieceKind::More, "[cpu.backends]\nlinux = [\n\"linux\"]\n"),
            (PieceKind::Head("aliases"), "[[aliases]]\ncpus = []\n"),
            (PieceKind::Tables, "[other]\n"),
        ];
        assert_eq!(split(text), wanted);
    }

    #[test]
    fn long_lists_are_cut_between_entries() {
        let mut text = "[[cpu]]\n[cpu.events]\n".to_owned();
        for event in 0..40_000 {
            text += &format!("E{event}.code = 1\nE{event}.edge = true\n");
        }
        let pieces = split(&text);
        assert!(pieces.len() > 10, "{}", pieces.len());
        for (kind, piece) in &pieces[1..] {
            assert_eq!(*kind, PieceKind::Entries("events"));
            assert!(piece.starts_with('E') && piece.len() < ENOUGH + 64);
            assert!(piece.lines().next().unwrap().ends_with(".code = 1"));
        }
        let whole: String = pieces[1..].iter().map(|(_, text)| *text).collect();
        assert!(text.ends_with(&whole) && whole.starts_with("E0."));
    }
}
