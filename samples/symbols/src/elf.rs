//! ELF files: their functions, where they are loaded, and their build ids.

use std::io;
use std::path::Path;

use object::elf::{
    ELF_NOTE_GNU, EM_ARM, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD,
    SHF_EXECINSTR, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadCacheOps, ReadRef};
use object::{Endianness, FileKind};

use crate::build_files::{self, BuildFiles};
use crate::input::{CheckedFile, regular_file};
use crate::table::{SymbolTable, TableBuilder};

/// No symbol table is longer than this; a file that says so is not what it seems.
const LONGEST_TABLE: u64 = 2 << 30;

/// Functions, segments and build id of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElfImage {
    symbols: SymbolTable,
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
}

/// A part of the file that is loaded (`PT_LOAD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    offset: u64,
    len: u64,
    address: u64,
    executable: bool,
}

impl ElfImage {
    /// Reads a file. Where it has no symbols but those for linking, and its debug information lies
    /// apart under its build id, that is read as well.
    ///
    /// `None` when there is no such regular file, or it is no ELF file that makes sense.
    ///
    /// # Errors
    /// The operating system's when one of the two is there and cannot be read.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let image_at = |path: &Path| match regular_file(path)? {
            Some(file) => CheckedFile::read_by(file, Self::read),
            None => Ok(None),
        };
        let Some(mut image) = image_at(path)? else {
            return Ok(None);
        };
        let debug = image.build_id.as_deref().map(BuildFiles::of);
        for path in debug.unwrap_or_default().debug {
            let apart = match image_at(&path) {
                // A cache in the home directory of another user, which the environment names.
                Err(error) if build_files::is_of_cache(&path) && is_refused(&error) => None,
                apart => apart?,
            };
            if let Some(apart) = apart
                && apart.build_id == image.build_id
                && apart.symbols.len() > image.symbols.len()
            {
                image.symbols = apart.symbols;
                break;
            }
        }
        Ok(Some(image))
    }

    /// Reads an image from anything that can be read at any place.
    pub(crate) fn read(content: impl ReadCacheOps) -> Option<Self> {
        let cache = ReadCache::new(content);
        match FileKind::parse(&cache).ok()? {
            FileKind::Elf32 => parse::<FileHeader32<Endianness>, _>(&cache),
            FileKind::Elf64 => parse::<FileHeader64<Endianness>, _>(&cache),
            _ => None,
        }
    }

    /// The functions, by the addresses that the file gives them.
    pub(crate) fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// Its build id (`NT_GNU_BUILD_ID`).
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// The address that the file gives to what is at an offset in it.
    pub(crate) fn address_at(&self, offset: u64) -> Option<u64> {
        let contains = |s: &&Segment| offset >= s.offset && offset - s.offset < s.len;
        let here = || self.segments.iter().filter(contains);
        // Segments that share a page overlap in memory; code is what was running.
        let segment = here().find(|s| s.executable).or_else(|| here().next())?;
        (offset - segment.offset).checked_add(segment.address)
    }
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Returns the build id of a file; `None` if it is not an ELF file or has none.
pub fn build_id_of(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(regular_file(path).ok()??);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => build_id::<FileHeader32<Endianness>, _>(&cache),
        FileKind::Elf64 => build_id::<FileHeader64<Endianness>, _>(&cache),
        _ => None,
    }
}

fn parse<'data, Elf, R>(data: R) -> Option<ElfImage>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let segments = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .map(|segment| Segment {
            offset: segment.p_offset(endian).into(),
            len: segment.p_filesz(endian).into(),
            address: segment.p_vaddr(endian).into(),
            executable: segment.p_flags(endian).contains(PF_X),
        })
        .collect();
    Some(ElfImage {
        symbols: symbols::<Elf, R>(header, endian, data).unwrap_or_default(),
        segments,
        build_id: build_id::<Elf, R>(data),
    })
}

fn build_id<'data, Elf, R>(data: R) -> Option<Vec<u8>>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, data).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, data) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Some(note.desc().to_owned());
            }
        }
    }
    None
}

/// The functions of the table for debugging, or where there is none, of that for linking.
fn symbols<'data, Elf, R>(header: &Elf, endian: Endianness, data: R) -> Option<SymbolTable>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let sections = header.sections(endian, data).ok()?;
    let is_arm = header.e_machine(endian) == EM_ARM;
    let mut builder = TableBuilder::default();
    let mut last = 0;
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        let mut any = false;
        // A file has one of each kind (System V ABI, "Sections"). Many that lie over the same bytes would
        // be those bytes many times.
        if let Some(section) = sections.iter().find(|s| s.sh_type(endian) == kind) {
            let size: u64 = section.sh_size(endian).into();
            let strings = sections.section(section.link(endian)).ok()?;
            let strings_size: u64 = strings.sh_size(endian).into();
            if size.max(strings_size) > LONGEST_TABLE {
                return None;
            }
            let entries = section.data_as_array::<Elf::Sym, _>(endian, data).ok()?;
            let strings = strings.data(endian, data).ok()?;
            let mut kept = None;
            for symbol in entries {
                let index = symbol.st_shndx(endian);
                let home = sections
                    .section(object::SectionIndex(usize::from(index.0)))
                    .ok();
                let in_code =
                    home.is_some_and(|home| home.sh_flags(endian).contains(SHF_EXECINSTR));
                let is_function = match symbol.st_type() {
                    STT_FUNC | STT_GNU_IFUNC => true,
                    STT_NOTYPE => in_code,
                    _ => false,
                };
                let name = symbol.st_name(endian) as usize;
                if !is_function || index == SHN_UNDEF || !is_name(strings, name) {
                    continue;
                }
                // Names may share their ends: they are kept once, as the file has them.
                let from = *kept.get_or_insert_with(|| builder.add_names(strings)) + name;
                // The lowest bit says that it is Thumb code.
                let mask = if is_arm { !1 } else { u64::MAX };
                let start = symbol.st_value(endian).into() & mask;
                let binding = match symbol.st_bind() {
                    STB_GLOBAL => 2,
                    STB_WEAK => 0,
                    _ => 1,
                };
                let typed = u8::from(symbol.st_type() != STT_NOTYPE);
                builder.add_named(
                    start,
                    symbol.st_size(endian).into(),
                    4 * typed + binding,
                    from,
                );
                last = last.max(home.map_or(0, |home| {
                    let end: u64 = home.sh_addr(endian).into();
                    end.saturating_add(home.sh_size(endian).into())
                }));
                any = true;
            }
        }
        if any {
            break;
        }
    }
    Some(builder.build(last))
}

/// Returns true if what begins at an offset of a string table is a name that a person would know, and
/// no mapping symbol of ARM or RISC-V or label that an assembler made.
fn is_name(strings: &[u8], offset: usize) -> bool {
    match strings.get(offset..) {
        None | Some([] | [0 | b'$', ..] | [b'.', b'L', ..]) => false,
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LONGEST_NAME;
    use std::io::Cursor;

    fn own_file() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("it runs")).expect("readable")
    }

    #[test]
    fn this_programs_own_functions_are_found() {
        let image = ElfImage::open(&std::env::current_exe().expect("it runs"));
        let image = image.expect("readable").expect("an ELF");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        let address = this_programs_own_functions_are_found as fn() as usize as u64;
        let offset = maps.lines().find_map(|line| {
            let mut fields = line.split_whitespace();
            let (start, end) = fields.next()?.split_once('-')?;
            let hex = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (hex(start)?, hex(end)?);
            let offset = hex(fields.nth(1)?)?;
            (start..end)
                .contains(&address)
                .then(|| address - start + offset)
        });
        let address = image
            .address_at(offset.expect("it is mapped"))
            .expect("loaded");
        let symbol = image.symbols().find(address).expect("it has a name");
        let name = crate::demangle(symbol.name);
        assert!(
            name.ends_with("this_programs_own_functions_are_found"),
            "{name}"
        );
        assert_eq!(symbol.start, address);
    }

    #[test]
    fn broken_files_have_no_symbols() {
        let good = own_file();
        assert!(ElfImage::read(Cursor::new(&good[..])).is_some());
        for len in [0, 3, 4, 16, 63, 64, 200, 1000, good.len() / 2] {
            let _ = ElfImage::read(Cursor::new(&good[..len]));
        }
        // Each byte of the header by itself, and then of the section headers.
        let table = u64::from_le_bytes(*good[40..].first_chunk().expect("a header")) as usize;
        let mut bad = good.clone();
        for at in (0..64).step_by(2).chain((table..table + 256).step_by(9)) {
            bad[at] ^= 0xff;
            let _ = ElfImage::read(Cursor::new(&bad[..]));
            bad[at] ^= 0xff;
        }
        assert!(ElfImage::read(Cursor::new(b"#!/bin/sh\n")).is_none());
    }

    /// An ELF file of one section of code, and as many symbols as its string table has bytes, each of
    /// which begins one byte later. So many symbol tables are the same bytes.
    fn overlapping_names(count: usize, tables: u16) -> Vec<u8> {
        let headers = 3 + tables;
        let symbols_at = 64 + 64 * usize::from(headers);
        let strings_at = symbols_at + 24 * count;
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        let mut put = |bytes: &[u8]| elf.extend_from_slice(bytes);
        put(&[3, 0, 62, 0, 1, 0, 0, 0]);
        [0u64, 0, 64].iter().for_each(|n| put(&n.to_le_bytes()));
        put(&[0; 4]);
        let sizes = [64u16, 56, 0, 64, headers, 2];
        sizes.iter().for_each(|n| put(&n.to_le_bytes()));
        let sections = [
            [0; 8],
            // Kind and flags, address, offset, length, link, alignment, length of an entry.
            [1, 6, 0x1000, 0, 0x1000, 0, 1, 0],
            [3, 0, 0, strings_at as u64, count as u64 + 1, 0, 1, 0],
        ];
        let table = [2, 0, 0, symbols_at as u64, 24 * count as u64, 2, 8, 24];
        let tables = (0..tables).map(|_| table);
        for [kind, flags, address, offset, len, link, align, each] in
            sections.into_iter().chain(tables)
        {
            put(&(kind << 32).to_le_bytes());
            let rest = [flags, address, offset, len, link, align, each];
            rest.iter().for_each(|n| put(&n.to_le_bytes()));
        }
        for i in 0..count {
            put(&(i as u32).to_le_bytes());
            put(&[0x12, 0, 1, 0]);
            put(&(0x1000 + i as u64).to_le_bytes());
            put(&1u64.to_le_bytes());
        }
        put(&vec![b'x'; count]);
        put(&[0]);
        elf
    }

    #[test]
    fn names_that_share_their_ends_take_no_more_room() {
        let elf = overlapping_names(5000, 1);
        let mut image = None;
        let allocated = allocation_counter::measure(|| {
            image = ElfImage::read(Cursor::new(&elf[..]));
        });
        // A symbol is 24 bytes in the file, and as many while it is found, in a vector that doubles; 32
        // in the table.
        let most = 5 * elf.len() as u64;
        assert!(allocated.bytes_max < most, "{allocated:?}, {most}");
        let image = image.expect("an ELF");
        let found = image.symbols().find(0x1000 + 4990).expect("a name");
        assert_eq!((found.name, image.symbols().len()), ("xxxxxxxxxx", 5000));
        assert_eq!(image.symbols().names.len(), 5001);
    }

    #[test]
    fn many_tables_over_the_same_bytes_take_no_more_room() {
        let elf = overlapping_names(500, 400);
        let most = overlapping_names(500, 1).len() as u64 * 5 + elf.len() as u64;
        let allocated = allocation_counter::measure(|| {
            assert!(ElfImage::read(Cursor::new(&elf[..])).is_some());
        });
        assert!(allocated.bytes_max < most, "{allocated:?}, {most}");
    }

    #[test]
    fn names_of_no_sensible_length_are_none() {
        let elf = overlapping_names(LONGEST_NAME + 10, 1);
        let image = ElfImage::read(Cursor::new(&elf[..])).expect("an ELF");
        assert!(image.symbols().find(0x1000).is_none());
        assert!(image.symbols().find(0x1000 + 20).is_some());
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        for path in ["/dev/zero", "/proc", "/nowhere"] {
            let opened = ElfImage::open(Path::new(path)).expect("nothing is opened");
            assert!(opened.is_none(), "{path}");
            assert!(build_id_of(Path::new(path)).is_none(), "{path}");
        }
    }
}
