//! Names that are kept with a recording: what was at the addresses that its samples hit, for a time when the files are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

use crate::call_frames::Rules;
use crate::demangled::{Style, demangle_as};
use crate::kept_rules;
use crate::locate::Doubt;
use crate::mapped_file::MappedFile;
use crate::no_names::NoNames;
use crate::symbolizer::Function;

/// As many addresses are kept.
const MOST: usize = 4 << 20;
/// As many functions can be inlined at an address.
pub(crate) const MOST_FRAMES: usize = 256;

/// Functions, inlined functions, lines and rules for unwinding at the addresses that a recording has.
///
/// ```
/// use quipu_symbols::{AddressOwner, KeptNames, Processes, Symbolizer};
///
/// let mut symbolizer = Symbolizer::new().keeping();
/// symbolizer.resolve(&Processes::new(), AddressOwner::Process(1), 0x1000, &mut Vec::new());
/// let bytes = symbolizer.take_kept().to_bytes().expect("few names");
/// assert!(KeptNames::read(&bytes).is_some_and(|kept| kept.is_empty()));
/// ```
#[derive(Debug, Default)]
pub struct KeptNames {
    pub(crate) texts: Texts,
    pub(crate) symbols: Table<Symbol>,
    pub(crate) frames: Table<Frame>,
    /// Rules in their written form.
    pub(crate) rules: Table<Vec<u8>>,
    /// Rules as they are used, of names that were read.
    pub(crate) read_rules: Vec<Arc<Rules>>,
    pub(crate) kernel: BTreeMap<u64, Place>,
    /// By the process whose compiler made the functions.
    pub(crate) processes: BTreeMap<i32, BTreeMap<u64, Place>>,
    pub(crate) files: Vec<KeptFile>,
    by_file: HashMap<Arc<MappedFile>, usize>,
    /// Positions of files by their addresses, which are kept for that.
    by_pointer: HashMap<usize, (Arc<MappedFile>, Option<usize>)>,
    /// Readable names of functions by their texts.
    readable: HashMap<u32, Arc<str>>,
    /// Files that may be others than those that were recorded.
    pub(crate) doubtful: BTreeMap<String, Doubt>,
    /// Why functions of objects have no names.
    pub(crate) no_names: BTreeMap<String, NoNames>,
}

/// Names and rules of a file.
#[derive(Debug)]
pub(crate) struct KeptFile {
    pub(crate) file: Arc<MappedFile>,
    /// By offset in the file.
    pub(crate) places: BTreeMap<u64, Place>,
    /// By offset in the file: the address that the file gives to it, and the position of the rules.
    pub(crate) rules: BTreeMap<u64, (u64, u32)>,
}

/// Code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A function of which no line is known.
    Symbol(u32),
    /// The innermost of several frames, or one with a line.
    Frame(u32),
}

/// A function and its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Symbol {
    pub(crate) object: u32,
    pub(crate) name: Option<u32>,
    /// Its first address, or offset in the file; `None` if no symbol says it.
    pub(crate) start: Option<u64>,
}

/// A function with a line, or one that was inlined into another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// The name of an inlined function; that of another is its symbol's.
    pub(crate) name: Option<u32>,
    pub(crate) file: Option<u32>,
    pub(crate) line: u32,
    /// True if it was inlined into `outer`; else that is its symbol.
    pub(crate) inlined: bool,
    pub(crate) outer: Place,
}

/// Values, each once.
#[derive(Debug)]
pub(crate) struct Table<T> {
    pub(crate) all: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            known: HashMap::default(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    /// Returns the position of a value.
    pub(crate) fn place(&mut self, value: T) -> u32 {
        if let Some(place) = self.known.get(&value) {
            return *place;
        }
        let place = self.all.len() as u32;
        self.all.push(value.clone());
        self.known.insert(value, place);
        place
    }

    /// Returns a table of values that are to be found by their positions.
    pub(crate) fn of(all: Vec<T>) -> Self {
        Self {
            all,
            known: HashMap::default(),
        }
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.all.get(place as usize)
    }
}

/// Texts, each once.
pub(crate) type Texts = Table<Arc<str>>;

/// Code that has an address of its own in what is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CodeOf<'a> {
    Kernel,
    /// Code that a compiler made in the memory of a process.
    Process(i32),
    File(&'a Arc<MappedFile>),
}

impl KeptNames {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of addresses that have names.
    pub fn len(&self) -> usize {
        let tables = self.processes.values();
        let files = self.files.iter().map(|file| &file.places);
        let tables = tables.chain(files).chain([&self.kernel]);
        tables.map(BTreeMap::len).sum()
    }

    /// Returns true if there are so many that no others are kept.
    pub fn is_full(&self) -> bool {
        // Frames and symbols are fewer than addresses, but not by much.
        self.frames.all.len() + self.symbols.all.len() >= MOST
    }

    /// Returns true if there are rules for unwinding.
    pub fn has_rules(&self) -> bool {
        !self.rules.all.is_empty()
    }

    /// Returns the files that names are of, without those of compilers.
    pub fn files(&self) -> impl Iterator<Item = &MappedFile> {
        let files = self.files.iter().filter(|file| !file.places.is_empty());
        files.map(|file| &*file.file)
    }

    /// Forgets the kernel's, for other symbols of it.
    pub fn forget_kernel(&mut self) {
        self.kernel.clear();
    }

    /// Forgets those of files, for the same files elsewhere.
    pub fn forget_files(&mut self) {
        self.files.clear();
        self.by_file.clear();
        self.by_pointer.clear();
        self.doubtful.clear();
        self.no_names.clear();
    }

    /// Returns true if there is something of a file.
    pub(crate) fn has_file(&self, file: &Arc<MappedFile>) -> bool {
        self.by_file.contains_key(file)
    }

    /// Takes up a file that was read.
    pub(crate) fn push_file(&mut self, file: KeptFile) {
        self.by_file.insert(file.file.clone(), self.files.len());
        self.files.push(file);
    }

    /// Returns true if there are names of functions that a compiler made in a process.
    pub(crate) fn has_process(&self, pid: i32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Returns the code at an address.
    fn place(&mut self, of: CodeOf<'_>, address: u64) -> Option<Place> {
        let places = match of {
            CodeOf::Kernel => &self.kernel,
            CodeOf::Process(pid) => self.processes.get(&pid)?,
            CodeOf::File(file) => {
                let file = self.position(file)?;
                &self.files.get(file)?.places
            }
        };
        places.get(&address).copied()
    }

    /// Returns the position of a file.
    fn position(&mut self, file: &Arc<MappedFile>) -> Option<usize> {
        let pointer = Arc::as_ptr(file).addr();
        if let Some((_, known)) = self.by_pointer.get(&pointer) {
            return *known;
        }
        let position = self.by_file.get(file).copied();
        self.by_pointer.insert(pointer, (file.clone(), position));
        position
    }

    /// Returns the position of the function at an offset in a file, if it has a name without debug information.
    pub(crate) fn symbol_at(&mut self, file: &Arc<MappedFile>, offset: u64) -> Option<usize> {
        let mut place = self.place(CodeOf::File(file), offset)?;
        loop {
            match place {
                Place::Symbol(symbol) => {
                    let has_name = self.symbols.get(symbol)?.start.is_some();
                    return has_name.then_some(symbol as usize);
                }
                Place::Frame(frame) => place = self.frames.get(frame)?.outer,
            }
        }
    }

    fn file(&mut self, file: &Arc<MappedFile>) -> &mut KeptFile {
        let next = self.files.len();
        let at = *self.by_file.entry(file.clone()).or_insert(next);
        if at == next {
            self.files.push(KeptFile {
                file: file.clone(),
                places: BTreeMap::new(),
                rules: BTreeMap::new(),
            });
        }
        &mut self.files[at]
    }

    /// Takes note of the functions at an address, the innermost first, if they have names.
    pub(crate) fn note(&mut self, of: CodeOf<'_>, address: u64, functions: &[Function]) {
        let Some((outermost, inlined)) = functions.split_last() else {
            return;
        };
        let is_named = functions.iter().any(|function| function.name.is_some());
        if !is_named || self.is_full() || functions.len() > MOST_FRAMES {
            return;
        }
        let name = outermost.name.clone();
        let symbol = Symbol {
            object: self.texts.place(outermost.object.clone()),
            name: name.map(|name| self.texts.place(name)),
            start: outermost.offset.map(|offset| address.wrapping_sub(offset)),
        };
        let mut place = Place::Symbol(self.symbols.place(symbol));
        if outermost.source.is_some() || !inlined.is_empty() {
            place = self.frame(outermost, place);
        }
        for function in inlined.iter().rev() {
            place = self.frame(function, place);
        }
        let places = match of {
            CodeOf::Kernel => &mut self.kernel,
            CodeOf::Process(pid) => self.processes.entry(pid).or_default(),
            CodeOf::File(file) => &mut self.file(file).places,
        };
        places.insert(address, place);
    }

    fn frame(&mut self, function: &Function, outer: Place) -> Place {
        let source = function.source.clone();
        let (file, line) = source.unzip();
        let name = function.name.clone().filter(|_| function.inlined);
        let frame = Frame {
            name: name.map(|name| self.texts.place(name)),
            file: file.map(|file| self.texts.place(file)),
            line: line.unwrap_or(0),
            inlined: function.inlined,
            outer,
        };
        Place::Frame(self.frames.place(frame))
    }

    /// Returns true if the function at an address is kept, and no line of it is.
    pub(crate) fn has_symbol_alone(&mut self, of: CodeOf<'_>, address: u64) -> bool {
        matches!(self.place(of, address), Some(Place::Symbol(_)))
    }

    /// Returns the readable form of a name, in the style that was asked for first.
    fn readable(&mut self, name: Option<u32>, style: Style) -> Option<Arc<str>> {
        let name = name?;
        if let Some(known) = self.readable.get(&name) {
            return Some(known.clone());
        }
        let readable: Arc<str> = demangle_as(self.texts.get(name)?, style).into();
        self.readable.insert(name, readable.clone());
        Some(readable)
    }

    /// Appends the functions at an address, the innermost first; without lines what the symbol says alone. Returns false if
    /// nothing is kept of it.
    pub(crate) fn find(
        &mut self,
        of: CodeOf<'_>,
        address: u64,
        (with_lines, style): (bool, Style),
        out: &mut Vec<Function>,
    ) -> bool {
        let Some(mut place) = self.place(of, address) else {
            return false;
        };
        let begin = out.len();
        let mut source = None;
        let symbol = loop {
            match place {
                Place::Symbol(symbol) => break self.symbols.get(symbol).cloned(),
                Place::Frame(frame) => {
                    let Some(frame) = self.frames.get(frame).cloned() else {
                        break None;
                    };
                    let file = frame.file.and_then(|file| self.texts.get(file));
                    let own = file.map(|file| (file.clone(), frame.line));
                    match frame.inlined {
                        true => out.push(Function {
                            object: Arc::default(),
                            name: self.readable(frame.name, style),
                            inlined: true,
                            source: own,
                            offset: None,
                        }),
                        false => source = own,
                    }
                    place = frame.outer;
                }
            }
        };
        let object = symbol.as_ref();
        let object = object.and_then(|symbol| self.texts.get(symbol.object).cloned());
        let (Some(symbol), Some(object)) = (symbol, object) else {
            out.truncate(begin);
            return false;
        };
        if !with_lines {
            out.truncate(begin);
            source = None;
        }
        for inlined in &mut out[begin..] {
            inlined.object = object.clone();
        }
        let name = self.readable(symbol.name, style);
        // Without lines a name that debug information alone has is not known.
        let name = name.filter(|_| with_lines || symbol.start.is_some());
        out.push(Function {
            object,
            name,
            inlined: false,
            source,
            offset: symbol.start.map(|start| address.wrapping_sub(start)),
        });
        true
    }

    /// Takes note of the rules at an offset in a file, and of the address that the file gives to it.
    pub(crate) fn note_rules(
        &mut self,
        file: &Arc<MappedFile>,
        offset: u64,
        (rules, address): (&Rules, u64),
    ) {
        if self.rules.all.len() < MOST
            && let Some(bytes) = kept_rules::to_bytes(rules)
        {
            let place = self.rules.place(bytes);
            self.file(file).rules.insert(offset, (address, place));
        }
    }

    /// Returns the rules at an offset in a file, and the address that the file gives to it.
    pub(crate) fn rules_at(
        &mut self,
        file: &Arc<MappedFile>,
        offset: u64,
    ) -> Option<(Arc<Rules>, u64)> {
        let file = self.position(file)?;
        let (address, rules) = self.files.get(file)?.rules.get(&offset)?;
        Some((self.read_rules.get(*rules as usize)?.clone(), *address))
    }
}
