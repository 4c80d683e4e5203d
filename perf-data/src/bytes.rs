//! Numbers and text in the machine's own byte order, out of bytes that may end anywhere.

use crate::{Error, Result};

/// Strings in features are padded to multiples of this (`NAME_ALIGN`, `tools/perf/util/header.c`).
const NAME_ALIGN: usize = 64;

/// The `u64` at an offset, if it is there.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The `u32` at an offset, if it is there.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The `u16` at an offset, if it is there.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Text up to the NUL that ends it, or all there is.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Appends text as `do_write_string` does: its padded length, then itself and NULs.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    let padded = (text.len() + 1).next_multiple_of(NAME_ALIGN);
    out.extend_from_slice(&u32::try_from(padded).unwrap_or(u32::MAX).to_ne_bytes());
    let end = out.len() + padded;
    out.extend_from_slice(text);
    out.resize(end, 0);
}

/// Takes values from the front of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    all: &'a [u8],
    at: usize,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// `what` names the section in errors.
    pub(crate) fn new(all: &'a [u8], what: &'static str) -> Self {
        Self { all, at: 0, what }
    }

    pub(crate) fn error(&self) -> Error {
        Error::malformed(self.what, self.at as u64)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or_else(|| self.error())?;
        let taken = self.all.get(self.at..end).ok_or_else(|| self.error())?;
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        let value = u32_at(self.all, self.at).ok_or_else(|| self.error())?;
        self.at += 4;
        Ok(value)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        let value = u64_at(self.all, self.at).ok_or_else(|| self.error())?;
        self.at += 8;
        Ok(value)
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
            let mut cursor = Cursor::new(&out, "a string");
            assert_eq!(cursor.string().expect("whole"), text);
            assert!(cursor.u32().is_err(), "nothing is left");
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut cursor = Cursor::new(&[255; 4], "a string");
        assert!(matches!(
            cursor.string(),
            Err(Error::Malformed {
                what: "a string",
                ..
            })
        ));
        assert!(Cursor::new(&[0; 7], "a number").u64().is_err());
    }
}
