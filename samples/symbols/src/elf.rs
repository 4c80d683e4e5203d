//! ELF files: their functions, where they are loaded, and their build ids.

use std::io;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader32, FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::read::{Object, ObjectSymbol, ReadCache, ReadCacheOps, ReadRef};
use object::{Endianness, FileKind};

use crate::build_id;
use crate::debug_files::{BuildFiles, DebugLink, is_of_cache};
use crate::debuginfod::{self, Artifact};
use crate::functions::functions_of;
use crate::input::{CheckedFile, input_file};
use crate::plt::stubs_of;
use crate::table::{Symbol, SymbolTable};

/// Functions, segments and build id of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElfImage {
    functions: SymbolTable,
    /// Code of the linker's by which functions of other files are called.
    stubs: SymbolTable,
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
    debug_link: Option<DebugLink>,
    debug_file: Option<PathBuf>,
    /// True if it has no table of symbols for debugging.
    is_stripped: bool,
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
    /// Reads a file. Where its debug information lies apart, the symbols there are read as well, if there are more.
    ///
    /// `None` when there is no such regular file, or it is no ELF file that makes sense.
    ///
    /// # Errors
    /// The operating system's when one of the two is there and cannot be read.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(mut image) = Self::at(path)? else {
            return Ok(None);
        };
        let by_id = image.build_id.as_deref().map(BuildFiles::of);
        let by_link = image.debug_link.as_ref().map(|link| link.places(path));
        let places = by_id.unwrap_or_default().debug.into_iter();
        for place in places.chain(by_link.unwrap_or_default()) {
            if image.take_from(place)? {
                return Ok(Some(image));
            }
        }
        let id = image.build_id.as_deref().filter(|_| image.is_stripped);
        if let Some(place) = id.and_then(|id| debuginfod::fetch(id, Artifact::DebugInfo)) {
            image.take_from(place)?;
        }
        Ok(Some(image))
    }

    /// Takes the debug information at a path, if it is of the same build; returns true if it is.
    fn take_from(&mut self, place: PathBuf) -> io::Result<bool> {
        let apart = match self.apart(&place) {
            // A cache in the home directory of another user, which the environment names.
            Err(error) if is_of_cache(&place) && is_refused(&error) => None,
            apart => apart?,
        };
        let Some(apart) = apart else {
            return Ok(false);
        };
        if apart.functions.len() > self.functions.len() {
            self.functions = apart.functions;
        }
        self.debug_file = Some(place);
        Ok(true)
    }

    /// Reads the file at a path alone.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        match input_file(path)? {
            Some(file) => CheckedFile::read_by(file, Self::read),
            None => Ok(None),
        }
    }

    /// Reads the file at a path if it is of the same build: build ids decide, or else the checksum of the link.
    fn apart(&self, path: &Path) -> io::Result<Option<Self>> {
        let Some(apart) = Self::at(path)? else {
            return Ok(None);
        };
        let is_same = match (&self.build_id, &apart.build_id, &self.debug_link) {
            (Some(own), Some(of_file), _) => own == of_file,
            (_, _, Some(link)) => match input_file(path)? {
                Some(file) => link.is_to(file)?,
                None => false,
            },
            _ => false,
        };
        Ok(is_same.then_some(apart))
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

    /// Returns the function at an address of the file.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        if let Some(stub) = self.stubs.find(address) {
            let index = self.functions.len() + stub.index;
            return Some(Symbol { index, ..stub });
        }
        self.functions.find(address)
    }

    /// Returns the position of the function at an address of the file, as its symbol has it.
    pub(crate) fn position(&self, address: u64) -> Option<usize> {
        let stub = self.stubs.position(address);
        stub.map(|stub| self.functions.len() + stub)
            .or_else(|| self.functions.position(address))
    }

    /// Its build id (`NT_GNU_BUILD_ID`).
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Returns true if there is a symbol table for debugging, here or in the file that lies apart.
    pub(crate) fn has_symbol_table(&self) -> bool {
        !self.is_stripped || self.debug_file.is_some()
    }

    /// The file of debug information that lies apart.
    pub(crate) fn debug_file(&self) -> Option<&Path> {
        self.debug_file.as_deref()
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
    let cache = ReadCache::new(input_file(path).ok()??);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => build_id::<FileHeader32<Endianness>, _>(&cache),
        FileKind::Elf64 => build_id::<FileHeader64<Endianness>, _>(&cache),
        _ => None,
    }
}

/// Functions of an ELF file, and the addresses of symbols by their names.
#[derive(Debug)]
pub(crate) struct FileSymbols {
    pub(crate) functions: SymbolTable,
    pub(crate) named: Vec<(&'static str, u64)>,
}

/// Returns the functions of a file, and the symbols of these names; `None` if it is no ELF file.
///
/// # Errors
/// The operating system's when it cannot be read.
pub(crate) fn symbols_of(path: &Path, names: &[&'static str]) -> io::Result<Option<FileSymbols>> {
    let Some(file) = input_file(path)? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    CheckedFile::read_by(file, |file| {
        let cache = ReadCache::new(file);
        let read = object::File::parse(&cache).ok()?;
        let address = |name: &&'static str| {
            let symbol = read.symbol_by_name(name)?;
            Some((*name, symbol.address()))
        };
        let named = names.iter().filter_map(address).collect();
        let image = match FileKind::parse(&cache).ok()? {
            FileKind::Elf32 => parse::<FileHeader32<Endianness>, _>(&cache),
            FileKind::Elf64 => parse::<FileHeader64<Endianness>, _>(&cache),
            _ => None,
        };
        Some(FileSymbols {
            functions: image?.functions,
            named,
        })
    })
}

fn parse<'data, Elf, R>(data: R) -> Option<ElfImage>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let file = ElfFile::<Elf, R>::parse(data).ok();
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
        functions: functions_of::<Elf, R>(data).unwrap_or_default(),
        stubs: file.as_ref().and_then(stubs_of).unwrap_or_default(),
        segments,
        build_id: build_id::<Elf, R>(data),
        debug_link: file.as_ref().and_then(debug_link),
        debug_file: None,
        is_stripped: file.is_some_and(|file| file.elf_symbol_table().is_empty()),
    })
}

/// Returns the link to debug information that lies apart.
fn debug_link<'data>(file: &impl Object<'data>) -> Option<DebugLink> {
    let (name, crc) = file.gnu_debuglink().ok()??;
    DebugLink::new(name, crc)
}

fn build_id<'data, Elf, R>(data: R) -> Option<Vec<u8>>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?.iter();
    let of_segments = segments.map(|segment| segment.notes(endian, data));
    // Files that are not loaded have no segments: what others share (dwz(1)).
    let sections = header.sections(endian, data).unwrap_or_default();
    let of_sections = sections.iter().map(|section| section.notes(endian, data));
    let mut all = of_segments.chain(of_sections);
    all.find_map(|notes| build_id::among(notes.ok()??, endian))
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
        let symbol = image.find(address).expect("it has a name");
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
        let found = image.find(0x1000 + 4990).expect("a name");
        assert_eq!((found.name, image.functions.len()), ("xxxxxxxxxx", 5000));
        assert_eq!(image.functions.names.len(), 5001);
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
        assert!(image.find(0x1000).is_none());
        assert!(image.find(0x1000 + 20).is_some());
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        for path in ["/dev/zero", "/proc", "/nowhere"] {
            let opened = ElfImage::open(Path::new(path)).expect("nothing is opened");
            assert!(opened.is_none(), "{path}");
            assert!(build_id_of(Path::new(path)).is_none(), "{path}");
        }
    }

    /// Returns an ELF file of 32 bits in a byte order: one segment of code at an address, which has a note with a build id.
    fn small(is_big: bool, machine: u16) -> Vec<u8> {
        let mut elf = b"\x7fELF\x01\x01\x01".to_vec();
        elf[5] += u8::from(is_big);
        elf.resize(16, 0);
        let mut put = |number: u32, len: usize| match is_big {
            true => elf.extend(&number.to_be_bytes()[4 - len..]),
            false => elf.extend(&number.to_le_bytes()[..len]),
        };
        put(3, 2);
        put(machine.into(), 2);
        put(1, 4);
        [0, 52, 244, 0].iter().for_each(|n| put(*n, 4));
        [52, 32, 2, 40, 4, 3].iter().for_each(|n| put(*n, 2));
        // PT_LOAD of all of it at 0x8000, and PT_NOTE of the note.
        [1, 0, 0x8000, 0, 0x1000, 0x1000, 5, 0x1000]
            .iter()
            .for_each(|n| put(*n, 4));
        [4, 116, 0x8074, 0, 20, 20, 4, 4]
            .iter()
            .for_each(|n| put(*n, 4));
        // NT_GNU_BUILD_ID of four bytes.
        [4, 4, 3].iter().for_each(|n| put(*n, 4));
        elf.extend(b"GNU\0\x01\x02\x03\x04");
        let mut put = |number: u32, len: usize| match is_big {
            true => elf.extend(&number.to_be_bytes()[4 - len..]),
            false => elf.extend(&number.to_le_bytes()[..len]),
        };
        // Symbols: none, a function, and a place that is no function.
        for (name, value, size, info, section) in [
            (0, 0, 0, 0, 0),
            (1, 0x8101, 0x10, 0x12, 1),
            (6, 0x8200, 0, 0x11, 1),
        ] {
            [name, value, size].iter().for_each(|n| put(*n, 4));
            put(info, 1);
            put(0, 1);
            put(section, 2);
        }
        elf.extend(b"\0main\0place\0");
        elf.resize(244, 0);
        let mut put = |number: u32| match is_big {
            true => elf.extend(number.to_be_bytes()),
            false => elf.extend(number.to_le_bytes()),
        };
        // Code, symbols and names; each has no name, a kind, flags, address, offset, length, link, and the rest.
        for section in [
            [0; 10],
            [0, 1, 6, 0x8000, 0, 0x1000, 0, 0, 1, 0],
            [0, 2, 0, 0, 136, 48, 3, 1, 4, 16],
            [0, 3, 0, 0, 184, 12, 0, 0, 1, 0],
        ] {
            section.iter().for_each(|n| put(*n));
        }
        elf
    }

    #[test]
    fn files_of_32_bits_in_both_byte_orders_are_read() {
        let folder = tempfile::tempdir().expect("writable");
        let path = folder.path().join("a");
        // The lowest bit of an address of Arm says that it is Thumb code.
        for (is_big, machine, start) in [(false, 3, 0x8101), (true, 8, 0x8101), (false, 40, 0x8100)]
        {
            std::fs::write(&path, small(is_big, machine)).expect("writable");
            let image = ElfImage::open(&path).expect("readable").expect("an ELF");
            let found = |image: &SymbolTable, address| {
                let symbol = image.find(address)?;
                Some((symbol.name.to_owned(), symbol.start, symbol.end))
            };
            let main = Some(("main".to_owned(), start, start + 0x10));
            assert_eq!(found(&image.functions, 0x810f), main);
            assert_eq!(image.build_id(), Some(&[1, 2, 3, 4][..]));
            assert_eq!(build_id_of(&path), Some(vec![1, 2, 3, 4]));
            let addresses = [0, 0x8000, 0xfff, 0x1000].map(|offset| image.address_at(offset));
            assert_eq!(addresses, [Some(0x8000), None, Some(0x8fff), None]);
            assert!(image.has_symbol_table() && image.debug_file().is_none());
            let symbols = symbols_of(&path, &["place", "nothing"]).expect("readable");
            let symbols = symbols.expect("an ELF");
            assert_eq!(symbols.named, [("place", 0x8200)]);
            assert_eq!(found(&symbols.functions, 0x8101), main);
        }
        std::fs::write(&path, "#!/bin/sh\n").expect("writable");
        assert!(symbols_of(&path, &[]).expect("readable").is_none());
        let error = symbols_of(Path::new("/nowhere"), &[]).expect_err("none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn code_is_what_runs_where_segments_share_a_page() {
        let segment = |offset, len, address, executable| Segment {
            offset,
            len,
            address,
            executable,
        };
        let image = ElfImage {
            segments: vec![
                segment(0, 0x1800, 0x40_0000, false),
                segment(0x1000, 0x1000, 0x50_1000, true),
                segment(u64::MAX - 1, 2, u64::MAX, false),
            ],
            ..ElfImage::default()
        };
        for (offset, address) in [
            (0xfff, Some(0x40_0fff)),
            (0x1000, Some(0x50_1000)),
            (0x17ff, Some(0x50_17ff)),
            (0x1fff, Some(0x50_1fff)),
            (0x2000, None),
            (u64::MAX - 1, Some(u64::MAX)),
            (u64::MAX, None),
        ] {
            assert_eq!(image.address_at(offset), address, "{offset:#x}");
        }
    }
}
