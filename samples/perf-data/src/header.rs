//! The header: where everything is (`struct perf_file_header`, `tools/perf/util/header.h`).

use crate::byte_order::ByteOrder;
use crate::bytes::u64_at;
use crate::{Error, Result};

/// `PERFILE2` as a number in the byte order of the machine that wrote it.
const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
/// First bytes of files of the first version, in either byte order: perf wrote it until 3.5.
const FIRST_VERSION: [u8; 8] = *b"PERFFILE";
/// Length of the header of a file; that of a stream is shorter.
pub(crate) const LEN: usize = 104;

/// A part of the file (`struct perf_file_section`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    /// Length of a section's description.
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

    /// Returns the offset of its end, if that is within a file of `len` bytes.
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

/// The first two words: the same in every form of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) order: ByteOrder,
    /// A stream follows (`struct perf_pipe_file_header`), not the rest of a [`Header`].
    pub(crate) is_stream: bool,
    /// The version of the format, 1 or 2.
    pub(crate) version: u8,
}

impl Start {
    pub(crate) const LEN: usize = 16;

    /// Returns the header of a stream.
    pub(crate) fn of_stream() -> Vec<u8> {
        [MAGIC, Self::LEN as u64]
            .into_iter()
            .flat_map(u64::to_ne_bytes)
            .collect()
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let word = |i: usize| u64_at(bytes, 8 * i).ok_or(Error::NotPerfData);
        let (order, version) = match word(0)? {
            MAGIC => (ByteOrder::Native, 2),
            other if other.swap_bytes() == MAGIC => (ByteOrder::Swapped, 2),
            first if first.to_ne_bytes() == FIRST_VERSION => match word(1)? > u32::MAX.into() {
                false => (ByteOrder::Native, 1),
                true => (ByteOrder::Swapped, 1),
            },
            _ => return Err(Error::NotPerfData),
        };
        let is_stream = match usize::try_from(order.u64(word(1)?)) {
            Ok(Self::LEN) => true,
            Ok(LEN) => false,
            _ => return Err(Error::malformed("a header of another size", 8)),
        };
        Ok(Self {
            order,
            is_stream,
            version,
        })
    }
}

/// Header of a file, after its [`Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// Length of an entry of `attrs`: an attr, and the section of its ids.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// The names of types of events, which no program has written since 2013.
    pub(crate) event_types: Section,
    /// Which features follow the data, a bit each.
    pub(crate) features: [u64; 4],
}

impl Header {
    /// Reads what follows the [`Start`] of a file.
    pub(crate) fn read(mut bytes: [u8; LEN - Start::LEN], order: ByteOrder) -> Result<Self> {
        order.words(&mut bytes);
        // Offsets are counted from the start of the file.
        let bytes = [&[0; Start::LEN][..], &bytes].concat();
        let word = |i: usize| u64_at(&bytes, 8 * i).ok_or(Error::NotPerfData);
        let section = |at| Section::read(&bytes, at).ok_or(Error::NotPerfData);
        Ok(Self {
            attr_size: word(2)?,
            attrs: section(24)?,
            data: section(40)?,
            event_types: section(56)?,
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
        self.event_types.write(&mut out);
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
            event_types: Section::default(),
            features: [1 << 3, 0, 0, 1 << 63],
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), LEN);
        let (start, rest) = bytes.split_at(Start::LEN);
        let rest: [u8; LEN - Start::LEN] = rest.try_into().expect("as long as a header");
        let order = ByteOrder::Native;
        let file = Start {
            order,
            is_stream: false,
            version: 2,
        };
        assert_eq!(Start::read(start).expect("whole"), file);
        assert_eq!(Header::read(rest, order).expect("whole"), header);
        assert_eq!(header.feature_numbers().collect::<Vec<_>>(), [3, 255]);
        for len in 0..Start::LEN {
            assert!(Start::read(&bytes[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        let good = Header::default().to_bytes();
        let mut swapped = good.clone();
        swapped[..8].reverse();
        swapped[8..16].reverse();
        let start = Start::read(&swapped).expect("a file");
        assert_eq!((start.order, start.is_stream), (ByteOrder::Swapped, false));
        let mut pipe = good.clone();
        pipe[8..16].copy_from_slice(&16u64.to_ne_bytes());
        assert!(Start::read(&pipe).expect("a stream").is_stream);
        pipe[8] = 17;
        assert!(matches!(Start::read(&pipe), Err(Error::Malformed { .. })));
        let mut elf = good;
        elf[..4].copy_from_slice(b"\x7fELF");
        assert!(matches!(Start::read(&elf), Err(Error::NotPerfData)));
    }
}
