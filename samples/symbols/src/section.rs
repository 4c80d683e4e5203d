//! Sections of ELF files, decompressed where they are compressed.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use object::Endianness;
use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use object::read::elf::{CompressionHeader, FileHeader, SectionHeader};
use object::read::{CompressedData, CompressionFormat, File, Object, ObjectSection, ReadRef};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// No section is longer than this.
const LONGEST_SECTION: u64 = 4 << 30;
/// Sections up to this length are read however well they are compressed: the line table of code that a program wrote may be
/// compressed to a thousandth.
const ALWAYS_READ: u64 = 16 << 20;
/// A longer one that claims to be so many times as long as in the file is not what it seems.
const MOST_COMPRESSED: u64 = 64;
/// No linker writes Zstandard frames of a larger window, as binary logarithm (RFC 8878 recommends that
/// decoders take as much). A decoder keeps as much in memory.
const LARGEST_WINDOW: u8 = 23;

/// A section that is there and cannot be read: it is malformed, too long or compressed too well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Returns the content of a section of this name, decompressed where it is compressed; `None` if there is none. Before ELF had
/// compressed sections, `.debug_info` was `.zdebug_info` then.
pub(crate) fn named<'a>(
    file: &File<'a, impl ReadRef<'a>>,
    name: &str,
) -> Result<Option<Arc<[u8]>>, Unreadable> {
    let section = file.section_by_name(name);
    let section =
        section.or_else(|| file.section_by_name(&format!(".z{}", name.strip_prefix('.')?)));
    let content = section.map(|section| content(&section).ok_or(Unreadable));
    content.transpose()
}

/// Returns the length up to which so many compressed bytes are decompressed.
pub(crate) fn longest_of(compressed: &[u8]) -> u64 {
    let len = compressed.len() as u64;
    len.saturating_mul(MOST_COMPRESSED).max(ALWAYS_READ)
}

fn content<'a>(section: &impl ObjectSection<'a>) -> Option<Arc<[u8]>> {
    if section.size() > LONGEST_SECTION {
        return None;
    }
    let data = section.compressed_data().ok()?;
    match data.format {
        CompressionFormat::None => Some(data.data.into()),
        _ => decompressed(&data).map(Arc::from),
    }
}

/// Returns the bytes of a section by its header, decompressed where it is compressed.
pub(crate) fn bytes_of<'data, S>(
    section: &S,
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> Option<Cow<'data, [u8]>>
where
    S: SectionHeader<Endian = Endianness>,
    S::Elf: FileHeader<Endian = Endianness>,
{
    let Some((header, offset, len)) = section.compression(endian, data).ok()? else {
        return section.data(endian, data).ok().map(Cow::Borrowed);
    };
    let format = match header.ch_type(endian) {
        ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    let compressed = CompressedData {
        format,
        data: data.read_bytes_at(offset, len).ok()?,
        uncompressed_size: header.ch_size(endian).into(),
    };
    decompressed(&compressed).map(Cow::Owned)
}

/// Decompresses a section, and no more of it than the file says there is: a few kilobytes of a hostile
/// one can stand for gigabytes.
fn decompressed(section: &CompressedData<'_>) -> Option<Vec<u8>> {
    let mut input = section.data;
    let len = section.uncompressed_size;
    if len > longest_of(input).min(LONGEST_SECTION) {
        return None;
    }
    let (expected, mut content) = (usize::try_from(len).ok()?, Vec::new());
    match section.format {
        CompressionFormat::Zlib => {
            let decoder = ZlibDecoder::new(input);
            decoder.take(len + 1).read_to_end(&mut content).ok()?;
        }
        CompressionFormat::Zstandard => {
            // Linkers that compress in parallel write one frame after another.
            while !input.is_empty() && content.len() <= expected {
                let left = len + 1 - content.len() as u64;
                let frame = frame(&mut input, left)?;
                frame.take(left).read_to_end(&mut content).ok()?;
            }
        }
        _ => return None,
    }
    (content.len() == expected).then_some(content)
}

/// Begins a Zstandard frame that is no longer than it may be.
fn frame<'a, 'b>(
    input: &'a mut &'b [u8],
    longest: u64,
) -> Option<StreamingDecoder<&'a mut &'b [u8], FrameDecoder>> {
    let [_, _, _, _, descriptor, window, ..] = **input else {
        return None;
    };
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment && (window >> 3) + 10 > LARGEST_WINDOW {
        return None;
    }
    let decoder = StreamingDecoder::new(input).ok()?;
    // The window of a single segment is its content.
    let fits = !is_single_segment || decoder.decoder.content_size() <= longest;
    fits.then_some(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write as _;

    const TEXT: &[u8] =
        b"of which a line or two repeats of which a line or two repeats of which a line";

    fn decompress(format: CompressionFormat, data: &[u8], len: usize) -> Option<Vec<u8>> {
        decompressed(&CompressedData {
            format,
            data,
            uncompressed_size: len as u64,
        })
    }

    #[test]
    fn sections_are_as_long_as_they_say_or_not_read() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).expect("to memory");
        let zlib = zlib.finish().expect("to memory");
        let zstd = compress_to_vec(TEXT, CompressionLevel::Fastest);
        let formats = [
            (CompressionFormat::Zlib, zlib),
            (CompressionFormat::Zstandard, zstd),
        ];
        for (format, data) in formats {
            assert_eq!(decompress(format, &data, TEXT.len()).as_deref(), Some(TEXT));
            for len in [0, 1, TEXT.len() - 1, TEXT.len() + 1, usize::MAX] {
                assert_eq!(decompress(format, &data, len), None, "{format:?}, {len}");
            }
            let half = &data[..data.len() / 2];
            assert_eq!(decompress(format, half, TEXT.len()), None, "{format:?}");
        }
    }

    #[test]
    fn short_sections_may_be_compressed_to_anything() {
        let compressed = |len| {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
            zlib.write_all(&vec![7; len]).expect("to memory");
            zlib.finish().expect("to memory")
        };
        for (len, is_read) in [
            (100_000, true),
            (ALWAYS_READ, true),
            (ALWAYS_READ + 1, false),
        ] {
            let len = len as usize;
            let read = decompress(CompressionFormat::Zlib, &compressed(len), len);
            assert_eq!(read.map(|read| read.len()), is_read.then_some(len));
        }
    }

    #[test]
    fn frames_may_follow_each_other() {
        let frame = |text| compress_to_vec(text, CompressionLevel::Fastest);
        let (first, second) = TEXT.split_at(20);
        let both = [frame(first), frame(second)].concat();
        let read = decompress(CompressionFormat::Zstandard, &both, TEXT.len());
        assert_eq!(read.as_deref(), Some(TEXT));
    }

    #[test]
    fn frames_of_a_huge_window_are_not_begun() {
        let begins = |header: &[u8]| {
            let frame = [&[0x28, 0xb5, 0x2f, 0xfd], header].concat();
            frame_of(&frame, 1000)
        };
        assert!(begins(&[0, (LARGEST_WINDOW - 10) << 3]));
        assert!(!begins(&[0, (LARGEST_WINDOW - 9) << 3]));
        // A single segment of 100 bytes, and one of 2^24.
        assert!(begins(&[0x20, 100]));
        assert!(!begins(&[0xa0, 0, 0, 0, 1]));
    }

    fn frame_of(mut input: &[u8], longest: u64) -> bool {
        frame(&mut input, longest).is_some()
    }
}
