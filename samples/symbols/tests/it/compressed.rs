//! Debug information in compressed sections, as a C compiler writes it.

use std::path::{Path, PathBuf};

use object::read::{CompressionFormat, Object, ObjectSection, ObjectSymbol};
use quipu_symbols::{AddressOwner, CodeFile, Mapped, Processes, Symbolizer};

use crate::built::Built;

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int inner(int n) { return n * n + 7; }
int outer(int n) { return inner(n) / 3; }
";

/// Returns the functions at every offset of a file, each time those that are inlined and the one around them.
fn functions(library: &Path) -> Vec<Vec<String>> {
    const START: u64 = 0x10_0000;
    let len = library.metadata().expect("there").len();
    let mut processes = Processes::new();
    let mapped = Mapped::new(START..START + len, 0, library.to_string_lossy().as_bytes());
    processes.map(1, mapped);
    let mut symbolizer = Symbolizer::new().with_lines(true);
    let mut found = Vec::new();
    for address in START..START + len {
        let mut functions = Vec::new();
        symbolizer.resolve(
            &processes,
            AddressOwner::Process(1),
            address,
            &mut functions,
        );
        let names = functions.into_iter();
        found.push(
            names
                .filter_map(|f| f.name.map(|name| name.to_string()))
                .collect(),
        );
    }
    found
}

/// Returns the names of a function that is inlined and of the one around it.
fn inlined(library: &Path) -> Option<(String, String)> {
    let mut all = functions(library).into_iter();
    all.find_map(|names| match &names[..] {
        [inner, outer] => Some((inner.clone(), outer.clone())),
        _ => None,
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

#[test]
fn sections_that_objcopy_compresses_by_zstandard_are_read() {
    const TEST: &str = "sections_that_objcopy_compresses_by_zstandard_are_read";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2", "-g"]) else {
        return;
    };
    if !built.run(&["objcopy", "--compress-debug-sections=zstd", "a.so"]) {
        return;
    }
    let library = built.path("a.so");
    let bytes = std::fs::read(&library).expect("readable");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let of = |name| {
        let section = file.section_by_name(name).expect("it has some");
        let range = section.compressed_file_range();
        range.expect("it makes sense").format
    };
    assert_eq!(of(".debug_info"), CompressionFormat::Zstandard);
    let expected = ("inner".to_owned(), "outer".to_owned());
    assert_eq!(inlined(&library), Some(expected));
}

/// No linker writes them, and libelf's tool does if it is told to; GNU nm does not read what it makes.
#[test]
fn functions_are_found_in_compressed_tables_of_symbols() {
    const TEST: &str = "functions_are_found_in_compressed_tables_of_symbols";
    let source = format!(
        "{SOURCE}__attribute__((noinline, used)) static int of_no_link(int n) {{ return n; }}\n"
    );
    let Some(built) = Built::library(TEST, &source, &["-O2"]) else {
        return;
    };
    let library = built.path("a.so");
    let has_it = || {
        let functions = functions(&library);
        functions
            .into_iter()
            .filter(|names| *names == ["of_no_link"])
            .count()
    };
    let before = has_it();
    let compress = [
        "eu-elfcompress",
        "--force",
        "--name=.symtab",
        "--name=.strtab",
    ];
    if !built.run(&[&compress[..], &["a.so"]].concat()) {
        return;
    }
    assert!(before > 0);
    assert_eq!(has_it(), before);
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
    claim_too_much(&library);
    assert_eq!(inlined(&library), None);
    let file = CodeFile::open(&library, None).expect("an ELF file");
    assert_is_of_a_section(&file.left_out().expect("the section is named").to_string());
}

#[test]
fn the_debug_file_serves_where_sections_cannot_be_read() {
    const TEST: &str = "the_debug_file_serves_where_sections_cannot_be_read";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2", "-g", "-gz=zlib"]) else {
        return;
    };
    if cfg!(any(target_endian = "big", target_pointer_width = "32")) {
        return;
    }
    let library = built.path("a.so");
    std::fs::copy(&library, built.path("a.debug")).expect("writable");
    if built.run(&["objcopy", "--add-gnu-debuglink=a.debug", "a.so"]) {
        claim_too_much(&library);
        let (line, left_out) = line_of_outer(&library);
        assert_eq!((line, left_out), (Some(1), None));
    }
}

/// A unit in a file of its own has sections of its own.
#[test]
fn sections_of_a_unit_apart_that_cannot_be_read_are_named() {
    const TEST: &str = "sections_of_a_unit_apart_that_cannot_be_read_are_named";
    let options = ["-O2", "-g", "-gsplit-dwarf", "-gz=zlib"];
    let Some(built) = Built::library(TEST, SOURCE, &options) else {
        return;
    };
    if cfg!(any(target_endian = "big", target_pointer_width = "32")) {
        return;
    }
    let library = built.path("a.so");
    assert_eq!(line_of_outer(&library).1, None);
    let entries = std::fs::read_dir(built.path(".")).expect("readable");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_apart = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dwo");
    let apart: Vec<_> = paths.filter(is_apart).collect();
    assert!(!apart.is_empty());
    apart.iter().for_each(|path| claim_too_much(path));
    let left_out = line_of_outer(&library).1;
    assert_is_of_a_section(&left_out.expect("the section is named"));
}

/// Returns the source line of a function's first instruction, which is of the one that is inlined there, and what is said to be
/// left out.
fn line_of_outer(library: &Path) -> (Option<u32>, Option<String>) {
    let bytes = std::fs::read(library).expect("readable");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let mut symbols = file.symbols();
    let outer = symbols.find(|symbol| symbol.name() == Ok("outer"));
    let mut code = CodeFile::open(library, None).expect("an ELF file");
    let source = code.source_at(outer.expect("the function").address());
    let left_out = code.left_out().map(|why| why.to_string());
    (source.map(|(_, line)| line), left_out)
}

/// Has the compressed sections of a file claim to be of 3 GiB.
fn claim_too_much(path: &Path) {
    // `Elf64_Chdr` of type zlib, alignment 1: its length is in the middle.
    let mut bytes = std::fs::read(path).expect("readable");
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
    std::fs::write(path, &bytes).expect("writable");
}

fn assert_is_of_a_section(said: &str) {
    assert!(
        said.starts_with("its section .debug_") && said.contains("cannot be read"),
        "{said}"
    );
}

/// A program that a program wrote: its line table is compressed to less than a hundredth of its length.
#[test]
fn lines_of_very_regular_code_are_found() {
    const TEST: &str = "lines_of_very_regular_code_are_found";
    let source: String = (0..2000)
        .map(|i| format!("int f{i}(int x) {{ if (x) return x + 1; return x * 3; }}\n"))
        .collect();
    for compression in ["-gz=zlib", "-gz=zstd"] {
        let Some(built) = Built::library(TEST, &source, &["-g", compression]) else {
            continue;
        };
        let library = built.path("a.so");
        let bytes = std::fs::read(&library).expect("readable");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let lines = file.section_by_name(".debug_line").expect("it has lines");
        let range = lines.compressed_file_range().expect("it makes sense");
        if range.format == CompressionFormat::None {
            eprintln!("SKIP {TEST}: the compiler does not know {compression}");
            continue;
        }
        assert!(range.uncompressed_size > 100 * range.compressed_size);
        let symbols = file.symbols().filter(|symbol| symbol.name() == Ok("f1234"));
        let start = symbols.map(|symbol| symbol.address()).next();
        let mut code = CodeFile::open(&library, None).expect("an ELF file");
        let source = code.source_at(start.expect("the function"));
        assert_eq!(source.map(|(_, line)| line), Some(1235), "{compression}");
        assert!(code.left_out().is_none());
    }
}
