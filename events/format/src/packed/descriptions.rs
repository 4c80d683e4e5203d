//! The sentences of the embedded tables: each once, compressed as one, and inflated when the first is asked for.
//!
//! Tables refer to sentences by number. The bytes are raw deflate (RFC 1951) of the sentences, a line each.

use std::sync::OnceLock;

#[cfg(feature = "files")]
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// The most bytes that the sentences of a table have, and that a table has which is compressed.
pub(super) const LARGEST_TEXT: usize = 8 << 20;
/// The level at which the compressor finds the most.
#[cfg(feature = "files")]
pub(super) const LEVEL: u8 = 10;

/// Returns the compressed form of some sentences, or `None` where they are too long to be read again.
#[cfg(feature = "files")]
pub(crate) fn write_descriptions(sentences: &[String]) -> Option<Vec<u8>> {
    let text = sentences.join("\n");
    (text.len() <= LARGEST_TEXT).then(|| compress_to_vec(text.as_bytes(), LEVEL))
}

/// The sentences of the embedded tables.
///
/// Bytes of another kind hold none, so that no file can make reading panic.
#[derive(Debug)]
pub struct Descriptions {
    bytes: &'static [u8],
    inflated: OnceLock<Inflated>,
}

#[derive(Debug, Default)]
struct Inflated {
    text: String,
    /// The byte behind each sentence.
    ends: Vec<usize>,
}

impl Descriptions {
    /// Makes them of the bytes in a program. Inflates nothing.
    pub const fn embedded(bytes: &'static [u8]) -> Self {
        Self {
            bytes,
            inflated: OnceLock::new(),
        }
    }

    /// Returns a sentence by number. The first call inflates all of them.
    pub fn get(&self, number: u32) -> Option<&str> {
        let inflated = self.inflated.get_or_init(|| Inflated::of(self.bytes));
        let number = number as usize;
        let end = *inflated.ends.get(number)?;
        let start = match number {
            0 => 0,
            _ => inflated.ends.get(number - 1)? + 1,
        };
        inflated.text.get(start..end)
    }

    /// Returns true if the sentences are in memory.
    #[cfg(test)]
    fn is_inflated(&self) -> bool {
        self.inflated.get().is_some()
    }
}

impl Inflated {
    fn of(bytes: &[u8]) -> Self {
        let bytes = decompress_to_vec_with_limit(bytes, LARGEST_TEXT).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(text) = text else {
            return Self::default();
        };
        let ends = text.match_indices('\n').map(|(at, _)| at);
        Self {
            ends: ends.chain([text.len()]).collect(),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_read_as_it_was_written() {
        let sentences: Vec<String> = (0..100)
            .map(|n| format!("Counts loads of kind {n}"))
            .collect();
        let bytes = write_descriptions(&sentences).expect("it is short");
        assert!(bytes.len() < sentences.join("\n").len() / 4);
        let read = Descriptions::embedded(bytes.leak());
        assert!(!read.is_inflated());
        for (number, sentence) in sentences.iter().enumerate() {
            assert_eq!(read.get(number as u32), Some(sentence.as_str()));
        }
        assert!(read.is_inflated());
        assert_eq!(read.get(100), None);
    }

    #[test]
    fn other_bytes_hold_no_sentence() {
        assert_eq!(Descriptions::embedded(b"\xff\xff no deflate").get(0), None);
        assert_eq!(Descriptions::embedded(&[]).get(0), None);
    }
}
