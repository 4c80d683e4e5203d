//! The functions of a sample: that of its instruction, and those that called it.

use quipu_perf_data::{Context, Sample};
use quipu_symbols::AddressOwner;

use crate::recording::{ChainFrame, Replay};

use super::super::profile::{Functions, Instruction, Seen};
use super::super::sort::Key;
use super::super::stacks::{AtAddress, ChainMode, FrameLists};
use super::Loading;

/// The first address that is no frame but a marker of those that follow (`PERF_CONTEXT_MAX`,
/// `include/uapi/linux/perf_event.h`).
const FIRST_CONTEXT: u64 = -4095_i64 as u64;

impl Loading {
    /// Returns the lists of the functions at the instruction of a sample and of its callers, the innermost first.
    pub(super) fn frames(
        &mut self,
        replay: &mut Replay,
        of: (usize, &Sample<'_>),
        (own, pid): (AddressOwner, i32),
        ip: u64,
    ) -> (u32, u32) {
        let leaf = self.leaf_at(replay, own, ip);
        let callers = match self.with_callers {
            true => self.callers_of(replay, of, (own, pid), ip),
            false => FrameLists::EMPTY,
        };
        (leaf, callers)
    }

    /// Returns the lists of the functions of a sample that tells its instruction in its call chain alone.
    pub(super) fn frames_of_chain(
        &mut self,
        replay: &mut Replay,
        of: (usize, &Sample<'_>),
        own: AddressOwner,
        pid: i32,
    ) -> (u32, u32) {
        let Some(first) = self.read_chain(replay, of, own, pid) else {
            return (FrameLists::EMPTY, FrameLists::EMPTY);
        };
        let leaf = self.leaf_at(replay, own, first.address);
        (leaf, self.callers(replay, of.0, own))
    }

    /// Returns the list of the functions of the callers of a sample.
    fn callers_of(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        (own, pid): (AddressOwner, i32),
        ip: u64,
    ) -> u32 {
        let is_plain = replay.has_plain_chains(event)
            && !replay.may_execute(pid)
            && matches!(own, AddressOwner::Kernel | AddressOwner::Process(_));
        let Some(chain) = sample.callchain().filter(|_| is_plain) else {
            self.read_chain(replay, (event, sample), own, pid);
            return self.callers(replay, event, own);
        };
        let words = chain.entries();
        // What begins with the sampled instruction or one close by is the same chain for all of them.
        let marker = match own {
            AddressOwner::Kernel => Context::KERNEL_MARKER,
            _ => Context::USER_MARKER,
        };
        let bytes = words.bytes();
        let (left_out, rest) = match (words.get(0), words.get(1), bytes.get(16..)) {
            (Some(first), Some(0..FIRST_CONTEXT), Some(rest)) if first == marker => (true, rest),
            _ => (false, bytes),
        };
        let leaf = ChainFrame {
            owner: own,
            address: ip,
            is_return_address: false,
        };
        let mode = ChainMode {
            space: replay.space(AddressOwner::Process(pid)),
            in_kernel: own == AddressOwner::Kernel,
            left_out,
            leaf: match own {
                AddressOwner::Kernel => None,
                _ => Some(replay.frame_kind(&leaf, true)),
            },
        };
        let (hash, known) = self.chains.find(mode, rest);
        known.unwrap_or_else(|| {
            self.read_chain(replay, (event, sample), own, pid);
            let callers = self.callers(replay, event, own);
            self.chains.insert(hash, mode, rest, callers);
            callers
        })
    }

    /// Reads the call chain of a sample, and returns its first frame.
    fn read_chain(
        &mut self,
        replay: &mut Replay,
        (event, sample): (usize, &Sample<'_>),
        own: AddressOwner,
        pid: i32,
    ) -> Option<ChainFrame> {
        self.chain.clear();
        replay.chain(event, sample, (own, pid), &mut self.chain);
        self.is_short = self.chain.len() > self.most_frames;
        self.chain.truncate(self.most_frames);
        self.chain.first().copied()
    }

    /// Returns the list of the functions of the chain that was read, without that of the sampled instruction. A frame
    /// stands for those that are missing.
    fn callers(&mut self, replay: &mut Replay, event: usize, own: AddressOwner) -> u32 {
        if !self.with_callers {
            return FrameLists::EMPTY;
        }
        let chain = std::mem::take(&mut self.chain);
        let mut callers = std::mem::take(&mut self.callers);
        callers.clear();
        let mut cuts = std::mem::take(&mut self.cuts);
        cuts.clear();
        replay.cuts(event, &chain, &mut cuts);
        // Frames beyond the most that are looked at are missing because of that.
        cuts.retain(|at| !self.is_short || at + 1 < chain.len());
        for (at, frame) in chain.iter().enumerate() {
            // A chain begins with the same instruction or one close by, unless one of the two modes is left
            // out of it: then with the call into the mode that is.
            if at > 0 || frame.owner != own {
                let functions = self.functions_at(replay, frame.owner, frame.of_call());
                callers.extend_from_slice(self.profile.stacks.lists.get(functions));
            }
            if cuts.contains(&at) {
                callers.push(self.profile.functions.place(Seen::cut()) as u32);
            }
        }
        let list = self.profile.stacks.lists.number(&callers);
        (self.chain, self.callers, self.cuts) = (chain, callers, cuts);
        list
    }

    /// Returns the list of the functions at the instruction of a sample, which is apart from others also where no mapping is: it ran.
    fn leaf_at(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) -> u32 {
        let list = self.functions_at(replay, owner, address);
        let functions: &mut Functions = &mut self.profile.functions;
        let [only] = *self.profile.stacks.lists.get(list) else {
            return list;
        };
        let seen = functions.get(only as usize);
        if seen.name.is_some() || seen.at.is_some() {
            return list;
        }
        let at = Some(Instruction::InMemory(address));
        let apart = functions.place(Seen { at, ..seen.clone() }) as u32;
        self.profile.stacks.lists.number(&[apart])
    }

    /// Returns the list of the functions at an address.
    pub(super) fn functions_at(
        &mut self,
        replay: &mut Replay,
        owner: AddressOwner,
        address: u64,
    ) -> u32 {
        let key = AtAddress {
            space: replay.space(owner),
            address,
        };
        match self.known.get(key) {
            Some(known) => known,
            None => self.find_functions(replay, owner, key),
        }
    }

    fn find_functions(&mut self, replay: &mut Replay, owner: AddressOwner, key: AtAddress) -> u32 {
        let list = self.resolve(replay, owner, key.address);
        self.known.insert(key, list);
        list
    }

    fn resolve(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) -> u32 {
        let id = match owner {
            AddressOwner::Process(pid) => {
                replay
                    .symbolizer
                    .function_id(&replay.processes, pid, address)
            }
            _ => None,
        };
        if let Some(known) = id.and_then(|id| self.by_id.get(&id)) {
            return *known;
        }
        let in_kernel = owner == AddressOwner::Kernel;
        let at = instruction(replay, owner, address);
        self.found.clear();
        replay
            .symbolizer
            .resolve(&replay.processes, owner, address, &mut self.found);
        let with_lines = self.keys.contains(&Key::SourceLine);
        let functions: &mut Functions = &mut self.profile.functions;
        let found = self.found.drain(..);
        let found = found.filter(|function| self.inline || !function.inlined);
        let places: Vec<u32> = found
            .map(|mut function| {
                function.source = function.source.filter(|_| with_lines);
                functions.place(Seen::new(function, at, in_kernel)) as u32
            })
            .collect();
        let list = self.profile.stacks.lists.number(&places);
        if let Some(id) = id {
            self.by_id.insert(id, list);
        }
        list
    }
}

/// Returns the place of an instruction; `None` where no mapping is, as of what is taken for a caller and is none.
fn instruction(replay: &Replay, owner: AddressOwner, address: u64) -> Option<Instruction> {
    match owner {
        AddressOwner::Kernel => Some(Instruction::InMemory(address)),
        AddressOwner::Process(pid) => {
            let mapped = replay.processes.mapping(pid, address)?;
            Some(match mapped.file.is_anonymous() {
                true => Instruction::InMemory(address),
                false => Instruction::InFile(mapped.offset_of(address)),
            })
        }
        _ => None,
    }
}
