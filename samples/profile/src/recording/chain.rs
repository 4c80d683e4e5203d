//! Call chains of samples: the kernel's frames, and the user's by what the sample has to find them.

use quipu_perf_data::{Callchain, Context, RegisterAbi, Sample, SampleType};
use quipu_symbols::{AddressOwner, ThreadState};

use super::owner::{owner, owner_of};
use super::replay::Replay;

/// Frames of a chain that is unwound (`PERF_MAX_STACK_DEPTH`, `include/uapi/linux/perf_event.h`).
const MOST_FRAMES: usize = 127;

/// A frame of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainFrame {
    pub(crate) owner: AddressOwner,
    pub(crate) address: u64,
    /// True if the address is a return address: that behind a call, which may be in another function. The first frame of a
    /// mode is none, but where the thread was interrupted or called the kernel.
    pub(crate) is_return_address: bool,
}

impl ChainFrame {
    /// Returns the address by which its function is found: a return address is behind its call, which may be the last instruction
    /// of its function.
    pub(crate) fn of_call(&self) -> u64 {
        match self.is_return_address {
            true => self.address.saturating_sub(1),
            false => self.address,
        }
    }
}

impl Replay {
    /// Returns true if the call chain of an event's samples is no more than the addresses that the kernel wrote.
    pub(crate) fn has_plain_chains(&self, event: usize) -> bool {
        let copies = SampleType::STACK_USER;
        !self.call_stacks[event] && !self.layout(event).sample_type().contains(copies)
    }

    /// Replaces the content of `out` by the addresses that a sample hit: its own, if it has one, and its call chain.
    pub(crate) fn hits(&mut self, event: usize, sample: &Sample<'_>, out: &mut Vec<ChainFrame>) {
        let pid = sample.thread().map_or(-1, |thread| thread.pid);
        let own = owner(sample.misc().cpu_mode(), pid);
        out.clear();
        out.extend(sample.ip().map(|address| ChainFrame {
            owner: own,
            address,
            is_return_address: false,
        }));
        self.chain(event, sample, (own, pid), out);
    }

    /// Appends the call chain of a sample, the innermost frame first.
    pub(crate) fn chain(
        &mut self,
        event: usize,
        sample: &Sample<'_>,
        (own, pid): (AddressOwner, i32),
        out: &mut Vec<ChainFrame>,
    ) {
        let begin = out.len();
        let chain = sample.callchain();
        let user = AddressOwner::Process(self.image_of(sample, pid));
        let recorded = chain.iter().flat_map(Callchain::frames);
        let mut before = None;
        out.extend(recorded.map(|frame| ChainFrame {
            owner: match owner_of(frame.context, own, pid) {
                AddressOwner::Process(_) => user,
                other => other,
            },
            address: frame.address,
            is_return_address: before.replace(frame.context) == Some(frame.context),
        }));
        let first = out.iter().skip(begin).position(|f| f.owner == user);
        let found = |address| ChainFrame {
            owner: user,
            address,
            is_return_address: false,
        };
        match first {
            None => {
                let mut addresses = Vec::new();
                self.unwind(sample, user, &mut addresses);
                out.extend(addresses.into_iter().map(found));
            }
            Some(first) if self.call_stacks[event] => {
                let Some(branches) = sample.branches().filter(|b| !b.is_empty()) else {
                    return;
                };
                // The function that was entered last, and the calls that have not returned
                // (`resolve_lbr_callchain_sample`, `tools/perf/util/machine.c`).
                out.truncate(begin + first);
                out.extend(branches.iter().take(1).map(|branch| found(branch.to)));
                out.extend(branches.iter().map(|branch| found(branch.from)));
            }
            Some(_) => {}
        }
    }

    /// Returns true if a process may be in execve(2), called by the program of before.
    pub(crate) fn may_execute(&self, pid: i32) -> bool {
        self.processes.before_exec(pid).is_some()
    }

    /// Returns the number that a process has with the mappings of its callers in user mode: its own, or in execve(2) that of
    /// before. Once the new program runs, what was before is forgotten.
    fn image_of(&mut self, sample: &Sample<'_>, pid: i32) -> i32 {
        let Some(before) = self.processes.before_exec(pid) else {
            return pid;
        };
        let chain = sample.callchain();
        let mut frames = chain.iter().flat_map(Callchain::frames);
        let first = frames.find(|frame| frame.context == Context::User);
        let registers = || {
            sample
                .user_registers()?
                .get(self.machine?.instruction_register())
        };
        let Some(address) = first.map(|frame| frame.address).or_else(registers) else {
            return pid;
        };
        if self.processes.mapping(pid, address).is_some() {
            self.processes.forget_before_exec(pid);
            return pid;
        }
        match self.processes.mapping(before, address) {
            Some(_) => before,
            None => pid,
        }
    }

    /// Finds the frames of user mode in the copy of the stack.
    fn unwind(&mut self, sample: &Sample<'_>, of: AddressOwner, out: &mut Vec<u64>) {
        let AddressOwner::Process(pid) = of else {
            return;
        };
        let (Some(registers), Some(stack)) = (sample.user_registers(), sample.user_stack()) else {
            return;
        };
        if stack.bytes().is_empty() {
            return;
        }
        match (registers.abi(), self.machine) {
            (RegisterAbi::Bits64, Some(machine)) => {
                let thread = ThreadState::new(machine, |r| registers.get(r), stack.bytes());
                self.symbolizer
                    .unwind(&self.processes, pid, thread, MOST_FRAMES, out);
            }
            (RegisterAbi::Bits32, _) => self.not_unwound.bits_32 += 1,
            _ => self.not_unwound.other += 1,
        }
    }
}
