//! Symbols in the order of their addresses.

use std::cmp::{Ordering, Reverse};
use std::ffi::CStr;

/// No name is longer than this: what takes longer to read than to write is not what it seems.
pub(crate) const LONGEST_NAME: usize = 64 << 10;
/// As much of a name decides which of several for one address stays.
const COMPARED: usize = 256;

/// A function of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    /// Its position in the table: the same for the same function.
    pub(crate) index: usize,
    /// Its first address.
    pub(crate) start: u64,
    /// The first address behind it.
    pub(crate) end: u64,
    /// Its name, as the file has it.
    pub(crate) name: &'a str,
}

/// Functions, found by an address in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolTable {
    /// Ended by NUL; where several share their ends they are kept once.
    pub(crate) names: Vec<u8>,
    entries: Vec<SymbolRange>,
}

#[derive(Debug, Clone, Copy)]
struct SymbolRange {
    start: u64,
    /// The first address that does not belong to it any more.
    end: u64,
    /// The entry around it that ends later, if there is one.
    around: Option<u32>,
    name: u32,
}

/// Collects the symbols of a [`SymbolTable`] in any order.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    names: Vec<u8>,
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    start: u64,
    extent: Extent,
    name: u32,
    /// Which of several names for one address is taken: the largest.
    rank: u8,
}

/// Length of a symbol, or its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many bytes.
    Known(u64),
    /// To the next symbol, and so many bytes at most.
    ToNext(u64),
}

impl TableBuilder {
    /// Adds a symbol. Of several at the same address the one with the largest `rank` stays.
    pub(crate) fn add(&mut self, start: u64, extent: Extent, rank: u8, name: &str) {
        let at = self.add_names(name.as_bytes());
        self.names.push(0);
        self.add_named(start, extent, rank, at);
    }

    /// Adds bytes of which parts are names, and returns where they begin.
    pub(crate) fn add_names(&mut self, names: &[u8]) -> usize {
        let from = self.names.len();
        self.names.extend_from_slice(names);
        from
    }

    /// Adds a symbol as [`add`](Self::add), whose name was added before, so that names that overlap
    /// take no more room.
    pub(crate) fn add_named(&mut self, start: u64, extent: Extent, rank: u8, name: usize) {
        if let Ok(name) = u32::try_from(name) {
            self.found.push(Found {
                start,
                extent,
                name,
                rank,
            });
        }
    }

    /// Returns the table.
    pub(crate) fn build(mut self) -> SymbolTable {
        let names = std::mem::take(&mut self.names);
        // Stable: of equals the first of the file stays.
        self.found.sort_by(|a, b| by_place(a, b, &names));
        self.found.dedup_by_key(|symbol| symbol.start);
        let starts = self.found.iter().skip(1).map(|symbol| symbol.start);
        let nexts = starts.chain([u64::MAX]);
        let mut entries: Vec<SymbolRange> = Vec::with_capacity(self.found.len());
        for (symbol, next) in self.found.iter().zip(nexts) {
            let end = match symbol.extent {
                Extent::Known(len) => symbol.start.saturating_add(len),
                Extent::ToNext(most) => next.min(symbol.start.saturating_add(most)),
            };
            let mut around = entries.len().checked_sub(1);
            while let Some(i) = around
                && entries[i].end <= symbol.start
            {
                around = entries[i].around.map(|i| i as usize);
            }
            entries.push(SymbolRange {
                start: symbol.start,
                end,
                around: around.and_then(|i| u32::try_from(i).ok()),
                name: symbol.name,
            });
        }
        SymbolTable { names, entries }
    }
}

/// Compares by address; of equals those that know their length come first, then the name with the fewest underscores
/// before it, then the longest, as perf chooses (`choose_best_symbol`, `tools/perf/util/symbol.c`).
fn by_place(a: &Found, b: &Found, names: &[u8]) -> Ordering {
    let names = || {
        [a, b].map(|symbol| {
            let name = name_at(names, symbol.name, COMPARED);
            let underscores = name.iter().take_while(|byte| **byte == b'_').count();
            (underscores, Reverse(name.len()))
        })
    };
    let known = |s: &Found| Reverse((matches!(s.extent, Extent::Known(_)), s.rank));
    let place = a.start.cmp(&b.start);
    place.then_with(|| known(a).cmp(&known(b))).then_with(|| {
        let [a, b] = names();
        a.cmp(&b)
    })
}

/// Returns the bytes of a name, `longest` at most.
fn name_at(names: &[u8], at: u32, longest: usize) -> &[u8] {
    let rest = names.get(at as usize..).unwrap_or_default();
    let rest = rest.get(..longest).unwrap_or(rest);
    CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes)
}

impl SymbolTable {
    /// Returns the innermost function that an address belongs to.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let index = self.position(address)?;
        let entry = self.entries.get(index)?;
        let name = name_at(&self.names, entry.name, LONGEST_NAME);
        let name = Some(name).filter(|name| name.len() < LONGEST_NAME)?;
        Some(Symbol {
            index,
            start: entry.start,
            end: entry.end,
            name: std::str::from_utf8(name).ok()?,
        })
    }

    /// Returns the position of the innermost function that an address belongs to, with a name or without.
    pub(crate) fn position(&self, address: u64) -> Option<usize> {
        let after = self.entries.partition_point(|e| e.start <= address);
        let mut candidate = after.checked_sub(1);
        while let Some(index) = candidate {
            let entry = self.entries.get(index)?;
            if address < entry.end {
                return Some(index);
            }
            candidate = entry.around.map(|i| i as usize);
        }
        None
    }

    /// Returns the number of functions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, u8, &str)]) -> SymbolTable {
        let mut builder = TableBuilder::default();
        for (start, len, rank, name) in symbols {
            let extent = match len {
                0 => Extent::ToNext(1000 - start),
                _ => Extent::Known(*len),
            };
            builder.add(*start, extent, *rank, name);
        }
        builder.build()
    }

    fn names(table: &SymbolTable, addresses: &[u64]) -> Vec<String> {
        let name = |a: &u64| table.find(*a).map_or("-".into(), |s| s.name.to_owned());
        addresses.iter().map(name).collect()
    }

    #[test]
    fn between_functions_there_is_nothing() {
        let table = table(&[(100, 10, 0, "b"), (10, 10, 0, "a")]);
        assert_eq!(
            names(&table, &[9, 10, 19, 20, 99, 100, 109, 110]),
            ["-", "a", "a", "-", "-", "b", "b", "-"]
        );
    }

    #[test]
    fn functions_without_length_go_on_to_the_next() {
        let table = table(&[(10, 0, 0, "a"), (20, 5, 0, "b"), (30, 0, 0, "c")]);
        assert_eq!(
            names(&table, &[10, 19, 24, 25, 30, 999, 1000]),
            ["a", "a", "b", "-", "c", "c", "-"]
        );
    }

    #[test]
    fn what_lies_around_is_found_where_the_inner_one_ends() {
        let table = table(&[
            (0, 100, 0, "outer"),
            (10, 10, 0, "inner"),
            (12, 2, 0, "innermost"),
            (30, 10, 0, "second"),
        ]);
        assert_eq!(
            names(&table, &[5, 11, 13, 14, 25, 35, 50, 100]),
            [
                "outer",
                "inner",
                "innermost",
                "inner",
                "outer",
                "second",
                "outer",
                "-"
            ]
        );
    }

    #[test]
    fn of_several_names_the_best_stays() {
        let table = table(&[
            (10, 5, 1, "__weak"),
            (10, 5, 2, "__libc_global"),
            (10, 5, 2, "global"),
            (10, 0, 3, "label"),
        ]);
        assert_eq!(table.len(), 1);
        assert_eq!(names(&table, &[12]), ["global"]);
    }

    #[test]
    fn the_end_of_the_address_space_is_no_trap() {
        let mut builder = TableBuilder::default();
        builder.add(u64::MAX - 1, Extent::Known(u64::MAX), 0, "last");
        builder.add(u64::MAX, Extent::ToNext(1), 0, "none");
        let table = builder.build();
        assert_eq!(names(&table, &[u64::MAX - 1]), ["last"]);
        assert_eq!(table.find(u64::MAX), None);
    }
}
