//! The kernel of a recording: what is where in its memory, and the functions of its own code, its modules and BPF programs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::address_space::{AddressSpace, Mapped};
use crate::kernel::KernelSymbols;
use crate::kernel_module::functions_at;
use crate::process_maps::as_path;
use crate::recorded_symbols::RecordedTable;
use crate::table::SymbolTable;

/// Name of the kernel's own code.
pub(crate) const KERNEL: &str = "[kernel.kallsyms]";
/// Object of an address that no mapping covers.
pub(crate) const UNKNOWN: &str = "[unknown]";
/// Addresses from here on are the kernel's, where no mapping says otherwise.
const FIRST_OF_KERNEL: u64 = 1 << 63;
/// As many programs and trampolines are known at once.
const MOST_SYMBOLS: usize = 1 << 20;

/// Code at addresses of the kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelSpace {
    pub(crate) symbols: LazySymbols,
    /// Those that the recording lists, where the kernel's own are not known.
    pub(crate) recorded: Option<Arc<RecordedTable>>,
    /// The kernel's own code and its modules, as the recording has them.
    maps: AddressSpace,
    has_own: bool,
    /// The functions of code of modules that was read from their files.
    code: Vec<(Range<u64>, SymbolTable)>,
    /// BPF programs and trampolines, with the first address behind them.
    programs: BTreeMap<u64, (u64, Arc<str>)>,
}

/// The symbols of the kernel's own code, if there are any. Those of the kernel that runs here are read when they are first asked for:
/// `/proc/kallsyms` has some 100,000 lines, and many recordings have no sample of the kernel.
#[derive(Debug)]
pub(crate) struct LazySymbols {
    read: OnceLock<Option<KernelSymbols>>,
    /// The places that symbols which locate a kernel have in the recording, for those that are not read yet.
    references: Vec<(Vec<u8>, u64)>,
}

impl Default for LazySymbols {
    fn default() -> Self {
        Self::of(None)
    }
}

impl LazySymbols {
    pub(crate) fn of(symbols: Option<KernelSymbols>) -> Self {
        Self {
            read: OnceLock::from(symbols),
            references: Vec::new(),
        }
    }

    pub(crate) fn of_this_machine() -> Self {
        Self {
            read: OnceLock::new(),
            references: Vec::new(),
        }
    }

    /// Sets the address that a symbol had in a recording, if it is one that locates a kernel.
    pub(crate) fn locate(&mut self, symbol: &[u8], address: u64) {
        match self.read.get_mut() {
            Some(Some(symbols)) => symbols.locate(symbol, address),
            Some(None) => {}
            None => self.references.push((symbol.to_owned(), address)),
        }
    }

    pub(crate) fn get(&self) -> Option<&KernelSymbols> {
        let read = || {
            let mut symbols = KernelSymbols::of_this_machine()?;
            for (symbol, address) in &self.references {
                symbols.locate(symbol, *address);
            }
            Some(symbols)
        };
        self.read.get_or_init(read).as_ref()
    }
}

/// Object and function at an address of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KernelFunction<'a> {
    pub(crate) object: &'a str,
    /// The name, as the kernel has it, and bytes from the start.
    pub(crate) function: Option<(&'a str, u64)>,
}

impl KernelSpace {
    /// Adds the mapping of the kernel's own code, or of a module.
    pub(crate) fn map(&mut self, start: u64, end: u64, path: &[u8]) {
        let name = match path.starts_with(b"[kernel.") {
            true => KERNEL.to_owned(),
            false => module_name(path),
        };
        self.has_own |= name == KERNEL;
        // What is elsewhere now has left its place.
        self.code
            .retain(|(there, _)| there.end <= start || there.start >= end);
        self.maps.map(Mapped::new(start..end, 0, name.as_bytes()));
    }

    /// Adds code of a module, whose functions are those of the section at an offset in the file at a path.
    pub(crate) fn map_code(&mut self, addresses: Range<u64>, path: &[u8], offset: u64) {
        self.map(addresses.start, addresses.end, path);
        if let Some(functions) = functions_at(&as_path(path), offset, addresses.start) {
            self.code.push((addresses, functions));
        }
    }

    /// Adds a symbol that came, such as a BPF program.
    pub(crate) fn add(&mut self, start: u64, len: u32, name: &[u8]) {
        if len > 0 && self.programs.len() < MOST_SYMBOLS {
            let name = String::from_utf8_lossy(name).as_ref().into();
            self.programs
                .insert(start, (start.saturating_add(len.into()), name));
        }
    }

    /// Removes a symbol that went.
    pub(crate) fn remove(&mut self, start: u64) {
        self.programs.remove(&start);
    }

    /// Returns true if functions of an object were read: a module's, by its name in brackets, from its code.
    pub(crate) fn has_functions(&self, object: &str) -> bool {
        let is_of = |start| {
            let mapped = self.maps.find(start);
            mapped.is_some_and(|mapped| *mapped.file.path == *object.as_bytes())
        };
        let in_code = self.code.iter().any(|(there, _)| is_of(there.start));
        in_code || (!object.starts_with('[') && self.symbols.get().is_some())
    }

    /// Returns true for an address of a program that is there now.
    pub(crate) fn is_program(&self, address: u64) -> bool {
        let before = self.programs.range(..=address).next_back();
        before.is_some_and(|(_, (end, _))| address < *end)
    }

    /// Returns what is at an address.
    pub(crate) fn at(&self, address: u64) -> KernelFunction<'_> {
        if let Some((start, (end, name))) = self.programs.range(..=address).next_back()
            && address < *end
        {
            return KernelFunction {
                object: name,
                function: Some((name, address - start)),
            };
        }
        let mapped = self.maps.find(address);
        let of_map = mapped.map(|mapped| std::str::from_utf8(&mapped.file.path).unwrap_or(UNKNOWN));
        // A symbol without length seems to go on into what lies behind its module.
        let is_there = |start: u64| match (mapped, self.maps.find(start)) {
            (Some(here), Some(there)) => here.file == there.file,
            (here, there) => here.is_none() && there.is_none(),
        };
        let mut code = self.code.iter();
        let code = code.find(|(there, _)| there.contains(&address));
        let found = match (code, self.symbols.get()) {
            (Some((_, functions)), _) => functions.find(address).map(|symbol| (symbol, None)),
            (None, Some(symbols)) => symbols.find(address),
            (None, None) => {
                let recorded = self.recorded.as_ref();
                let found = recorded.and_then(|all| all.find(address, 0));
                found.map(|(symbol, _)| (symbol, None))
            }
        };
        let found = found.filter(|(symbol, _)| is_there(symbol.start));
        let of_symbol = found.as_ref().and_then(|(_, module)| *module);
        let is_kernel = found.is_some() || (address >= FIRST_OF_KERNEL && !self.has_own);
        let by_default = if is_kernel { KERNEL } else { UNKNOWN };
        KernelFunction {
            object: of_symbol.or(of_map).unwrap_or(by_default),
            function: found.map(|(symbol, _)| (symbol.name, address.wrapping_sub(symbol.start))),
        }
    }
}

/// Returns the name in brackets of a module by its path, in which underscores may be hyphens, or by that name.
fn module_name(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let file = path.rsplit('/').next().unwrap_or(&path);
    let name = file.split_once(".ko").map(|(name, _)| name);
    match name {
        Some(name) => format!("[{}]", name.replace('-', "_")),
        None => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_ffff_8100_0000;
    const MODULE: u64 = 0xffff_ffff_c000_0000;

    fn at(space: &KernelSpace, address: u64) -> (String, Option<(String, u64)>) {
        let found = space.at(address);
        let function = found
            .function
            .map(|(name, offset)| (name.to_owned(), offset));
        (found.object.to_owned(), function)
    }

    fn unnamed(object: &str) -> (String, Option<(String, u64)>) {
        (object.to_owned(), None)
    }

    fn named(object: &str, name: &str, offset: u64) -> (String, Option<(String, u64)>) {
        (object.to_owned(), Some((name.to_owned(), offset)))
    }

    #[test]
    fn mappings_of_the_recording_say_which_module_an_address_is_in() {
        let mut space = KernelSpace::default();
        assert_eq!(at(&space, MODULE), unnamed(KERNEL));
        assert_eq!(at(&space, 0x7f50_7af8_fa64), unnamed(UNKNOWN));
        space.map(START, START + 0x10_0000, b"[kernel.kallsyms]_text");
        space.map(
            MODULE,
            MODULE + 0x1000,
            b"/lib/modules/6.1/kernel/arch/x86/kvm/kvm-intel.ko.xz",
        );
        space.map(MODULE + 0x1000, MODULE + 0x2000, b"[bridge]");
        assert_eq!(at(&space, START + 1), unnamed(KERNEL));
        assert_eq!(at(&space, MODULE + 1), unnamed("[kvm_intel]"));
        assert_eq!(at(&space, MODULE + 0x1001), unnamed("[bridge]"));
        assert_eq!(at(&space, MODULE + 0x2000), unnamed(UNKNOWN));
        // Of kernels of 32 bits.
        space.map(0xc000_0000, 0xd000_0000, b"[kernel.kallsyms]_text");
        assert_eq!(at(&space, 0xc000_1000), unnamed(KERNEL));
    }

    #[test]
    fn no_symbol_goes_on_into_another_module() {
        let text = format!(
            "{START:x} T _text\n{:x} T last\n{MODULE:x} t of_module\t[one]\n",
            START + 0x100
        );
        let mut space = KernelSpace {
            symbols: LazySymbols::of(KernelSymbols::parse(&text)),
            ..KernelSpace::default()
        };
        assert_eq!(at(&space, START + 0x110), named(KERNEL, "last", 16));
        space.map(START, START + 0x1000, b"[kernel.kallsyms]_text");
        space.map(MODULE, MODULE + 0x1000, b"[one]");
        space.map(MODULE + 0x1000, MODULE + 0x2000, b"[two]");
        assert_eq!(at(&space, START + 0x110), named(KERNEL, "last", 16));
        assert_eq!(at(&space, START + 0x2000), unnamed(UNKNOWN));
        assert_eq!(at(&space, MODULE + 8), named("[one]", "of_module", 8));
        assert_eq!(at(&space, MODULE + 0x1008), unnamed("[two]"));
    }

    #[test]
    fn bpf_programs_have_names_as_long_as_they_are_there() {
        let mut space = KernelSpace::default();
        space.map(START, START + 0x10_0000, b"[kernel.kallsyms]_text");
        space.add(MODULE, 0x40, b"bpf_prog_1_f");
        let name = "bpf_prog_1_f";
        assert_eq!(at(&space, MODULE + 0x3f), named(name, name, 0x3f));
        assert_eq!(at(&space, MODULE + 0x40), unnamed(UNKNOWN));
        space.remove(MODULE);
        assert_eq!(at(&space, MODULE), unnamed(UNKNOWN));
    }

    #[test]
    fn symbols_of_this_machine_are_read_late_and_are_where_they_were_recorded() {
        let mut symbols = LazySymbols::of_this_machine();
        assert!(symbols.read.get().is_none());
        let Some(shown) = KernelSymbols::of_this_machine() else {
            assert!(symbols.get().is_none());
            return;
        };
        let text = std::fs::read_to_string("/proc/kallsyms").expect("shown");
        let line = text.lines().find(|line| line.ends_with(" T schedule"));
        let address = line.expect("each kernel has it").split(' ').next();
        let address = u64::from_str_radix(address.expect("an address"), 16).expect("a number");
        let name = "schedule";
        symbols.locate(
            shown.reference().name.as_bytes(),
            shown.reference().address + 0x1000,
        );
        symbols.locate(b"no reference", 1);
        let mut space = KernelSpace {
            symbols,
            ..KernelSpace::default()
        };
        assert_eq!(at(&space, address + 0x1000), named(KERNEL, name, 0));
        // When they are read, they are moved at once.
        space
            .symbols
            .locate(shown.reference().name.as_bytes(), shown.reference().address);
        assert_eq!(at(&space, address), named(KERNEL, name, 0));
        assert!(KernelSpace::default().symbols.get().is_none());
    }
}
