//! Sections of a file: numbers and padded strings one after the other.

use crate::byte_order::ByteOrder;
use crate::bytes::{self, Malformed};
use crate::text::until_nul;
use crate::{Error, Result};

/// Strings in features are padded to multiples of this (`NAME_ALIGN`, `tools/perf/util/header.c`).
const NAME_ALIGN: usize = 64;

/// Appends text as `do_write_string` does: its padded length, then itself and NULs.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    let padded = (text.len() + 1).next_multiple_of(NAME_ALIGN);
    out.extend_from_slice(&u32::try_from(padded).unwrap_or(u32::MAX).to_ne_bytes());
    let end = out.len() + padded;
    out.extend_from_slice(text);
    out.resize(end, 0);
}

/// A cursor on a section, whose errors name the section and the offset in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionCursor<'a> {
    cursor: bytes::Cursor<'a>,
    len: usize,
    what: &'static str,
    order: ByteOrder,
}

impl<'a> SectionCursor<'a> {
    /// `what` names the section in errors.
    pub(crate) fn new(section: &'a [u8], what: &'static str, order: ByteOrder) -> Self {
        Self {
            order,
            cursor: bytes::Cursor::new(section),
            len: section.len(),
            what,
        }
    }

    pub(crate) fn error(&self) -> Error {
        Error::malformed(self.what, (self.len - self.cursor.rest().len()) as u64)
    }

    fn checked<T>(&self, value: Result<T, Malformed>) -> Result<T> {
        value.map_err(|_| self.error())
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let taken = self.cursor.bytes(len, self.what);
        self.checked(taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        let value = self.cursor.u32(self.what);
        self.checked(value).map(|value| self.order.u32(value))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        let value = self.cursor.u64(self.what);
        self.checked(value).map(|value| self.order.u64(value))
    }

    /// A part of so many bytes, to be read on its own.
    pub(crate) fn part(&mut self, len: usize) -> Result<Self> {
        let part = self.bytes(len)?;
        Ok(Self::new(part, self.what, self.order))
    }

    /// Text that a NUL ends.
    pub(crate) fn text(&mut self) -> Result<String> {
        let text = until_nul(self.cursor.rest());
        self.bytes(text.len())?;
        // The NUL.
        self.bytes(1)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.cursor.rest().is_empty()
    }

    /// Text as [`push_string`] writes it.
    pub(crate) fn string(&mut self) -> Result<String> {
        let len = self.u32()?;
        let padded = self.bytes(usize::try_from(len).map_err(|_| self.error())?)?;
        Ok(String::from_utf8_lossy(until_nul(padded)).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_padded_and_come_back() {
        for len in [0, 1, 62, 63, 64, 200] {
            let text = "x".repeat(len);
            let mut out = Vec::new();
            push_string(&mut out, text.as_bytes());
            assert_eq!((out.len() - 4) % 64, 0);
            let mut cursor = SectionCursor::new(&out, "a string", ByteOrder::Native);
            assert_eq!(cursor.string().expect("whole"), text);
            assert!(cursor.u32().is_err(), "nothing is left");
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut cursor = SectionCursor::new(&[255; 4], "a string", ByteOrder::Native);
        assert!(matches!(
            cursor.string(),
            Err(Error::Malformed {
                what: "a string",
                ..
            })
        ));
        assert!(
            SectionCursor::new(&[0; 7], "a number", ByteOrder::Native)
                .u64()
                .is_err()
        );
    }
}
