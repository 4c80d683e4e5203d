//! Debug information: inlined functions and source lines.

use std::path::Path;

use addr2line::Context;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::read::{Object, ReadCache};

use crate::build_files::BuildFiles;
use crate::demangled::demangle;
use crate::input::regular_file;
use crate::section::content;

type Section = EndianArcSlice<RunTimeEndian>;

/// A function at an address as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name, readable.
    pub(crate) function: Option<String>,
    /// The file it is in, as the compiler was given it.
    pub(crate) file: Option<String>,
    /// The line.
    pub(crate) line: Option<u32>,
}

/// The debug information of a file.
pub(crate) struct Lines(Context<Section>);

impl Lines {
    /// That of a file, or that which lies apart under its build id.
    pub(crate) fn open(path: &Path, build_id: Option<&[u8]>) -> Option<Self> {
        let apart = || {
            let files = BuildFiles::of(build_id?);
            files.debug.iter().find_map(|path| Self::read(path))
        };
        Self::read(path).or_else(apart)
    }

    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(regular_file(path).ok()??);
        let file = object::File::parse(&cache).ok()?;
        file.section_by_name(".debug_info")?;
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let load = |id: gimli::SectionId| -> Result<Section, gimli::Error> {
            let data = file
                .section_by_name(id.name())
                .and_then(|section| content(&section))
                .unwrap_or_default();
            Ok(Section::new(data, endian))
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

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}
