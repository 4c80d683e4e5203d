//! Machine code of functions, from the files that were mapped.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::demangled::{Style, demangle};
use crate::elf::ElfImage;
use crate::input::{InputFile, input_file};
use crate::jitdump::JitDump;
use crate::left_out::LeftOut;
use crate::lines::Lines;

/// No function is longer than this; a symbol that says so is not what it seems.
const LONGEST: u64 = 16 << 20;

/// A file whose functions' machine code can be read.
///
/// ```no_run
/// use quipu_symbols::CodeFile;
///
/// let mut file = CodeFile::open("/usr/bin/env".as_ref(), None).expect("an ELF file");
/// let code = file.function_at(0x4000).expect("a function with a symbol");
/// println!("{} bytes at {:#x}", code.bytes.len(), code.address);
/// # Ok::<(), quipu_symbols::NoCode>(())
/// ```
#[derive(Debug)]
pub struct CodeFile {
    file: InputFile,
    machine: u16,
    names: Names,
}

/// The names of functions and source lines of a file.
#[derive(Debug)]
enum Names {
    Elf {
        image: ElfImage,
        lines: Option<Box<Lines>>,
    },
    /// Of code that a compiler has written there, by its addresses in memory.
    Jit(JitDump),
}

/// Machine code of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// Its first address, as the file has it.
    pub address: u64,
    /// Its instructions.
    pub bytes: Vec<u8>,
}

/// Reason why there is no machine code.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoCode {
    /// There is no such file, or it is none with code that makes sense.
    NoFile,
    /// It is another file: its build ID is not the one that was asked for.
    Other,
    /// It could not be opened or read.
    Unreadable(io::Error),
    /// No function with a symbol is at that place, or it is longer than any can be.
    NoFunction,
}

impl CodeFile {
    /// Opens a file, with its debug information where there is some. It has to have the build ID, if one is given. A file in
    /// which a compiler lists its code as it makes it (`jit-PID.dump`) is one too: its offsets are addresses in memory.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub fn open(path: &Path, build_id: Option<&[u8]>) -> Result<Self, NoCode> {
        let mut file = input_file(path)?.ok_or(NoCode::NoFile)?;
        let Some(image) = ElfImage::open(path)? else {
            let dump = JitDump::read(&mut file);
            return Ok(Self {
                file,
                machine: dump.machine().ok_or(NoCode::NoFile)?,
                names: Names::Jit(dump),
            });
        };
        if build_id.is_some() && image.build_id() != build_id {
            return Err(NoCode::Other);
        }
        let mut header = [0; 20];
        file.read_exact(&mut header)?;
        // e_ident[EI_DATA] and e_machine (System V ABI, "ELF Header").
        let machine = [header[18], header[19]];
        let machine = match header[5] {
            2 => u16::from_be_bytes(machine),
            _ => u16::from_le_bytes(machine),
        };
        let lines = Lines::open(path, image.debug_file()).map(Box::new);
        Ok(Self {
            file,
            machine,
            names: Names::Elf { image, lines },
        })
    }

    /// Returns the number of the architecture, `e_machine` of the ELF header: 62 is x86-64, 183 is Arm's 64-bit.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Returns the function that an offset in the file belongs to.
    ///
    /// # Errors
    /// When no function is there, or the file cannot be read.
    pub fn function_at(&mut self, offset: u64) -> Result<Code, NoCode> {
        let found = match &self.names {
            Names::Elf { image, .. } => image.address_at(offset).and_then(|address| {
                let symbol = image.find(address)?;
                Some((symbol, offset.checked_sub(address - symbol.start)?))
            }),
            Names::Jit(dump) => dump
                .find(offset)
                .and_then(|symbol| Some((symbol, dump.code_of(&symbol)?))),
        };
        let (symbol, start) = found.ok_or(NoCode::NoFunction)?;
        let len = symbol.end - symbol.start;
        let len = Some(len).filter(|len| *len <= LONGEST);
        let mut bytes = vec![0; len.ok_or(NoCode::NoFunction)? as usize];
        let address = symbol.start;
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Code { address, bytes })
    }

    /// Returns the readable name of the function at an address of the file, and how far into it that is.
    pub fn name_at(&self, address: u64) -> Option<(String, u64)> {
        let symbol = match &self.names {
            Names::Elf { image, .. } => image.find(address)?,
            Names::Jit(dump) => dump.find(address)?,
        };
        Some((demangle(symbol.name).into_owned(), address - symbol.start))
    }

    /// Returns why some of its source lines were left out, if that was so.
    pub fn left_out(&self) -> Option<LeftOut> {
        match &self.names {
            Names::Elf { lines, .. } => lines.as_ref()?.left_out(),
            Names::Jit(_) => None,
        }
    }

    /// Returns the source file and line of an address of the file; where functions are inlined, of the innermost.
    pub fn source_at(&mut self, address: u64) -> Option<(String, u32)> {
        let lines = match &mut self.names {
            Names::Elf { lines, .. } => lines.as_mut()?,
            Names::Jit(dump) => {
                let (file, line) = dump.source_at(address)?;
                return Some((file.to_string(), line));
            }
        };
        let innermost = lines.at(address, Style::Whole).into_iter().next()?;
        Some((innermost.file?, innermost.line?))
    }
}

impl Display for NoCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("there is no such ELF file"),
            Self::Other => f.write_str("it is not the file that was recorded"),
            Self::Unreadable(error) => write!(f, "it could not be read: {error}"),
            Self::NoFunction => f.write_str("it has no function with a symbol at that place"),
        }
    }
}

impl std::error::Error for NoCode {}

impl From<io::Error> for NoCode {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitdump::tests::{file, lines, load};

    fn opened(bytes: &[u8]) -> Result<CodeFile, NoCode> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        CodeFile::open(file.path(), None)
    }

    #[test]
    fn code_that_a_compiler_wrote_is_read_by_its_addresses_in_memory() {
        let code: Vec<u8> = (0..32).collect();
        let records = [
            lines(0x7000, &[(0x7000, 3, b"a.js"), (0x7010, 4, b"b.js")]),
            load(0x7000, b"_ZN1a1bEv", &code),
            load(0x8000, b"without lines", &code[..16]),
        ];
        let mut opened = opened(&file(&records)).expect("a file of a compiler");
        assert_eq!(opened.machine(), 62);
        assert!(opened.left_out().is_none());
        for (offset, address, len) in [
            (0x7000, 0x7000, 32),
            (0x701f, 0x7000, 32),
            (0x800f, 0x8000, 16),
        ] {
            let found = opened.function_at(offset).expect("a function");
            assert_eq!((found.address, &*found.bytes), (address, &code[..len]));
        }
        let outside = [0x6fff, 0x7020, 0x8010].map(|offset| opened.function_at(offset));
        for found in outside {
            assert!(matches!(found, Err(NoCode::NoFunction)), "{found:?}");
        }
        assert_eq!(opened.name_at(0x7011), Some(("a::b()".to_owned(), 0x11)));
        assert_eq!(opened.name_at(0x7020), None);
        let source = [0x700f, 0x7010, 0x8000].map(|address| opened.source_at(address));
        let line = |file: &str, line| Some((file.to_owned(), line));
        assert_eq!(source, [line("a.js", 3), line("b.js", 4), None]);
    }

    /// Returns the header of an ELF file without sections, in which every number is of this order.
    fn header(is_64: bool, is_big: bool, machine: u16) -> Vec<u8> {
        let word = if is_64 { 8 } else { 4 };
        let mut elf = b"\x7fELF".to_vec();
        elf.extend([1 + u8::from(is_64), 1 + u8::from(is_big), 1]);
        elf.resize(16, 0);
        let mut put = |number: u64, len: usize| match is_big {
            true => elf.extend(&number.to_be_bytes()[8 - len..]),
            false => elf.extend(&number.to_le_bytes()[..len]),
        };
        put(3, 2);
        put(machine.into(), 2);
        put(1, 4);
        // The entry, and where the headers of segments and sections are.
        (0..3).for_each(|_| put(0, word));
        put(0, 4);
        put(if is_64 { 64 } else { 52 }, 2);
        (0..5).for_each(|_| put(0, 2));
        elf
    }

    #[test]
    fn the_machine_is_that_of_the_header_in_its_byte_order() {
        for (is_64, is_big, machine) in [
            (true, false, 183),
            (true, true, 21),
            (false, true, 0x0102),
            (false, false, 0x0102),
        ] {
            let mut opened = opened(&header(is_64, is_big, machine)).expect("an ELF file");
            assert_eq!(opened.machine(), machine);
            let found = opened.function_at(0);
            assert!(matches!(found, Err(NoCode::NoFunction)), "{found:?}");
            assert_eq!(opened.name_at(0), None);
            assert_eq!(opened.source_at(0), None);
        }
    }

    #[test]
    fn what_has_no_code_is_said() {
        let script = opened(b"#!/bin/sh\n").expect_err("no code");
        assert!(matches!(script, NoCode::NoFile), "{script}");
        let nowhere = CodeFile::open(Path::new("/nowhere/a"), None).expect_err("no file");
        assert!(matches!(nowhere, NoCode::NoFile), "{nowhere}");
        assert_eq!(nowhere.to_string(), "there is no such ELF file");
        let other = NoCode::Other.to_string();
        assert_eq!(other, "it is not the file that was recorded");
        let none = NoCode::NoFunction.to_string();
        assert_eq!(none, "it has no function with a symbol at that place");
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        let words = format!("it could not be read: {error}");
        assert_eq!(NoCode::from(error).to_string(), words);
    }
}
