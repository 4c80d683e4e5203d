//! Writing probes.

use std::fmt;

use crate::Probe;
use crate::words::{is_path, is_symbol};

use super::quoted::MaybeQuoted;

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
