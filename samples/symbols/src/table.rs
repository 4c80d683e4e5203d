//! Symbols in the order of their addresses.

use std::cmp::Reverse;
use std::ffi::CStr;
use std::sync::OnceLock;

use crate::demangled::{Style, demangle_as};

/// No name is longer than this: what takes longer to read than to write is not what it seems.
pub(crate) const LONGEST_NAME: usize = 64 << 10;
/// No linker folds so many functions into one.
const MOST_ALIASES: usize = 2000;

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
    /// In the order of their entries.
    aliases: Vec<Aliases>,
}

#[derive(Debug, Clone, Copy)]
struct SymbolRange {
    start: u64,
    /// The first address that does not belong to it any more.
    end: u64,
    /// The entry around it that ends later, if there is one.
    around: Option<u32>,
    name: u32,
    has_aliases: bool,
}

/// Several names of one function, of which one is chosen when it is first asked for.
#[derive(Debug, Clone)]
struct Aliases {
    /// The position of their entry.
    entry: usize,
    names: Vec<u32>,
    chosen: OnceLock<u32>,
}

impl Aliases {
    /// Returns the name that perf chooses, by how it is read.
    fn chosen(&self, names: &[u8]) -> Option<u32> {
        if let Some(chosen) = self.chosen.get() {
            return Some(*chosen);
        }
        let named = self.names.iter().take(MOST_ALIASES);
        let named = named.filter_map(|at| Some((at, text_at(names, *at)?)));
        let (chosen, _) =
            named.min_by_key(|(_, name)| order_of(&demangle_as(name, Style::Short)))?;
        Some(*self.chosen.get_or_init(|| *chosen))
    }
}

/// Returns the order of the names of one function: those with the fewest underscores before them come first, then the longest, then
/// the first of the file.
fn order_of(name: &str) -> (usize, Reverse<usize>) {
    let underscores = name.bytes().take_while(|byte| *byte == b'_').count();
    (underscores, Reverse(name.len()))
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

impl Found {
    /// Returns the first address behind it, where another one begins at `next`.
    fn end(&self, next: u64) -> u64 {
        match self.extent {
            Extent::Known(len) => self.start.saturating_add(len),
            Extent::ToNext(most) => next.min(self.start.saturating_add(most)),
        }
    }
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
    /// Adds a symbol. Of several at the same address the one with the largest `rank` stays; of equals, perf's choice.
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
        // Stable: symbols of one address stay in the order of the file.
        self.found.sort_by_key(|symbol| symbol.start);
        let groups = || self.found.chunk_by(|a, b| a.start == b.start);
        let mut table = SymbolTable {
            names: self.names,
            entries: Vec::with_capacity(groups().count()),
            aliases: Vec::new(),
        };
        let mut groups = groups().peekable();
        while let Some(group) = groups.next() {
            let next = groups.peek().map_or(u64::MAX, |next| next[0].start);
            match group {
                [only] => table.push(only, next),
                _ => table.push_one_of(group, next),
            }
        }
        table
    }
}

/// Returns a name, if it is one.
fn text_at(names: &[u8], at: u32) -> Option<&str> {
    let rest = names.get(at as usize..)?;
    let rest = rest.get(..LONGEST_NAME).unwrap_or(rest);
    let name = CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes);
    let name = Some(name).filter(|name| name.len() < LONGEST_NAME)?;
    std::str::from_utf8(name).ok()
}

impl SymbolTable {
    /// Appends a symbol behind those that begin before it. Another one begins at `next`.
    fn push(&mut self, symbol: &Found, next: u64) {
        let mut around = self.entries.len().checked_sub(1);
        while let Some(i) = around
            && self.entries[i].end <= symbol.start
        {
            around = self.entries[i].around.map(|i| i as usize);
        }
        self.entries.push(SymbolRange {
            start: symbol.start,
            end: symbol.end(next),
            around: around.and_then(|i| u32::try_from(i).ok()),
            name: symbol.name,
            has_aliases: false,
        });
    }

    /// Appends that of several symbols for one address which perf chooses (`choose_best_symbol`, `tools/perf/util/symbol.c`): of
    /// those that know their length, or come last, the one with the largest rank, and of equals by their names.
    fn push_one_of(&mut self, symbols: &[Found], next: u64) {
        let place = |(at, symbol): (usize, &Found)| {
            // perf has given the last one a length by then (`symbols__fixup_end`).
            let has_length = matches!(symbol.extent, Extent::Known(_)) || at + 1 == symbols.len();
            (has_length, symbol.rank)
        };
        let best = symbols.iter().enumerate().map(place).max();
        let equals = symbols.iter().enumerate();
        let equals = equals.filter(|(at, symbol)| Some(place((*at, *symbol))) == best);
        let equals: Vec<&Found> = equals.map(|(_, symbol)| symbol).collect();
        let Some(longest) = equals.iter().max_by_key(|symbol| symbol.end(next)) else {
            return;
        };
        self.push(longest, next);
        if let ([_, _, ..], Some(entry)) = (&equals[..], self.entries.last_mut()) {
            entry.has_aliases = true;
            self.aliases.push(Aliases {
                entry: self.entries.len() - 1,
                names: equals.iter().map(|symbol| symbol.name).collect(),
                chosen: OnceLock::new(),
            });
        }
    }

    /// Returns the innermost function that an address belongs to.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let index = self.position(address)?;
        let entry = self.entries.get(index)?;
        Some(Symbol {
            index,
            start: entry.start,
            end: entry.end,
            name: text_at(&self.names, self.name_of(index, entry)?)?,
        })
    }

    /// Returns where the name of an entry is.
    fn name_of(&self, index: usize, entry: &SymbolRange) -> Option<u32> {
        if !entry.has_aliases {
            return Some(entry.name);
        }
        let at = self
            .aliases
            .binary_search_by_key(&index, |aliases| aliases.entry);
        self.aliases.get(at.ok()?)?.chosen(&self.names)
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
            (10, 0, 3, "label"),
            (10, 5, 2, "global"),
            (20, 5, 2, "local"),
            (20, 0, 3, "global_without_length_that_comes_last"),
            (30, 5, 2, "a_longer_name"),
            (30, 6, 2, "name"),
        ]);
        assert_eq!(table.len(), 3);
        assert_eq!(
            names(&table, &[12, 22, 26, 32, 35]),
            [
                "global",
                "global_without_length_that_comes_last",
                "global_without_length_that_comes_last",
                "a_longer_name",
                "a_longer_name"
            ]
        );
    }

    /// As perf 6.1 prints them, which compares names as they are read.
    #[test]
    fn of_equal_names_the_readable_forms_decide() {
        let table = table(&[
            (
                10,
                5,
                2,
                "_RNvXsd_NtNtCs1234_4core3fmt3numyNtB7_7Display3fmt",
            ),
            (
                10,
                5,
                2,
                "_RNvXsi_NtNtCs1234_4core3fmt3numjNtB7_7Display3fmt",
            ),
            (20, 5, 2, "shorter"),
            (20, 5, 2, "_ZN5space8functionEi"),
            (20, 5, 2, "__a_name_of_c_that_is_longer"),
            (30, 5, 2, "_ZN5first4longEi"),
            (30, 5, 2, "_ZN5other4longEi"),
        ]);
        assert_eq!(
            names(&table, &[12, 22, 32]),
            [
                "_RNvXsi_NtNtCs1234_4core3fmt3numjNtB7_7Display3fmt",
                "_ZN5space8functionEi",
                "_ZN5first4longEi"
            ]
        );
        assert_eq!(table.len(), 3);
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
