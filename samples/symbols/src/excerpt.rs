//! Excerpts of ELF files: what the names of functions and their callers are read from, without code, data and lines.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;

use object::elf::{
    FileHeader32, FileHeader64, SHT_DYNAMIC, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_REL, SHT_RELA,
    SHT_STRTAB, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endian as _, Endianness, FileKind};

use crate::go;

/// Beginnings of the names of other sections that are read.
const READ: [&[u8]; 6] = [
    b".eh_frame",
    b".debug_frame",
    b".plt",
    b".iplt",
    b".gnu_debug",
    go::TABLE[0].as_bytes(),
];

/// Copies what names of functions in an ELF file are read from to the same places of another file, which is empty; returns how many
/// bytes these are. `None` for what is no ELF file that makes sense, or if they are more than `longest`.
///
/// # Errors
/// The operating system's.
pub fn copy_excerpt(from: &File, to: &File, longest: u64) -> io::Result<Option<u64>> {
    let excerpt = {
        let cache = ReadCache::new(from);
        match FileKind::parse(&cache) {
            Ok(FileKind::Elf32) => Excerpt::of::<FileHeader32<Endianness>, _>(&cache),
            Ok(FileKind::Elf64) => Excerpt::of::<FileHeader64<Endianness>, _>(&cache),
            _ => None,
        }
    };
    let Some(excerpt) = excerpt.filter(|excerpt| excerpt.len() <= longest) else {
        return Ok(None);
    };
    excerpt.copy(from, to)?;
    Ok(Some(excerpt.len()))
}

/// Parts of a file.
#[derive(Debug)]
struct Excerpt {
    parts: Vec<Range<u64>>,
    /// Places of the types of sections that are left out, and the type that says that a section has no bytes.
    left_out: Vec<u64>,
    no_bytes: [u8; 4],
}

impl Excerpt {
    fn of<'data, Elf, R>(data: R) -> Option<Self>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: ReadRef<'data>,
    {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let table = |at: u64, count: usize, len: u16| {
            let len = (count as u64).checked_mul(len.into())?;
            Some(at..at.checked_add(len)?)
        };
        let segments = header.program_headers(endian, data).ok()?.len();
        let headers = table(
            header.e_shoff(endian).into(),
            sections.len(),
            header.e_shentsize(endian),
        )?;
        let mut parts = vec![
            0..u64::try_from(size_of::<Elf>()).ok()?,
            table(
                header.e_phoff(endian).into(),
                segments,
                header.e_phentsize(endian),
            )?,
            headers.clone(),
        ];
        let mut left_out = Vec::new();
        for (index, section) in sections.iter().enumerate() {
            let name = sections.section_name(endian, section).unwrap_or_default();
            match section.file_range(endian) {
                Some((from, len)) if is_read(section, endian, name) => {
                    parts.push(from..from.checked_add(len)?);
                }
                // The type is behind the name, which has four bytes.
                Some(_) => left_out
                    .push(headers.start + index as u64 * u64::from(header.e_shentsize(endian)) + 4),
                None => {}
            }
        }
        Some(Self {
            parts,
            left_out,
            no_bytes: endian.write_u32(SHT_NOBITS.0),
        })
    }

    fn len(&self) -> u64 {
        let lens = self.parts.iter().map(|part| part.end - part.start);
        lens.fold(0, u64::saturating_add)
    }

    fn copy(&self, mut from: &File, mut to: &File) -> io::Result<()> {
        for part in &self.parts {
            from.seek(SeekFrom::Start(part.start))?;
            to.seek(SeekFrom::Start(part.start))?;
            io::copy(&mut from.take(part.end - part.start), &mut to)?;
        }
        for place in &self.left_out {
            to.seek(SeekFrom::Start(*place))?;
            to.write_all(&self.no_bytes)?;
        }
        Ok(())
    }
}

/// Returns true for a section that names are read from.
fn is_read<S: SectionHeader<Endian = Endianness>>(
    section: &S,
    endian: Endianness,
    name: &[u8],
) -> bool {
    let tables = [
        SHT_SYMTAB,
        SHT_DYNSYM,
        SHT_STRTAB,
        SHT_NOTE,
        SHT_REL,
        SHT_RELA,
        SHT_DYNAMIC,
    ];
    let is_table = tables.contains(&section.sh_type(endian)) && !name.starts_with(b".debug");
    is_table || READ.iter().any(|read| name.starts_with(read)) || name == go::TABLE[1].as_bytes()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::elf::ElfImage;

    #[test]
    fn an_excerpt_has_the_functions_of_its_file_and_not_its_code() {
        let own = std::env::current_exe().expect("a path");
        let from = File::open(&own).expect("readable");
        let whole = from.metadata().expect("a file").len();
        let excerpt = tempfile::NamedTempFile::new().expect("a file");
        let len = copy_excerpt(&from, excerpt.as_file(), whole).expect("copied");
        let len = len.expect("it is an ELF file");
        assert!(len < whole / 2, "{len} of {whole}");
        let [own, copy] = [own.as_path(), excerpt.path()].map(|path| {
            let image = ElfImage::open(path).expect("readable");
            image.expect("an ELF file")
        });
        assert_eq!(copy.build_id(), own.build_id());
        let offsets = (0..whole).step_by(64);
        let name = |image: &ElfImage, offset| {
            let found = image.find(image.address_at(offset)?)?;
            Some((found.name.to_owned(), found.start, found.end))
        };
        let mut named = 0;
        for offset in offsets {
            let expected = name(&own, offset);
            named += usize::from(expected.is_some());
            assert_eq!(name(&copy, offset), expected);
        }
        assert!(named > 1000, "{named}");
        let less = copy_excerpt(&from, excerpt.as_file(), len - 1);
        assert_eq!(less.expect("readable"), None);
        let other = File::open("Cargo.toml").expect("it is in this folder");
        let none = copy_excerpt(&other, excerpt.as_file(), whole);
        assert_eq!(none.expect("readable"), None);
    }
}
