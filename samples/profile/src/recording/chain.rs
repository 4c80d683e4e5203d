//! Call chains of samples: the kernel's frames, and the user's by what the sample has to find them.

use quipu_perf_data::{Callchain, RegisterAbi, Sample, SampleType};
use quipu_symbols::{AddressOwner, ThreadState};

use super::owner::owner_of;
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

impl Replay {
    /// Returns true if the call chain of an event's samples is no more than the addresses that the kernel wrote.
    pub(crate) fn has_plain_chains(&self, event: usize) -> bool {
        let copies = SampleType::STACK_USER;
        !self.call_stacks[event] && !self.layout(event).sample_type().contains(copies)
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
        let recorded = chain.iter().flat_map(Callchain::frames);
        let mut before = None;
        out.extend(recorded.map(|frame| ChainFrame {
            owner: owner_of(frame.context, own, pid),
            address: frame.address,
            is_return_address: before.replace(frame.context) == Some(frame.context),
        }));
        let user = AddressOwner::Process(pid);
        let first = out.iter().skip(begin).position(|f| f.owner == user);
        let found = |address| ChainFrame {
            owner: user,
            address,
            is_return_address: false,
        };
        match first {
            None => {
                let mut addresses = Vec::new();
                self.unwind(sample, pid, &mut addresses);
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

    /// Finds the frames of user mode in the copy of the stack.
    fn unwind(&mut self, sample: &Sample<'_>, pid: i32, out: &mut Vec<u64>) {
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
