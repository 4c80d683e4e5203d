//! Debug information: inlined functions and source lines.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::read::{CompressionFormat, Object, ObjectSection, ReadCache};

use crate::demangled::demangle;
use crate::elf::{debug_file, regular_file};

/// No section of debug information is longer than this.
const LONGEST_SECTION: u64 = 4 << 30;
/// Sections are compressed to a tenth of their length at best. One that claims to be so many times as
/// long as in the file is not what it seems.
const MOST_COMPRESSED: u64 = 64;

type Section = EndianArcSlice<RunTimeEndian>;

/// A function at an address as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its name, readable.
    pub function: Option<String>,
    /// The file it is in, as the compiler was told.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

/// The debug information of a file.
pub(crate) struct Lines(Context<Section>);

impl Lines {
    /// That of a file, or that which lies apart under its build id.
    pub(crate) fn open(path: &Path, build_id: Option<&[u8]>) -> Option<Self> {
        Self::read(path).or_else(|| Self::read(&debug_file(build_id?)?))
    }

    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(regular_file(path)?);
        let file = object::File::parse(&cache).ok()?;
        file.section_by_name(".debug_info")?;
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let load = |id: gimli::SectionId| -> Result<Section, gimli::Error> {
            let data = file
                .section_by_name(id.name())
                .filter(|section| section.size() <= LONGEST_SECTION)
                .and_then(|section| content(&section))
                .unwrap_or_default();
            Ok(Section::new(Arc::from(data), endian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        Some(Self(Context::from_dwarf(dwarf).ok()?))
    }

    /// The functions that were inlined at an address of the file, the innermost first, and the one
    /// that they were inlined into.
    pub(crate) fn at(&self, address: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else {
            return lines;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|f| {
                let raw = f.raw_name().ok()?;
                Some(demangle(&raw).into_owned())
            });
            lines.push(Line {
                function: name,
                file: frame
                    .location
                    .as_ref()
                    .and_then(|l| l.file)
                    .map(str::to_owned),
                line: frame.location.as_ref().and_then(|l| l.line),
            });
        }
        lines
    }
}

/// The content of a section, decompressed where it is compressed.
fn content<'a>(section: &impl ObjectSection<'a>) -> Option<Cow<'a, [u8]>> {
    let data = section.compressed_data().ok()?;
    let most = (data.data.len() as u64).saturating_mul(MOST_COMPRESSED);
    let is_plain = data.format == CompressionFormat::None;
    if !is_plain && data.uncompressed_size > most.min(LONGEST_SECTION) {
        return None;
    }
    data.decompress().ok()
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}
