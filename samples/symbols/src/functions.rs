//! Functions of ELF files: their symbol tables, those that are compressed (MiniDebugInfo), and that of Go's runtime.

use std::io::Read;

use lzma_rust2::XzReader;
use object::elf::{
    EM_ARM, SHF_EXECINSTR, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE,
};
use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym};
use object::read::{Object, ObjectSection, ReadRef};
use object::{Endianness, SectionIndex};

use crate::go;
use crate::section::MOST_COMPRESSED;
use crate::table::{Extent, SymbolTable, TableBuilder};

/// No symbol table is longer than this; a file that says so is not what it seems.
const LONGEST_TABLE: u64 = 2 << 30;
/// Memory in KiB that decompressing may take: the largest dictionary that xz(1) compresses with by its options is of 64 MiB.
const MOST_MEMORY: u32 = 80 << 10;

/// Returns the functions of the table for debugging; where there is none, those of the table for linking, and what is
/// kept of the one for debugging in another form.
pub(crate) fn functions_of<'data, Elf, R>(file: &ElfFile<'data, Elf, R>) -> Option<SymbolTable>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let mut builder = TableBuilder::default();
    let for_debugging = add_table(file, SHT_SYMTAB, &mut builder)?;
    if !for_debugging {
        add_table(file, SHT_DYNSYM, &mut builder)?;
        let small = section(file, &[".gnu_debugdata"]).and_then(decompressed);
        if let Some(small) = small
            && let Ok(small) = ElfFile::<Elf, &[u8]>::parse(&*small)
        {
            add_table(&small, SHT_SYMTAB, &mut builder)?;
        }
        if let Some(table) = section(file, &go::TABLE) {
            let text = file
                .section_by_name(".text")
                .map_or(0, |text| text.address());
            go::add_functions(table, text, &mut builder);
        }
    }
    Some(builder.build())
}

/// Adds the functions of one kind of table; returns true if there are some.
fn add_table<'data, Elf, R>(
    file: &ElfFile<'data, Elf, R>,
    kind: object::elf::SectionType,
    builder: &mut TableBuilder,
) -> Option<bool>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_section_table();
    let is_arm = file.elf_header().e_machine(endian) == EM_ARM;
    // A file has one of each kind (System V ABI, "Sections"). Many that lie over the same bytes would
    // be those bytes many times.
    let Some(section) = sections.iter().find(|s| s.sh_type(endian) == kind) else {
        return Some(false);
    };
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
        let home = sections.section(SectionIndex(usize::from(index.0))).ok();
        let in_code = home.is_some_and(|home| home.sh_flags(endian).contains(SHF_EXECINSTR));
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
        let extent = match symbol.st_size(endian).into() {
            0 => Extent::ToNext(home.map_or(0, |home| {
                let end = home.sh_addr(endian).into();
                let end: u64 = end.saturating_add(home.sh_size(endian).into());
                end.saturating_sub(start)
            })),
            len => Extent::Known(len),
        };
        let binding = match symbol.st_bind() {
            STB_GLOBAL => 2,
            STB_WEAK => 0,
            _ => 1,
        };
        let typed = u8::from(symbol.st_type() != STT_NOTYPE);
        builder.add_named(start, extent, 4 * typed + binding, from);
    }
    Some(kept.is_some())
}

/// Returns the bytes of the first section that the file has of these names.
fn section<'data, Elf, R>(file: &ElfFile<'data, Elf, R>, names: &[&str]) -> Option<&'data [u8]>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let named = names.iter().find_map(|name| file.section_by_name(name))?;
    named.data().ok().filter(|data| !data.is_empty())
}

/// Decompresses the ELF file of symbols that GDB calls MiniDebugInfo.
fn decompressed(xz: &[u8]) -> Option<Vec<u8>> {
    let most = (xz.len() as u64)
        .saturating_mul(MOST_COMPRESSED)
        .min(LONGEST_TABLE);
    let mut elf = Vec::new();
    let reader = XzReader::new_mem_limit(xz, false, MOST_MEMORY);
    reader.take(most + 1).read_to_end(&mut elf).ok()?;
    (elf.len() as u64 <= most).then_some(elf)
}

/// Returns true if what begins at an offset of a string table is a name that a person would know, and
/// no mapping symbol of ARM or RISC-V or label that an assembler made.
fn is_name(strings: &[u8], offset: usize) -> bool {
    match strings.get(offset..) {
        None | Some([] | [0 | b'$', ..] | [b'.', b'L', ..]) => false,
        Some(_) => true,
    }
}
