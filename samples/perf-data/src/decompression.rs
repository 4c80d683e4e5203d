//! Compressed records: a zstd stream in pieces (`tools/perf/util/zstd.c`).

use std::io;

use zstd::stream::raw::{Decoder, Operation};

/// Bytes that are decompressed in one go.
const STEP: usize = 128 << 10;
/// The largest window of a stream, as a power of two. What perf writes needs 19 to 27.
const LARGEST_WINDOW: u32 = 27;

/// A stream that is being decompressed. It holds one piece and what was decompressed of it last.
pub(crate) struct Decompressor {
    decoder: Decoder<'static>,
    compressed: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    given: usize,
    /// The last step filled all the room it had, so that there may be more.
    was_full: bool,
}

impl Decompressor {
    pub(crate) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(zstd::zstd_safe::DParameter::WindowLogMax(LARGEST_WINDOW))?;
        Ok(Self {
            decoder,
            compressed: Vec::new(),
            taken: 0,
            output: Vec::new(),
            given: 0,
            was_full: false,
        })
    }

    /// Takes the next piece; the one before has been [used up](Self::decompress).
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.compressed.clear();
        self.compressed.extend_from_slice(piece);
        self.taken = 0;
    }

    /// Decompresses some more; false if there is no more in the pieces so far.
    ///
    /// # Errors
    /// When the stream is damaged.
    pub(crate) fn decompress(&mut self) -> io::Result<bool> {
        if self.taken == self.compressed.len() && !self.was_full {
            return Ok(false);
        }
        self.output.drain(..self.given);
        self.given = 0;
        let start = self.output.len();
        self.output.resize(start + STEP, 0);
        let left = &self.compressed[self.taken..];
        let done = self.decoder.run_on_buffers(left, &mut self.output[start..]);
        let written = done.as_ref().map_or(0, |done| done.bytes_written);
        self.output.truncate(start + written);
        let done = done?;
        self.taken += done.bytes_read;
        self.was_full = done.bytes_written == STEP;
        if done.remaining == 0 {
            // The frame has ended; another one may follow.
            self.decoder.reinit()?;
        }
        Ok(done.bytes_read > 0 || done.bytes_written > 0)
    }

    /// The bytes that were decompressed and not yet [given](Self::give).
    pub(crate) fn output(&self) -> &[u8] {
        &self.output[self.given..]
    }

    /// Marks bytes of the output as given.
    pub(crate) fn give(&mut self, len: usize) {
        self.given += len;
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("compressed", &self.compressed.len())
            .field("output", &self.output.len())
            .finish_non_exhaustive()
    }
}
