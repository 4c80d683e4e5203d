//! Call chains that lack callers.

use quipu_symbols::{AddressOwner, CallerOf};

use super::chain::ChainFrame;
use super::replay::Replay;

/// Returns true for the functions in which threads and programs begin, as C libraries and Go call them. They are compiled
/// without frame pointers more often than not, so that chains rarely reach the very
/// first.
fn is_start(name: &str) -> bool {
    matches!(
        name,
        "main"
            | "_start"
            | "_start_c"
            | "_dl_start"
            | "_dl_start_user"
            | "__libc_start_main"
            | "__libc_start_main_impl"
            | "__libc_start_call_main"
            | "generic_start_main"
            | "start_thread"
            | "thread_start"
            | "clone"
            | "__clone"
            | "clone3"
            | "__clone3"
            | "__libc_init"
            | "__start_thread"
            | "runtime.goexit"
            | "runtime.mstart"
    ) || name.starts_with("__libc_start_main@")
        || name.starts_with("runtime.rt0_go")
        || name.starts_with("runtime.goexit.")
        || name.starts_with("runtime.mstart.")
}

/// As many frames have a known kind at once.
const MOST_KINDS: usize = 7 << 15;

/// Kind of a frame, by what is known of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FrameKind {
    /// It is mapped nowhere: it was taken for a caller, and is none.
    Nothing,
    /// Threads begin there: it has no caller, or none that anyone misses.
    Start,
    /// Its caller is found by the frame pointer.
    WithPointer,
    /// Its caller is found otherwise.
    WithoutPointer,
    /// Nothing is known of its caller.
    Unknown,
}

/// Origin of the callers in call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainSource {
    /// The kernel has followed frame pointers.
    FramePointers,
    /// Samples have copies of the stack.
    StackCopies,
    /// The CPU has kept the calls that have not returned.
    CallStack,
    /// The kernel has unwound the thread on its way back to user mode, by frame pointers and by what else it knows there.
    Unwound,
}

impl Replay {
    /// Returns where the callers of an event's samples are from.
    pub(crate) fn chain_source(&self, event: usize) -> ChainSource {
        match (self.call_stacks[event], self.has_plain_chains(event)) {
            (true, _) => ChainSource::CallStack,
            (false, true) if self.deferred_chains[event] => ChainSource::Unwound,
            (false, true) => ChainSource::FramePointers,
            (false, false) => ChainSource::StackCopies,
        }
    }

    /// Appends the positions of the frames of a chain whose callers are known to be missing behind them; of a chain of the kernel
    /// alone there are none. Frame pointers miss the caller of a function that keeps none, and the rest where what it keeps in
    /// that register is another thing. Any chain may end early.
    pub(crate) fn cuts(&mut self, event: usize, chain: &[ChainFrame], out: &mut Vec<usize>) {
        let follows_pointers = self.chain_source(event) == ChainSource::FramePointers;
        let (mut is_first, mut last) = (true, None);
        for (at, frame) in chain.iter().enumerate() {
            let AddressOwner::Process(_) = frame.owner else {
                continue;
            };
            match self.frame_kind(frame, is_first) {
                FrameKind::Nothing => {}
                FrameKind::Start => return,
                FrameKind::WithoutPointer if follows_pointers => {
                    out.push(at);
                    last = None;
                }
                kind => last = Some((at, kind)),
            }
            is_first = false;
        }
        if let Some((at, FrameKind::WithPointer | FrameKind::WithoutPointer)) = last {
            out.push(at);
        }
    }

    /// Returns the kind of a frame of user mode; `is_first` is true for the innermost of them.
    pub(crate) fn frame_kind(&mut self, frame: &ChainFrame, is_first: bool) -> FrameKind {
        let key = (self.space(frame.owner), frame.of_call(), is_first);
        if let Some(known) = self.frame_kinds.get(&key) {
            return *known;
        }
        if self.frame_kinds.len() >= MOST_KINDS {
            self.frame_kinds.clear();
        }
        let kind = self.find_frame_kind(frame, is_first);
        self.frame_kinds.insert(key, kind);
        kind
    }

    fn find_frame_kind(&mut self, frame: &ChainFrame, is_first: bool) -> FrameKind {
        let (AddressOwner::Process(pid), Some(machine)) = (frame.owner, self.machine) else {
            return FrameKind::Unknown;
        };
        let (processes, address) = (&self.processes, frame.of_call());
        if processes.mapping(pid, address).is_none() {
            return FrameKind::Nothing;
        }
        let caller = self.symbolizer.caller_of(processes, pid, address, machine);
        let mut functions = Vec::new();
        self.symbolizer
            .resolve(processes, frame.owner, address, &mut functions);
        let name = functions
            .last()
            .and_then(|function| function.name.as_deref());
        match (caller, name) {
            (Some(CallerOf::FirstFrame), _) => FrameKind::Start,
            (_, Some(name)) if is_start(name) => FrameKind::Start,
            // It may be the function of a stripped C library that calls `main`.
            (_, None) if !is_first => FrameKind::Unknown,
            (Some(CallerOf::FramePointer), _) => FrameKind::WithPointer,
            (Some(CallerOf::Otherwise), _) => FrameKind::WithoutPointer,
            _ => FrameKind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_begin_in_functions_of_these_names() {
        for name in [
            "main",
            "__libc_start_main@@GLIBC_2.34",
            "runtime.goexit.abi0",
            "clone3",
        ] {
            assert!(is_start(name), "{name}");
        }
        for name in [
            "wordcount::main",
            "main.main",
            "start",
            "runtime.main",
            "__libc_start_main2",
        ] {
            assert!(!is_start(name), "{name}");
        }
    }
}
