//! From an address to a function.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::demangled::demangle;
use crate::elf::ElfImage;
use crate::jit;
use crate::kernel::{self, KernelSymbols};
use crate::lines::{Line, Lines};
use crate::processes::Processes;
use crate::table::SymbolTable;

/// Name of the kernel's own code.
const KERNEL: &str = "[kernel.kallsyms]";
/// Object of an address that no mapping covers.
const UNKNOWN: &str = "[unknown]";
/// Name of the code that the kernel maps into every process.
const VDSO: &[u8] = b"[vdso]";

/// Owner of an address.
///
/// ```
/// use quipu_symbols::{AddressOwner, Processes, Symbolizer};
///
/// let mut functions = Vec::new();
/// let owner = AddressOwner::Process(1);
/// Symbolizer::new().resolve(&Processes::new(), owner, 0x1000, &mut functions);
/// assert_eq!(functions[0].name, None);
/// assert_eq!(&*functions[0].object, "[unknown]");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressOwner {
    /// The kernel.
    Kernel,
    /// A process.
    Process(i32),
    /// A guest or the hypervisor.
    Other,
}

/// Function at an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Function {
    /// Object that it is in: the path of a file, or a name in brackets.
    pub object: Arc<str>,
    /// The function, readable; `None` where it has no name.
    pub name: Option<Arc<str>>,
    /// True if it was inlined into the next one.
    pub inlined: bool,
    /// Source location: file and line.
    pub source: Option<(Arc<str>, u32)>,
}

/// Turns addresses into functions. What it has read it keeps.
#[derive(Debug, Default)]
pub struct Symbolizer {
    kernel: Option<KernelSymbols>,
    this_machine: bool,
    with_lines: bool,
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    images: Vec<Image>,
    by_path: HashMap<Arc<[u8]>, usize>,
    jit: HashMap<i32, SymbolTable>,
    names: HashMap<String, Arc<str>>,
    changed: BTreeSet<String>,
}

/// A file that was mapped.
#[derive(Debug)]
struct Image {
    object: Arc<str>,
    elf: Option<ElfImage>,
    lines: Option<Lines>,
    /// The names of its functions by their positions, made readable once.
    names: HashMap<usize, Arc<str>>,
}

impl Symbolizer {
    /// One that knows files only.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the kernel's symbols; see [`KernelSymbols::recorded_at`].
    #[must_use]
    pub fn with_kernel(mut self, kernel: Option<KernelSymbols>) -> Self {
        self.kernel = kernel;
        self
    }

    /// For a recording of this machine and this boot: processes may still be there, and the vDSO is
    /// that of this process.
    #[must_use]
    pub fn of_this_machine(mut self, yes: bool) -> Self {
        self.this_machine = yes;
        self
    }

    /// With inlined functions and source lines where debug information is there. Reading it takes
    /// time and memory.
    #[must_use]
    pub fn with_lines(mut self, yes: bool) -> Self {
        self.with_lines = yes;
        self
    }

    /// With the build ids that were recorded, by path: a file that has another one by now has other
    /// functions, and is left out.
    #[must_use]
    pub fn with_build_ids(mut self, ids: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        self.build_ids = ids.into_iter().collect();
        self
    }

    /// The recording says where a symbol of the kernel was. Where that is the one by which this kernel
    /// tells its own place, addresses are taken as [`KernelSymbols::recorded_at`] does.
    pub fn set_kernel_reference(&mut self, symbol: &[u8], address: u64) {
        let matches = |kernel: &KernelSymbols| kernel.reference().name.as_bytes() == symbol;
        if address != 0 && self.kernel.as_ref().is_some_and(matches) {
            self.kernel = self.kernel.take().map(|kernel| kernel.recorded_at(address));
        }
    }

    /// One more [build id](Self::with_build_ids).
    pub fn add_build_id(&mut self, path: &[u8], id: &[u8]) {
        self.build_ids.insert(path.to_owned(), id.to_owned());
    }

    /// The files that are no longer those that were recorded.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(String::as_str)
    }

    /// Appends what is known of an address: the functions that were inlined there, the innermost
    /// first, and the function itself.
    ///
    /// For a return address, ask for the one before it: the call is there, and the next instruction
    /// may belong to another function.
    pub fn resolve(
        &mut self,
        processes: &Processes,
        owner: AddressOwner,
        address: u64,
        out: &mut Vec<Function>,
    ) {
        match owner {
            AddressOwner::Kernel => out.push(self.kernel_function(address)),
            AddressOwner::Process(pid) => self.process_functions(processes, pid, address, out),
            AddressOwner::Other => out.push(self.nameless(UNKNOWN)),
        }
    }

    fn kernel_function(&mut self, address: u64) -> Function {
        let found = self.kernel.as_ref().and_then(|kernel| {
            let (symbol, module) = kernel.find(address)?;
            Some((symbol.name.to_owned(), module.unwrap_or(KERNEL).to_owned()))
        });
        match found {
            Some((name, module)) => {
                let name = self.shared(&demangle(&name));
                self.named(&module, name)
            }
            None => self.nameless(KERNEL),
        }
    }

    fn process_functions(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
        out: &mut Vec<Function>,
    ) {
        let Some(mapped) = processes.mapping(pid, address) else {
            out.push(match self.jit_function(pid, address) {
                Some(name) => self.named("[jit]", name),
                None => self.nameless(UNKNOWN),
            });
            return;
        };
        if is_anonymous(&mapped.path) {
            let path = String::from_utf8_lossy(&mapped.path);
            out.push(match self.jit_function(pid, address) {
                Some(name) => self.named("[jit]", name),
                None => self.nameless(&path),
            });
            return;
        }
        let index = self.image(&mapped.path);
        let offset = mapped.offset_of(address);
        let Some(image) = self.images.get_mut(index) else {
            return;
        };
        let address = image.elf.as_ref().and_then(|elf| elf.address_at(offset));
        let lines = match (address, &image.lines) {
            (Some(address), Some(lines)) => lines.at(address),
            _ => Vec::new(),
        };
        let name = address.and_then(|address| image.function_at(address));
        let object = image.object.clone();
        let function = |name, inlined, source| Function {
            object: object.clone(),
            name,
            inlined,
            source,
        };
        let Some((outermost, inlined)) = lines.split_last() else {
            out.push(function(name, false, None));
            return;
        };
        for line in inlined {
            let name = line.function.as_deref().map(|name| self.shared(name));
            out.push(function(name, true, self.source(line)));
        }
        let own = || outermost.function.as_deref().map(|name| self.shared(name));
        let name = name.or_else(own);
        out.push(function(name, false, self.source(outermost)));
    }

    fn source(&mut self, line: &Line) -> Option<(Arc<str>, u32)> {
        Some((self.shared(line.file.as_deref()?), line.line?))
    }

    fn jit_function(&mut self, pid: i32, address: u64) -> Option<Arc<str>> {
        if !self.this_machine {
            return None;
        }
        let table = self
            .jit
            .entry(pid)
            .or_insert_with(|| jit::functions_of(pid));
        let name = demangle(table.find(address)?.name).into_owned();
        Some(self.shared(&name))
    }

    /// The position of a file that was mapped, read when it is first asked for.
    fn image(&mut self, path: &Arc<[u8]>) -> usize {
        if let Some(index) = self.by_path.get(path) {
            return *index;
        }
        let object = String::from_utf8_lossy(path).into_owned();
        let mut elf = match &**path {
            VDSO => self.this_machine.then(kernel::vdso).flatten(),
            _ => ElfImage::open(as_path(path)),
        };
        let recorded = self.build_ids.get(&**path);
        let is_other = |elf: &ElfImage| {
            recorded.is_some_and(|id| elf.build_id().is_some_and(|own| own != id.as_slice()))
        };
        if elf.as_ref().is_some_and(is_other) {
            self.changed.insert(object.clone());
            elf = None;
        }
        let lines = elf
            .as_ref()
            .filter(|_| self.with_lines)
            .and_then(|elf| Lines::open(as_path(path), elf.build_id()));
        self.images.push(Image {
            object: object.into(),
            elf,
            lines,
            names: HashMap::new(),
        });
        let index = self.images.len() - 1;
        self.by_path.insert(path.clone(), index);
        index
    }

    fn named(&mut self, object: &str, name: Arc<str>) -> Function {
        Function {
            name: Some(name),
            ..self.nameless(object)
        }
    }

    fn nameless(&mut self, object: &str) -> Function {
        Function {
            object: self.shared(object),
            name: None,
            inlined: false,
            source: None,
        }
    }

    /// The one copy of a text.
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.names.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.names.insert(text.to_owned(), shared.clone());
        shared
    }
}

impl Image {
    fn function_at(&mut self, address: u64) -> Option<Arc<str>> {
        let symbol = self.elf.as_ref()?.symbols().find(address)?;
        let name = self.names.entry(symbol.index);
        Some(name.or_insert_with(|| demangle(symbol.name).into()).clone())
    }
}

#[cfg(unix)]
fn as_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

#[cfg(not(unix))]
fn as_path(path: &[u8]) -> &Path {
    Path::new(std::str::from_utf8(path).unwrap_or_default())
}

/// Returns true if a mapping is of no file (`is_anon_memory`, `tools/perf/util/map.c`).
fn is_anonymous(path: &[u8]) -> bool {
    let begins: [&[u8]; 6] = [
        b"//anon",
        b"/dev/zero",
        b"/anon_hugepage",
        b"/memfd:",
        b"/SYSV",
        b"[",
    ];
    path != VDSO && begins.iter().any(|begin| path.starts_with(begin))
}
