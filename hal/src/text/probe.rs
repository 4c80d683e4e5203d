//! Reading and writing probes.

use std::fmt;

use crate::{Event, Probe};

use super::cursor::{Cursor, Fault};
use super::modifiers::Modifiers;
use super::quoted::{MaybeQuoted, is_one_of, is_part};

/// Returns true if a character stands in the path of a probe without quotes.
fn is_path(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !is_one_of(":,{}'", c)
}

/// Returns true if a character stands in the symbol of a probe without quotes.
fn is_symbol(c: char) -> bool {
    is_part(c) && c != '+'
}

impl Cursor<'_> {
    /// Reads a probe after its prefix, and its modifiers: one of a `user`'s program or of the kernel.
    pub(super) fn take_probe(
        &mut self,
        user: bool,
        on_return: bool,
    ) -> Result<(Event, Modifiers), Fault> {
        let object = if user {
            let path = self.take_text(is_path, "the path of a program or library")?;
            if !self.eat(':') {
                return Err(self.expected("':' and a function, or the byte in the file"));
            }
            Some(path.into())
        } else {
            None
        };
        let (symbol, offset) = self.take_place()?;
        let modifiers = Modifiers::after_colon(self)?;
        let probe = Probe {
            object,
            symbol,
            offset,
            on_return,
        };
        Ok((probe.into(), modifiers))
    }

    /// Reads `symbol`, `symbol+offset` or `offset`.
    fn take_place(&mut self) -> Result<(Option<String>, u64), Fault> {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok((None, self.take_number("an offset")?));
        }
        let symbol = self.take_text(is_symbol, "a function or an offset")?;
        let offset = match self.eat('+') {
            true => self.take_number("an offset")?,
            false => 0,
        };
        Ok((Some(symbol), offset))
    }
}

/// `uprobe:/bin/x:main+0x10`.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind())?;
        if let Some(object) = &self.object {
            let path = object.to_string_lossy();
            write!(f, "{}:", MaybeQuoted::unless_all(&path, is_path))?;
        }
        let Some(symbol) = &self.symbol else {
            return write!(f, "{:#x}", self.offset);
        };
        let mut name = MaybeQuoted::unless_all(symbol, is_symbol);
        name.plain &= !symbol.starts_with(|c: char| c.is_ascii_digit());
        name.fmt(f)?;
        match self.offset {
            0 => Ok(()),
            few @ ..10 => write!(f, "+{few}"),
            many => write!(f, "+{many:#x}"),
        }
    }
}
