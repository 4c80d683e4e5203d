//! Machine code of functions of ELF files.

use std::fs;

use object::read::Object;
use quipu_symbols::{CodeFile, NoCode, build_id_of};

use crate::built::Built;
use crate::mapped::{START, place_of};

const SOURCE: &str = "\
__attribute__((noinline)) int f(int n) { return n * n + 7; }
int g(int n) { return f(n) + f(n + 1); }
";

#[test]
fn the_code_of_a_function_is_what_the_file_has_there() {
    const TEST: &str = "the_code_of_a_function_is_what_the_file_has_there";
    let Some(built) = Built::library(TEST, SOURCE, &["-O1", "-g", "-Wl,--build-id"]) else {
        return;
    };
    let library = built.path("a.so");
    let bytes = fs::read(&library).expect("there");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let mut file = CodeFile::open(&library, None).expect("an ELF file");
    let machine = match elf.architecture() {
        object::Architecture::X86_64 => 62,
        object::Architecture::Aarch64 => 183,
        _ => file.machine(),
    };
    assert_eq!(file.machine(), machine);
    for (name, line) in [("f", 1), ("g", 2)] {
        let (address, len) = place_of(&library, name);
        let (from, len) = ((address - START) as usize, len as usize);
        let expected = &bytes[from..from + len];
        let found = [from, from + len - 1].map(|offset| {
            let found = file.function_at(offset as u64);
            found.expect("a function")
        });
        for code in &found {
            assert_eq!(code.bytes, expected, "{name}");
        }
        let last = found[0].address + len as u64 - 1;
        let (found_name, into) = file.name_at(last).expect("a name");
        assert_eq!((&*found_name, into), (name, len as u64 - 1));
        let (source, found_line) = file.source_at(found[0].address).expect("a line");
        assert!(source.ends_with("a.c"), "{source}");
        assert_eq!(found_line, line, "{name}");
    }
    assert!(file.left_out().is_none());
    // No function is in the header.
    let found = file.function_at(0);
    assert!(matches!(found, Err(NoCode::NoFunction)), "{found:?}");
    let id = build_id_of(&library).expect("the linker made one");
    assert!(CodeFile::open(&library, Some(&id)).is_ok());
    let other = CodeFile::open(&library, Some(&id[1..])).expect_err("another file");
    assert!(matches!(other, NoCode::Other), "{other}");
}

#[test]
fn a_function_that_is_too_long_to_be_one_has_no_code() {
    const TEST: &str = "a_function_that_is_too_long_to_be_one_has_no_code";
    let built = Built::new(TEST);
    for (len, is_read) in [("0x1000000", true), ("0x1000001", false)] {
        let text =
            format!(".text\n.globl f\n.type f, %function\nf:\n.4byte 0, 0, 0, 0\n.size f, {len}\n");
        fs::write(built.path("a.s"), text).expect("writable");
        if !built.run(&["cc", "-shared", "-nostdlib", "-o", "a.so", "a.s"]) {
            return;
        }
        let library = built.path("a.so");
        let (address, _) = place_of(&library, "f");
        let mut file = CodeFile::open(&library, None).expect("an ELF file");
        match file.function_at(address - START) {
            // The file ends before the function does.
            Err(NoCode::Unreadable(error)) if is_read => {
                assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
            }
            Err(NoCode::NoFunction) if !is_read => {}
            other => panic!("{len}: {other:?}"),
        }
    }
}
