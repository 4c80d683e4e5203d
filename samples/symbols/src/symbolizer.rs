//! From an address to a function.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::HashMap;

use crate::call_frames::{CallFrames, Rule, Rules};
use crate::debug_files::BuildFiles;
use crate::demangled::demangle;
use crate::elf::ElfImage;
use crate::jit;
use crate::kernel::{self, KernelSymbols};
use crate::left_out::LeftOut;
use crate::lines::{Line, Lines};
use crate::processes::Processes;
use crate::table::SymbolTable;
use crate::unwind::{Architecture, ThreadState};

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
    /// Bytes from the start of its symbol to the address; `None` for an inlined one, and where it has no symbol.
    pub offset: Option<u64>,
}

/// Identity of a function in a file that a [`Symbolizer`] has read, or of all addresses of the file that are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId {
    image: usize,
    symbol: Option<usize>,
}

/// Turns addresses into functions. It keeps what it has read.
#[derive(Debug, Default)]
pub struct Symbolizer {
    kernel: Option<KernelSymbols>,
    this_machine: bool,
    with_lines: bool,
    with_maps_of_others: bool,
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    images: Vec<Image>,
    by_path: HashMap<Arc<[u8]>, usize>,
    /// By the address of the path, which is kept for that: processes share their paths.
    by_shared_path: HashMap<usize, (Arc<[u8]>, usize)>,
    jit: HashMap<i32, SymbolTable>,
    names: HashMap<String, Arc<str>>,
    changed: BTreeSet<String>,
    left_out: BTreeMap<String, LeftOut>,
}

/// A file that was mapped.
#[derive(Debug)]
struct Image {
    object: Arc<str>,
    is_vdso: bool,
    /// True for memory that is of no file.
    is_anonymous: bool,
    /// The file that is read: what was mapped, or a copy of it.
    file: PathBuf,
    elf: Option<ElfImage>,
    lines: Option<Lines>,
    /// Its call frame information, read when it is first asked for.
    call_frames: Option<Option<CallFrames>>,
    /// The names of its functions by their positions, made readable once.
    names: HashMap<usize, Arc<str>>,
}

impl Symbolizer {
    /// Returns a symbolizer that knows files only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the kernel's symbols; see [`KernelSymbols::recorded_at`].
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

    /// Finds inlined functions and source lines too, where there is debug information. Reading it takes
    /// time and memory.
    #[must_use]
    pub fn with_lines(mut self, yes: bool) -> Self {
        self.with_lines = yes;
        self
    }

    /// Reads a `/tmp/perf-PID.map` also if it is of a user who is neither root nor the one of this process.
    #[must_use]
    pub fn with_maps_of_others(mut self, yes: bool) -> Self {
        self.with_maps_of_others = yes;
        self
    }

    /// Sets the build ids that were recorded, by path: a file that has another one by now has other functions, and is left
    /// out. A copy with the recorded id is read in its place, and in that of a file that is gone: from perf's cache
    /// (`~/.debug`), or that of debuginfod's clients (`$DEBUGINFOD_CACHE_PATH`, `~/.cache/debuginfod_client`).
    #[must_use]
    pub fn with_build_ids(mut self, ids: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        self.build_ids = ids.into_iter().collect();
        self
    }

    /// Sets where a symbol of the kernel was when it was recorded. If this kernel is located by the same
    /// symbol, addresses are moved as [`KernelSymbols::recorded_at`] does.
    pub fn set_kernel_reference(&mut self, symbol: &[u8], address: u64) {
        let matches = |kernel: &KernelSymbols| kernel.reference().name.as_bytes() == symbol;
        if address != 0 && self.kernel.as_ref().is_some_and(matches) {
            self.kernel = self.kernel.take().map(|kernel| kernel.recorded_at(address));
        }
    }

    /// Adds one more [build id](Self::with_build_ids).
    pub fn add_build_id(&mut self, path: &[u8], id: &[u8]) {
        self.build_ids.insert(path.to_owned(), id.to_owned());
    }

    /// Returns the files that have changed since the recording.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(String::as_str)
    }

    /// Returns the files that are there and were not read, and why: functions in them have no names.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &LeftOut)> {
        let files = self.left_out.iter();
        files.map(|(path, reason)| (path.as_str(), reason))
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

    /// Returns true if a process may have functions that are in none of its files, of which [`resolve`](Self::resolve) reads in
    /// `/tmp/perf-PID.map`. Of others, those with the same mappings ([`Processes::space`]) have the same functions.
    pub fn may_have_own_functions(&self, pid: i32) -> bool {
        self.this_machine && jit::path_of(pid).exists()
    }

    /// Returns the identity of the function at an address of a process, where [`resolve`](Self::resolve) appends the same for
    /// all its addresses but the offset; `None` where it may append something else, as in memory of no file, and in files
    /// whose lines are read.
    ///
    /// It takes less time than to resolve the address.
    pub fn function_id(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
    ) -> Option<FunctionId> {
        let mapped = processes.mapping(pid, address)?;
        let index = self.image(&mapped.path);
        let image = self.images.get(index)?;
        if image.is_anonymous || image.lines.is_some() {
            return None;
        }
        let symbol = image.elf.as_ref().and_then(|elf| {
            let in_file = elf.address_at(mapped.offset_of(address))?;
            elf.position(in_file)
        });
        Some(FunctionId {
            image: index,
            symbol,
        })
    }

    /// Appends the call chain of a thread of a process, the innermost function first: the instruction of its registers, and
    /// the last byte of each call, at most `most` frames. Callers are found by the call frame information of the files that
    /// are mapped; the chain ends where there is none for an address, or the copy of the stack does.
    pub fn unwind(
        &mut self,
        processes: &Processes,
        pid: i32,
        mut thread: ThreadState<'_>,
        most: usize,
        out: &mut Vec<u64>,
    ) {
        for _ in 0..most {
            let Some(address) = thread.address() else {
                return;
            };
            out.push(address);
            let rules = self.rules_at(processes, pid, address);
            let stepped = rules
                .and_then(|(rules, in_file)| thread.step(&rules, address.wrapping_sub(in_file)));
            if stepped.is_none() {
                return;
            }
        }
    }

    /// Returns true if the frame of a process at an address is found by the frame pointer, as call chains of frame pointers need
    /// it, and false if it is found by the stack pointer or otherwise; `None` without call frame information.
    pub fn has_frame_pointer(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
        machine: Architecture,
    ) -> Option<bool> {
        let (rules, _) = self.rules_at(processes, pid, address)?;
        Some(
            matches!(rules.cfa, Rule::Register(register, _) if register == machine.frame_pointer()),
        )
    }

    /// Returns the rules that restore the registers of a caller at an address of a process, and the address in the file.
    fn rules_at(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
    ) -> Option<(Arc<Rules>, u64)> {
        let mapped = processes.mapping(pid, address)?;
        let index = self.image(&mapped.path);
        let this_machine = self.this_machine;
        let image = self.images.get_mut(index)?;
        let in_file = image.elf.as_ref()?.address_at(mapped.offset_of(address))?;
        Some((image.rules_at(in_file, this_machine)?, in_file))
    }

    fn kernel_function(&mut self, address: u64) -> Function {
        let found = self.kernel.as_ref().and_then(|kernel| {
            let (symbol, module) = kernel.find(address)?;
            let offset = address.wrapping_sub(symbol.start);
            let module = module.unwrap_or(KERNEL).to_owned();
            Some((symbol.name.to_owned(), module, offset))
        });
        match found {
            Some((name, module, offset)) => {
                let name = self.shared(&demangle(&name));
                self.named(&module, name, offset)
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
                Some((name, offset)) => self.named("[jit]", name, offset),
                None => self.nameless(UNKNOWN),
            });
            return;
        };
        let index = self.image(&mapped.path);
        let offset = mapped.offset_of(address);
        let Some(image) = self.images.get_mut(index) else {
            return;
        };
        if image.is_anonymous {
            let path = image.object.clone();
            out.push(match self.jit_function(pid, address) {
                Some((name, offset)) => self.named("[jit]", name, offset),
                None => self.nameless(&path),
            });
            return;
        }
        let address = image.elf.as_ref().and_then(|elf| elf.address_at(offset));
        let lines = match (address, &image.lines) {
            (Some(address), Some(lines)) => lines.at(address),
            _ => Vec::new(),
        };
        let found = address.and_then(|address| image.function_at(address));
        let (name, offset) = found.unzip();
        let object = image.object.clone();
        let function = |name, inlined, source| Function {
            object: object.clone(),
            name,
            inlined,
            source,
            offset: offset.filter(|_| !inlined),
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

    fn jit_function(&mut self, pid: i32, address: u64) -> Option<(Arc<str>, u64)> {
        if !self.this_machine {
            return None;
        }
        let table = self.jit.entry(pid).or_insert_with(|| {
            let path = jit::path_of(pid);
            let functions = jit::functions_in(&path, self.with_maps_of_others);
            functions.unwrap_or_else(|reason| {
                self.left_out.insert(path.display().to_string(), reason);
                SymbolTable::default()
            })
        });
        let symbol = table.find(address)?;
        let offset = address - symbol.start;
        let name = demangle(symbol.name).into_owned();
        Some((self.shared(&name), offset))
    }

    /// The position of a file that was mapped, read when it is first asked for.
    fn image(&mut self, path: &Arc<[u8]>) -> usize {
        let shared = path.as_ptr().addr();
        if let Some((_, index)) = self.by_shared_path.get(&shared) {
            return *index;
        }
        let known = self.by_path.get(path).copied();
        let index = known.unwrap_or_else(|| self.read_image(path));
        self.by_shared_path.insert(shared, (path.clone(), index));
        index
    }

    fn read_image(&mut self, path: &Arc<[u8]>) -> usize {
        let is_anonymous = is_anonymous(path);
        let object = String::from_utf8_lossy(path).into_owned();
        let mut elf = match &**path {
            _ if is_anonymous => None,
            VDSO => vdso_of(self.this_machine).and_then(|bytes| ElfImage::read(Cursor::new(bytes))),
            _ => ElfImage::open(as_path(path)).unwrap_or_else(|error| {
                self.left_out.insert(object.clone(), error.into());
                None
            }),
        };
        let recorded = self.build_ids.get(&**path);
        let is_other = |elf: &ElfImage| {
            recorded.is_some_and(|id| elf.build_id().is_some_and(|own| own != id.as_slice()))
        };
        let is_changed = elf.as_ref().is_some_and(is_other);
        let mut file = as_path(path).to_owned();
        if (elf.is_none() || is_changed)
            && let Some((copy, copied)) = recorded.and_then(|id| copy_of(id))
        {
            self.left_out.remove(&object);
            (file, elf) = (copy, Some(copied));
        } else if is_changed {
            self.changed.insert(object.clone());
            elf = None;
        }
        let lines = elf
            .as_ref()
            .filter(|_| self.with_lines)
            .and_then(|elf| Lines::open(&file, elf.debug_file()));
        self.images.push(Image {
            object: object.into(),
            is_vdso: &**path == VDSO,
            is_anonymous,
            file,
            elf,
            lines,
            call_frames: None,
            names: HashMap::default(),
        });
        let index = self.images.len() - 1;
        self.by_path.insert(path.clone(), index);
        index
    }

    fn named(&mut self, object: &str, name: Arc<str>, offset: u64) -> Function {
        Function {
            name: Some(name),
            offset: Some(offset),
            ..self.nameless(object)
        }
    }

    fn nameless(&mut self, object: &str) -> Function {
        Function {
            object: self.shared(object),
            name: None,
            inlined: false,
            source: None,
            offset: None,
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
    /// Returns the rules that restore the registers of a caller at an address of the file.
    fn rules_at(&mut self, address: u64, this_machine: bool) -> Option<Arc<Rules>> {
        let (file, debug_file) = (&self.file, self.elf.as_ref()?.debug_file());
        let frames = self.call_frames.get_or_insert_with(|| match self.is_vdso {
            true => vdso_of(this_machine).and_then(CallFrames::of_bytes),
            false => CallFrames::open(file, debug_file),
        });
        frames.as_mut()?.at(address)
    }

    /// Returns the name of the function at an address, and how far into it that is.
    fn function_at(&mut self, address: u64) -> Option<(Arc<str>, u64)> {
        let symbol = self.elf.as_ref()?.find(address)?;
        let name = self.names.entry(symbol.index);
        let name = name.or_insert_with(|| demangle(symbol.name).into()).clone();
        Some((name, address - symbol.start))
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

/// Returns a copy of a file by its build id, and where it is.
fn copy_of(build_id: &[u8]) -> Option<(PathBuf, ElfImage)> {
    let copies = BuildFiles::of(build_id).copies;
    copies.into_iter().find_map(|path| {
        let elf = ElfImage::open(&path).ok()??;
        (elf.build_id() == Some(build_id)).then_some((path, elf))
    })
}

/// Returns the vDSO of a recording of this machine.
fn vdso_of(this_machine: bool) -> Option<Vec<u8>> {
    this_machine.then(kernel::vdso).flatten()
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
