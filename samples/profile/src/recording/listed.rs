//! Functions that a recording lists, as simpleperf's do.

use quipu_perf_data::{Features, SymbolAddresses};
use quipu_symbols::{RecordedAddresses, RecordedSymbols};

/// Returns the functions that a recording lists, by the paths of their files.
pub(super) fn symbols(features: &Features) -> impl Iterator<Item = (Vec<u8>, RecordedSymbols)> {
    features.files.iter().filter_map(|file| {
        let addresses = match file.addresses {
            SymbolAddresses::Memory => RecordedAddresses::Memory,
            SymbolAddresses::File { added } => RecordedAddresses::File { added },
            _ => return None,
        };
        let mut symbols = RecordedSymbols::new(addresses);
        for symbol in &file.symbols {
            symbols.add(symbol.address, symbol.len, &symbol.name);
        }
        (!file.symbols.is_empty()).then(|| (file.path.clone().into_bytes(), symbols))
    })
}
