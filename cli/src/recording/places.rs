//! The function and the file at an address, as perf script names them.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::HashMap;
use quipu_symbols::{AddressOwner, Function};

use super::replay::Replay;
use super::spaces::Spaces;

/// An address and what is there.
#[derive(Debug)]
pub(crate) struct Place {
    /// The address in its file; that in memory in the kernel, and where no file is.
    pub(crate) in_file: u64,
    pub(crate) symbol: Option<Arc<str>>,
    /// Bytes from the start of the symbol.
    pub(crate) offset: u64,
    pub(crate) object: Arc<str>,
    pub(crate) source: Option<(Arc<str>, u32)>,
}

/// Places by their addresses, until mappings change.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spaces: Spaces,
    known: HashMap<(u32, u64), Rc<Place>>,
}

impl Places {
    /// As many places are known at once.
    const MOST: usize = 1 << 18;

    /// Forgets those of a process.
    pub(crate) fn forget(&mut self, pid: i32) {
        self.spaces.forget(pid);
    }

    /// Returns what is at an address.
    pub(crate) fn at(
        &mut self,
        replay: &mut Replay,
        owner: AddressOwner,
        address: u64,
    ) -> Rc<Place> {
        let key = (self.spaces.of(owner), address);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= Self::MOST {
            self.known.clear();
        }
        let place = Rc::new(found(replay, owner, address));
        self.known.insert(key, place.clone());
        place
    }
}

fn found(replay: &mut Replay, owner: AddressOwner, address: u64) -> Place {
    let mut functions: Vec<Function> = Vec::new();
    let processes = &replay.processes;
    replay
        .symbolizer
        .resolve(processes, owner, address, &mut functions);
    // The source line is that of the innermost function, the symbol that of the outermost.
    let source = functions.first().and_then(|inner| inner.source.clone());
    let mapping = match owner {
        AddressOwner::Process(pid) => processes.mapping(pid, address),
        _ => None,
    };
    let in_file = mapping.map_or(address, |mapping| mapping.offset_of(address));
    let function = functions.pop();
    let object = function.as_ref().map_or("[unknown]", |f| &*f.object);
    let is_without_file = object == "[jit]"
        || ["//anon", "/dev/zero", "/anon_hugepage"]
            .iter()
            .any(|anon| object.starts_with(anon));
    let object = match owner {
        AddressOwner::Process(pid) if is_without_file => format!("/tmp/perf-{pid}.map").into(),
        _ => object.into(),
    };
    Place {
        in_file,
        offset: function.as_ref().and_then(|f| f.offset).unwrap_or(0),
        symbol: function.and_then(|f| f.name.filter(|_| f.offset.is_some())),
        object,
        source,
    }
}
