//! Numbers and text in the machine's own byte order, out of bytes that may end at any point.

use crate::text::until_nul;

/// Malformed record: the field that does not fit into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The `u64` at an offset.
#[inline(always)]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?.first_chunk()?;
    Some(u64::from_ne_bytes(*word))
}

/// The `u32` at an offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The `u16` at an offset.
#[cfg(feature = "file")]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The two `u32` at an offset.
#[inline(always)]
pub(crate) fn u32_pair_at(bytes: &[u8], at: usize) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f, g, h] = *bytes.get(at..at.checked_add(8)?)?.first_chunk()?;
    let (first, second) = ([a, b, c, d], [e, f, g, h]);
    Some((u32::from_ne_bytes(first), u32::from_ne_bytes(second)))
}

/// Bytes that are taken from the front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not yet taken.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed(field))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed(field))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_ne_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, Malformed> {
        self.array(field).map(i32::from_ne_bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_ne_bytes)
    }

    /// `count` words.
    #[inline]
    pub(crate) fn words(
        &mut self,
        count: u64,
        field: &'static str,
    ) -> Result<Words<'a>, Malformed> {
        let len = bytes_of(count, 8).ok_or(Malformed(field))?;
        self.bytes(len, field).map(Words::new)
    }

    /// Text up to the NUL that ends it, or all there is.
    pub(crate) fn text(self) -> &'a [u8] {
        until_nul(self.rest)
    }
}

/// Returns the bytes that `count` things of `size` bytes take, if memory can hold so many at all.
#[inline]
pub(crate) fn bytes_of(count: u64, size: usize) -> Option<usize> {
    usize::try_from(count).ok()?.checked_mul(size)
}

/// Numbers of 64 bits in the order of a record, which need not be aligned in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    /// Returns the words in these bytes; an incomplete last word is ignored.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }

    /// Returns the word at a position.
    pub fn get(&self, position: usize) -> Option<u64> {
        self.0.get(position).copied().map(u64::from_ne_bytes)
    }

    /// Returns all of them, in order.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone + use<'a> {
        self.0.iter().map(|word| u64::from_ne_bytes(*word))
    }
}

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 2, 0]);
        assert_eq!(cursor.u64("x"), Err(Malformed("x")));
        assert_eq!(cursor.u32("x"), Ok(u32::from_ne_bytes([1, 0, 0, 0])));
        assert_eq!(cursor.u32("y"), Err(Malformed("y")));
        assert_eq!(cursor.u16("x"), Ok(u16::from_ne_bytes([2, 0])));
        assert_eq!(cursor.rest(), []);
    }

    #[test]
    fn counts_are_not_multiplied_beyond_what_there_is() {
        assert_eq!(bytes_of(u64::MAX, 24), None);
        assert_eq!(bytes_of(1 << 61, 8), None);
        assert_eq!(bytes_of(65535, 24), Some(65535 * 24));
    }

    #[test]
    fn text_ends_at_its_nul_or_with_the_record() {
        assert_eq!(Cursor::new(b"ab\0c").text(), b"ab");
        assert_eq!(Cursor::new(b"ab").text(), b"ab");
    }
}
