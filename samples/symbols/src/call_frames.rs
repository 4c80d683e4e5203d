//! Call frame information of a file: where each function keeps its caller's registers (DWARF 5, section 6.4; the
//! Linux Standard Base, "Exception Frames").

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, Encoding,
    EndianArcSlice, Expression, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindExpression, UnwindOffset, UnwindSection, Vendor,
};
use object::elf;
use object::read::{Object, ObjectSection, ReadCache, ReadCacheOps};

use crate::go;
use crate::input::input_file;
use crate::section;

/// Longer descriptions of one function are left out: the rules at an address are found by going through them.
const LONGEST_DESCRIPTION: usize = 64 << 10;

/// Bytes of a section.
pub(crate) type Bytes = EndianArcSlice<LittleEndian>;

/// Rules that restore the registers of a caller at an address.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) cfa: Rule,
    /// Of the registers that have rules of their own.
    pub(crate) registers: Vec<(Register, Rule)>,
    /// The register that has the return address.
    pub(crate) return_address: Register,
    /// True in a frame that a signal made: it has interrupted its caller, which made no call.
    pub(crate) is_signal: bool,
    /// True in programs of Go, whose functions have a frame pointer in each frame that they make, and say nothing of it.
    pub(crate) is_of_go: bool,
    /// Encoding of expressions.
    pub(crate) encoding: Encoding,
}

/// Place of a register of the caller.
#[derive(Debug)]
pub(crate) enum Rule {
    /// Nowhere.
    Undefined,
    /// In itself.
    SameValue,
    /// In another register, to which an offset is added.
    Register(Register, i64),
    /// In memory, so far from the canonical frame address.
    Offset(i64),
    /// It is the canonical frame address and an offset.
    ValueOffset(i64),
    /// In memory, at the address that an expression has.
    Expression(Expression<Bytes>),
    /// It is the value of an expression.
    ValueExpression(Expression<Bytes>),
}

/// The call frame information of a file. Rules that were found are kept.
#[derive(Debug)]
pub(crate) struct CallFrames {
    eh_frame: Option<FrameSection<EhFrame<Bytes>>>,
    debug_frame: Option<FrameSection<DebugFrame<Bytes>>>,
    found: HashMap<u64, Option<Arc<Rules>>>,
    is_of_go: bool,
}

impl CallFrames {
    /// Reads that of a file, and of the file where its debug information lies apart.
    pub(crate) fn open(path: &Path, debug_file: Option<&Path>) -> Option<Self> {
        let at = |path: &Path| Self::read(input_file(path).ok()??);
        let own = at(path);
        let is_whole = own.as_ref().is_some_and(|own| own.debug_frame.is_some());
        let apart = debug_file.filter(|_| !is_whole).and_then(at);
        match (own, apart) {
            (Some(mut own), Some(apart)) => {
                own.debug_frame = own.debug_frame.or(apart.debug_frame);
                Some(own)
            }
            (own, apart) => own.or(apart),
        }
    }

    /// Reads that of a file in memory.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        Self::read(Cursor::new(bytes))
    }

    /// Reads the `.eh_frame` of code in memory, which lies at an address, for the architecture with a number of ELF's.
    pub(crate) fn of_code(bytes: &[u8], at: u64, machine: u16) -> Option<Self> {
        let vendor = match elf::Machine(machine) {
            elf::EM_AARCH64 => Vendor::AArch64,
            elf::EM_X86_64 => Vendor::Default,
            _ => return None,
        };
        let bytes = without_omitted_lsda(bytes).unwrap_or_else(|| bytes.to_vec());
        let mut section = EhFrame::from(Bytes::new(bytes.into(), LittleEndian));
        section.set_vendor(vendor);
        let bases = BaseAddresses::default().set_eh_frame(at);
        Some(Self {
            eh_frame: Some(FrameSection::new(section, bases)),
            debug_frame: None,
            found: HashMap::new(),
            is_of_go: false,
        })
    }

    fn read(from: impl ReadCacheOps) -> Option<Self> {
        let cache = ReadCache::new(from);
        let file = object::File::parse(&cache).ok()?;
        if !file.is_64() || !file.is_little_endian() {
            return None;
        }
        let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_eh_frame_hdr(address(".eh_frame_hdr"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let vendor = match file.architecture() {
            object::Architecture::Aarch64 => Vendor::AArch64,
            _ => Vendor::Default,
        };
        let bytes = |name| {
            let content = section::named(&file, name).ok().flatten()?;
            (!content.is_empty()).then(|| Bytes::new(content, LittleEndian))
        };
        let eh_frame = bytes(".eh_frame").map(|bytes| {
            let mut section = EhFrame::from(bytes);
            section.set_vendor(vendor);
            FrameSection::new(section, bases.clone())
        });
        let debug_frame = bytes(".debug_frame").map(|bytes| {
            let mut section = DebugFrame::from(bytes);
            section.set_vendor(vendor);
            FrameSection::new(section, bases)
        });
        (eh_frame.is_some() || debug_frame.is_some()).then(|| Self {
            eh_frame,
            debug_frame,
            found: HashMap::new(),
            is_of_go: go::TABLE
                .iter()
                .any(|name| file.section_by_name(name).is_some()),
        })
    }

    /// Returns the rules at an address of the file.
    pub(crate) fn at(&mut self, address: u64) -> Option<Arc<Rules>> {
        if let Some(found) = self.found.get(&address) {
            return found.clone();
        }
        let in_eh_frame = self.eh_frame.as_ref().and_then(|table| table.at(address));
        let in_debug_frame = || self.debug_frame.as_ref()?.at(address);
        let rules = in_eh_frame.or_else(in_debug_frame).map(|rules| {
            let is_of_go = self.is_of_go;
            Arc::new(Rules { is_of_go, ..rules })
        });
        self.found.insert(address, rules.clone());
        rules
    }
}

/// Returns a section whose first common part says that descriptions have no pointer to data of the language, without its saying
/// so: V8 writes it, and gimli then reads no description. `None` if it says no such thing.
fn without_omitted_lsda(bytes: &[u8]) -> Option<Vec<u8>> {
    /// Bytes before the augmentation: length, mark of a common part, version.
    const BEFORE: usize = 4 + 4 + 1;
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let end = len.checked_add(4)?;
    let rest = bytes.get(..end)?.get(BEFORE..)?.strip_prefix(b"zLR\0")?;
    // Alignments of code and data, the number of the return address: each ends with a byte below 128.
    let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte < 128);
    let numbers = ends.nth(2)?.0 + 1;
    let [2, omitted, _, ..] = rest.get(numbers..)? else {
        return None;
    };
    if gimli::DwEhPe(*omitted) != gimli::DW_EH_PE_omit {
        return None;
    }
    let mut without = [
        &bytes[..BEFORE],
        b"zR\0",
        &rest[..numbers],
        &[1],
        &rest[numbers + 2..],
    ]
    .concat();
    without.resize(end, gimli::DW_CFA_nop.0);
    without.extend_from_slice(&bytes[end..]);
    Some(without)
}

/// One section, with its descriptions of functions by their addresses.
#[derive(Debug)]
struct FrameSection<S> {
    section: S,
    bases: BaseAddresses,
    /// Parts that descriptions have in common (CIE), by offset.
    common: HashMap<usize, CommonInformationEntry<Bytes>>,
    /// First address, the address behind the last, and offset of each description (FDE), in the order of addresses.
    functions: Vec<(u64, u64, usize)>,
}

impl<S: UnwindSection<Bytes>> FrameSection<S> {
    /// Goes through a section, as far as it makes sense.
    fn new(section: S, bases: BaseAddresses) -> Self {
        let mut common = HashMap::new();
        let mut functions = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            match entry {
                CieOrFde::Cie(cie) => {
                    common.insert(cie.offset(), cie);
                }
                // One that refers to anything but what came before it would have that read again and again.
                CieOrFde::Fde(fde) if fde.entry_len() <= LONGEST_DESCRIPTION => {
                    let parsed = fde.parse(|_, _, offset| known(&common, offset));
                    if let Ok(fde) = parsed
                        && fde.initial_address() < fde.end_address()
                    {
                        functions.push((fde.initial_address(), fde.end_address(), fde.offset()));
                    }
                }
                CieOrFde::Fde(_) => {}
            }
        }
        functions.sort_unstable();
        functions.shrink_to_fit();
        Self {
            section,
            bases,
            common,
            functions,
        }
    }

    fn at(&self, address: u64) -> Option<Rules> {
        let behind = self
            .functions
            .partition_point(|(start, ..)| *start <= address);
        let (_, end, offset) = *self.functions.get(behind.checked_sub(1)?)?;
        if address >= end {
            return None;
        }
        let fde = self
            .section
            .fde_from_offset(&self.bases, offset.into(), |_, _, offset| {
                known(&self.common, offset)
            });
        let fde = fde.ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&self.section, &self.bases, &mut context, address)
            .ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Rule::Register(*register, *offset),
            CfaRule::Expression(expression) => Rule::ValueExpression(self.expression(expression)?),
        };
        let registers = row.registers();
        let registers = registers.map(|(register, rule)| {
            let rule = match rule {
                RegisterRule::SameValue => Rule::SameValue,
                RegisterRule::Offset(offset) => Rule::Offset(*offset),
                RegisterRule::ValOffset(offset) => Rule::ValueOffset(*offset),
                RegisterRule::Register(other) => Rule::Register(*other, 0),
                RegisterRule::Expression(e) => Rule::Expression(self.expression(e)?),
                RegisterRule::ValExpression(e) => Rule::ValueExpression(self.expression(e)?),
                _ => Rule::Undefined,
            };
            Some((*register, rule))
        });
        Some(Rules {
            cfa,
            registers: registers.collect::<Option<_>>()?,
            return_address: fde.cie().return_address_register(),
            is_signal: fde.is_signal_trampoline(),
            is_of_go: false,
            encoding: fde.cie().encoding(),
        })
    }

    fn expression(&self, expression: &UnwindExpression<usize>) -> Option<Expression<Bytes>> {
        expression.get(&self.section).ok()
    }
}

/// Returns the part that descriptions have in common, if it came before them.
fn known<O: UnwindOffset<usize>>(
    common: &HashMap<usize, CommonInformationEntry<Bytes>>,
    offset: O,
) -> gimli::Result<CommonInformationEntry<Bytes>> {
    let offset = offset.into();
    let cie = common.get(&offset).cloned();
    cie.ok_or(gimli::Error::NotCiePointer(offset as u64))
}

#[cfg(test)]
mod tests;
