//! From an address to a function.

mod keeping;
mod known;
mod nameless;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;

use crate::address_space::Mapped;
use crate::archive;
use crate::call_frames::Rules;
use crate::demangled::{Style, demangle_as};
use crate::elf::ElfImage;
use crate::image::{Image, ReadFile};
use crate::jit_names::{JitNames, Reading};
use crate::kept::KeptNames;
use crate::kernel_space::{KernelSpace, UNKNOWN};
use crate::left_out::LeftOut;
use crate::lines::Line;
use crate::locate::{self, Candidate, Doubt, NotLocated, RecordedAt};
use crate::mapped_file::{FileIdentity, MappedFile};
use crate::no_names::NoNames;
use crate::process_maps::{ProcessMaps, as_path, under};
use crate::processes::Processes;
use crate::recorded_symbols::RecordedTable;
use crate::unwind::{Architecture, CallerOf, ThreadState};

use nameless::why_missing;

/// Objects of addresses of a guest's kernel, of its processes, and of the hypervisor.
const GUEST_KERNEL: &str = "[guest.kernel]";
const GUEST: &str = "[guest]";
const HYPERVISOR: &str = "[hypervisor]";
/// Object of functions that a compiler made.
const JIT: &str = "[jit]";
/// As many files in one archive are read.
const MOST_IN_ARCHIVE: usize = 256;
/// Position of the image that stands for what was kept with the recording.
const KEPT: usize = usize::MAX;
/// As many processes that run are asked for a file that is not at its path here.
const MOST_PROCESSES: usize = 16;

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
    /// The kernel of a guest.
    GuestKernel,
    /// A process of a guest.
    Guest,
    /// The hypervisor.
    Hypervisor,
    /// The recording does not say.
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

/// Identity of a function in a file that a [`Symbolizer`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId {
    image: usize,
    symbol: usize,
}

/// Positions of the images of a file, with the bytes that each takes of it: an archive has several.
type ImagesOfFile = Vec<(Range<u64>, usize)>;

/// Turns addresses into functions. It keeps what it has read.
#[derive(Debug, Default)]
pub struct Symbolizer {
    kernel: KernelSpace,
    has_this_kernel: bool,
    recorded_at: RecordedAt,
    with_lines: bool,
    style: Style,
    with_maps_of_others: bool,
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// Functions that the recording lists, by the paths of their files.
    recorded: HashMap<Vec<u8>, Arc<RecordedTable>>,
    images: Vec<Image>,
    /// Images of files, by the addresses of the files, which are kept for that: processes share their files.
    by_file: HashMap<usize, (Arc<MappedFile>, ImagesOfFile)>,
    jit: JitNames,
    names: HashMap<String, Arc<str>>,
    changed: BTreeSet<String>,
    doubtful: BTreeMap<String, Doubt>,
    left_out: BTreeMap<String, LeftOut>,
    /// Why functions that were asked for have no names, by object.
    no_names: BTreeMap<String, NoNames>,
    /// The reasons that there were when it was recorded, by object.
    kept_no_names: BTreeMap<String, NoNames>,
    /// Copies of files, for those that are in none of their places any more.
    copies: HashMap<FileIdentity, PathBuf>,
    /// The directory that stands for the root of the file system that was recorded.
    root: Option<PathBuf>,
    /// Names that were kept with the recording.
    kept: Option<KeptNames>,
    /// Names that were found, to be kept.
    noted: Option<KeptNames>,
}

impl Symbolizer {
    /// Returns a symbolizer that knows files only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes of the files that were read for names.
    pub fn bytes_of_files(&self) -> u64 {
        let files = self.images.iter().flat_map(|image| {
            let read = image.read.iter().map(|read| &*read.path);
            read.chain(image.elf.iter().filter_map(ElfImage::debug_file))
        });
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
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
        if self.kept.is_some() && self.resolve_kept(processes, owner, address, out) {
            return;
        }
        let begin = out.len();
        match owner {
            AddressOwner::Kernel => out.push(self.kernel_function(address)),
            AddressOwner::Process(pid) => self.process_functions(processes, pid, address, out),
            AddressOwner::GuestKernel => out.push(self.nameless(GUEST_KERNEL)),
            AddressOwner::Guest => out.push(self.nameless(GUEST)),
            AddressOwner::Hypervisor => out.push(self.nameless(HYPERVISOR)),
            AddressOwner::Other => out.push(self.nameless(UNKNOWN)),
        }
        if self.noted.is_some() {
            self.note(processes, owner, address, &out[begin..]);
        }
    }

    /// Returns true if a process may have functions that are in none of its files, of which [`resolve`](Self::resolve) reads in
    /// `/tmp/perf-PID.map`. Of others, those with the same mappings ([`Processes::space`]) have the same functions.
    pub fn may_have_own_functions(&self, processes: &Processes, pid: i32) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.has_process(pid))
            || self.jit.are_there(processes, pid, self.recorded_at)
    }

    /// Returns the file that is read for what is at an address of a process: of code that a compiler made, the one that the
    /// compiler has written it to.
    pub fn file_at(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
    ) -> Option<&Arc<ReadFile>> {
        let mapped = processes.mapping(pid, address);
        let index = mapped.map(|mapped| self.image((processes, pid), mapped));
        match index.and_then(|index| self.images.get(index)) {
            Some(image) if !image.is_anonymous => image.read.as_ref(),
            _ => {
                let reading = self.reading();
                self.jit.file_at((processes, pid), address, reading)
            }
        }
    }

    /// Returns the identity of the function at an address of a process, where [`resolve`](Self::resolve) appends the same for
    /// all its addresses but the offset; `None` where it may append something else, as in memory of no file, where no function is, and in files
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
        let offset = mapped.offset_of(address);
        let kept = self.kept.as_mut();
        if let Some(symbol) = kept.and_then(|kept| kept.symbol_at(&mapped.file, offset)) {
            return (!self.with_lines).then_some(FunctionId {
                image: KEPT,
                symbol,
            });
        }
        let index = self.image((processes, pid), mapped);
        let image = self.images.get(index)?;
        if image.is_anonymous || image.lines.is_some() || image.recorded.is_some() {
            return None;
        }
        let elf = image.elf.as_ref()?;
        let symbol = elf.position(image.address_at(offset)?)?;
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

    /// Returns the way to the caller of the frame of a process at an address, as call frame information has it; `None` where it
    /// has none, or says nothing of a return address.
    pub fn caller_of(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
        machine: Architecture,
    ) -> Option<CallerOf> {
        let (rules, _) = self.rules_at(processes, pid, address)?;
        rules.caller(machine)
    }

    /// Returns the rules that restore the registers of a caller at an address of a process, and the address in the file.
    fn rules_at(
        &mut self,
        processes: &Processes,
        pid: i32,
        address: u64,
    ) -> Option<(Arc<Rules>, u64)> {
        let mapped = processes.mapping(pid, address)?;
        let offset = mapped.offset_of(address);
        let kept = self.kept.as_mut();
        if let Some(kept) = kept.and_then(|kept| kept.rules_at(&mapped.file, offset)) {
            return Some(kept);
        }
        let index = self.image((processes, pid), mapped);
        let image = self.images.get_mut(index)?;
        if image.is_anonymous {
            let reading = self.reading();
            let rules = self.jit.rules_at((processes, pid), address, reading)?;
            return Some((rules, address));
        }
        let in_file = image.address_at(offset)?;
        let rules = image.rules_at(in_file)?;
        if self.noted.is_some() {
            self.note_rules(processes, (pid, address), (&rules, in_file));
        }
        Some((rules, in_file))
    }

    fn kernel_function(&mut self, address: u64) -> Function {
        let found = self.kernel.at(address);
        let object = found.object.to_owned();
        let function = found
            .function
            .map(|(name, offset)| (demangle_as(name, self.style).into_owned(), offset));
        match function {
            Some((name, offset)) => {
                let name = self.shared(&name);
                self.named(&object, name, offset)
            }
            None => self.nameless(&object),
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
            let function = self.jit_function(processes, pid, address);
            out.push(function.unwrap_or_else(|| self.nameless(UNKNOWN)));
            return;
        };
        let index = self.image((processes, pid), mapped);
        let offset = mapped.offset_of(address);
        let Some(image) = self.images.get_mut(index) else {
            return;
        };
        if image.is_anonymous {
            let path = image.object.clone();
            let function = self.jit_function(processes, pid, address);
            out.push(function.unwrap_or_else(|| self.nameless(&path)));
            return;
        }
        let of_recording = image.recorded_at(address, offset, self.style);
        let (in_memory, address) = (address, image.address_at(offset));
        let lines = match (address, &mut image.lines) {
            (Some(address), Some(lines)) => {
                let found = lines.at(address, self.style);
                if let Some(why) = lines.left_out() {
                    self.left_out.insert(image.object.to_string(), why);
                }
                found
            }
            _ => Vec::new(),
        };
        let of_file = || image.function_at(address?, self.style);
        let found = of_recording.or_else(of_file);
        let (is_found, why) = (found.is_some(), image.why);
        let (name, offset) = found.unzip();
        let object = image.object.clone();
        if !is_found && lines.is_empty() {
            // A compiler may have put code in a file that it then deleted.
            if why == Some(NoNames::Deleted)
                && let Some(function) = self.jit_function(processes, pid, in_memory)
            {
                out.push(function);
                return;
            }
            self.note_nameless(&object, why);
        }
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

    fn jit_function(&mut self, processes: &Processes, pid: i32, address: u64) -> Option<Function> {
        let reading = self.reading();
        let found = self.jit.find((processes, pid), address, reading)?;
        let offset = address - found.symbol.start;
        let name = demangle_as(found.symbol.name, self.style).into_owned();
        let source = found.source.filter(|_| self.with_lines);
        let source = source.map(|(file, line)| (file.clone(), line));
        let name = self.shared(&name);
        Some(Function {
            source,
            ..self.named(JIT, name, offset)
        })
    }

    /// Selects the files of compilers that are read.
    fn reading(&self) -> Reading {
        Reading {
            at: self.recorded_at,
            of_others: self.with_maps_of_others,
        }
    }

    /// The position of the file of a mapping of a process, found when it is first asked for.
    fn image(&mut self, of: (&Processes, i32), mapped: &Mapped) -> usize {
        let file = Arc::as_ptr(&mapped.file).addr();
        let known = self.by_file.get(&file);
        let known = known.map_or(&[][..], |(_, images)| images);
        let mut here = known.iter();
        if let Some((_, index)) = here.find(|(range, _)| range.contains(&mapped.offset)) {
            return *index;
        }
        let (image, range) = match known.len() {
            // To look for one takes as long as its archive is long.
            MOST_IN_ARCHIVE.. => {
                let path = String::from_utf8_lossy(&mapped.file.path).into_owned();
                (Image::unknown(path, false), 0..u64::MAX)
            }
            _ => self.find_image(of, mapped),
        };
        self.images.push(image);
        let index = self.images.len() - 1;
        let read = self.by_file.entry(file);
        let read = read.or_insert_with(|| (mapped.file.clone(), Vec::new()));
        read.1.push((range, index));
        index
    }

    /// Returns what is read for a mapping, and the bytes of its file that this is.
    fn find_image(
        &mut self,
        (processes, pid): (&Processes, i32),
        mapped: &Mapped,
    ) -> (Image, Range<u64>) {
        let whole = 0..u64::MAX;
        let file = &mapped.file;
        let mut object = String::from_utf8_lossy(&file.path).into_owned();
        let recorded = self.recorded.get(&*file.path).cloned();
        // A program may have been executed from a memfd, in which others have made code.
        if file.is_anonymous() && (recorded.is_some() || !file.is_memfd()) {
            let image = match recorded {
                Some(recorded) => Image::of_recording(object, recorded),
                None => Image::unknown(object, true),
            };
            return (image, whole);
        }
        if file.is_vdso() {
            let image = match self.has_this_kernel {
                true => Image::vdso(object),
                false => Image::unknown(object, false),
            };
            return (image, whole);
        }
        let identity = match (&file.identity, self.build_ids.get(&*file.path)) {
            (FileIdentity::BuildId(_), _) | (_, None) => file.identity.clone(),
            (_, Some(id)) => FileIdentity::BuildId(id.as_slice().into()),
        };
        let id = match &identity {
            FileIdentity::BuildId(id) => Some(&**id),
            _ => None,
        };
        let others = processes.with_file(file).filter(|(other, _)| *other != pid);
        let owners = std::iter::once((pid, mapped)).chain(others);
        let running = owners.filter_map(|(pid, mapped)| {
            let running = ProcessMaps::of_recorded(pid, processes.address_space(pid)?)?;
            let line = running.line_at(mapped.start);
            let mapped = line.map(|line| running.mapped_at(&line));
            Some(mapped.into_iter().chain([running.in_root(&file.path)]))
        });
        let (root, mut at) = (self.root.clone(), self.recorded_at);
        // A copy of a file has another inode.
        at.this_machine &= root.is_none();
        let own = match &root {
            Some(root) => under(root, &file.path),
            None => as_path(&file.path),
        };
        let running = running.take(if root.is_some() { 0 } else { MOST_PROCESSES });
        let places = std::iter::once(own.clone()).chain(running.flatten());
        let copy = self.copies.get(&identity).map(|path| Candidate {
            path: path.clone(),
            is_copy: true,
        });
        let (mut range, mut name) = (whole, None);
        let candidates = places.map(Candidate::from).chain(copy);
        let candidates = candidates.map(|mut candidate| {
            if let Some(part) = archive::part_at(&candidate.path, mapped.offset) {
                range = part.range;
                name = part.name;
                if let Some(name) = &name {
                    candidate.path = archive::path_in(&candidate.path, name);
                }
            }
            candidate
        });
        let located = locate::locate(file, id, candidates, at);
        if let Some(name) = name {
            object = archive::path_in(object.as_ref(), &name)
                .display()
                .to_string();
        }
        let is_sure = located
            .as_ref()
            .is_ok_and(|located| located.doubt.is_none());
        if let Some(recorded) = recorded.filter(|_| !is_sure) {
            return (Image::of_recording(object, recorded), range);
        }
        let image = match located {
            Ok(located) => {
                let why = match located.elf.has_symbol_table() {
                    true => NoNames::NotInTable,
                    false => NoNames::Stripped,
                };
                self.doubtful
                    .extend(located.doubt.map(|doubt| (object.clone(), doubt)));
                let with_lines = self.with_lines && self.has_room_for_lines(&located);
                Image::of_file(object, located, range.start, with_lines).without_names(Some(why))
            }
            Err(_) if file.is_anonymous() => Image::unknown(object, true),
            Err(not_located) => {
                let why = why_missing(file, &own, &not_located);
                match not_located {
                    NotLocated::Gone => {}
                    NotLocated::Other => drop(self.changed.insert(object.clone())),
                    NotLocated::Unreadable(error) => {
                        self.left_out.insert(object.clone(), error.into());
                    }
                }
                Image::unknown(object, false).without_names(why)
            }
        };
        (image, range)
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
