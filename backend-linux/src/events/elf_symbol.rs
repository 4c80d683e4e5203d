//! The place of a function in the file of a program or library.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use object::elf::{SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{ElfFile, FileHeader, Sym as _};
use object::read::{ReadCache, ReadRef};
use object::{
    Architecture, Endianness, Object as _, ObjectKind, ObjectSection as _, ObjectSegment as _,
    SectionKind,
};
use quipu_hal::{Error, ErrorKind, Result};

use super::debug_file;
use super::ifunc::Code;
use super::mini_debug;
use crate::machine::hint::did_you_mean;
use crate::machine::kernel_file;

/// The directories in which the dynamic linker looks for a library (ld.so(8)), and those of Debian.
const LIBRARIES: [&str; 8] = [
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib/i386-linux-gnu",
    "/lib/arm-linux-gnueabihf",
    "/lib",
    "/usr/lib",
];

/// No function that selects another is longer, in bytes; so much is read of one of an unknown length.
const LONGEST: u64 = 64 << 10;
const LONGEST_UNKNOWN: u64 = 256;

/// Returns the file that is meant by the name of a library, `libc`, or of a program in `PATH`. A path is itself.
pub(crate) fn located(object: &Path) -> PathBuf {
    let is_name = object.components().count() == 1 && !object.exists();
    let Some(name) = object.to_str().filter(|_| is_name) else {
        return object.to_owned();
    };
    let in_path = quipu_environment::variable("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&in_path).map(|directory| directory.join(name));
    let library = format!("{name}.so");
    let libraries = LIBRARIES
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten();
    let mut libraries = libraries.map(|entry| entry.path()).filter(|path| {
        let version = path
            .file_name()
            .and_then(|file| file.to_str()?.strip_prefix(&library));
        version.is_some_and(|version| version.is_empty() || version.starts_with('.'))
    });
    // Beside a library there may be a script for the linker of the same name.
    let is_elf = |path: &PathBuf| {
        let mut magic = [0; 4];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        read.is_ok() && magic == *b"\x7fELF"
    };
    let found = libraries.find(is_elf).or_else(|| programs.find(is_elf));
    found.unwrap_or_else(|| object.to_owned())
}

/// The byte of an ELF file at which a function starts, by the names of its symbol tables as they
/// stand there (mangled).
///
/// Of several versions of a function the default one is meant; the name of another ends like `@GLIBC_2.2.5`. Names of a file
/// that is stripped are looked up in what it has kept of them, and in its debug information, by its build ID or link.
///
/// # Errors
/// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when the file is not there or has no such
/// function, with the nearest names as the hint, has several of them, or one that only selects another when a program
/// starts; [`NoPermission`](ErrorKind::NoPermission);
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it is not an ELF file.
pub(crate) fn file_offset(path: &Path, symbol: &str) -> Result<u64> {
    let attempted = || {
        format!(
            "find the function {} in {}",
            symbol.escape_debug(),
            path.display()
        )
    };
    let fail = |kind, reason: &str| Error::new(kind, attempted()).with_reason(reason);
    let file = File::open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ENOENT) => fail(ErrorKind::UnsupportedEvent, "there is no such file"),
        _ => kernel_file::error(attempted(), path, &e),
    })?;
    let cache = ReadCache::new(file);
    let not_elf = |_| fail(ErrorKind::InvalidConfiguration, "it is not an ELF file");
    let elf = object::File::parse(&cache).map_err(not_elf)?;
    let mut functions = functions_of(&elf);
    if !functions
        .iter()
        .any(|function| function.has_name(symbol) && !function.is_selector)
    {
        functions.extend(functions_apart(path, &elf));
    }
    let found = chosen(&functions, symbol);
    let addresses: BTreeSet<u64> = found.iter().map(|function| function.address).collect();
    let offset = |address: u64| {
        elf.segments().find_map(|segment| {
            let (start, len) = segment.file_range();
            let within = address.checked_sub(segment.address())?;
            (within < len).then(|| start.checked_add(within)).flatten()
        })
    };
    let [function, ..] = &found[..] else {
        let names: Vec<String> = functions
            .into_iter()
            .map(|function| function.name)
            .collect();
        let error = fail(
            ErrorKind::UnsupportedEvent,
            "its symbol tables contain no function of this name",
        );
        return Err(match names.as_slice() {
            [] => error.with_hint("it is stripped; give the offset in the file instead"),
            names => error.with_hint(did_you_mean(symbol, names, "it has")),
        });
    };
    if addresses.len() > 1 {
        let places = addresses
            .iter()
            .filter_map(|address| Some(format!("{:#x}", offset(*address)?)));
        let places: Vec<String> = places.collect();
        let reason = format!("it has {} functions of this name", addresses.len());
        let hint = format!(
            "give the offset in the file instead: {}",
            places.join(" or ")
        );
        return Err(fail(ErrorKind::UnsupportedEvent, &reason).with_hint(hint));
    }
    if function.is_selector {
        let reason = "programs call another function that is selected when they start (IFUNC): the calls of this one \
                      are of the dynamic linker";
        let candidates = candidates(&elf, function).into_iter();
        let candidates =
            candidates.filter_map(|address| match name_at(&functions, symbol, address) {
                Some(name) => Some(name.to_owned()),
                None => Some(format!("{:#x}", offset(address)?)),
            });
        let candidates: Vec<String> = candidates.collect();
        let error = fail(ErrorKind::UnsupportedEvent, reason);
        return Err(match candidates.as_slice() {
            [] => error.with_hint("`quipu record` and `quipu report` show which one runs"),
            names => error.with_hint(format!("one of {}", names.join(", "))),
        });
    }
    offset(function.address).ok_or_else(|| {
        fail(
            ErrorKind::UnsupportedEvent,
            "the function is in no loadable segment",
        )
    })
}

/// Returns the addresses of the functions among which one selects.
fn candidates<'data, R: ReadRef<'data>>(
    elf: &object::File<'data, R>,
    selector: &Function,
) -> BTreeSet<u64> {
    let texts = || {
        elf.sections()
            .filter(|section| section.kind() == SectionKind::Text)
    };
    let len = match selector.len {
        0 => LONGEST_UNKNOWN,
        len => len.min(LONGEST),
    };
    let code = texts().find_map(|section| {
        let left = (section.address() + section.size()).checked_sub(selector.address)?;
        section.data_range(selector.address, len.min(left)).ok()?
    });
    let code = Code {
        machine: elf.architecture(),
        is_fixed: elf.kind() == ObjectKind::Executable,
        address: selector.address,
        bytes: code.unwrap_or_default(),
    };
    let mut candidates = code.addresses();
    candidates.retain(|address| {
        let mut texts = texts();
        texts.any(|text| (text.address()..text.address() + text.size()).contains(address))
    });
    candidates
}

/// Returns the name of the function at an address; of several one that has the name of its selector in it.
fn name_at<'f>(functions: &'f [Function], selector: &str, address: u64) -> Option<&'f str> {
    let names = functions
        .iter()
        .filter(|f| f.address == address && !f.is_selector);
    let names = names.map(|function| &*function.name);
    names.min_by_key(|name| (!name.contains(selector), *name))
}

/// Returns true if a file is a Go program.
pub(crate) fn is_go(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache);
    elf.is_ok_and(|elf| elf.section_by_name(".note.go.buildid").is_some())
}

/// A function of a symbol table.
#[derive(Debug)]
struct Function {
    /// Its name as it stands there.
    name: String,
    address: u64,
    /// Its bytes, 0 if the table does not say how many.
    len: u64,
    /// True for a version that programs get only by its name.
    is_old: bool,
    is_global: bool,
    /// True if it returns the address of the function that programs call in its place.
    is_selector: bool,
}

impl Function {
    fn has_name(&self, name: &str) -> bool {
        self.name == name
            || self
                .name
                .split_once("@@")
                .is_some_and(|(own, _)| own == name)
    }
}

/// Returns the functions that a name means: of several the global ones, and of those the default version.
fn chosen<'f>(functions: &'f [Function], name: &str) -> Vec<&'f Function> {
    let mut chosen: Vec<&Function> = functions.iter().filter(|f| f.has_name(name)).collect();
    let is_better: [fn(&Function) -> bool; 2] = [|f| f.is_global, |f| !f.is_old];
    for is_better in is_better {
        if chosen.iter().any(|f| is_better(f)) {
            chosen.retain(|f| is_better(f));
        }
    }
    chosen
}

fn functions_of<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Function> {
    match file {
        object::File::Elf32(file) => functions_in(file),
        object::File::Elf64(file) => functions_in(file),
        _ => Vec::new(),
    }
}

/// Returns the functions that a file has kept when it was stripped, and those in its debug information that lies apart.
///
/// `quipu-symbols` finds these for reports, and those of Go's runtime and of servers of debug information. A backend knows
/// nothing of it: who counts would have to build what reads DWARF and demangles.
fn functions_apart<'data, R: ReadRef<'data>>(
    path: &Path,
    file: &object::File<'data, R>,
) -> Vec<Function> {
    let mut functions = Vec::new();
    if let Some(kept) = mini_debug::decompressed(file)
        && let Ok(kept) = object::File::parse(&*kept)
    {
        functions = functions_of(&kept);
    }
    if let Some(apart) = debug_file::opened(path, file)
        && let Ok(apart) = object::File::parse(&ReadCache::new(apart))
    {
        functions.extend(functions_of(&apart));
    }
    functions
}

fn functions_in<'data, Elf, R>(file: &ElfFile<'data, Elf, R>) -> Vec<Function>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let endian = file.endian();
    let versions = file.elf_section_table().versions(endian, file.data());
    let versions = versions.ok().flatten();
    // 32-bit ARM says in the lowest bit that the function is Thumb code.
    let thumb = u64::from(file.architecture() == Architecture::Arm);
    let tables = [
        (file.elf_symbol_table(), false),
        (file.elf_dynamic_symbol_table(), true),
    ];
    let mut functions = Vec::new();
    for (table, is_dynamic) in tables {
        for (index, symbol) in table.enumerate() {
            let kind = symbol.st_type();
            let is_function = matches!(kind, STT_FUNC | STT_GNU_IFUNC);
            if !is_function || symbol.st_shndx(endian) == SHN_UNDEF {
                continue;
            }
            let name = symbol.name(endian, table.strings());
            let Some(name) = name.ok().and_then(|name| str::from_utf8(name).ok()) else {
                continue;
            };
            let version = versions.as_ref().filter(|_| is_dynamic);
            let is_hidden = version.is_some_and(|all| all.version_index(endian, index).is_hidden());
            functions.push(Function {
                name: name.to_owned(),
                address: symbol.st_value(endian).into() & !thumb,
                len: symbol.st_size(endian).into(),
                is_old: is_hidden,
                is_global: matches!(symbol.st_bind(), STB_GLOBAL | STB_WEAK),
                is_selector: kind == STT_GNU_IFUNC,
            });
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol as _;
    use std::os::unix::fs::FileExt as _;

    fn landmark_of_this_test(n: u64) -> u64 {
        std::hint::black_box(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the name that the compiler has given the landmark.
    fn name_of_landmark(own: &Path) -> String {
        let file = std::fs::read(own).expect("readable");
        let elf = object::File::parse(&*file).expect("an ELF file");
        let names = elf.symbols().filter_map(|symbol| symbol.name().ok());
        let mut own = names.filter(|name| name.contains("landmark_of_this_test"));
        own.next().expect("it is there").to_owned()
    }

    /// The code in memory is the code at that place of the file.
    #[test]
    fn a_function_is_where_its_bytes_are() {
        let own = std::env::current_exe().expect("a path");
        let offset = file_offset(&own, &name_of_landmark(&own)).expect("it is there");
        let file = std::fs::read(&own).expect("readable");
        let start = usize::try_from(offset).expect("within the file");
        let code = landmark_of_this_test as fn(u64) -> u64 as *const u8;
        let mut in_memory = [0; 16];
        let memory = File::open("/proc/self/mem").expect("proc is mounted");
        memory
            .read_exact_at(&mut in_memory, code.addr() as u64)
            .expect("code is readable");
        assert_eq!(file[start..start + 16], in_memory);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let own = std::env::current_exe().expect("a path");
        let name = name_of_landmark(&own);
        let mistyped = name.replace("of_this_test", "of_this_tset");
        let e = file_offset(&own, &mistyped).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        let hint = e.hint().unwrap_or_default();
        assert!(hint.contains(&name), "{hint}");
        let e = file_offset(Path::new("/no/such/file"), "main").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        let e = file_offset(Path::new("/proc/self/maps"), "main").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
    }

    /// A library with a function that is selected when it is loaded, two functions of one name, and two versions of one.
    const LIBRARY: &str = r#"
#include <unistd.h>
int first(int n) { return n + 1; }
int second(int n) { return n + 2; }
__asm__(".symver first, versioned@OLD");
__asm__(".symver second, versioned@@NEW");
static int one(int n) { return n + 3; }
static int other(int n) { return n + 6; }
int selected_checked(int n) { return n + 7; }
static void *select_it(void) { return getppid() > 1 ? (void *)one : (void *)other; }
int selected(int n) __attribute__((ifunc("select_it")));
static __attribute__((noinline, used)) int twice(int n) { return n + 4; }
"#;
    const OTHER: &str =
        "static __attribute__((noinline, used)) int twice(int n) { return n + 5; }\n";

    #[test]
    fn a_name_means_one_function_or_is_refused() {
        let directory = tempfile::tempdir().expect("writable");
        let path = |name| directory.path().join(name);
        std::fs::write(path("a.c"), LIBRARY).expect("writable");
        std::fs::write(path("b.c"), OTHER).expect("writable");
        std::fs::write(path("map"), "OLD {}; NEW { global: *; } OLD;\n").expect("writable");
        let mut cc = std::process::Command::new("cc");
        cc.args([
            "-shared",
            "-fPIC",
            "-Wl,--version-script=map",
            "-o",
            "a.so",
            "a.c",
            "b.c",
        ]);
        let compiled = cc.current_dir(&directory).output();
        if !compiled.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIP a_name_means_one_function_or_is_refused: no C compiler with IFUNC");
            return;
        }
        let library = path("a.so");
        let offsets = ["one", "other"].map(|name| file_offset(&library, name).expect("there"));
        for stripped in [false, true] {
            if stripped {
                let strip = std::process::Command::new("strip").arg(&library).output();
                assert!(strip.expect("binutils has it").status.success());
            }
            let offset = |name: &str| file_offset(&library, name);
            assert_eq!(
                offset("versioned").expect("there"),
                offset("second").expect("there")
            );
            assert_ne!(
                offset("first").expect("there"),
                offset("second").expect("there")
            );
            let refusal = offset("selected").expect_err("not what runs");
            assert!(
                refusal
                    .reason()
                    .is_some_and(|reason| reason.contains("IFUNC")),
                "{refusal}"
            );
            let hint = refusal.hint().unwrap_or_default();
            match stripped {
                false => assert_eq!(hint, "one of one, other"),
                true => {
                    // By their offsets.
                    let known = offsets.map(|offset| format!("{offset:#x}")).join(", ");
                    assert_eq!(hint, format!("one of {known}"));
                }
            }
            let refusal = offset("twice").expect_err("which one");
            let wanted = if stripped {
                "no function of this name"
            } else {
                "2 functions of this name"
            };
            assert!(
                refusal
                    .reason()
                    .is_some_and(|reason| reason.contains(wanted)),
                "{refusal}"
            );
        }
    }

    #[test]
    fn names_of_a_stripped_file_are_found_where_it_links_to() {
        const TEST: &str = "names_of_a_stripped_file_are_found_where_it_links_to";
        let directory = tempfile::tempdir().expect("writable");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.c"), OTHER).expect("writable");
        let run = |words: &[&str]| {
            let mut tool = std::process::Command::new(words[0]);
            let output = tool.args(&words[1..]).current_dir(&directory).output();
            output.is_ok_and(|output| output.status.success())
        };
        let compile = [
            "cc",
            "-shared",
            "-fPIC",
            "-Wl,--build-id",
            "-o",
            "a.so",
            "a.c",
        ];
        let keep = ["objcopy", "--only-keep-debug", "a.so", "a.debug"];
        let link = [
            "objcopy",
            "--strip-all",
            "--add-gnu-debuglink=a.debug",
            "a.so",
        ];
        let other = [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wl,--build-id",
            "-o",
            "other",
            "a.c",
        ];
        if !(run(&compile) && run(&keep) && run(&link) && run(&other)) {
            eprintln!("SKIP {TEST}: no C compiler or binutils");
            return;
        }
        assert!(file_offset(&path("a.so"), "twice").is_ok());
        std::fs::create_dir(path(".debug")).expect("writable");
        std::fs::rename(path("a.debug"), path(".debug/a.debug")).expect("renamed");
        assert!(file_offset(&path("a.so"), "twice").is_ok());
        // That of another build is passed over.
        std::fs::rename(path("other"), path(".debug/a.debug")).expect("renamed");
        assert!(file_offset(&path("a.so"), "twice").is_err());
        // Without IDs the checksum decides.
        let compile = [
            "cc",
            "-shared",
            "-fPIC",
            "-Wl,--build-id=none",
            "-o",
            "a.so",
            "a.c",
        ];
        assert!(
            run(&compile) && run(&keep) && run(&link),
            "it was done before"
        );
        assert!(file_offset(&path("a.so"), "twice").is_ok());
        let mut debug = File::options()
            .append(true)
            .open(path("a.debug"))
            .expect("writable");
        std::io::Write::write_all(&mut debug, &[0]).expect("written");
        assert!(file_offset(&path("a.so"), "twice").is_err());
    }

    #[test]
    fn libraries_and_programs_are_found_by_their_names() {
        let libc = located(Path::new("libc"));
        assert!(file_offset(&libc, "malloc").is_ok(), "{libc:?}");
        assert!(located(Path::new("cat")).ends_with("bin/cat"));
        for path in ["/no/such/file", "no-such-program", "./cat"] {
            assert_eq!(located(Path::new(path)), Path::new(path));
        }
    }
}
