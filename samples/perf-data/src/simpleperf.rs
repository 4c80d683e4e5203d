//! Features of simpleperf: the files that were mapped with those of their symbols that samples are in, and what it says of
//! the recording (`record_file_format.h` and `record_file.proto` of simpleperf).

use prost::Message;

use crate::Result;
use crate::section::SectionCursor;

/// A file that was mapped, with its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedFile {
    /// Its path, as that of its mappings; `[kernel.kallsyms]` for the kernel.
    pub path: String,
    /// The meaning of its symbols' addresses.
    pub addresses: SymbolAddresses,
    /// Its symbols.
    pub symbols: Vec<RecordedSymbol>,
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedSymbol {
    /// Its first address.
    pub address: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// Its name, as the file has it.
    pub name: String,
}

/// The meaning of the addresses of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolAddresses {
    /// They are those in memory: of the kernel, and of code that was compiled just in time.
    Memory,
    /// They are offsets in the file, moved by this.
    File {
        /// Number that is added to an offset, wrapping.
        added: u64,
    },
    /// It is not known what they are, as of a kernel's modules.
    Unknown,
}

/// The names of files of code that was compiled just in time: its addresses are those in memory.
const JIT_CACHES: [&str; 2] = ["jit_app_cache", "jit_zygote_cache"];

/// `file_offset_of_min_vaddr` where it is not known.
const NO_OFFSET: u64 = u64::MAX;

impl SymbolAddresses {
    /// Returns those of a file of a `DsoType` whose first executable address lies at an offset.
    fn new(path: &str, dso_type: u32, first: u64, offset: u64) -> Self {
        const KERNEL: u32 = 0;
        const ELF_FILE: u32 = 2;
        const DEX_FILE: u32 = 3;
        const SYMBOL_MAP_FILE: u32 = 4;
        let is_jit = JIT_CACHES.iter().any(|cache| path.contains(cache));
        match dso_type {
            KERNEL | SYMBOL_MAP_FILE => Self::Memory,
            ELF_FILE | DEX_FILE if is_jit => Self::Memory,
            ELF_FILE if offset != NO_OFFSET => Self::File {
                added: first.wrapping_sub(offset),
            },
            DEX_FILE => Self::File { added: 0 },
            _ => Self::Unknown,
        }
    }
}

/// Reads files in the form of before: numbers and texts one after the other.
pub(crate) fn read_files(mut cursor: SectionCursor<'_>) -> Result<Vec<RecordedFile>> {
    const DEX_FILE: u32 = 3;
    let mut files = Vec::new();
    while !cursor.is_at_end() {
        let len = cursor.u32()? as usize;
        let mut file = cursor.part(len)?;
        let path = file.text()?;
        let (dso_type, first) = (file.u32()?, file.u64()?);
        let count = file.u32()?;
        let symbols = (0..count).map(|_| {
            let (address, len) = (file.u64()?, file.u32()?);
            let name = file.text()?;
            Ok(RecordedSymbol { address, len, name })
        });
        let symbols = symbols.collect::<Result<_>>()?;
        if dso_type == DEX_FILE {
            for _ in 0..file.u32()? {
                file.u64()?;
            }
        }
        let offset = match file.is_at_end() {
            true => NO_OFFSET,
            false => file.u64()?,
        };
        files.push(RecordedFile {
            addresses: SymbolAddresses::new(&path, dso_type, first, offset),
            path,
            symbols,
        });
    }
    Ok(files)
}

/// `FileFeature`; what is not used is left out.
#[derive(Clone, PartialEq, Message)]
struct FileFeature {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(uint32, tag = "2")]
    dso_type: u32,
    #[prost(uint64, tag = "3")]
    min_vaddr: u64,
    #[prost(message, repeated, tag = "4")]
    symbol: Vec<Symbol>,
    #[prost(message, optional, tag = "6")]
    elf_file: Option<ElfFile>,
}

/// `FileFeature.Symbol`.
#[derive(Clone, PartialEq, Message)]
struct Symbol {
    #[prost(uint64, tag = "1")]
    vaddr: u64,
    #[prost(uint32, tag = "2")]
    len: u32,
    #[prost(string, tag = "3")]
    name: String,
}

/// `FileFeature.ElfFile`.
#[derive(Clone, PartialEq, Message)]
struct ElfFile {
    #[prost(uint64, tag = "1")]
    file_offset_of_min_vaddr: u64,
}

/// Reads files in the form of today: messages, before each its length.
pub(crate) fn read_messages(mut cursor: SectionCursor<'_>) -> Result<Vec<RecordedFile>> {
    let mut files = Vec::new();
    while !cursor.is_at_end() {
        let len = cursor.u32()? as usize;
        let file = FileFeature::decode(cursor.bytes(len)?).map_err(|_| cursor.error())?;
        let offset = file.elf_file.map(|elf| elf.file_offset_of_min_vaddr);
        let offset = offset.unwrap_or(NO_OFFSET);
        let symbols = file.symbol.into_iter().map(|symbol| RecordedSymbol {
            address: symbol.vaddr,
            len: symbol.len,
            name: symbol.name,
        });
        files.push(RecordedFile {
            addresses: SymbolAddresses::new(&file.path, file.dso_type, file.min_vaddr, offset),
            path: file.path,
            symbols: symbols.collect(),
        });
    }
    Ok(files)
}

/// Reads the names and values of the recording's description.
pub(crate) fn read_meta_info(mut cursor: SectionCursor<'_>) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    while !cursor.is_at_end() {
        pairs.push((cursor.text()?, cursor.text()?));
    }
    Ok(pairs)
}

/// Returns the name of an event of a type with a `config`, from the lines `name,type,config` of a description.
pub(crate) fn event_name(
    meta_info: &[(String, String)],
    event_type: u32,
    config: u64,
) -> Option<&str> {
    let (_, lines) = meta_info
        .iter()
        .find(|(name, _)| name == "event_type_info")?;
    lines.lines().find_map(|line| {
        let mut parts = line.rsplitn(3, ',');
        let own: u64 = parts.next()?.parse().ok()?;
        let own_type: u32 = parts.next()?.parse().ok()?;
        let name = parts.next()?;
        ((own_type, own) == (event_type, config) && !name.is_empty()).then_some(name)
    })
}
