//! Native events: each has a code from when its name is first used on.

use std::ffi::c_int;
use std::sync::{PoisonError, RwLock};

use quipu::{Event, EventSpec};

use crate::abi::{NATIVE_MASK, PRESET_MASK};
use crate::code::{ENOEVNT, Outcome};
use crate::component::CPU;

/// The position of an event in the list of its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) event: usize,
    pub(crate) mask: Option<usize>,
}

/// An event with a code.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    /// The name as it was first written.
    pub(crate) name: String,
    pub(crate) component: usize,
    pub(crate) spec: EventSpec,
    /// True if its name says where it counts, so that the set's domain does not.
    pub(crate) has_levels: bool,
    /// True if it is to be on a counter always, or alone on the PMU; the kernel does so with all of its group.
    pub(crate) pinned: bool,
    pub(crate) exclusive: bool,
    /// The CPU it is counted on, where its name says so.
    pub(crate) cpu: Option<u32>,
    pub(crate) description: String,
    /// Its position in the list of its component, if it was enumerated.
    pub(crate) position: Option<Position>,
}

impl Native {
    /// Returns an event of the CPU without a name, counted where its set says.
    pub(crate) fn new(event: Event) -> Self {
        Self {
            name: String::new(),
            component: CPU,
            spec: EventSpec::new(event),
            has_levels: false,
            pinned: false,
            exclusive: false,
            cpu: None,
            description: String::new(),
            position: None,
        }
    }
}

/// The native events that have a code.
static NATIVES: RwLock<Natives> = RwLock::new(Natives::new());

/// All native events with a code.
struct Natives {
    known: Vec<Native>,
}

impl Natives {
    const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// Returns an event by its code.
    fn get(&self, code: c_int) -> Option<&Native> {
        self.known.get((code & !NATIVE_MASK) as usize)
    }

    fn code_at(at: usize) -> c_int {
        c_int::try_from(at).unwrap_or(c_int::MAX) | NATIVE_MASK
    }

    fn find(&self, name: &str) -> Option<c_int> {
        let same = |native: &Native| native.name.eq_ignore_ascii_case(name);
        self.known.iter().position(same).map(Self::code_at)
    }

    fn insert(&mut self, native: Native) -> c_int {
        if let Some(code) = self.find(&native.name) {
            let known = &mut self.known[(code & !NATIVE_MASK) as usize];
            if known.position.is_none() && native.position.is_some() {
                known.position = native.position;
                known.description = native.description;
            }
            return code;
        }
        self.known.push(native);
        Self::code_at(self.known.len() - 1)
    }
}

/// Returns the code of a native event by its name, if it has one.
pub(crate) fn known_code_of(name: &str) -> Option<c_int> {
    let natives = NATIVES.read().unwrap_or_else(PoisonError::into_inner);
    natives.find(name)
}

/// Returns true if a code is that of a native event.
pub(crate) fn is_native(code: c_int) -> bool {
    code & NATIVE_MASK != 0 && code & PRESET_MASK == 0
}

/// Returns what is asked of a native event by its code.
pub(crate) fn native<T>(code: c_int, ask: impl FnOnce(&Native) -> T) -> Outcome<T> {
    let natives = NATIVES.read().unwrap_or_else(PoisonError::into_inner);
    natives.get(code).map(ask).ok_or(ENOEVNT)
}

/// The words of names that hold for all events which are counted together.
#[derive(Default)]
pub(crate) struct Together {
    /// True if they are to be on counters always.
    pub(crate) pinned: bool,
    /// True if they are to be alone on the PMU.
    pub(crate) exclusive: bool,
    /// The CPU they are counted on.
    pub(crate) cpu: Option<u32>,
}

impl Together {
    /// Returns what the names of these events say.
    pub(crate) fn of(codes: &[c_int]) -> Self {
        let natives = NATIVES.read().unwrap_or_else(PoisonError::into_inner);
        let codes = codes.iter().filter(|code| is_native(**code));
        codes
            .filter_map(|code| natives.get(*code))
            .fold(Self::default(), |all, native| Self {
                pinned: all.pinned || native.pinned,
                exclusive: all.exclusive || native.exclusive,
                cpu: all.cpu.or(native.cpu),
            })
    }
}

/// Gives an event a code.
pub(crate) fn register(native: Native) -> c_int {
    let mut natives = NATIVES.write().unwrap_or_else(PoisonError::into_inner);
    natives.insert(native)
}
