//! Compressing records: a zstd stream in pieces (`tools/perf/util/zstd.c`).

use crate::Result;

/// Compresses records, as `perf record -z` does: what is written in their place are records that hold pieces of a zstd
/// stream (`PERF_RECORD_COMPRESSED`). [`Reader`](crate::Reader) decompresses them.
///
/// ```no_run
/// use quipu_perf_data::{Compressor, synthesized};
///
/// let mut compressor = Compressor::new(1)?;
/// let records = synthesized::comm(7, 7, b"make", 0);
/// let mut out = Vec::new();
/// compressor.compress(&records, &mut out)?;
/// # Ok::<_, quipu_perf_data::Error>(())
/// ```
pub struct Compressor {
    level: i32,
    taken: u64,
    given: u64,
    #[cfg(feature = "zstd")]
    encoder: zstd::stream::raw::Encoder<'static>,
    #[cfg(feature = "zstd")]
    room: Vec<u8>,
}

/// Description of the compressed records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compression {
    /// The level of zstd, 1 to 22.
    pub level: u32,
    /// The length of the records over that of what holds them, rounded.
    pub ratio: u32,
    /// The most bytes that one record is decompressed to.
    pub longest: u32,
}

/// The bytes that are compressed into one record: fewer than a record holds, even where they cannot be compressed.
#[cfg(feature = "zstd")]
const PIECE: usize = 32 << 10;
/// The most bytes that one record is decompressed to, with the beginning of a record that ends in the next.
const LONGEST: u32 = 128 << 10;

impl Compressor {
    /// Begins a stream of a level from 1 to 22.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) when this crate was built without the feature `zstd`;
    /// [`Io`](crate::Error::Io) when there is no memory for it.
    pub fn new(level: i32) -> Result<Self> {
        #[cfg(feature = "zstd")]
        return Ok(Self {
            level,
            taken: 0,
            given: 0,
            encoder: zstd::stream::raw::Encoder::new(level)?,
            room: vec![0; 2 * PIECE],
        });
        #[cfg(not(feature = "zstd"))]
        let _ = level;
        #[cfg(not(feature = "zstd"))]
        Err(crate::Error::Unsupported("compressed records"))
    }

    /// Appends records that hold these bytes, which may be cut anywhere.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io) when zstd fails.
    pub fn compress(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<()> {
        #[cfg(feature = "zstd")]
        {
            let before = out.len();
            for piece in records.chunks(PIECE) {
                self.compress_piece(piece, out)?;
            }
            self.taken += records.len() as u64;
            self.given += (out.len() - before) as u64;
        }
        let _ = (records, out);
        Ok(())
    }

    #[cfg(feature = "zstd")]
    fn compress_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<()> {
        use crate::record::{HEADER_LEN, kind};
        use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

        let mut input = InBuffer::around(piece);
        let mut output = OutBuffer::around(self.room.as_mut_slice());
        while input.pos() < piece.len() {
            self.encoder.run(&mut input, &mut output)?;
        }
        while self.encoder.flush(&mut output)? > 0 {}
        let data = output.as_slice();
        // There is room for less than a record can hold.
        let size = u16::try_from(HEADER_LEN + data.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&kind::COMPRESSED.to_ne_bytes());
        out.extend_from_slice(&0u16.to_ne_bytes());
        out.extend_from_slice(&size.to_ne_bytes());
        out.extend_from_slice(data);
        Ok(())
    }

    /// Returns the description of what has been compressed so far.
    pub fn description(&self) -> Compression {
        let ratio = (self.taken + self.given / 2).checked_div(self.given);
        Compression {
            level: self.level.unsigned_abs(),
            ratio: ratio.unwrap_or(0).try_into().unwrap_or(u32::MAX),
            longest: LONGEST,
        }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor")
            .field("description", &self.description())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::record::{HEADER_LEN, RawRecord, kind};

    #[test]
    fn records_are_short_enough_whatever_they_hold() {
        let mut compressor = Compressor::new(1).expect("a level");
        let mut word = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.to_ne_bytes()[6]
        })
        .take(3 * PIECE + 1)
        .collect();
        let mut out = Vec::new();
        compressor
            .compress(&noise, &mut out)
            .expect("it is compressed");
        let (mut rest, mut lengths) = (out.as_slice(), Vec::new());
        while let Some(record) = RawRecord::at_start(rest) {
            assert_eq!(record.kind(), kind::COMPRESSED);
            lengths.push(record.bytes().len());
            rest = &rest[record.bytes().len()..];
        }
        assert!(rest.is_empty() && lengths.len() == 4, "{lengths:?}");
        assert!(lengths.iter().all(|len| *len > HEADER_LEN), "{lengths:?}");
        assert_eq!(compressor.description().ratio, 1);
        let shown = format!("{compressor:?}");
        assert!(
            shown.starts_with("Compressor { description: Compression { level: 1, ratio: 1, "),
            "{shown}"
        );
    }
}
