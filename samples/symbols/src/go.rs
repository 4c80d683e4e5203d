//! Functions of Go programs by the table of Go's runtime, which stays in programs that are stripped
//! (`src/debug/gosym/pclntab.go` of Go).

use crate::table::{Extent, TableBuilder};

/// The section of the table, of programs at fixed addresses and others.
pub(crate) const TABLE: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// The first word of a table.
const SINCE_1_2: u32 = 0xffff_fffb;
const SINCE_1_16: u32 = 0xffff_fffa;
const SINCE_1_18: u32 = 0xffff_fff0;
const SINCE_1_20: u32 = 0xffff_fff1;

/// Bytes of a table, little or big endian.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    bytes: &'a [u8],
    is_big: bool,
    /// Bytes of a pointer.
    pointer: usize,
}

impl<'a> Bytes<'a> {
    fn number(self, at: usize, len: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(len)?)?;
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.is_big {
            true => bytes.iter().fold(0, push),
            false => bytes.iter().rev().fold(0, push),
        })
    }

    /// Returns a pointer of the header, which begins with eight bytes.
    fn of_header(self, index: usize) -> Option<usize> {
        self.number(8 + index * self.pointer, self.pointer)?
            .try_into()
            .ok()
    }
}

/// Places in a table.
struct Layout {
    /// The entries of the functions, in the order of their addresses.
    functions: usize,
    count: usize,
    /// Base of the offsets of entries.
    details: usize,
    names: usize,
    /// Base of the addresses.
    text: u64,
    /// Bytes of the address and of the offset in an entry.
    field: usize,
}

/// Adds the functions of a table in a file whose section `.text` is at an address. Nothing is added of a table that
/// makes no sense.
pub(crate) fn add_functions(table: &[u8], text: u64, builder: &mut TableBuilder) {
    let Some((bytes, layout)) = layout_of(table, text) else {
        return;
    };
    // Names are kept as the table has them: each may be that of several functions.
    let names = builder.add_names(table);
    for entry in 0..layout.count {
        if let Some((start, len, name)) = function(bytes, &layout, entry) {
            builder.add_named(start, Extent::Known(len), 0, names + name);
        }
    }
}

/// Returns the address, length and place of the name of a function.
fn function(bytes: Bytes<'_>, layout: &Layout, entry: usize) -> Option<(u64, u64, usize)> {
    let at = layout.functions.checked_add(entry * 2 * layout.field)?;
    let address = |at: usize| layout.text.checked_add(bytes.number(at, layout.field)?);
    let start = address(at)?;
    // Behind the last entry is the end of its function.
    let end = address(at + 2 * layout.field)?;
    let details = bytes.number(at + layout.field, layout.field)?;
    let details = layout.details.checked_add(details.try_into().ok()?)?;
    let name = bytes.number(details.checked_add(layout.field)?, 4)?;
    let name = layout.names.checked_add(name.try_into().ok()?)?;
    bytes.bytes.get(name)?;
    let len = end.checked_sub(start).filter(|len| *len > 0)?;
    Some((start, len, name))
}

fn layout_of(table: &[u8], text: u64) -> Option<(Bytes<'_>, Layout)> {
    let [a, b, c, d, 0, 0, 1 | 2 | 4, pointer @ (4 | 8), ..] = *table else {
        return None;
    };
    let word = [a, b, c, d];
    let is_magic = |word| matches!(word, SINCE_1_2 | SINCE_1_16 | SINCE_1_18 | SINCE_1_20);
    let (magic, is_big) = match u32::from_le_bytes(word) {
        magic if is_magic(magic) => (magic, false),
        _ => (u32::from_be_bytes(word), true),
    };
    let bytes = Bytes {
        bytes: table,
        is_big,
        pointer: pointer.into(),
    };
    let count = bytes.of_header(0)?;
    let layout = match magic {
        SINCE_1_2 => Layout {
            functions: 8 + bytes.pointer,
            details: 0,
            count,
            names: 0,
            text: 0,
            field: bytes.pointer,
        },
        SINCE_1_16 => Layout {
            functions: bytes.of_header(6)?,
            details: bytes.of_header(6)?,
            count,
            names: bytes.of_header(2)?,
            text: 0,
            field: bytes.pointer,
        },
        SINCE_1_18 | SINCE_1_20 => Layout {
            functions: bytes.of_header(7)?,
            details: bytes.of_header(7)?,
            count,
            names: bytes.of_header(3)?,
            // Later versions and position-independent programs leave it 0.
            text: match bytes.of_header(2)? {
                0 => text,
                start => start as u64,
            },
            field: 4,
        },
        _ => return None,
    };
    // An entry is two fields.
    let most = table.len() / (2 * layout.field);
    (layout.count <= most).then_some((bytes, layout))
}
