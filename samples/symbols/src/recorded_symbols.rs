//! Functions that a recording itself lists, for files that are not here.

use crate::table::{Extent, Symbol, SymbolTable, TableBuilder};

/// Functions of a file, as a recording lists them.
///
/// ```
/// use quipu_symbols::{RecordedAddresses, RecordedSymbols};
///
/// let mut symbols = RecordedSymbols::new(RecordedAddresses::File { added: 0x1000 });
/// symbols.add(0x1840, 0x20, "main");
/// ```
#[derive(Debug, Default)]
pub struct RecordedSymbols {
    addresses: RecordedAddresses,
    builder: TableBuilder,
}

/// The meaning of the addresses of symbols that a recording lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RecordedAddresses {
    /// They are those in memory.
    #[default]
    Memory,
    /// They are offsets in the file, moved by this.
    File {
        /// Number that is added to an offset, wrapping.
        added: u64,
    },
}

impl RecordedSymbols {
    /// Returns a list without functions.
    pub fn new(addresses: RecordedAddresses) -> Self {
        let builder = TableBuilder::default();
        Self { addresses, builder }
    }

    /// Adds a function of so many bytes.
    pub fn add(&mut self, address: u64, len: u32, name: &str) {
        self.builder
            .add(address, Extent::Known(len.into()), 0, name);
    }

    /// Returns them to be looked up.
    pub(crate) fn build(self) -> RecordedTable {
        let addresses = self.addresses;
        let table = self.builder.build();
        RecordedTable { addresses, table }
    }
}

/// Functions of a file, by their addresses.
#[derive(Debug)]
pub(crate) struct RecordedTable {
    addresses: RecordedAddresses,
    table: SymbolTable,
}

impl RecordedTable {
    /// Returns the function at an address in memory that is at an offset in the file, and how far into it that is.
    pub(crate) fn find(&self, address: u64, offset: u64) -> Option<(Symbol<'_>, u64)> {
        let address = match self.addresses {
            RecordedAddresses::Memory => address,
            RecordedAddresses::File { added } => offset.wrapping_add(added),
        };
        let symbol = self.table.find(address)?;
        Some((symbol, address - symbol.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(addresses: RecordedAddresses, address: u64, offset: u64) -> Option<(String, u64)> {
        let mut symbols = RecordedSymbols::new(addresses);
        symbols.add(0x1840, 0x20, "main");
        let table = symbols.build();
        let (symbol, into) = table.find(address, offset)?;
        Some((symbol.name.to_owned(), into))
    }

    #[test]
    fn addresses_are_those_in_memory_or_in_the_file() {
        let main = |into| Some(("main".to_owned(), into));
        assert_eq!(at(RecordedAddresses::Memory, 0x1844, 7), main(4));
        assert_eq!(at(RecordedAddresses::Memory, 0x1860, 7), None);
        let file = RecordedAddresses::File { added: 0x1000 };
        assert_eq!(at(file, 0x7f00_0000, 0x840), main(0));
        assert_eq!(at(file, 0x1840, 0x83f), None);
    }
}
