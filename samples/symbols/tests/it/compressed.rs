//! Debug information in compressed sections, as a C compiler writes it.

use std::path::Path;

use quipu_symbols::{AddressOwner, Mapped, Processes, Symbolizer};

use crate::built::Built;

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int inner(int n) { return n * n + 7; }
int outer(int n) { return inner(n) / 3; }
";

/// The names of the functions at every offset of a file that has two at least.
fn inlined(library: &Path) -> Option<(String, String)> {
    const START: u64 = 0x10_0000;
    let len = library.metadata().expect("there").len();
    let mut processes = Processes::new();
    let mapped = Mapped::new(START..START + len, 0, library.to_string_lossy().as_bytes());
    processes.map(1, mapped);
    let mut symbolizer = Symbolizer::new().with_lines(true);
    (START..START + len).find_map(|address| {
        let mut functions = Vec::new();
        symbolizer.resolve(
            &processes,
            AddressOwner::Process(1),
            address,
            &mut functions,
        );
        let [inner, outer] = &functions[..] else {
            return None;
        };
        Some((inner.name.as_deref()?.into(), outer.name.as_deref()?.into()))
    })
}

#[test]
fn inlined_functions_are_found_in_compressed_sections() {
    const TEST: &str = "inlined_functions_are_found_in_compressed_sections";
    for compression in ["-gz=none", "-gz=zlib", "-gz=zstd"] {
        let options = ["-O2", "-g", compression];
        let Some(built) = Built::library(TEST, SOURCE, &options) else {
            continue;
        };
        let expected = ("inner".to_owned(), "outer".to_owned());
        assert_eq!(
            inlined(&built.path("a.so")),
            Some(expected),
            "{compression}"
        );
    }
}

/// A section that claims to be thousands of times as long as it is in the file is not decompressed.
#[test]
fn sections_that_claim_too_much_are_passed_over() {
    const TEST: &str = "sections_that_claim_too_much_are_passed_over";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2", "-g", "-gz=zlib"]) else {
        return;
    };
    let library = built.path("a.so");
    if cfg!(any(target_endian = "big", target_pointer_width = "32")) {
        return;
    }
    // `Elf64_Chdr` of type zlib, alignment 1: its length is in the middle.
    let mut bytes = std::fs::read(&library).expect("readable");
    let is_header = |at: &usize| {
        let word = |i: usize| Some(u64::from_le_bytes(*bytes.get(at + 8 * i..)?.first_chunk()?));
        let zlib = bytes.get(at + 24..).is_some_and(|b| b.starts_with(&[0x78]));
        zlib && word(0) == Some(1) && matches!(word(2), Some(1 | 8))
    };
    let headers: Vec<usize> = (0..bytes.len()).filter(is_header).collect();
    assert!(!headers.is_empty());
    for at in headers {
        bytes[at + 8..at + 16].copy_from_slice(&(3u64 << 30).to_le_bytes());
    }
    std::fs::write(&library, &bytes).expect("writable");
    assert_eq!(inlined(&library), None);
}
