//! The addresses at which the code of an ELF file is put when it is executed, as far as the file decides that.

use std::path::{Path, PathBuf};

use object::elf::{ET_EXEC, FileHeader32, FileHeader64, PF_X, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};

use crate::input::input_file;
use crate::process_maps::as_path;

/// The least page of any machine: segments begin at one.
const PAGE: u64 = 4096;

/// An ELF file as it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedFile {
    /// True if it is always at the addresses that it names; else these are moved.
    pub is_fixed: bool,
    /// The address at which it is entered.
    pub entry: u64,
    /// Its first segment that can be executed, in whole pages.
    pub code: LoadedCode,
    /// The address of its last segment that cannot be executed, in whole pages.
    pub data: Option<u64>,
    /// The program that starts it.
    pub interpreter: Option<PathBuf>,
}

/// A segment of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedCode {
    /// The first address.
    pub address: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its offset in the file, in bytes.
    pub offset: u64,
}

impl LoadedFile {
    /// Reads the file at a path; `None` if it is no ELF file with code.
    pub fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(input_file(path).ok()??);
        match FileKind::parse(&cache).ok()? {
            FileKind::Elf32 => parse::<FileHeader32<Endianness>, _>(&cache),
            FileKind::Elf64 => parse::<FileHeader64<Endianness>, _>(&cache),
            _ => None,
        }
    }

    /// Returns the number by which its addresses are moved where FreeBSD has put its interpreter at an address, and does not choose
    /// addresses at random: there the interpreter comes behind room for as many bytes of data as the process may have
    /// (`RLIMIT_DATA`).
    pub fn moved_before(&self, interpreter: u64, most_data: u64) -> Option<u64> {
        let behind = self.data?.checked_add(most_data)?;
        interpreter.checked_sub(behind.checked_next_multiple_of(PAGE)?)
    }
}

fn parse<'data, Elf, R>(data: R) -> Option<LoadedFile>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let of_type = |kind| segments.iter().filter(move |s| s.p_type(endian) == kind);
    let code = of_type(PT_LOAD).find(|segment| segment.p_flags(endian).contains(PF_X))?;
    let (address, offset) = (code.p_vaddr(endian).into(), code.p_offset(endian).into());
    let data_segments = of_type(PT_LOAD).filter(|segment| !segment.p_flags(endian).contains(PF_X));
    let data_address = data_segments.last().map(|segment| {
        let address: u64 = segment.p_vaddr(endian).into();
        address - address % PAGE
    });
    let in_page = address % PAGE;
    let len: u64 = code.p_memsz(endian).into();
    let interpreter = of_type(PT_INTERP).next().and_then(|segment| {
        let bytes = segment.data(endian, data).ok()?;
        Some(as_path(bytes.split(|byte| *byte == 0).next()?))
    });
    Some(LoadedFile {
        is_fixed: header.e_type(endian) == ET_EXEC,
        entry: header.e_entry(endian).into(),
        code: LoadedCode {
            address: address - in_page,
            len: in_page.checked_add(len)?.checked_next_multiple_of(PAGE)?,
            offset: offset.checked_sub(in_page)?,
        },
        data: data_address,
        interpreter,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::ProcessMaps;

    #[test]
    fn this_program_is_loaded_as_its_file_says() {
        let own = std::env::current_exe().expect("it runs");
        let file = LoadedFile::read(&own).expect("an ELF file with code");
        let maps = ProcessMaps::read(std::process::id().cast_signed()).expect("it runs");
        let path = own.as_os_str().as_encoded_bytes();
        let is_own = |line: &crate::MapsLine<'_>| line.path == path && line.is_executable();
        let line = maps.lines().find(is_own).expect("its code");
        let page = |len: u64| len.next_multiple_of(PAGE);
        assert_eq!(line.end - line.start, page(file.code.len));
        assert_eq!(line.offset, file.code.offset);
        let moved = line.start.wrapping_sub(file.code.address);
        assert_eq!(moved == 0, file.is_fixed);
        assert!((line.start..line.end).contains(&moved.wrapping_add(file.entry)));
        let named = maps.lines().find_map(|line| {
            let name = line.path.rsplit(|byte| *byte == b'/').next()?;
            name.starts_with(b"ld-").then(|| as_path(line.path))
        });
        assert_eq!(
            file.interpreter
                .map(|path| path.canonicalize().expect("there")),
            named
        );
    }

    /// A program of 64 bits: its header, an interpreter, code in the middle of a page and data in two segments.
    #[test]
    fn addresses_are_those_of_the_pages_that_are_mapped() {
        let path = b"/libexec/ld.so\0";
        let [load, interpreter, read, write, execute] = [1_u32, 3, 4, 2, 1];
        let segments: [(u32, u32, [u64; 3]); 5] = [
            (interpreter, read, [344, 0x20_0158, path.len() as u64]),
            (load, read, [0, 0x20_0000, 0x400]),
            (load, read | execute, [0x1234, 0x20_2234, 0x1f00]),
            (load, read | write, [0x4000, 0x20_6000, 0x10]),
            (load, read | write, [0x5321, 0x20_8321, 0x10]),
        ];
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([2_u16, 62].map(u16::to_le_bytes).concat());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0x20_2240_u64, 64, 0].map(u64::to_le_bytes).concat());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend([64_u16, 56, 5, 64, 0, 0].map(u16::to_le_bytes).concat());
        for (kind, flags, [offset, address, len]) in segments {
            bytes.extend([kind, flags].map(u32::to_le_bytes).concat());
            let numbers = [offset, address, address, len, len, 0x1000];
            bytes.extend(numbers.map(u64::to_le_bytes).concat());
        }
        bytes.extend(path);
        let file = parse::<FileHeader64<Endianness>, _>(&bytes[..]).expect("it has code");
        assert!(file.is_fixed);
        assert_eq!(file.entry, 0x20_2240);
        let code = (file.code.address, file.code.len, file.code.offset);
        assert_eq!(code, (0x20_2000, 0x3000, 0x1000));
        assert_eq!(file.data, Some(0x20_8000));
        assert_eq!(file.interpreter, Some(as_path(b"/libexec/ld.so")));
        let behind = 0x20_8000 + 0x1000_0000;
        assert_eq!(
            file.moved_before(behind + 0x7000, 0x1000_0000),
            Some(0x7000)
        );
        assert_eq!(file.moved_before(behind - 0x1000, 0x1000_0000), None);
    }

    #[test]
    fn an_interpreter_tells_where_its_program_is() {
        let own = std::env::current_exe().expect("it runs");
        let file = LoadedFile::read(&own).expect("an ELF file with code");
        let with_data = |data| LoadedFile {
            data,
            ..file.clone()
        };
        // As FreeBSD 12.1 had them, of a program that may be anywhere, of one that is fixed, and with less data.
        for (data, interpreter, most, moved) in [
            (0x3000, 0x8_0102_4000, 0x8_0000_0000, 0x102_1000),
            (0x100_3000, 0x8_0100_3000, 0x8_0000_0000, 0),
            (0x3000, 0x3e0b_4000, 0x3d09_0000, 0x102_1000),
            (0x3000, 0x3e0b_4000, 0x3d08_f001, 0x102_1000),
        ] {
            let found = with_data(Some(data)).moved_before(interpreter, most);
            assert_eq!(found, Some(moved));
        }
        assert_eq!(with_data(Some(0x3000)).moved_before(0x4000, 0x1001), None);
        assert_eq!(with_data(None).moved_before(0x8_0102_4000, 0), None);
    }

    #[test]
    fn what_is_no_program_is_not_loaded() {
        for path in ["/dev/null", "/proc/self/maps", "/nowhere"] {
            assert_eq!(LoadedFile::read(Path::new(path)), None, "{path}");
        }
    }
}
