//! Modules of FreeBSD's kernel (kld(4)): files that are not linked, of which the kernel puts each section somewhere.

use std::collections::HashMap;
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64};
use object::read::{Object, ObjectSection, ObjectSymbol, ReadCache};
use object::{Endianness, FileKind, SectionKind, SymbolKind};

use crate::functions::functions_of_section;
use crate::input::input_file;
use crate::table::SymbolTable;

/// A section of code in the file of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleCode {
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Functions of which the file has one symbol alone, and how many bytes behind the start of the section they begin.
    pub functions: Vec<(String, u64)>,
}

impl ModuleCode {
    /// Reads those of the file at a path; none if it is no ELF file.
    pub fn read(path: &Path) -> Vec<Self> {
        read(path).unwrap_or_default()
    }
}

fn read(path: &Path) -> Option<Vec<ModuleCode>> {
    let cache = ReadCache::new(input_file(path).ok()??);
    let file = object::File::parse(&cache).ok()?;
    let mut symbols: HashMap<&str, u32> = HashMap::new();
    for name in file.symbols().filter_map(|symbol| symbol.name().ok()) {
        *symbols.entry(name).or_default() += 1;
    }
    let sections = file.sections();
    let sections = sections.filter(|section| section.kind() == SectionKind::Text);
    let code = sections.filter_map(|section| {
        let (offset, len) = section.file_range()?;
        let functions = file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(section.index())
        });
        let functions = functions.filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| symbols[name] == 1)?;
            let at = symbol.address().checked_sub(section.address())?;
            Some((name.to_owned(), at))
        });
        Some(ModuleCode {
            offset,
            len,
            functions: functions.collect(),
        })
    });
    Some(code.collect())
}

/// Returns the functions of the section at an offset in the file at a path, which begins at an address.
pub(crate) fn functions_at(path: &Path, offset: u64, start: u64) -> Option<SymbolTable> {
    let cache = ReadCache::new(input_file(path).ok()??);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => {
            functions_of_section::<FileHeader32<Endianness>, _>(&cache, offset, start)
        }
        FileKind::Elf64 => {
            functions_of_section::<FileHeader64<Endianness>, _>(&cache, offset, start)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_space::KernelSpace;

    const FIRST: u64 = 0x40;
    const SECOND: u64 = 0x80;

    /// A file that is not linked, with two sections of code at these offsets: `first` and `twice` in the one, `twice` and `second` in
    /// the other.
    fn module() -> Vec<u8> {
        const NAMES: &[u8] = b"\0first\0twice\0second\0";
        const NAMES_AT: u64 = 0xa0;
        const SYMBOLS_AT: u64 = 0xc0;
        const HEADERS_AT: u64 = 0x140;
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend([1, 0, 62, 0, 1, 0, 0, 0]);
        for word in [0, 0, HEADERS_AT] {
            elf.extend(u64::to_le_bytes(word));
        }
        for half in [0, 0, 64, 0, 0, 64, 5, 3u16] {
            elf.extend(half.to_le_bytes());
        }
        elf.resize(NAMES_AT as usize, 0x90);
        elf.extend(NAMES);
        elf.resize(SYMBOLS_AT as usize + 24, 0);
        // Name, binding and type, section, value and length.
        for (name, info, section, value, len) in [
            (1u32, 0x12, 1u16, 0u64, 16u64),
            (7, 2, 1, 16, 8),
            (7, 2, 2, 0, 8),
            (13, 0x12, 2, 8, 16),
        ] {
            elf.extend(name.to_le_bytes());
            elf.extend([info, 0]);
            elf.extend(section.to_le_bytes());
            elf.extend([value.to_le_bytes(), len.to_le_bytes()].concat());
        }
        elf.resize(HEADERS_AT as usize, 0);
        // Kind, flags, offset, length, link, alignment and length of an entry.
        for [kind, flags, offset, len, link, align, each] in [
            [0; 7],
            [1, 6, FIRST, 0x30, 0, 16, 0],
            [1, 6, SECOND, 0x20, 0, 16, 0],
            [3, 0, NAMES_AT, NAMES.len() as u64, 0, 1, 0],
            [2, 0, SYMBOLS_AT, 5 * 24, 3 | 1 << 32, 8, 24],
        ] {
            for word in [kind << 32, flags, 0, offset, len, link, align, each] {
                elf.extend(word.to_le_bytes());
            }
        }
        elf
    }

    #[test]
    fn functions_are_found_section_by_section() {
        let file = tempfile::Builder::new().suffix(".ko").tempfile();
        let file = file.expect("a file");
        std::fs::write(file.path(), module()).expect("written");
        let code = |offset, len, name: &str, at| ModuleCode {
            offset,
            len,
            functions: vec![(name.to_owned(), at)],
        };
        // A symbol `twice` is in both sections, and would place neither.
        assert_eq!(
            ModuleCode::read(file.path()),
            [
                code(FIRST, 0x30, "first", 0),
                code(SECOND, 0x20, "second", 8)
            ]
        );
        // The second one is before the first one in memory.
        let mut space = KernelSpace::default();
        let path = file.path().as_os_str().as_encoded_bytes();
        let (start, second, first) = (1u64 << 63, (1 << 63) + 0x100, (1 << 63) + 0x200);
        space.map(start, start + 0x1000, path);
        space.map_code(second..second + 0x20, path, SECOND);
        space.map_code(first..first + 0x30, path, FIRST);
        let at = |space: &KernelSpace, address| {
            let found = space.at(address);
            assert!(found.object.starts_with('['), "{found:?}");
            found.function.map(|(name, into)| (name.to_owned(), into))
        };
        let named = |name: &str, into| Some((name.to_owned(), into));
        let object = space.at(first).object.to_owned();
        assert!(space.has_functions(&object) && !space.has_functions("[other]"));
        assert_eq!(at(&space, first + 15), named("first", 15));
        assert_eq!(at(&space, first + 16), named("twice", 0));
        assert_eq!(at(&space, first + 24), None);
        assert_eq!(at(&space, second + 7), named("twice", 7));
        assert_eq!(at(&space, second + 23), named("second", 15));
        assert_eq!(at(&space, start), None);
        // Another module is there now.
        space.map(first, first + 0x1000, b"/boot/kernel/other.ko");
        assert_eq!(at(&space, first), None);
        assert_eq!(at(&space, second), named("twice", 0));
    }

    #[test]
    fn what_is_no_module_has_no_code() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for len in [0, 3, 63, 0x140, 0x1ff, module().len() - 1] {
            std::fs::write(file.path(), &module()[..len]).expect("written");
            assert_eq!(ModuleCode::read(file.path()), [], "{len} bytes");
            assert!(functions_at(file.path(), FIRST, 0).is_none(), "{len} bytes");
        }
        assert_eq!(ModuleCode::read(Path::new("/nowhere.ko")), []);
    }
}
