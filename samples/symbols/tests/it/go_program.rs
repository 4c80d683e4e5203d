//! Programs of Go that are stripped: their runtime has a table of their functions.

use std::fs;

use quipu_symbols::{Architecture, CallerOf, Symbolizer};

use crate::built::Built;
use crate::mapped::{self, PID, START};

/// Two functions, the first of which makes a frame of 32 bytes, and the table that names them.
const ASSEMBLY: &str = "
    .text
    .globl first
    .type first, %function
first:
    .cfi_startproc
    .skip 16, 0
    .cfi_def_cfa_offset 32
    .skip 32, 0
    .cfi_endproc
    .size first, .-first
second:
    .skip 32, 0
end:
    .section .gopclntab, \"a\", %progbits
table:
    .4byte 0xfffffff1
    .byte 0, 0, 1, 8
    .8byte 2, 0, 0, names - table, 0, 0, 0, functions - table
names:
    .asciz \"main.main\"
second_name:
    .asciz \"main.second\"
functions:
    .4byte first - first, of_first - functions
    .4byte second - first, of_second - functions
    .4byte end - first
of_first:
    .4byte 0, 0
of_second:
    .4byte second - first, second_name - names
";

#[test]
fn functions_of_a_stripped_program_are_those_of_its_runtime() {
    const TEST: &str = "functions_of_a_stripped_program_are_those_of_its_runtime";
    let built = Built::new(TEST);
    fs::write(built.path("a.s"), ASSEMBLY).expect("writable");
    for section in [".gopclntab", ".data.rel.ro.gopclntab", ".other"] {
        let rename = format!(".gopclntab={section}");
        if !built.run(&["cc", "-shared", "-nostdlib", "-o", "a.so", "a.s"])
            || !built.run(&["objcopy", "--rename-section", &rename, "a.so"])
        {
            return;
        }
        let library = built.path("a.so");
        let (first, _) = mapped::place_of(&library, "first");
        let is_of_go = section.ends_with(".gopclntab");
        for strip in ["--strip-debug", "--strip-all"] {
            if !built.run(&["objcopy", strip, "a.so"]) {
                return;
            }
            let processes = mapped::with_file(&library);
            let mut symbolizer = Symbolizer::new();
            let mut at = |from| mapped::name(&mut symbolizer, &processes, first + from);
            let name = |name: &str, into| Some((name.to_owned(), into));
            let is_read = is_of_go && strip == "--strip-all";
            // The table for debugging goes before, and the one for linking is read beside.
            let expected = match (strip, is_of_go) {
                ("--strip-debug", _) => name("second", 31),
                (_, true) => name("main.second", 31),
                _ => None,
            };
            assert_eq!(at(48 + 31), expected, "{section} {strip}");
            assert_eq!(at(48 + 32), None, "{section} {strip}");
            let of_first = at(47).expect("it is for linking");
            let both = ["first", "main.main"].contains(&&*of_first.0);
            assert!(both && (is_read || of_first.0 == "first"), "{of_first:?}");
            assert_eq!(of_first.1, 47);
        }
        // Its functions have frame pointers in the frames that they make, and do not say so.
        let machine = match cfg!(target_arch = "aarch64") {
            true => Architecture::Aarch64,
            false => Architecture::X86_64,
        };
        let processes = mapped::with_file(&library);
        let mut symbolizer = Symbolizer::new();
        let mut caller = |address| symbolizer.caller_of(&processes, PID, address, machine);
        let in_frame = match is_of_go {
            true => CallerOf::FramePointer,
            false => CallerOf::Otherwise,
        };
        assert_eq!(caller(first), Some(CallerOf::Otherwise), "{section}");
        assert_eq!(caller(first + 15), Some(CallerOf::Otherwise), "{section}");
        assert_eq!(caller(first + 16), Some(in_frame), "{section}");
        assert_eq!(caller(first + 48), None, "nothing is said of the second");
        assert_eq!(caller(START), None);
    }
}
