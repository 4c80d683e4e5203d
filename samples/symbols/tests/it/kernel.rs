//! Functions of the kernel, by what is said of it: its file, its modules, and what came as it was recorded.

use std::fs;
use std::path::Path;

use quipu_symbols::{AddressOwner, KernelSymbols, Processes, Reference, Symbolizer};

use crate::built::Built;

const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T _stext
ffffffff81000100 T a_function
ffffffff81000200 t another
";
const BEGIN: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c000_0000;

/// Returns the object and the name of the function at an address of the kernel, and how far into it that is.
fn at(symbolizer: &mut Symbolizer, address: u64) -> (String, Option<(String, u64)>) {
    let mut found = Vec::new();
    let owner = AddressOwner::Kernel;
    symbolizer.resolve(&Processes::new(), owner, address, &mut found);
    let [function] = &found[..] else {
        panic!("{found:?}");
    };
    let name = function.name.as_deref().map(str::to_owned);
    (function.object.to_string(), name.zip(function.offset))
}

fn named(object: &str, name: &str, offset: u64) -> (String, Option<(String, u64)>) {
    (object.to_owned(), Some((name.to_owned(), offset)))
}

fn nameless(object: &str) -> (String, Option<(String, u64)>) {
    (object.to_owned(), None)
}

#[test]
fn symbols_of_the_kernel_are_set_moved_and_removed() {
    const KERNEL: &str = "[kernel.kallsyms]";
    let mut symbolizer = Symbolizer::new();
    assert!(!symbolizer.has_kernel());
    assert_eq!(at(&mut symbolizer, BEGIN + 0x110), nameless(KERNEL));
    symbolizer.set_kernel(KernelSymbols::parse(TEXT));
    assert!(symbolizer.has_kernel());
    assert!(symbolizer.has_kernel_functions("kernel") && !symbolizer.has_kernel_functions("[one]"));
    let function = named(KERNEL, "a_function", 16);
    assert_eq!(at(&mut symbolizer, BEGIN + 0x110), function);
    // It was elsewhere when it was recorded; where that is not known nothing changes.
    for (symbol, address, moved) in [
        (&b"_text"[..], 0, 0),
        (b"_etext", BEGIN + 0x1000, 0),
        (b"_text", BEGIN + 0x1000, 0x1000),
        (b"_stext", BEGIN + 0x2000, 0x2000),
    ] {
        symbolizer.set_kernel_reference(symbol, address);
        assert_eq!(at(&mut symbolizer, BEGIN + moved + 0x110), function);
    }
    symbolizer.set_kernel(None);
    assert!(!symbolizer.has_kernel() && !symbolizer.has_kernel_functions("kernel"));
    symbolizer.set_kernel_reference(b"_text", BEGIN);
    assert_eq!(at(&mut symbolizer, BEGIN + 0x110), nameless(KERNEL));
    let shown = KernelSymbols::of_this_machine().is_some();
    symbolizer.set_kernel_of_this_machine();
    assert_eq!(symbolizer.has_kernel(), shown);
}

#[test]
fn mappings_and_programs_of_the_kernel_come_and_go() {
    let mut symbolizer = Symbolizer::new().with_kernel(KernelSymbols::parse(TEXT));
    symbolizer.map_kernel(BEGIN..BEGIN + 0x1000, b"[kernel.kallsyms]_text");
    symbolizer.map_kernel(MODULE..MODULE + 0x1000, b"/lib/modules/a-module.ko.xz");
    let module = nameless("[a_module]");
    assert_eq!(at(&mut symbolizer, MODULE), module);
    assert_eq!(at(&mut symbolizer, MODULE + 0xfff), module);
    assert_eq!(at(&mut symbolizer, MODULE + 0x1000), nameless("[unknown]"));
    let name = "bpf_prog_1_f";
    symbolizer.add_kernel_symbol(MODULE + 8, 8, name.as_bytes());
    assert_eq!(at(&mut symbolizer, MODULE + 15), named(name, name, 7));
    assert_eq!(at(&mut symbolizer, MODULE + 16), module);
    symbolizer.remove_kernel_symbol(MODULE + 8);
    assert_eq!(at(&mut symbolizer, MODULE + 15), module);
}

/// Builds `a.o` and `a.so` of two functions and these places at the beginning of the code.
fn built(test: &'static str, places: &[&str]) -> Option<Built> {
    let places: Vec<_> = places
        .iter()
        .map(|name| format!(".globl {name}\n{name}:\n"))
        .collect();
    let text = format!(
        "
    .text
{}
    .skip 16, 0
    .globl first
    .type first, %function
first:
    .skip 32, 0
    .size first, .-first
    .type second, %function
second:
    .skip 16, 0
    .size second, .-second
",
        places.concat()
    );
    let built = Built::new(test);
    fs::write(built.path("a.s"), text).expect("writable");
    let is_built = built.run(&["cc", "-c", "-o", "a.o", "a.s"])
        && built.run(&["cc", "-shared", "-nostdlib", "-o", "a.so", "a.o"]);
    is_built.then_some(built)
}

/// Returns the address that a file gives to one of its symbols.
fn address_of(file: &Path, name: &str) -> u64 {
    use object::read::{Object, ObjectSymbol};
    let bytes = fs::read(file).expect("there");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    elf.symbol_by_name(name).expect("there").address()
}

#[test]
fn the_file_of_a_kernel_has_its_functions_once_it_is_located() {
    const TEST: &str = "the_file_of_a_kernel_has_its_functions_once_it_is_located";
    const KERNEL: &str = "[kernel.kallsyms]";
    let Some(built) = built(TEST, &["_text", "_stext", "btext"]) else {
        return;
    };
    let file = built.path("a.so");
    let [text, first] = ["_text", "first"].map(|name| address_of(&file, name));
    assert_eq!(first, text + 16);
    let symbols = || {
        let read = KernelSymbols::of_vmlinux(&file).expect("readable");
        read.expect("an ELF file")
    };
    let (name, address) = ("_text", text);
    assert_eq!(symbols().reference(), Reference { name, address });
    // As long as it is not located its functions are nowhere.
    let mut symbolizer = Symbolizer::new().with_kernel(Some(symbols()));
    assert_eq!(at(&mut symbolizer, first), nameless("[unknown]"));
    symbolizer.set_kernel_reference(b"_stext", BEGIN);
    assert_eq!(at(&mut symbolizer, BEGIN + 47), named(KERNEL, "first", 31));
    assert_eq!(at(&mut symbolizer, BEGIN + 48), named(KERNEL, "second", 0));
    let located = symbols().recorded_at(BEGIN);
    let mut symbolizer = Symbolizer::new().with_kernel(Some(located));
    assert_eq!(at(&mut symbolizer, BEGIN + 47), named(KERNEL, "first", 31));
    // FreeBSD's is always where its file says.
    let in_place = KernelSymbols::of_file_in_place(&file).expect("a kernel");
    assert_eq!(in_place.reference().name, "btext");
    let mut symbolizer = Symbolizer::new().with_kernel(Some(in_place));
    assert_eq!(at(&mut symbolizer, first + 31), named(KERNEL, "first", 31));
}

#[test]
fn files_that_are_no_kernels_are_said() {
    const TEST: &str = "files_that_are_no_kernels_are_said";
    let Some(built) = built(TEST, &["elsewhere"]) else {
        return;
    };
    let [file, script, gone] = ["a.so", "script", "gone"].map(|name| built.path(name));
    fs::write(&script, "#!/bin/sh\n").expect("writable");
    for path in [&file, &script] {
        let found = KernelSymbols::of_vmlinux(path).expect("readable");
        assert!(found.is_none(), "{}", path.display());
    }
    let error = KernelSymbols::of_vmlinux(&gone).expect_err("it is not there");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    for path in [&file, &script, &gone] {
        assert!(KernelSymbols::of_file_in_place(path).is_none());
    }
}

#[test]
fn a_module_has_the_functions_of_the_code_of_its_file_that_was_loaded() {
    const TEST: &str = "a_module_has_the_functions_of_the_code_of_its_file_that_was_loaded";
    use object::read::{Object, ObjectSection};
    let Some(built) = built(TEST, &[]) else {
        return;
    };
    let file = built.path("a_module.ko");
    fs::rename(built.path("a.o"), &file).expect("writable");
    let bytes = fs::read(&file).expect("there");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let code = elf.section_by_name(".text").expect("code");
    let (offset, _) = code.file_range().expect("bytes");
    let path = file.as_os_str().as_encoded_bytes();
    let mut symbolizer = Symbolizer::new();
    symbolizer.map_kernel_code(MODULE..MODULE + 0x1000, path, offset + 1);
    assert_eq!(at(&mut symbolizer, MODULE + 16), nameless("[a_module]"));
    assert!(!symbolizer.has_kernel_functions("[a_module]"));
    symbolizer.map_kernel_code(MODULE..MODULE + 0x1000, path, offset);
    assert!(symbolizer.has_kernel_functions("[a_module]"));
    assert!(!symbolizer.has_kernel_functions("[another]"));
    let object = "[a_module]";
    assert_eq!(at(&mut symbolizer, MODULE + 16), named(object, "first", 0));
    assert_eq!(
        at(&mut symbolizer, MODULE + 63),
        named(object, "second", 15)
    );
    assert_eq!(at(&mut symbolizer, MODULE + 64), nameless(object));
    // Code that is elsewhere now has left its place.
    symbolizer.map_kernel(MODULE + 0x800..MODULE + 0x1800, b"[another]");
    assert!(!symbolizer.has_kernel_functions("[a_module]"));
    assert_eq!(at(&mut symbolizer, MODULE + 16), nameless(object));
}
