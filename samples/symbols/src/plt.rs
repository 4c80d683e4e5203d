//! Stubs of the procedure linkage table, by which functions of other files are called: `rand@plt`.

use foldhash::HashMap;
use object::read::elf::{ElfFile, FileHeader};
use object::read::{
    Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadRef, RelocationTarget,
};
use object::{Architecture, Endianness};

use crate::table::{Extent, SymbolTable, TableBuilder};

/// The sections that linkers put stubs in.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];
/// No file has so many relocations that are stubs' or may be.
const MOST_RELOCATIONS: usize = 1 << 22;
/// Bytes of a stub.
const STUB: u64 = 16;

/// Returns the stubs of a file, which load the address of a function from a place that the dynamic linker fills in:
/// its relocation names the function.
pub(crate) fn stubs_of<'data, Elf, R>(file: &ElfFile<'data, Elf, R>) -> Option<SymbolTable>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let place_of = match file.architecture() {
        Architecture::X86_64 => x86_64,
        Architecture::Aarch64 => aarch64,
        _ => return None,
    };
    let sections: Vec<_> = SECTIONS
        .iter()
        .filter_map(|name| file.section_by_name(name))
        .collect();
    if sections.is_empty() {
        return None;
    }
    let symbols = file.dynamic_symbol_table()?;
    let relocations = file.dynamic_relocations()?.take(MOST_RELOCATIONS);
    let names: HashMap<u64, _> = relocations
        .filter_map(|(place, relocation)| match relocation.target() {
            RelocationTarget::Symbol(symbol) => Some((place, symbol)),
            _ => None,
        })
        .collect();
    let mut builder = TableBuilder::default();
    for section in sections {
        let (address, code) = (section.address(), section.data().ok()?);
        // Stubs of `.plt.got` may be half as long.
        let len = match section.name() {
            Ok(".plt.got") if !code.starts_with(&ENDBR64) => STUB / 2,
            _ => STUB,
        };
        for (index, stub) in code.chunks_exact(len as usize).enumerate() {
            let start = address.checked_add(index as u64 * len)?;
            let name = place_of(stub, start)
                .and_then(|place| names.get(&place))
                .and_then(|symbol| symbols.symbol_by_index(*symbol).ok()?.name().ok());
            if let Some(name) = name {
                builder.add(start, Extent::Known(len), 0, &format!("{name}@plt"));
            }
        }
    }
    Some(builder.build())
}

/// The instruction that indirect branches may go to.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Returns the place that a stub of x86-64 jumps by: `jmp *OFFSET(%rip)`.
fn x86_64(stub: &[u8], address: u64) -> Option<u64> {
    let at = stub.windows(2).position(|code| code == [0xff, 0x25])?;
    let offset = i32::from_le_bytes(*stub.get(at + 2..)?.first_chunk()?);
    let next = address.checked_add(at as u64 + 6)?;
    Some(next.wrapping_add_signed(offset.into()))
}

/// Returns the place that a stub of AArch64 loads from: `adrp x16, PAGE; ldr x17, [x16, #OFFSET]`, perhaps after `bti c`.
fn aarch64(stub: &[u8], address: u64) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(*stub.get(at..)?.first_chunk()?));
    let at = [0, 4]
        .into_iter()
        .find(|at| word(*at).is_some_and(|word| word & 0x9f00_001f == 0x9000_0010))?;
    let (adrp, ldr) = (word(at)?, word(at + 4)?);
    if ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    // A signed number of 21 bits.
    let pages = i64::from((pages << 11) as i32 >> 11);
    let page = ((address + at as u64) & !0xfff).wrapping_add_signed(pages << 12);
    page.checked_add(u64::from(ldr >> 10 & 0xfff) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_say_where_they_jump() {
        // As GNU ld writes them: `endbr64; bnd jmp *0x2fe5(%rip)`, and `jmp *0x2fe2(%rip); push $0`.
        let marked = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xe5, 0x2f, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(x86_64(&marked, 0x1030), Some(0x1030 + 11 + 0x2fe5));
        let plain = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9];
        assert_eq!(x86_64(&plain, 0x1030), Some(0x4018));
        assert_eq!(x86_64(&[0x90; 16], 0x1030), None);
        // `adrp x16, 0x10000; ldr x17, [x16, #8]; add x16, x16, #8; br x17` at 0x5f0.
        let arm = [0x9000_0090u32, 0xf940_0611, 0x9100_2210, 0xd61f_0220];
        let arm: Vec<u8> = arm.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(aarch64(&arm, 0x5f0), Some(0x10008));
    }
}
