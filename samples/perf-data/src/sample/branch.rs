//! Branch stacks: the last branches that the CPU took.

use crate::bytes::Words;

/// `struct perf_branch_entry`: two addresses and a word of flags.
const ENTRY: usize = 24;

/// One branch that was taken (`struct perf_branch_entry`, `include/uapi/linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Branch {
    /// The address of the branch, or of the instruction that was interrupted.
    pub from: u64,
    /// Returns the address of its target.
    pub to: u64,
    /// The flags as the kernel wrote them.
    pub flags: u64,
}

impl Branch {
    /// `len` bits of the flags from `first`; C numbers bit-fields from the other end on big-endian
    /// machines.
    fn bits(&self, first: u32, len: u32) -> u64 {
        let above = match cfg!(target_endian = "big") {
            true => first,
            false => 64 - first - len,
        };
        self.flags << above >> (64 - len)
    }

    /// Returns true if its target was mispredicted. If the CPU does not report it, neither this nor
    /// [`predicted`](Self::predicted) is set.
    pub fn mispredicted(&self) -> bool {
        self.bits(0, 1) != 0
    }

    /// Returns true if its target was predicted.
    pub fn predicted(&self) -> bool {
        self.bits(1, 1) != 0
    }

    /// Returns true if it was in a transaction.
    pub fn in_transaction(&self) -> bool {
        self.bits(2, 1) != 0
    }

    /// Returns true if it aborted a transaction.
    pub fn aborted(&self) -> bool {
        self.bits(3, 1) != 0
    }

    /// Cycles since the branch before; 0 if the CPU does not report them.
    pub fn cycles(&self) -> u16 {
        self.bits(4, 16) as u16
    }

    /// Returns its type ([`TYPE_SAVE`](crate::BranchSampleType::TYPE_SAVE)).
    pub fn branch_type(&self) -> BranchType {
        match self.bits(20, 4) {
            1 => BranchType::Conditional,
            2 => BranchType::Unconditional,
            3 => BranchType::Indirect,
            4 => BranchType::Call,
            5 => BranchType::IndirectCall,
            6 => BranchType::Return,
            7 => BranchType::SystemCall,
            8 => BranchType::SystemReturn,
            9 => BranchType::ConditionalCall,
            10 => BranchType::ConditionalReturn,
            11 => BranchType::ExceptionReturn,
            12 => BranchType::Interrupt,
            13 => BranchType::SystemError,
            14 => BranchType::NotInTransaction,
            15 => match self.bits(26, 4) {
                0 => BranchType::AlignmentFault,
                1 => BranchType::DataFault,
                2 => BranchType::InstructionFault,
                n @ 3..=7 => BranchType::Architecture(n as u8 - 2),
                _ => BranchType::Unknown,
            },
            _ => BranchType::Unknown,
        }
    }

    /// Returns its outcome if it was executed speculatively.
    pub fn speculation(&self) -> Speculation {
        match self.bits(24, 2) {
            1 => Speculation::WrongPath,
            2 => Speculation::None,
            3 => Speculation::CorrectPath,
            _ => Speculation::Unknown,
        }
    }

    /// Returns the privilege level it went to ([`PRIV_SAVE`](crate::BranchSampleType::PRIV_SAVE)).
    pub fn privilege(&self) -> BranchPrivilege {
        match self.bits(30, 3) {
            1 => BranchPrivilege::User,
            2 => BranchPrivilege::Kernel,
            3 => BranchPrivilege::Hypervisor,
            _ => BranchPrivilege::Unknown,
        }
    }
}

/// The kind of a branch (`PERF_BR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BranchType {
    /// Unknown (`PERF_BR_UNKNOWN`).
    Unknown,
    /// Conditional.
    Conditional,
    /// Unconditional.
    Unconditional,
    /// An indirect jump.
    Indirect,
    /// A call.
    Call,
    /// An indirect call.
    IndirectCall,
    /// A return.
    Return,
    /// A system call.
    SystemCall,
    /// The return from one.
    SystemReturn,
    /// A conditional call.
    ConditionalCall,
    /// A conditional return.
    ConditionalReturn,
    /// The return from an exception.
    ExceptionReturn,
    /// An interrupt.
    Interrupt,
    /// A system error (SError).
    SystemError,
    /// Not in a transaction.
    NotInTransaction,
    /// An alignment fault.
    AlignmentFault,
    /// A data fault.
    DataFault,
    /// An instruction fault.
    InstructionFault,
    /// One of the five kinds that mean something else on each architecture, 1 to 5.
    Architecture(u8),
}

/// Speculative execution of a branch (`PERF_BR_SPEC_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Speculation {
    /// Not available (`PERF_BR_SPEC_NA`).
    Unknown,
    /// Speculatively, on a path that turned out wrong.
    WrongPath,
    /// Not speculatively.
    None,
    /// Speculatively, on the right path.
    CorrectPath,
}

/// The privilege level of a branch (`PERF_BR_PRIV_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BranchPrivilege {
    /// Unknown (`PERF_BR_PRIV_UNKNOWN`).
    Unknown,
    /// User mode.
    User,
    /// Kernel mode.
    Kernel,
    /// Hypervisor mode.
    Hypervisor,
}

/// The last branches before a sample, the newest first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BranchStack<'a> {
    hw_index: Option<u64>,
    entries: &'a [[u8; ENTRY]],
    counters: Option<Words<'a>>,
}

impl<'a> BranchStack<'a> {
    /// Returns the bytes that `count` entries take.
    pub(crate) fn len_of(count: u64) -> Option<usize> {
        crate::bytes::bytes_of(count, ENTRY)
    }

    pub(crate) fn new(
        hw_index: Option<u64>,
        entries: &'a [u8],
        counters: Option<Words<'a>>,
    ) -> Self {
        Self {
            hw_index,
            entries: entries.as_chunks().0,
            counters,
        }
    }

    /// Returns the number of branches.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the branches.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Branch> + Clone + use<'a> {
        self.entries.iter().map(|entry| {
            let words = Words::new(entry);
            let word = |i| words.get(i).unwrap_or(0);
            Branch {
                from: word(0),
                to: word(1),
                flags: word(2),
            }
        })
    }

    /// Returns the hardware's index of the newest branch, for stitching stacks together; `None` when it was
    /// not asked for ([`HW_INDEX`](crate::BranchSampleType::HW_INDEX)) or is not known.
    pub fn hw_index(&self) -> Option<u64> {
        self.hw_index.filter(|index| *index != u64::MAX)
    }

    /// For each branch the events counted since the one before, packed as the PMU's
    /// `branch_counter_nr` and `branch_counter_width` say
    /// ([`COUNTERS`](crate::BranchSampleType::COUNTERS)).
    pub fn counters(&self) -> Option<Words<'a>> {
        self.counters
    }
}

impl std::fmt::Debug for BranchStack<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BranchStack")
            .field("hw_index", &self.hw_index())
            .field("branches", &self.iter().collect::<Vec<_>>())
            .field("counters", &self.counters)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch with these bits of `struct perf_branch_entry` from `first` on.
    fn branch(fields: &[(u64, u32, u32)]) -> Branch {
        let bits = |(value, first, len): &(u64, u32, u32)| match cfg!(target_endian = "big") {
            true => value << (64 - first - len),
            false => value << first,
        };
        let flags = fields.iter().map(bits).fold(0, std::ops::BitOr::bitor);
        let (from, to) = (1, 2);
        Branch { from, to, flags }
    }

    #[test]
    fn flags_are_the_kernels_bit_fields() {
        let all = branch(&[
            (1, 0, 1),
            (1, 3, 1),
            (0x1234, 4, 16),
            (15, 20, 4),
            (3, 24, 2),
            (4, 26, 4),
            (2, 30, 3),
        ]);
        assert!(all.mispredicted() && !all.predicted());
        assert!(!all.in_transaction() && all.aborted());
        let others = branch(&[(1, 1, 1), (1, 2, 1)]);
        assert!(!others.mispredicted() && others.predicted());
        assert!(others.in_transaction() && !others.aborted());
        assert_eq!(all.cycles(), 0x1234);
        assert_eq!(all.branch_type(), BranchType::Architecture(2));
        assert_eq!(all.speculation(), Speculation::CorrectPath);
        assert_eq!(all.privilege(), BranchPrivilege::Kernel);
    }

    /// `PERF_BR_*`, `PERF_BR_SPEC_*` and `PERF_BR_PRIV_*` in their order.
    #[test]
    fn kinds_of_branches_are_the_kernels() {
        use BranchType as T;
        let types = [
            T::Unknown,
            T::Conditional,
            T::Unconditional,
            T::Indirect,
            T::Call,
            T::IndirectCall,
            T::Return,
            T::SystemCall,
            T::SystemReturn,
            T::ConditionalCall,
            T::ConditionalReturn,
            T::ExceptionReturn,
            T::Interrupt,
            T::SystemError,
            T::NotInTransaction,
        ];
        for (number, expected) in (0..).zip(types) {
            assert_eq!(branch(&[(number, 20, 4)]).branch_type(), expected);
        }
        let more = [T::AlignmentFault, T::DataFault, T::InstructionFault];
        let more = more.into_iter().chain((1..=5).map(T::Architecture));
        for (number, expected) in (0..).zip(more.chain([T::Unknown])) {
            let extended = branch(&[(15, 20, 4), (number, 26, 4)]);
            assert_eq!(extended.branch_type(), expected);
        }
        use Speculation as S;
        let speculations = [S::Unknown, S::WrongPath, S::None, S::CorrectPath];
        for (number, expected) in (0..).zip(speculations) {
            assert_eq!(branch(&[(number, 24, 2)]).speculation(), expected);
        }
        use BranchPrivilege as P;
        let levels = [P::Unknown, P::User, P::Kernel, P::Hypervisor, P::Unknown];
        for (number, expected) in (0..).zip(levels) {
            assert_eq!(branch(&[(number, 30, 3)]).privilege(), expected);
        }
    }
}
