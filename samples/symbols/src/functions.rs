//! Functions of ELF files: their symbol tables, those that are compressed (MiniDebugInfo), and that of Go's runtime.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io::Read;

use gimli::{BaseAddresses, EhFrameHdr, Pointer, RunTimeEndian};
use lzma_rust2::XzReader;
use object::elf::{
    EM_ARM, SHF_EXECINSTR, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE,
};
use object::pod::slice_from_all_bytes;
use object::read::ReadRef;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, SectionIndex};

use crate::go;
use crate::section;
use crate::table::{Extent, SymbolTable, TableBuilder};

/// No symbol table is longer than this; a file that says so is not what it seems.
const LONGEST_TABLE: u64 = 2 << 30;
/// Memory in KiB that decompressing may take: the largest dictionary that xz(1) compresses with by its options is of 64 MiB.
const MOST_MEMORY: u32 = 80 << 10;

/// Returns the functions of the table for debugging; where there is none, those of the table for linking, and what is
/// kept of the one for debugging in another form.
pub(crate) fn functions_of<'data, Elf, R>(data: R) -> Option<SymbolTable>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let file = Sections::<Elf, R>::of(data)?;
    let mut builder = TableBuilder::default();
    let for_debugging = add_table(&file, SHT_SYMTAB, None, &mut builder)?;
    if !for_debugging {
        add_table(&file, SHT_DYNSYM, None, &mut builder)?;
        let small = file.bytes_of(&[".gnu_debugdata"]);
        if let Some(small) = small.and_then(|small| decompressed(&small))
            && let Some(small) = Sections::<Elf, &[u8]>::of(&small)
        {
            add_table(&small, SHT_SYMTAB, None, &mut builder)?;
        }
        if let Some(table) = file.bytes_of(&go::TABLE) {
            let text = file.named(".text");
            let text = text.map_or(0, |text| text.sh_addr(file.endian).into());
            go::add_functions(&table, text, &mut builder);
        }
    }
    Some(builder.build())
}

/// Returns the functions of the section at an offset in the file, moved so that it begins at an address: sections of files that are
/// not linked have no addresses.
pub(crate) fn functions_of_section<'data, Elf, R>(
    data: R,
    offset: u64,
    start: u64,
) -> Option<SymbolTable>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let file = Sections::<Elf, R>::of(data)?;
    let begins = |section: &Elf::SectionHeader| {
        let is_code = section.sh_flags(file.endian).contains(SHF_EXECINSTR);
        is_code && section.sh_offset(file.endian).into() == offset
    };
    let (index, section) = file.table.enumerate().find(|(_, s)| begins(s))?;
    let moved = start.wrapping_sub(section.sh_addr(file.endian).into());
    let mut builder = TableBuilder::default();
    add_table(&file, SHT_SYMTAB, Some((index, moved)), &mut builder)?;
    Some(builder.build())
}

/// The sections of a file.
struct Sections<'data, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'data>> {
    header: &'data Elf,
    endian: Endianness,
    data: R,
    table: SectionTable<'data, Elf, R>,
    /// Addresses at which functions begin, once they were asked for.
    starts: OnceCell<Vec<u64>>,
}

impl<'data, Elf, R> Sections<'data, Elf, R>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    fn of(data: R) -> Option<Self> {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let table = header.sections(endian, data).ok()?;
        Some(Self {
            header,
            endian,
            data,
            table,
            starts: OnceCell::new(),
        })
    }

    fn named(&self, name: &str) -> Option<&'data Elf::SectionHeader> {
        let found = self.table.section_by_name(self.endian, name.as_bytes());
        found.map(|(_, section)| section)
    }

    /// Returns the bytes of the first section that the file has of these names.
    fn bytes_of(&self, names: &[&str]) -> Option<Cow<'data, [u8]>> {
        let named = names.iter().find_map(|name| self.named(name))?;
        self.bytes(named).filter(|bytes| !bytes.is_empty())
    }

    /// Returns the bytes of a section, decompressed where it is compressed: eu-elfcompress(1) does so with tables of symbols too.
    fn bytes(&self, section: &'data Elf::SectionHeader) -> Option<Cow<'data, [u8]>> {
        section::bytes_of(section, self.endian, self.data)
    }

    /// Returns where the first function begins behind an address that call frame information describes.
    fn next_start(&self, address: u64) -> Option<u64> {
        let starts = self
            .starts
            .get_or_init(|| self.starts_of_frames().unwrap_or_default());
        starts
            .get(starts.partition_point(|start| *start <= address))
            .copied()
    }

    /// Reads `.eh_frame_hdr` (Linux Standard Base, "Exception Frames"), which is sorted.
    fn starts_of_frames(&self) -> Option<Vec<u64>> {
        let section = self.named(".eh_frame_hdr")?;
        let bytes = self.bytes(section)?;
        let endian = match self.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(section.sh_addr(self.endian).into());
        let address_size = if self.header.is_type_64() { 8 } else { 4 };
        let header = EhFrameHdr::new(&bytes, endian).parse(&bases, address_size);
        let header = header.ok()?;
        let table = header.table()?;
        let mut rows = table.iter(&bases);
        let mut starts = Vec::new();
        while let Ok(Some((Pointer::Direct(start), _))) = rows.next() {
            starts.push(start);
        }
        Some(starts)
    }
}

/// Adds the functions of one kind of table, or those of one section, moved by a number; returns true if there are some.
fn add_table<'data, Elf, R>(
    file: &Sections<'data, Elf, R>,
    kind: object::elf::SectionType,
    part: Option<(SectionIndex, u64)>,
    builder: &mut TableBuilder,
) -> Option<bool>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let (endian, sections) = (file.endian, &file.table);
    let is_arm = file.header.e_machine(endian) == EM_ARM;
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
    let entries = file.bytes(section)?;
    let entries = slice_from_all_bytes::<Elf::Sym>(&entries).ok()?;
    let strings = &*file.bytes(strings)?;
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
        let in_part = part.is_none_or(|(part, _)| part.0 == usize::from(index.0));
        if !is_function || !in_part || index == SHN_UNDEF || !is_name(strings, name) {
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
                // Functions that are not for linking lie in between.
                let next = (kind == SHT_DYNSYM).then(|| file.next_start(start));
                let end = next.flatten().map_or(end, |next| next.min(end));
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
        let start = start.wrapping_add(part.map_or(0, |(_, moved)| moved));
        builder.add_named(start, extent, 4 * typed + binding, from);
    }
    Some(kept.is_some())
}

/// Decompresses the ELF file of symbols that GDB calls MiniDebugInfo.
fn decompressed(xz: &[u8]) -> Option<Vec<u8>> {
    let most = section::longest_of(xz).min(LONGEST_TABLE);
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
