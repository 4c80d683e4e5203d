//! The function and the file at an address, as perf script names them.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use quipu_symbols::{AddressOwner, Function, ReadFile};

use super::replay::Replay;

/// An address and what is there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The address in its file; that in memory in the kernel, and where no file is.
    pub(crate) in_file: u64,
    /// Bytes from the start of the symbol.
    pub(crate) offset: u64,
    pub(crate) code: Rc<FunctionInFile>,
}

/// Function and file, which many addresses share.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionInFile {
    pub(crate) symbol: Option<Arc<str>>,
    pub(crate) object: Arc<str>,
    /// The file that was read for it: of the same path two may have been mapped.
    pub(crate) read: Option<Arc<ReadFile>>,
    pub(crate) source: Option<(Arc<str>, u32)>,
    /// The functions that were inlined there, the innermost first.
    pub(crate) inlined: Box<[Inlined]>,
}

/// A function that was inlined.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inlined {
    pub(crate) symbol: Option<Arc<str>>,
    pub(crate) source: Option<(Arc<str>, u32)>,
}

impl FunctionInFile {
    /// Returns the source line that the instruction itself is of.
    pub(crate) fn innermost_source(&self) -> Option<&(Arc<str>, u32)> {
        match self.inlined.first() {
            Some(innermost) => innermost.source.as_ref(),
            None => self.source.as_ref(),
        }
    }
}

/// Places by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: HashMap<(u64, u64), Place>,
    code: HashSet<Rc<FunctionInFile>>,
    /// The functions at an address, kept for their memory.
    found: Vec<Function>,
}

impl Places {
    /// As many places are known at once: they fill a table of 2^14.
    const MOST: usize = 7 << 11;

    /// Returns what is at an address.
    pub(crate) fn at(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) -> Place {
        // What is in no file is named by its process.
        let key = (replay.own_space(owner), address);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= Self::MOST {
            self.known.clear();
            self.code.clear();
        }
        let place = self.found(replay, owner, address);
        self.known.insert(key, place.clone());
        place
    }

    fn found(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) -> Place {
        self.found.clear();
        let processes = &replay.processes;
        replay
            .symbolizer
            .resolve(processes, owner, address, &mut self.found);
        let mapping = match owner {
            AddressOwner::Process(pid) => processes.mapping(pid, address),
            _ => None,
        };
        let function = self.found.pop();
        let inlined = self.found.drain(..).map(|inlined| Inlined {
            symbol: inlined.name,
            source: inlined.source,
        });
        let inlined = inlined.collect();
        let object = match &function {
            Some(function) => function.object.clone(),
            None => "[unknown]".into(),
        };
        let is_without_file = &*object == "[jit]" || is_memory(object.as_bytes());
        let object = match owner {
            AddressOwner::Process(pid) if is_without_file => format!("/tmp/perf-{pid}.map").into(),
            _ => object,
        };
        let read = match owner {
            AddressOwner::Process(pid) => replay.symbolizer.file_at(processes, pid, address),
            _ => None,
        };
        let from = read.map_or(0, |read| read.from);
        // Memory of no file is known by its addresses, as to the compilers that list it in /tmp/perf-PID.map.
        let in_file = mapping.filter(|mapping| !is_memory(&mapping.file.path));
        let in_file = in_file.map_or(address, |mapping| {
            mapping.offset_of(address).wrapping_sub(from)
        });
        let offset = function.as_ref().and_then(|f| f.offset).unwrap_or(0);
        let code = FunctionInFile {
            source: function.as_ref().and_then(|f| f.source.clone()),
            symbol: function.and_then(|f| f.name.filter(|_| f.offset.is_some())),
            object,
            read: read.cloned(),
            inlined,
        };
        let known = self.code.get(&code).cloned();
        let code = known.unwrap_or_else(|| {
            let code = Rc::new(code);
            self.code.insert(code.clone());
            code
        });
        Place {
            in_file,
            offset,
            code,
        }
    }
}

/// Returns true for the name of a mapping that is memory and of no file (`map__new`, `tools/perf/util/map.c`).
fn is_memory(name: &[u8]) -> bool {
    const BEGINS: [&[u8]; 6] = [
        b"//anon",
        b"/dev/zero",
        b"/anon_hugepage",
        b"/SYSV",
        b"[stack",
        b"[heap]",
    ];
    BEGINS.iter().any(|begin| name.starts_with(begin))
}
