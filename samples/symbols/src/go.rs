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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::SymbolTable;

    const VERSIONS: [u32; 4] = [SINCE_1_2, SINCE_1_16, SINCE_1_18, SINCE_1_20];
    const TEXT: u64 = 0x1234_5600;
    /// Functions by their distances from the beginning of the code, and where the last one ends.
    const FUNCTIONS: [(u64, &str); 3] = [(0, "main.main"), (0x1_0340, "f"), (0x1_0341, "main.g")];
    const END: u64 = 0x2_0000;
    /// Bytes of an entry of details that are not read here.
    const REST: usize = 12;

    /// The form of a table, and the address that its header gives to the code.
    #[derive(Debug, Clone, Copy)]
    struct Form {
        magic: u32,
        is_big: bool,
        pointer: u8,
        text: u64,
    }

    impl Form {
        /// Every form whose header leaves the address of the code out.
        fn all() -> impl Iterator<Item = Self> {
            let orders = VERSIONS.into_iter().flat_map(|magic| {
                let pointers = [(false, 4), (false, 8), (true, 4), (true, 8)];
                pointers.map(|(is_big, pointer)| (magic, is_big, pointer))
            });
            orders.map(|(magic, is_big, pointer)| Self {
                magic,
                is_big,
                pointer,
                text: 0,
            })
        }

        fn is_relative(self) -> bool {
            matches!(self.magic, SINCE_1_18 | SINCE_1_20)
        }

        /// Returns the number of fields of the header that are pointers.
        fn fields(self) -> usize {
            match self.magic {
                SINCE_1_2 => 1,
                SINCE_1_16 => 7,
                _ => 8,
            }
        }

        /// Returns the bytes of a field of an entry.
        fn field(self) -> usize {
            match self.is_relative() {
                true => 4,
                false => self.pointer.into(),
            }
        }

        /// Returns where the entries of functions begin.
        fn functions_at(self) -> usize {
            let header = 8 + self.fields() * usize::from(self.pointer);
            match self.magic {
                SINCE_1_2 => header,
                _ => header + names().len(),
            }
        }

        /// Returns where the details of a function are.
        fn details_at(self, function: usize) -> usize {
            let entries = (2 * FUNCTIONS.len() + 1) * self.field();
            self.functions_at() + entries + function * (self.field() + 4 + REST)
        }

        fn put(self, bytes: &mut [u8], at: usize, len: usize, number: u64) {
            let bytes = &mut bytes[at..at + len];
            match self.is_big {
                true => bytes.copy_from_slice(&number.to_be_bytes()[8 - len..]),
                false => bytes.copy_from_slice(&number.to_le_bytes()[..len]),
            }
        }

        /// Sets a pointer of the header.
        fn put_in_header(self, bytes: &mut [u8], index: usize, number: u64) {
            let pointer = self.pointer.into();
            self.put(bytes, 8 + index * pointer, pointer, number);
        }

        /// Returns the table of [`FUNCTIONS`] as Go writes it.
        fn table(self) -> Vec<u8> {
            let details_end = self.details_at(FUNCTIONS.len());
            let names = names();
            let (names_at, base, len) = match self.magic {
                SINCE_1_2 => (details_end, 0, details_end + names.len()),
                _ => {
                    let at = self.functions_at();
                    (at - names.len(), at, details_end)
                }
            };
            let mut bytes = vec![0; len];
            self.put(&mut bytes, 0, 4, self.magic.into());
            bytes[6..8].copy_from_slice(&[1, self.pointer]);
            self.put_in_header(&mut bytes, 0, FUNCTIONS.len() as u64);
            let places: &[(usize, usize)] = match self.magic {
                SINCE_1_2 => &[],
                SINCE_1_16 => &[(2, names_at), (6, base)],
                _ => &[(2, self.text as usize), (3, names_at), (7, base)],
            };
            for (index, number) in places {
                self.put_in_header(&mut bytes, *index, *number as u64);
            }
            bytes[names_at..names_at + names.len()].copy_from_slice(&names);
            let field = self.field();
            let address = |distance| match self.is_relative() {
                true => distance,
                false => TEXT + distance,
            };
            let mut name_at = match self.magic {
                SINCE_1_2 => names_at,
                _ => 0,
            };
            for (i, (distance, name)) in FUNCTIONS.into_iter().enumerate() {
                let (entry, details) = (self.functions_at() + 2 * i * field, self.details_at(i));
                self.put(&mut bytes, entry, field, address(distance));
                self.put(&mut bytes, entry + field, field, (details - base) as u64);
                self.put(&mut bytes, details, field, address(distance));
                self.put(&mut bytes, details + field, 4, name_at as u64);
                bytes[details + field + 4..][..REST].fill(0xee);
                name_at += name.len() + 1;
            }
            let end = self.functions_at() + 2 * FUNCTIONS.len() * field;
            self.put(&mut bytes, end, field, address(END));
            bytes
        }
    }

    fn names() -> Vec<u8> {
        let names = FUNCTIONS.map(|(_, name)| [name.as_bytes(), &[0]].concat());
        names.concat()
    }

    fn read(table: &[u8]) -> SymbolTable {
        let mut builder = TableBuilder::default();
        add_functions(table, TEXT, &mut builder);
        builder.build()
    }

    /// Returns the function at each address where one should begin, with its bounds.
    fn found(table: &SymbolTable, text: u64) -> Vec<(u64, u64, String)> {
        let starts = FUNCTIONS.iter().map(|(distance, _)| text + distance);
        let found = starts.filter_map(|start| table.find(start));
        found
            .map(|symbol| (symbol.start - text, symbol.end - text, symbol.name.into()))
            .collect()
    }

    fn expected() -> Vec<(u64, u64, String)> {
        let ends = FUNCTIONS.iter().skip(1).map(|(start, _)| *start);
        let pairs = FUNCTIONS.iter().zip(ends.chain([END]));
        let all = pairs.map(|((start, name), end)| (*start, end, (*name).to_owned()));
        all.collect()
    }

    #[test]
    fn functions_of_each_version_are_where_its_table_says() {
        for form in Form::all() {
            let table = read(&form.table());
            assert_eq!(found(&table, TEXT), expected(), "{form:?}");
            assert_eq!(table.len(), FUNCTIONS.len(), "{form:?}");
            assert_eq!(table.find(TEXT + END), None, "{form:?}");
        }
    }

    #[test]
    fn an_address_of_the_code_in_the_header_goes_before_that_of_the_section() {
        for form in Form::all().filter(|form| form.is_relative()) {
            let text = 0x40_1000;
            let table = read(&Form { text, ..form }.table());
            assert_eq!(found(&table, text), expected(), "{form:?}");
            assert_eq!(table.find(TEXT), None, "{form:?}");
        }
    }

    #[test]
    fn a_table_that_ends_too_early_has_the_functions_that_are_whole() {
        for form in Form::all() {
            let whole = form.table();
            for len in 0..whole.len() {
                let table = read(&whole[..len]);
                for (i, (start, end, _)) in expected().into_iter().enumerate() {
                    let found = table.find(TEXT + start);
                    let bounds = found.map(|found| (found.start - TEXT, found.end - TEXT));
                    assert!(bounds.is_none_or(|bounds| bounds == (start, end)));
                    // With the names first, a function needs the bytes up to the place of its own.
                    let needed = form.details_at(i) + form.field() + 4;
                    let is_there = form.magic != SINCE_1_2 && len >= needed;
                    assert!(bounds.is_some() || !is_there, "{form:?} {len} {i}");
                    assert!(bounds.is_none() || len >= needed, "{form:?} {len} {i}");
                }
            }
        }
    }

    #[test]
    fn heads_that_no_version_writes_have_no_functions() {
        for form in Form::all() {
            for (at, byte) in [(4, 1), (5, 1), (6, 0), (6, 3), (7, 2), (7, 16)] {
                let mut table = form.table();
                table[at] = byte;
                assert_eq!(read(&table).len(), 0, "{form:?} {at}");
            }
            // A version between those that are known.
            let mut table = form.table();
            form.put(&mut table, 0, 4, 0xffff_fff9);
            assert_eq!(read(&table).len(), 0, "{form:?}");
            for quantum in [2, 4] {
                let mut table = form.table();
                table[6] = quantum;
                assert_eq!(found(&read(&table), TEXT), expected(), "{form:?}");
            }
        }
    }

    #[test]
    fn more_functions_than_the_bytes_can_hold_are_none() {
        for form in Form::all() {
            let mut table = form.table();
            // Bytes behind the table are no entries.
            table.resize(table.len().next_multiple_of(2 * form.field()), 0);
            let most = table.len() / (2 * form.field());
            for (count, is_read) in [(most, true), (most + 1, false), (u32::MAX as usize, false)] {
                form.put_in_header(&mut table, 0, count as u64);
                let read = read(&table);
                assert_eq!(read.len() >= FUNCTIONS.len(), is_read, "{form:?}");
                assert_eq!(read.len() == 0, !is_read, "{form:?}");
            }
        }
    }

    /// Sets one number of the second function, and expects the others alone.
    #[track_caller]
    fn second_is_gone(form: Form, at: usize, len: usize, number: u64) {
        let mut table = form.table();
        form.put(&mut table, at, len, number);
        let names: Vec<_> = found(&read(&table), TEXT);
        let names: Vec<_> = names.iter().map(|(.., name)| name.as_str()).collect();
        assert_eq!(names, ["main.main", "main.g"], "{form:?}");
    }

    #[test]
    fn a_function_that_makes_no_sense_is_left_out() {
        for form in Form::all() {
            let (field, all) = (form.field(), u64::MAX);
            let entry = form.functions_at() + 2 * field;
            let details = form.details_at(1);
            let len = form.table().len() as u64;
            // Its details are behind the table, as far as numbers go.
            second_is_gone(form, entry + field, field, all);
            second_is_gone(form, entry + field, field, len - field as u64 - 3);
            // Its name is.
            second_is_gone(form, details + field, 4, all);
            second_is_gone(form, details + field, 4, len);
            // It begins where the next one does: the address is that of the third.
            let third = match form.is_relative() {
                true => FUNCTIONS[2].0,
                false => TEXT + FUNCTIONS[2].0,
            };
            let mut table = form.table();
            form.put(&mut table, entry, field, third);
            let starts: Vec<_> = found(&read(&table), TEXT);
            let first = (0, FUNCTIONS[2].0, "main.main".to_owned());
            // The first one goes on to there.
            assert_eq!(starts[0], first, "{form:?}");
            assert_eq!(read(&table).len(), 2, "{form:?}");
            // It would end before it begins.
            form.put(&mut table, entry, field, third + 1);
            assert_eq!(read(&table).len(), 2, "{form:?}");
        }
    }

    #[test]
    fn places_beyond_all_numbers_have_no_functions() {
        for form in Form::all().filter(|form| form.magic != SINCE_1_2) {
            let of_names = if form.is_relative() { 3 } else { 2 };
            for index in [of_names, form.fields() - 1] {
                let mut table = form.table();
                form.put_in_header(&mut table, index, u64::MAX);
                assert_eq!(read(&table).len(), 0, "{form:?} {index}");
            }
            if form.is_relative() && form.pointer == 8 {
                let mut table = form.table();
                form.put_in_header(&mut table, 2, u64::MAX - 0x1_0000);
                // The first one ends before the end of all addresses.
                assert_eq!(read(&table).len(), 0, "{form:?}");
            }
        }
    }
}
