//! The header: where everything is (`struct perf_file_header`, `tools/perf/util/header.h`).

use crate::bytes::u64_at;
use crate::{Error, Result};

/// `PERFILE2` as a number in the byte order of the machine that wrote it.
const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
/// How long the header of a file is; that of a pipe is shorter.
pub(crate) const LEN: usize = 104;
/// How long the header of a pipe is (`struct perf_pipe_file_header`).
const PIPE_LEN: u64 = 16;

/// A part of the file (`struct perf_file_section`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    /// How long a section's description is.
    pub(crate) const LEN: usize = 16;

    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self {
            offset: u64_at(bytes, at)?,
            size: u64_at(bytes, at + 8)?,
        })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_ne_bytes());
        out.extend_from_slice(&self.size.to_ne_bytes());
    }

    /// Where it ends, if that is within a file of `len` bytes.
    pub(crate) fn checked_end(self, what: &'static str, len: u64) -> Result<u64> {
        let end = self.offset.saturating_add(self.size);
        if end > len {
            return Err(Error::Truncated {
                what,
                needed: end,
                len,
            });
        }
        Ok(end)
    }
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// How long an entry of `attrs` is: an attr, and the section of its ids.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// Which features follow the data, a bit each.
    pub(crate) features: [u64; 4],
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let word = |i: usize| u64_at(bytes, 8 * i).ok_or(Error::NotPerfData);
        match word(0)? {
            MAGIC => {}
            other if other.swap_bytes() == MAGIC => return Err(Error::OtherByteOrder),
            _ => return Err(Error::NotPerfData),
        }
        match word(1)? {
            PIPE_LEN => return Err(Error::Unsupported("the format of a pipe")),
            size if size != LEN as u64 => {
                return Err(Error::malformed("a header of another size", 8));
            }
            _ => {}
        }
        let section = |at| Section::read(bytes, at).ok_or(Error::NotPerfData);
        Ok(Self {
            attr_size: word(2)?,
            attrs: section(24)?,
            data: section(40)?,
            features: [word(9)?, word(10)?, word(11)?, word(12)?],
        })
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LEN);
        for word in [MAGIC, LEN as u64, self.attr_size] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        self.attrs.write(&mut out);
        self.data.write(&mut out);
        // Event types: a section that nobody has written since 2013.
        Section::default().write(&mut out);
        for word in self.features {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        out
    }

    /// The numbers of its features, in the order of their sections.
    pub(crate) fn feature_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let words = self.features;
        (0..256).filter(move |n: &u32| words[(n / 64) as usize] >> (n % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        let header = Header {
            attr_size: 144 + 16,
            attrs: Section {
                offset: 104,
                size: 160,
            },
            data: Section {
                offset: 264,
                size: 1000,
            },
            features: [1 << 3, 0, 0, 1 << 63],
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), LEN);
        assert_eq!(Header::read(&bytes).expect("whole"), header);
        assert_eq!(header.feature_numbers().collect::<Vec<_>>(), [3, 255]);
        for len in 0..LEN {
            assert!(Header::read(&bytes[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        let good = Header::default().to_bytes();
        let mut swapped = good.clone();
        swapped[..8].reverse();
        assert!(matches!(Header::read(&swapped), Err(Error::OtherByteOrder)));
        let mut pipe = good.clone();
        pipe[8..16].copy_from_slice(&16u64.to_ne_bytes());
        assert!(matches!(Header::read(&pipe), Err(Error::Unsupported(_))));
        let mut elf = good;
        elf[..4].copy_from_slice(b"\x7fELF");
        assert!(matches!(Header::read(&elf), Err(Error::NotPerfData)));
    }
}
