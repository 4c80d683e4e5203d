//! A process that has mapped a file, of which nothing runs.

use std::path::Path;

use object::read::{Object, ObjectSection, ObjectSymbol};
use quipu_symbols::{AddressOwner, Function, Mapped, Processes, Symbolizer};

/// No process has this number.
pub(crate) const PID: i32 = 1 << 30;
/// The address at which the file begins.
pub(crate) const START: u64 = 0x7000_0000;

/// Returns the process that has mapped all of a file.
pub(crate) fn with_file(path: &Path) -> Processes {
    let mut processes = Processes::new();
    processes.map(PID, whole(path));
    processes
}

/// Returns the mapping of all of a file.
pub(crate) fn whole(path: &Path) -> Mapped {
    let len = path.metadata().expect("there").len();
    Mapped::new(START..START + len, 0, path.as_os_str().as_encoded_bytes())
}

/// Returns the address in memory and the length of a symbol of the file.
pub(crate) fn place_of(path: &Path, name: &str) -> (u64, u64) {
    let bytes = std::fs::read(path).expect("there");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let symbol = elf.symbol_by_name(name);
    let symbol = symbol.expect("it is in the table for debugging");
    let index = symbol.section_index().expect("it is in a section");
    let section = elf.section_by_index(index).expect("there");
    let (offset, _) = section.file_range().expect("code");
    let from = symbol.address() - section.address();
    (START + offset + from, symbol.size())
}

/// Returns the functions at an address of the process, the innermost first.
pub(crate) fn functions(
    symbolizer: &mut Symbolizer,
    processes: &Processes,
    address: u64,
) -> Vec<Function> {
    let mut functions = Vec::new();
    let owner = AddressOwner::Process(PID);
    symbolizer.resolve(processes, owner, address, &mut functions);
    functions
}

/// Returns the name of the function at an address of the process, and how far into it that is.
pub(crate) fn name(
    symbolizer: &mut Symbolizer,
    processes: &Processes,
    address: u64,
) -> Option<(String, u64)> {
    let outermost = functions(symbolizer, processes, address).pop()?;
    Some((outermost.name?.to_string(), outermost.offset?))
}

/// Returns where the code of the kernel is mapped into this process; says that a test is skipped if it is not.
#[cfg(target_os = "linux")]
pub(crate) fn vdso(test: &str) -> Option<(u64, u64)> {
    use std::io::Write as _;

    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc is mounted");
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let Some((start, end)) = range else {
        let _ = writeln!(std::io::stderr(), "SKIP {test}: no vDSO is mapped");
        return None;
    };
    let number = |text| u64::from_str_radix(text, 16).expect("a number");
    Some((number(start), number(end)))
}
