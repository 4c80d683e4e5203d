//! Names of programs whose symbols and debug information lie in other places than usual, as common tools put them there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::SectionKind;
use object::read::{Object, ObjectSection, ObjectSymbol};
use quipu_symbols::{AddressOwner, Mapped, Processes, Symbolizer};

use crate::built::Built;

const SOURCE: &str = "\
int rand(void);
static inline __attribute__((always_inline)) int inner(int n) { return n * n + 7; }
static __attribute__((noinline)) int hidden(int n) { return inner(n) / 3 + rand(); }
int outer(int n) { return hidden(n) + inner(n + 1); }
";

/// Compiles the library with these options; `None` if there is no compiler that takes them.
fn library(test: &'static str, options: &[&str]) -> Option<Built> {
    Built::library(test, SOURCE, &[&["-O2", "-g"], options].concat())
}

/// Takes the symbols and debug information out of the library into `a.debug`, and links to it.
fn strip_with_link(built: &Built) -> bool {
    built.run(&["objcopy", "--only-keep-debug", "a.so", "a.debug"])
        && built.run(&[
            "objcopy",
            "--strip-all",
            "--add-gnu-debuglink=a.debug",
            "a.so",
        ])
}

/// The names of all functions of a file, and those of inlined ones.
fn names(file: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    names_at(file, 0, &fs::read(file).expect("there"))
}

/// Returns the number of bytes of a file that have a name.
fn named_bytes(file: &Path, name: &str) -> u64 {
    const START: u64 = 0x10_0000;
    let len = file.metadata().expect("there").len();
    let mut processes = Processes::new();
    let path = file.to_string_lossy();
    processes.map(1, Mapped::new(START..START + len, 0, path.as_bytes()));
    let mut symbolizer = Symbolizer::new();
    let mut functions = Vec::new();
    let is_named = |address: &u64| {
        functions.clear();
        let owner = AddressOwner::Process(1);
        symbolizer.resolve(&processes, owner, *address, &mut functions);
        functions
            .first()
            .is_some_and(|found| found.name.as_deref() == Some(name))
    };
    (START..START + len).filter(is_named).count() as u64
}

/// The names of all functions of an ELF file that lies at an offset in a file, and those of inlined ones.
fn names_at(file: &Path, offset: u64, bytes: &[u8]) -> (BTreeSet<String>, BTreeSet<String>) {
    const START: u64 = 0x10_0000;
    let len = bytes.len() as u64;
    let elf = object::File::parse(bytes).expect("an ELF file");
    let code = elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    let code = code
        .filter_map(|section| section.file_range())
        .flat_map(|(from, len)| {
            // Of large programs a part will do.
            let step = if len > 0x1_0000 { 16 } else { 1 };
            (from..from + len).step_by(step)
        });
    let mut processes = Processes::new();
    processes.map(
        1,
        Mapped::new(
            START..START + len,
            offset,
            file.to_string_lossy().as_bytes(),
        ),
    );
    let mut symbolizer = Symbolizer::new().with_lines(true);
    let (mut names, mut inlined) = (BTreeSet::new(), BTreeSet::new());
    let mut functions = Vec::new();
    for address in code.map(|offset| START + offset) {
        symbolizer.resolve(
            &processes,
            AddressOwner::Process(1),
            address,
            &mut functions,
        );
        for function in functions.drain(..) {
            let to = if function.inlined {
                &mut inlined
            } else {
                &mut names
            };
            to.extend(function.name.map(|name| name.to_string()));
        }
    }
    (names, inlined)
}

fn has(names: &BTreeSet<String>, wanted: &[&str]) -> bool {
    wanted.iter().all(|name| names.contains(*name))
}

#[test]
fn a_link_leads_to_debug_information_beside_or_in_a_directory_of_its_own() {
    const TEST: &str = "a_link_leads_to_debug_information_beside_or_in_a_directory_of_its_own";
    for build_id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let Some(built) = library(TEST, &[build_id]) else {
            return;
        };
        if !strip_with_link(&built) {
            return;
        }
        let check = |there| {
            let (names, inlined) = names(&built.path("a.so"));
            assert!(has(&names, &["outer"]), "{build_id}: {names:?}");
            assert_eq!(names.contains("hidden"), there, "{build_id}: {names:?}");
            assert_eq!(inlined.contains("inner"), there, "{build_id}: {inlined:?}");
        };
        check(true);
        fs::create_dir(built.path(".debug")).expect("writable");
        fs::rename(built.path("a.debug"), built.path(".debug/a.debug")).expect("renamed");
        check(true);
        // Debug information of another build has other functions at these addresses.
        let other = library(TEST, &[build_id, "-DX=1", "-O1"]).expect("it has compiled before");
        assert!(strip_with_link(&other));
        fs::copy(other.path("a.debug"), built.path(".debug/a.debug")).expect("copied");
        check(false);
    }
}

#[test]
fn small_debug_information_is_read_with_the_symbols_for_linking() {
    const TEST: &str = "small_debug_information_is_read_with_the_symbols_for_linking";
    let Some(built) = library(TEST, &["-g0"]) else {
        return;
    };
    // As `find-debuginfo` of RPM makes it, but for what is left out of the table.
    if !(built.run(&["objcopy", "--only-keep-debug", "a.so", "mini"])
        && built.run(&["xz", "mini"])
        && built.run(&[
            "objcopy",
            "--strip-all",
            "--add-section=.gnu_debugdata=mini.xz",
            "a.so",
        ]))
    {
        return;
    }
    let (names, _) = names(&built.path("a.so"));
    assert!(has(&names, &["outer", "hidden"]), "{names:?}");
}

/// Of a stripped library the functions for linking alone have names, and one that does not say its length is no longer than up to
/// the next one that callers are unwound from.
#[test]
fn a_function_without_a_length_takes_no_others_along() {
    const TEST: &str = "a_function_without_a_length_takes_no_others_along";
    let source = "__asm__(\".globl of_assembler; .type of_assembler, @function; of_assembler: nop; nop; nop; .p2align 4\");\n\
        static __attribute__((noinline, used)) int hidden(int n) { return n * 3 + 1; }\n\
        int outer(int n) { return hidden(n) / 3; }\n";
    let options = ["-O1", "-fno-toplevel-reorder", "-Wl,--eh-frame-hdr"];
    let Some(built) = Built::library(TEST, source, &options) else {
        return;
    };
    let addresses = |name: &str| {
        let file = fs::read(built.path("a.so")).expect("there");
        let elf = object::File::parse(&*file).expect("an ELF file");
        let mut symbols = elf.symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(name));
        symbol.map(|symbol| symbol.address())
    };
    let (first, hidden) = (addresses("of_assembler"), addresses("hidden"));
    if !(first < hidden && built.run(&["strip", "a.so"])) {
        return;
    }
    let (before, after) = (first.expect("there"), hidden.expect("there"));
    let named = named_bytes(&built.path("a.so"), "of_assembler");
    assert_eq!(named, after - before);
}

#[test]
fn sections_that_were_compressed_before_elf_knew_of_it_are_read() {
    const TEST: &str = "sections_that_were_compressed_before_elf_knew_of_it_are_read";
    let Some(built) = library(TEST, &[]) else {
        return;
    };
    if built.run(&["objcopy", "--compress-debug-sections=zlib-gnu", "a.so"]) {
        let (_, inlined) = names(&built.path("a.so"));
        assert!(has(&inlined, &["inner"]), "{inlined:?}");
    }
}

#[test]
fn debug_information_that_was_split_is_read_from_files_and_from_a_package() {
    const TEST: &str = "debug_information_that_was_split_is_read_from_files_and_from_a_package";
    // dwp(1) of binutils knows no later DWARF.
    let Some(built) = library(TEST, &["-gsplit-dwarf", "-gdwarf-4"]) else {
        return;
    };
    let inlined = || names(&built.path("a.so")).1;
    assert!(has(&inlined(), &["inner"]), "{:?}", inlined());
    if !built.run(&["dwp", "-e", "a.so", "-o", "a.so.dwp"]) {
        return;
    }
    for file in fs::read_dir(built.path(".")).expect("readable") {
        let path = file.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(path).expect("removed");
        }
    }
    assert!(has(&inlined(), &["inner"]), "{:?}", inlined());
    fs::remove_file(built.path("a.so.dwp")).expect("removed");
    assert!(!has(&inlined(), &["inner"]), "{:?}", inlined());
}

#[test]
fn the_package_of_a_rust_program_is_read() {
    const TEST: &str = "the_package_of_a_rust_program_is_read";
    let built = Built::new(TEST);
    let source = "#[inline(always)]\nfn inner(n: i32) -> i32 { n * n + 7 }\n\
        #[unsafe(no_mangle)]\npub extern \"C\" fn outer(n: i32) -> i32 { inner(n) / 3 }\n";
    fs::write(built.path("a.rs"), source).expect("writable");
    let options = [
        "--edition=2024",
        "--crate-type=cdylib",
        "-O",
        "-g",
        "-Csplit-debuginfo=packed",
    ];
    if built.run(&[&["rustc"], &options[..], &["-o", "a.so", "a.rs"]].concat()) {
        let (names, inlined) = names(&built.path("a.so"));
        assert!(has(&names, &["outer"]), "{names:?}");
        assert!(has(&inlined, &["a::inner"]), "{inlined:?}");
    }
}

#[test]
fn debug_information_that_files_share_is_read() {
    const TEST: &str = "debug_information_that_files_share_is_read";
    let options = ["-include", "stdlib.h", "-include", "string.h"];
    let Some(built) = library(TEST, &options) else {
        return;
    };
    let other = ["cc", "-shared", "-fPIC", "-g", "-O1", "-o", "b.so", "a.c"];
    if !(built.run(&[&other[..], &options].concat())
        && built.run(&["dwz", "-m", "shared", "a.so", "b.so"]))
    {
        return;
    }
    let (names, inlined) = names(&built.path("a.so"));
    assert!(has(&names, &["outer", "hidden"]), "{names:?}");
    assert!(has(&inlined, &["inner"]), "{inlined:?}");
}

#[test]
fn stubs_of_functions_of_other_files_have_names() {
    const TEST: &str = "stubs_of_functions_of_other_files_have_names";
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return;
    }
    let layouts: &[&[&str]] = &[
        &[],
        &["-Wl,-z,now"],
        #[cfg(target_arch = "x86_64")]
        &["-fcf-protection", "-Wl,-z,ibtplt"],
    ];
    for options in layouts {
        let Some(built) = library(TEST, options) else {
            return;
        };
        let (names, _) = names(&built.path("a.so"));
        assert!(has(&names, &["rand@plt"]), "{options:?}: {names:?}");
        assert!(built.run(&["objcopy", "--strip-all", "a.so"]));
        let (names, _) = self::names(&built.path("a.so"));
        assert!(has(&names, &["rand@plt"]), "{options:?}: {names:?}");
    }
}

#[test]
fn stripped_programs_of_go_have_their_names() {
    const TEST: &str = "stripped_programs_of_go_have_their_names";
    let built = Built::new(TEST);
    let source = "package main\n\n//go:noinline\nfunc work(n int) int { return n * n }\n\nfunc main() { println(work(3)) }\n";
    fs::write(built.path("a.go"), source).expect("writable");
    let cache = built.path("cache");
    for mode in ["exe", "pie"] {
        let cache = format!("GOCACHE={}", cache.display());
        let mode = format!("-buildmode={mode}");
        let build = ["go", "build", &mode, "-ldflags=-s -w", "-o", "a", "a.go"];
        if !built.run(
            &[
                &["env", "GOFLAGS=-mod=mod", "GO111MODULE=off", &cache],
                &build[..],
            ]
            .concat(),
        ) {
            return;
        }
        let (names, _) = names(&built.path("a"));
        let wanted = ["main.work", "main.main", "runtime.mallocgc"];
        assert!(has(&names, &wanted), "{mode}: {} names", names.len());
    }
}

#[test]
fn libraries_in_an_archive_are_told_apart_by_their_offsets() {
    const TEST: &str = "libraries_in_an_archive_are_told_apart_by_their_offsets";
    let Some(built) = library(TEST, &[]) else {
        return;
    };
    let other = [
        "cc",
        "-shared",
        "-fPIC",
        "-O1",
        "-Douter=other",
        "-o",
        "b.so",
        "a.c",
    ];
    if !(built.run(&other) && built.run(&["zip", "-q", "-0", "base.apk", "a.c", "a.so", "b.so"])) {
        return;
    }
    let archive = fs::read(built.path("base.apk")).expect("there");
    let check = |library, function: &str, is_inlined| {
        let bytes = fs::read(built.path(library)).expect("there");
        let at = archive.windows(bytes.len()).position(|part| part == bytes);
        let at = at.expect("it is stored") as u64;
        // As it is mapped, and by its path in the archive, which simpleperf writes.
        let in_archive = built.path(&format!("base.apk!/{library}"));
        for (file, at) in [(built.path("base.apk"), at), (in_archive, 0)] {
            let (names, inlined) = names_at(&file, at, &bytes);
            assert!(has(&names, &[function, "hidden"]), "{file:?}: {names:?}");
            assert_eq!(inlined.contains("inner"), is_inlined, "{inlined:?}");
        }
        at
    };
    let first = check("a.so", "outer", true);
    let second = check("b.so", "other", false);
    // Both from one recording, with the compressed file between them that follows.
    let mut processes = Processes::new();
    let path = built.path("base.apk");
    let path = path.to_str().expect("plain");
    for (start, offset) in [(0x10_0000, first), (0x20_0000, second), (0x30_0000, 0)] {
        let mapped = Mapped::new(start..start + 0x1000, offset, path.as_bytes());
        processes.map(1, mapped);
    }
    let mut symbolizer = Symbolizer::new();
    let mut object = |address| {
        let mut functions = Vec::new();
        symbolizer.resolve(
            &processes,
            AddressOwner::Process(1),
            address,
            &mut functions,
        );
        functions[0].object.to_string()
    };
    let objects = [0x10_0000, 0x20_0000, 0x30_0000].map(&mut object);
    let wanted = ["!/a.so", "!/b.so", ""].map(|name| format!("{path}{name}"));
    assert_eq!(objects, wanted);
}
