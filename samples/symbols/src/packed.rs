//! Numbers and texts, one after the other, which are compressed: numbers take as many bytes as they need (LEB128).

use std::io::{Read, Write};

use lzma_rust2::{DICT_SIZE_MIN, XzOptions, XzReader, XzWriter};

/// It takes half a second for the names of a system that compiles for half a minute, and a third less room than RFC 1951.
const PRESET: u32 = 3;
/// Memory in KiB that decompressing may take: presets up to this one ask for 4 MiB.
const MOST_MEMORY: u32 = 16 << 10;
/// Compressed bytes are at least one in so many, so that a small file cannot ask for much memory.
const MOST_COMPRESSED: usize = 64;

/// Appends bytes, compressed by xz, to others.
pub(crate) fn compress(bytes: &[u8], to: Vec<u8>) -> Vec<u8> {
    let least = to.len() + bytes.len().div_ceil(MOST_COMPRESSED);
    let mut options = XzOptions::with_preset(PRESET);
    // Both sides take memory for that.
    let window = &mut options.lzma_options.dict_size;
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    *window = len.clamp(DICT_SIZE_MIN, *window);
    let written = XzWriter::new(to, options).and_then(|mut out| {
        out.write_all(bytes)?;
        out.finish()
    });
    // Memory is always written to.
    let mut compressed = written.unwrap_or_default();
    // What is more regular than a reader takes is padded, as xz allows it.
    compressed.resize(least.max(compressed.len()), 0);
    compressed
}

/// Decompresses bytes; `None` if they make no sense, or are more than `longest` then.
pub(crate) fn decompress(bytes: &[u8], longest: usize) -> Option<Vec<u8>> {
    let most = longest.min(bytes.len().saturating_mul(MOST_COMPRESSED));
    let mut out = Vec::new();
    let input = XzReader::new_mem_limit(bytes, false, MOST_MEMORY);
    input.take(most as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() <= most).then_some(out)
}

/// Bytes that are put together.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
}

impl Output {
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a number of either sign, of which those around 0 are short.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    /// Appends numbers, each as its distance from the one before.
    pub(crate) fn distances(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let mut before = 0_u64;
        for number in numbers {
            self.signed(number.wrapping_sub(before).cast_signed());
            before = number;
        }
    }
}

/// Bytes that are taken apart. Nothing is taken of what is not there.
#[derive(Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Takes a number that a smaller type holds.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    /// Takes a number of things that follow, each of a byte at least.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.count()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }

    /// Takes numbers that were written as their distances. They are taken apart one after the other: there may be millions.
    pub(crate) fn distances(
        &mut self,
        count: usize,
    ) -> Option<impl ExactSizeIterator<Item = u64> + use<'a>> {
        let mut numbers = Input(self.0);
        for _ in 0..count {
            self.number()?;
        }
        let mut before = 0_u64;
        Some((0..count).map(move |_| {
            // All are there, as was seen above.
            let distance = numbers.signed().unwrap_or_default();
            before = before.wrapping_add(distance.cast_unsigned());
            before
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let numbers = [0, 1, 0x7f, 0x80, 300, u64::MAX, 1 << 63, 5];
        let mut out = Output::default();
        numbers.iter().for_each(|number| out.number(*number));
        [0, -1, 1, i64::MIN, i64::MAX]
            .iter()
            .for_each(|n| out.signed(*n));
        out.text(b"text");
        out.distances(numbers);
        let mut input = Input(&out.bytes);
        for number in numbers {
            assert_eq!(input.number(), Some(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(input.signed(), Some(number));
        }
        assert_eq!(input.text(), Some(&b"text"[..]));
        assert_eq!(
            input.distances(numbers.len()).map(Vec::from_iter),
            Some(numbers.to_vec())
        );
        assert_eq!(input.number(), None);
    }

    #[test]
    fn what_is_compressed_comes_back_whole_or_not() {
        let numbers = (0..300_u32).map(|n| n.wrapping_mul(0x9e37_79b1) >> 20);
        let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        for bytes in [&bytes[..], &bytes[..5], &[], &[9; 1 << 13]] {
            let compressed = compress(bytes, vec![7]);
            let (first, compressed) = compressed.split_first().expect("not empty");
            assert_eq!(
                (*first, decompress(compressed, 1 << 20).as_deref()),
                (7, Some(bytes))
            );
            for len in 0..compressed.len() {
                assert_eq!(decompress(&compressed[..len], 1 << 20), None, "{len}");
            }
        }
        assert_eq!(
            decompress(&compress(&bytes, Vec::new()), bytes.len() - 1),
            None
        );
    }

    #[test]
    fn little_that_is_decompressed_to_much_is_refused() {
        let mut bomb = compress(&vec![0; 32 << 20], Vec::new());
        let end = bomb.iter().rposition(|byte| *byte != 0).expect("a footer");
        bomb.truncate(end + 1);
        let allocated = allocation_counter::measure(|| {
            assert_eq!(decompress(&bomb, 64 << 20), None);
        });
        let most = 4 * (MOST_COMPRESSED * bomb.len()) as u64 + (u64::from(MOST_MEMORY) << 10);
        assert!(allocated.bytes_max < most, "{allocated:?}");
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        assert_eq!(Input(&[0x80; 20]).number(), None);
        assert_eq!(Input(&[3, 1, 2]).text(), None);
        assert_eq!(Input(&[3, 1, 2]).count(), None);
        assert_eq!(Input(&[0x80, 2]).small::<u8>(), None);
        assert!(Input(&[2, 2]).distances(3).is_none());
    }
}
