//! A file that was mapped, as far as it is read.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;

use crate::call_frames::{CallFrames, Rules};
use crate::demangled::{Style, demangle_as};
use crate::elf::ElfImage;
use crate::kernel;
use crate::lines::Lines;
use crate::locate::Located;
use crate::no_names::NoNames;
use crate::recorded_symbols::RecordedTable;

/// The file that is read for one that was mapped: that itself, or a copy of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ReadFile {
    /// Its path.
    pub path: PathBuf,
    /// Its build ID.
    pub build_id: Option<Vec<u8>>,
    /// Offset at which it begins in the file that was mapped, in bytes: it may lie in an archive.
    pub from: u64,
}

/// A file that was mapped.
#[derive(Debug)]
pub(crate) struct Image {
    /// Its path, or a name in brackets.
    pub(crate) object: Arc<str>,
    /// True for memory that is of no file.
    pub(crate) is_anonymous: bool,
    pub(crate) elf: Option<ElfImage>,
    pub(crate) lines: Option<Lines>,
    /// Its functions, where the recording lists them and the file is not here.
    pub(crate) recorded: Option<Arc<RecordedTable>>,
    /// Why functions in it have no names, where they have none.
    pub(crate) why: Option<NoNames>,
    /// The file that is read; none for the vDSO, which is in memory.
    pub(crate) read: Option<Arc<ReadFile>>,
    /// Its call frame information, read when it is first asked for.
    call_frames: Option<Option<CallFrames>>,
    /// Offset at which it begins in the file that was mapped.
    from: u64,
    /// The names of its functions by their positions, made readable once.
    names: HashMap<usize, Arc<str>>,
}

impl Image {
    /// Returns one of which nothing is known.
    pub(crate) fn unknown(object: String, is_anonymous: bool) -> Self {
        Self {
            object: object.into(),
            is_anonymous,
            elf: None,
            lines: None,
            recorded: None,
            why: None,
            read: None,
            call_frames: None,
            from: 0,
            names: HashMap::default(),
        }
    }

    /// Returns it with the reason why functions in it have no names, where they have none.
    pub(crate) fn without_names(self, why: Option<NoNames>) -> Self {
        Self { why, ..self }
    }

    /// Returns one whose functions the recording lists.
    pub(crate) fn of_recording(object: String, recorded: Arc<RecordedTable>) -> Self {
        Self {
            recorded: Some(recorded),
            ..Self::unknown(object, false)
        }
    }

    /// Returns the vDSO of the kernel that runs.
    pub(crate) fn vdso(object: String) -> Self {
        let bytes = kernel::vdso();
        let elf = bytes
            .clone()
            .and_then(|bytes| ElfImage::read(Cursor::new(bytes)));
        Self {
            elf,
            call_frames: Some(bytes.and_then(CallFrames::of_bytes)),
            ..Self::unknown(object, false)
        }
    }

    /// Returns a file that was found, which begins at an offset in the one that was mapped.
    pub(crate) fn of_file(object: String, located: Located, from: u64, with_lines: bool) -> Self {
        let Located { path, elf, .. } = located;
        let lines = with_lines
            .then(|| Lines::open(&path, elf.debug_file()))
            .flatten();
        let build_id = elf.build_id().map(<[u8]>::to_owned);
        Self {
            lines,
            elf: Some(elf),
            read: Some(Arc::new(ReadFile {
                path,
                build_id,
                from,
            })),
            from,
            ..Self::unknown(object, false)
        }
    }

    /// Returns the address that the file gives to what is at an offset of the one that was mapped.
    pub(crate) fn address_at(&self, offset: u64) -> Option<u64> {
        self.elf
            .as_ref()?
            .address_at(offset.checked_sub(self.from)?)
    }

    /// Returns the rules that restore the registers of a caller at an address of the file.
    pub(crate) fn rules_at(&mut self, address: u64) -> Option<Arc<Rules>> {
        let (read, elf) = (self.read.as_deref(), self.elf.as_ref()?);
        let frames = self
            .call_frames
            .get_or_insert_with(|| CallFrames::open(&read?.path, elf.debug_file()));
        frames.as_mut()?.at(address)
    }

    /// Returns the name of the function at an address, and how far into it that is.
    pub(crate) fn function_at(&mut self, address: u64, style: Style) -> Option<(Arc<str>, u64)> {
        let symbol = self.elf.as_ref()?.find(address)?;
        let name = self.names.entry(symbol.index);
        let name = name
            .or_insert_with(|| demangle_as(symbol.name, style).into())
            .clone();
        Some((name, address - symbol.start))
    }
    /// Returns the name of the function that the recording lists at an address in memory and an offset in the file, and how
    /// far into it that is.
    pub(crate) fn recorded_at(
        &mut self,
        address: u64,
        offset: u64,
        style: Style,
    ) -> Option<(Arc<str>, u64)> {
        let (symbol, into) = self.recorded.as_ref()?.find(address, offset)?;
        let name = self.names.entry(symbol.index);
        let name = name
            .or_insert_with(|| demangle_as(symbol.name, style).into())
            .clone();
        Some((name, into))
    }
}
