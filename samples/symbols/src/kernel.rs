//! Symbols of the running kernel: `/proc/kallsyms`, and the code it maps into every process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::elf;
use crate::table::{Extent, Symbol, SymbolTable, TableBuilder};

/// Symbols that locate the kernel, which is elsewhere after each boot
/// (`ref_reloc_sym_names`, `tools/perf/util/machine.c`).
const REFERENCES: [&str; 2] = ["_text", "_stext"];
/// A vDSO is a few pages; this one is not believed.
const LARGEST_VDSO: u64 = 1 << 20;

/// The functions of the running kernel and its modules.
#[derive(Debug, Clone)]
pub struct KernelSymbols {
    table: SymbolTable,
    /// The symbols that locate it; the first one is that of its own recordings.
    references: Vec<Reference>,
    /// Number to add to the addresses of a recording; `None` as long as it is not known.
    shift: Option<u64>,
}

/// A symbol of the kernel and where it is.
///
/// Exhaustive: a symbol is its name and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The symbol.
    pub name: &'static str,
    /// Its address.
    pub address: u64,
}

/// Code in the memory of the kernel that runs, as far as this process may see its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelText {
    /// Mapping of the kernel itself.
    pub reference: Reference,
    /// The first address behind it.
    pub end: u64,
    /// Its modules.
    pub modules: Vec<InKernel>,
    /// BPF programs and trampolines.
    pub programs: Vec<InKernel>,
}

/// A piece of the kernel's memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct InKernel {
    /// Its first address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Its name.
    pub name: String,
}

impl KernelText {
    /// Returns that of this machine's kernel; `None` if this process may not see its addresses.
    pub fn of_this_machine() -> Option<Self> {
        let symbols = BufReader::new(File::open("/proc/kallsyms").ok()?);
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        Self::parse(symbols, &modules)
    }

    /// Parses `/proc/kallsyms` and `/proc/modules`: name, length, users, dependents, state and address of each module.
    fn parse(mut symbols: impl BufRead, modules: &str) -> Option<Self> {
        /// Symbols behind the kernel's own code, the last one first.
        const ENDS: [&str; 3] = ["_end", "_einittext", "_etext"];
        /// Longest piece of memory that one program is in (`BPF_PROG_PACK_SIZE`).
        const LONGEST_PROGRAM: u64 = 2 << 20;
        let (mut reference, mut end): (Option<Reference>, Option<(usize, u64)>) = (None, None);
        let mut programs: Vec<(u64, String)> = Vec::new();
        let mut line = String::new();
        while symbols.read_line(&mut line).ok()? > 0 {
            if let Some((address @ 1.., _, name)) = fields(line.trim_end()) {
                let rank = ENDS.iter().position(|known| *known == name);
                if let Some(rank) = rank.filter(|rank| end.is_none_or(|(known, _)| *rank < known)) {
                    end = Some((rank, address));
                }
                if let Some(known) = REFERENCES.into_iter().find(|known| *known == name)
                    && reference.is_none_or(|found| found.name != REFERENCES[0])
                {
                    let name = known;
                    reference = Some(Reference { name, address });
                }
                if let Some(name) = name.strip_suffix("\t[bpf]") {
                    programs.push((address, name.to_owned()));
                }
            }
            line.clear();
        }
        let modules = modules.lines().filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (name, len) = (fields.next()?, fields.next()?.parse().ok()?);
            let start = u64::from_str_radix(fields.nth(3)?.strip_prefix("0x")?, 16).ok()?;
            let name = name.to_owned();
            (start > 0).then_some(InKernel { start, len, name })
        });
        programs.sort();
        let ends = programs.iter().skip(1).map(|(start, _)| *start);
        let ends: Vec<_> = ends.chain([u64::MAX]).collect();
        let programs = programs.into_iter().zip(ends);
        let programs = programs.map(|((start, name), end)| InKernel {
            start,
            // Their lengths are not said: what comes next is where one ends at the latest.
            len: (end - start).min(LONGEST_PROGRAM),
            name,
        });
        Some(Self {
            reference: reference?,
            end: end.map_or(u64::MAX, |(_, end)| end),
            modules: modules.collect(),
            programs: programs.filter(|program| program.len > 0).collect(),
        })
    }
}

impl KernelSymbols {
    /// Returns the symbols of this machine's kernel; `None` when this process may not see their addresses
    /// (`kernel.kptr_restrict`), or the kernel has none to show.
    pub fn of_this_machine() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/kallsyms").ok()?)
    }

    /// Parses the text of `/proc/kallsyms`: address, type, name, module.
    pub fn parse(text: &str) -> Option<Self> {
        let mut symbols: Vec<(u64, &str)> = Vec::new();
        let mut references: Vec<Reference> = Vec::new();
        for line in text.split('\n') {
            let Some((address @ 1.., kind, name)) = fields(line) else {
                continue;
            };
            if !matches!(kind, b'T' | b't' | b'W' | b'w') {
                continue;
            }
            if let Some(name) = REFERENCES.into_iter().find(|known| *known == name) {
                references.push(Reference { name, address });
                // They are places, not functions.
                continue;
            }
            symbols.push((address, name));
        }
        // Of several for one address the last one is taken, as perf does (`symbols__fixup_end`, `symbols__fixup_duplicate`).
        symbols.reverse();
        symbols.sort_by_key(|(address, _)| *address);
        symbols.dedup_by_key(|(address, _)| *address);
        let mut builder = TableBuilder::default();
        for (address, name) in symbols {
            builder.add(address, Extent::ToNext(u64::MAX), 0, name);
        }
        Self::new(builder.build(), references, Some(0))
    }

    /// Returns those of a kernel's ELF file, whose addresses are known when the [reference](Self::reference) is located; `None`
    /// if it has none.
    ///
    /// # Errors
    /// The operating system's when it cannot be read.
    pub fn of_vmlinux(path: &Path) -> io::Result<Option<Self>> {
        let Some(symbols) = elf::symbols_of(path, &REFERENCES)? else {
            return Ok(None);
        };
        let references = symbols.named.into_iter();
        let references = references.map(|(name, address)| Reference { name, address });
        Ok(Self::new(symbols.functions, references.collect(), None))
    }

    /// Returns those of the file of a kernel that is always at the addresses in it, as FreeBSD's is; `None` if it is no such file,
    /// or cannot be read.
    pub fn of_file_in_place(path: &Path) -> Option<Self> {
        /// The beginning of its code.
        const BEGIN: &str = "btext";
        let symbols = elf::symbols_of(path, &[BEGIN]).ok()??;
        let references = symbols.named.into_iter();
        let references = references.map(|(name, address)| Reference { name, address });
        Self::new(symbols.functions, references.collect(), Some(0))
    }

    fn new(table: SymbolTable, mut references: Vec<Reference>, shift: Option<u64>) -> Option<Self> {
        references.sort_by_key(|reference| reference.name != REFERENCES[0]);
        (!references.is_empty()).then_some(Self {
            table,
            references,
            shift,
        })
    }

    /// Returns the symbol that locates this kernel.
    pub fn reference(&self) -> Reference {
        self.references[0]
    }

    /// Sets the address that the [reference](Self::reference) had in a recording.
    #[must_use]
    pub fn recorded_at(mut self, address: u64) -> Self {
        self.shift = Some(self.reference().address.wrapping_sub(address));
        self
    }

    /// Sets the address that a symbol had in a recording, if it is one that locates a kernel.
    pub(crate) fn locate(&mut self, symbol: &[u8], address: u64) {
        let mut references = self.references.iter();
        let reference = references.find(|known| known.name.as_bytes() == symbol);
        if let Some(reference) = reference {
            self.shift = Some(reference.address.wrapping_sub(address));
        }
    }

    /// The function at an address of the recording, and the module in brackets that it is of.
    pub(crate) fn find(&self, address: u64) -> Option<(Symbol<'_>, Option<&str>)> {
        let shift = self.shift?;
        let symbol = self.table.find(address.wrapping_add(shift))?;
        let (name, module) = match symbol.name.split_once('\t') {
            Some((name, module)) => (name, Some(module)),
            None => (symbol.name, None),
        };
        let start = symbol.start.wrapping_sub(shift);
        Some((
            Symbol {
                start,
                end: symbol.end.wrapping_sub(shift),
                name,
                ..symbol
            },
            module,
        ))
    }
}

/// Returns the address, the type and the name in a line of `/proc/kallsyms`, with the module of a symbol behind a tab.
fn fields(line: &str) -> Option<(u64, u8, &str)> {
    let digits = line.bytes().position(|byte| byte == b' ')?;
    let [b' ', kind, b' ', ..] = line.as_bytes()[digits..] else {
        return None;
    };
    let address = u64::from_str_radix(&line[..digits], 16).ok()?;
    Some((address, kind, line.get(digits + 3..)?))
}

/// The code that the kernel maps into every process as `[vdso]` (vdso(7)), as it is in this one.
pub(crate) fn vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let len = end.checked_sub(start).filter(|len| *len <= LARGEST_VDSO)?;
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    memory.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::ElfImage;
    use std::io::{Cursor, Write as _};

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 T start_kernel
ffffffff81000200 t helper
ffffffff81000200 D data
ffffffff81001000 T _etext
ffffffffc0000000 t init\t[module]
";

    #[test]
    fn functions_and_modules_are_found() {
        let symbols = KernelSymbols::parse(TEXT).expect("addresses");
        let found = |address| {
            let (symbol, module) = symbols.find(address)?;
            Some((symbol.name, symbol.start, module))
        };
        assert_eq!(found(0xffff_ffff_8100_0000), None);
        assert_eq!(
            found(0xffff_ffff_8100_01ff),
            Some(("start_kernel", 0xffff_ffff_8100_0100, None))
        );
        assert_eq!(
            found(0xffff_ffff_8100_0200),
            Some(("helper", 0xffff_ffff_8100_0200, None))
        );
        assert_eq!(
            found(0xffff_ffff_c000_0010),
            Some(("init", 0xffff_ffff_c000_0000, Some("[module]")))
        );
        let reference = Reference {
            name: "_text",
            address: 0xffff_ffff_8100_0000,
        };
        assert_eq!(symbols.reference(), reference);
    }

    #[test]
    fn of_several_for_one_address_the_last_one_is_taken() {
        let several = "\
ffffffff81000000 T _text
ffffffff81000300 t local
ffffffff81000300 T __ia32_sys_fork
ffffffff81000300 W __x64_sys_fork
ffffffff81000300 D data
ffffffff81000200 T first
";
        let symbols = KernelSymbols::parse(several).expect("addresses");
        let name = |address| symbols.find(address).map(|(symbol, _)| symbol.name);
        assert_eq!(name(0xffff_ffff_8100_0300), Some("__x64_sys_fork"));
        assert_eq!(name(0xffff_ffff_8100_02ff), Some("first"));
    }

    #[test]
    fn what_is_in_the_kernels_memory_is_found() {
        let programs =
            "ffffffffc1000040 t bpf_prog_2_g\t[bpf]\nffffffffc1000000 t bpf_prog_1_f\t[bpf]\n";
        let symbols = [TEXT, "ffffffff81002000 B _end\n", programs].concat();
        let modules = "one 4096 1 two, Live 0xffffffffc0000000 (O)\nhidden 4096 0 - Live 0x0000000000000000\n";
        let text = KernelText::parse(symbols.as_bytes(), modules).expect("addresses");
        assert_eq!(
            (text.reference.name, text.end),
            ("_text", 0xffff_ffff_8100_2000)
        );
        let pieces = |pieces: &[InKernel]| -> Vec<_> {
            pieces
                .iter()
                .map(|one| (one.start, one.len, one.name.clone()))
                .collect()
        };
        assert_eq!(
            pieces(&text.modules),
            [(0xffff_ffff_c000_0000, 4096, "one".to_owned())]
        );
        assert_eq!(
            pieces(&text.programs),
            [
                (0xffff_ffff_c100_0000, 64, "bpf_prog_1_f".to_owned()),
                (0xffff_ffff_c100_0040, 2 << 20, "bpf_prog_2_g".to_owned())
            ]
        );
        assert!(KernelText::parse(&b"0000000000000000 T _text\n"[..], "").is_none());
    }

    #[test]
    fn the_kernel_of_this_machine_is_found_where_its_addresses_are_shown() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let shown = KernelText::parse(symbols.as_bytes(), "");
        let found = KernelText::of_this_machine();
        assert_eq!(
            found.map(|text| text.reference),
            shown.map(|text| text.reference)
        );
    }

    #[test]
    fn a_kernel_that_was_elsewhere_is_found() {
        let symbols = KernelSymbols::parse(TEXT).expect("addresses");
        let symbols = symbols.recorded_at(0xffff_ffff_9100_0000);
        let (symbol, _) = symbols.find(0xffff_ffff_9100_0110).expect("a name");
        assert_eq!(
            (symbol.name, symbol.start),
            ("start_kernel", 0xffff_ffff_9100_0100)
        );
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let hidden = "0000000000000000 T _text\n0000000000000000 T start_kernel\n";
        assert!(KernelSymbols::parse(hidden).is_none());
        assert!(KernelSymbols::parse("").is_none());
        assert!(KernelSymbols::parse("nonsense\n\u{0}\n").is_none());
    }

    #[test]
    fn the_vdso_has_its_well_known_functions() {
        let image = vdso().and_then(|bytes| ElfImage::read(Cursor::new(bytes)));
        let Some(vdso) = image else {
            let name = "the_vdso_has_its_well_known_functions";
            let _ = writeln!(io::stderr(), "SKIP {name}: no vDSO is mapped");
            return;
        };
        let is_clock = |at: u64| {
            vdso.find(at)
                .is_some_and(|found| found.name.ends_with("clock_gettime"))
        };
        assert!((0..0x4000).any(is_clock));
    }

    /// It is a shared object that has the clock, on every architecture.
    #[cfg(target_os = "linux")]
    #[test]
    fn code_of_the_kernel_in_this_process_is_read_whole() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        if !maps.lines().any(|line| line.ends_with("[vdso]")) {
            let _ = writeln!(
                io::stderr(),
                "SKIP code of the kernel in this process: it has none"
            );
            return;
        }
        let code = vdso().expect("it is mapped");
        assert!(code.starts_with(b"\x7fELF") && code.len().is_multiple_of(4096));
        let clock = b"clock_gettime\0";
        assert!(code.windows(clock.len()).any(|part| part == clock));
    }
}
