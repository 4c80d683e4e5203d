//! Debug information in which inlined functions nest deeper than any compiler makes them, so that a reader that calls itself
//! for each level runs out of stack.

use std::fs;

use quipu_symbols::{AddressOwner, CodeFile, Mapped, Processes, Symbolizer};

use crate::built::Built;

/// Returns the assembly text of a function `f`, into which `g` is inlined so many times that each contains the next one. Its
/// unit has the addresses of its code, or lines that have them.
fn nested(levels: usize, has_lines: bool) -> String {
    let (attributes, values) = match has_lines {
        true => ("0x10, 0x17", ".4byte 0"),
        false => ("0x11, 1, 0x12, 7", ".8byte f, 64"),
    };
    let line = if has_lines {
        ".file 1 \"a.c\"\n    .loc 1 7"
    } else {
        ""
    };
    format!(
        "
    .text
    .globl f
    .type f, %function
f:
    {line}
    nop
    .skip 64
    .size f, .-f
    .section .debug_abbrev, \"\", %progbits
    .byte 1, 0x11, 1, {attributes}, 0, 0
    .byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0
    .byte 3, 0x1d, 1, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0
    .byte 4, 0x2e, 0, 3, 8, 0, 0
    .byte 0
    .section .debug_info, \"\", %progbits
begin:
    .4byte end - version
version:
    .2byte 4
    .4byte 0
    .byte 8
    .byte 1
    {values}
name:
    .byte 4
    .asciz \"g\"
    .byte 2
    .asciz \"f\"
    .8byte f, 64
    .rept {levels}
    .byte 3
    .4byte name - begin
    .8byte f, 64
    .endr
    .fill {levels} + 2, 1, 0
end:
"
    )
}

#[test]
fn functions_that_nest_too_deep_are_left_out_and_said() {
    const TEST: &str = "functions_that_nest_too_deep_are_left_out_and_said";
    let built = Built::new(TEST);
    let cases = [256, 257, 20_000].map(|levels| [(levels, false), (levels, true)]);
    for (levels, has_lines) in cases.into_iter().flatten() {
        let is_read = levels <= 256;
        fs::write(built.path("a.s"), nested(levels, has_lines)).expect("writable");
        if !built.run(&["cc", "-shared", "-nostdlib", "-o", "a.so", "a.s"]) {
            return;
        }
        let library = built.path("a.so");
        let bytes = fs::read(&library).expect("there");
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let (text, len) = object::Object::section_by_name(&elf, ".text")
            .and_then(|text| object::ObjectSection::file_range(&text))
            .expect("code");
        let mut processes = Processes::new();
        let path = library.to_string_lossy();
        processes.map(1, Mapped::new(0x1000..0x1000 + len, text, path.as_bytes()));
        let mut symbolizer = Symbolizer::new().with_lines(true);
        let mut functions = Vec::new();
        symbolizer.resolve(&processes, AddressOwner::Process(1), 0x1010, &mut functions);
        let outermost = functions.pop().expect("a function");
        assert_eq!(outermost.name.as_deref(), Some("f"));
        let inlined = functions
            .iter()
            .filter(|function| function.inlined && function.name.as_deref() == Some("g"));
        assert_eq!(inlined.count(), if is_read { levels } else { 0 });
        let said: Vec<_> = symbolizer
            .left_out()
            .map(|(_, why)| why.to_string())
            .collect();
        assert_eq!(said.is_empty(), is_read, "{said:?}");
        // The code is read by itself.
        let mut file = CodeFile::open(&library, None).expect("an ELF file");
        let code = file.function_at(text).expect("a function");
        let source = file.source_at(code.address);
        assert_eq!(source.map(|(_, line)| line), has_lines.then_some(7));
        assert_eq!(file.left_out().is_none(), is_read);
    }
}
