//! The symbols that distributions leave in programs that they strip: an ELF file in `.gnu_debugdata`, compressed by xz (GDB's
//! manual, "MiniDebugInfo").

use std::io::Read as _;

use lzma_rust2::XzReader;
use object::read::ReadRef;
use object::{Object as _, ObjectSection as _};

/// No symbols are longer, and they are not compressed to a smaller part: what claims more is not what it seems.
const LONGEST: u64 = 1 << 30;
const MOST_COMPRESSED: u64 = 64;
/// Memory in KiB that decompressing may take: xz(1) asks for 64 MiB at most.
const MOST_MEMORY: u32 = 80 << 10;

/// Returns the ELF file in a file, if it has one.
pub(super) fn decompressed<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
) -> Option<Vec<u8>> {
    let section = file.section_by_name(".gnu_debugdata")?;
    let xz = section.data().ok()?;
    let most = (xz.len() as u64)
        .saturating_mul(MOST_COMPRESSED)
        .min(LONGEST);
    let mut elf = Vec::new();
    let reader = XzReader::new_mem_limit(xz, false, MOST_MEMORY);
    reader.take(most + 1).read_to_end(&mut elf).ok()?;
    (elf.len() as u64 <= most).then_some(elf)
}

#[cfg(test)]
mod tests {
    use crate::events::elf_symbol::file_offset;

    #[test]
    fn functions_of_a_stripped_file_are_where_they_were() {
        const TEST: &str = "functions_of_a_stripped_file_are_where_they_were";
        let directory = tempfile::tempdir().expect("writable");
        let source = "static __attribute__((noinline, used)) int hidden(int n) { return n + 5; }\n\
                      int shown(int n) { return hidden(n); }\n";
        std::fs::write(directory.path().join("a.c"), source).expect("writable");
        let run = |words: &str| {
            let words: Vec<_> = words.split(' ').collect();
            let mut tool = std::process::Command::new(words[0]);
            let output = tool.args(&words[1..]).current_dir(&directory).output();
            output.is_ok_and(|output| output.status.success())
        };
        let library = directory.path().join("a.so");
        let offsets = || ["hidden", "shown"].map(|name| file_offset(&library, name).ok());
        if !run("cc -shared -fPIC -Wl,--build-id=none -o a.so a.c") {
            eprintln!("SKIP {TEST}: no C compiler");
            return;
        }
        let before = offsets();
        // As `find-debuginfo` of RPM makes it.
        if !(run("objcopy --only-keep-debug a.so mini")
            && run("xz mini")
            && run("objcopy --strip-all --add-section=.gnu_debugdata=mini.xz a.so"))
        {
            eprintln!("SKIP {TEST}: no binutils or xz");
            return;
        }
        assert!(before.iter().all(Option::is_some), "{before:?}");
        assert_eq!(offsets(), before);
        // One that is cut has no names, and the others stay.
        let whole = std::fs::read(directory.path().join("mini.xz")).expect("there");
        std::fs::write(directory.path().join("cut"), &whole[..whole.len() / 2]).expect("writable");
        assert!(run("objcopy --update-section=.gnu_debugdata=cut a.so"));
        assert_eq!(offsets(), [None, before[1]]);
    }
}
