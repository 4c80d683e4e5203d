//! Stacks while they are added up: of numbers, so that adding a sample neither allocates nor compares texts.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::recording::FrameKind;

use super::numbered::Numbered;
use super::profile::{TakenBranch, Task, Weight};

/// Lists of functions, each once, by their numbers.
#[derive(Debug)]
pub(super) struct FrameLists {
    functions: Vec<u32>,
    /// The position at which each list begins; the last is that of the next one.
    starts: Vec<usize>,
    known: HashTable<u32>,
    hasher: RandomState,
}

impl Default for FrameLists {
    fn default() -> Self {
        let mut lists = Self {
            functions: Vec::new(),
            starts: vec![0],
            known: HashTable::new(),
            hasher: RandomState::default(),
        };
        lists.number(&[]);
        lists
    }
}

impl FrameLists {
    /// The list of no function.
    pub(super) const EMPTY: u32 = 0;

    /// Returns the number of a list.
    pub(super) fn number(&mut self, list: &[u32]) -> u32 {
        let Self {
            functions,
            starts,
            known,
            hasher,
        } = self;
        let at = |number: u32| {
            let number = number as usize;
            &functions[starts[number]..starts[number + 1]]
        };
        let hash = hasher.hash_one(list);
        if let Some(number) = known.find(hash, |number| at(*number) == list) {
            return *number;
        }
        let number = (starts.len() - 1) as u32;
        known.insert_unique(hash, number, |number| hasher.hash_one(at(*number)));
        functions.extend_from_slice(list);
        starts.push(functions.len());
        number
    }

    /// Returns the number of lists.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the list that has a number.
    pub(super) fn get(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.functions[self.starts[number]..self.starts[number + 1]]
    }
}

/// An address in an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AtAddress {
    pub(super) space: u64,
    pub(super) address: u64,
}

/// The lists of functions at addresses.
#[derive(Debug, Default)]
pub(super) struct KnownAddresses {
    lists: HashMap<AtAddress, u32>,
}

impl KnownAddresses {
    /// As many addresses are known at once: they fill a table of 2^14, which CPUs have in their caches.
    const MOST: usize = 7 << 11;

    /// Returns the list of an address.
    pub(super) fn get(&self, at: AtAddress) -> Option<u32> {
        self.lists.get(&at).copied()
    }

    /// Takes note of the list of an address.
    pub(super) fn insert(&mut self, at: AtAddress, list: u32) {
        if self.lists.len() >= Self::MOST {
            self.lists.clear();
        }
        self.lists.insert(at, list);
    }

    /// Forgets all of them.
    #[cfg(any(test, target_os = "linux", target_os = "freebsd"))]
    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }
}

/// Call chains as they were recorded, and the list of functions that each became.
#[derive(Debug, Default)]
pub(super) struct KnownChains {
    words: Vec<u8>,
    known: HashTable<KnownChain>,
    hasher: RandomState,
}

#[derive(Debug)]
struct KnownChain {
    hash: u64,
    mode: ChainMode,
    start: u32,
    len: u32,
    list: u32,
}

/// Circumstances that the functions of a call chain depend on beside its words: the address space of its process, and whether it
/// begins in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainMode {
    pub(super) space: u64,
    pub(super) in_kernel: bool,
    /// True if the sampled instruction is left out at its beginning.
    pub(super) left_out: bool,
    /// The kind of its frame in user mode.
    pub(super) leaf: Option<FrameKind>,
}

impl Hash for ChainMode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let modes = u64::from(self.in_kernel) << 1 | u64::from(self.left_out);
        state.write_u128(u128::from(modes) << 64 | u128::from(self.space));
        self.leaf.hash(state);
    }
}

impl KnownChains {
    /// As many bytes of chains are known at once.
    const MOST: usize = 8 << 20;

    /// Returns the list of functions that a chain became, and the hash of the chain.
    pub(super) fn find(&self, mode: ChainMode, words: &[u8]) -> (u64, Option<u32>) {
        let mut hasher = self.hasher.build_hasher();
        mode.hash(&mut hasher);
        hasher.write(words);
        let hash = hasher.finish();
        let found = self.known.find(hash, |known| {
            let start = known.start as usize;
            known.hash == hash
                && known.mode == mode
                && self.words.get(start..start + known.len as usize) == Some(words)
        });
        (hash, found.map(|known| known.list))
    }

    /// Takes note of the list that a chain became.
    pub(super) fn insert(&mut self, hash: u64, mode: ChainMode, words: &[u8], list: u32) {
        if self.words.len() + words.len() > Self::MOST {
            self.words.clear();
            self.known.clear();
        }
        let known = KnownChain {
            hash,
            mode,
            start: self.words.len() as u32,
            len: words.len() as u32,
            list,
        };
        self.words.extend_from_slice(words);
        self.known.insert_unique(hash, known, |known| known.hash);
    }
}

/// A stack: the numbers of its task, of the list of functions of the sampled instruction, and of that of its callers; where
/// branches are reported, of the list of functions of a branch's target, and of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    pub(super) task: u32,
    pub(super) leaf: u32,
    pub(super) callers: u32,
}

/// The pieces that the stacks of a recording are made of, each once. Stacks of the same functions may be several, in other pieces.
#[derive(Debug, Default)]
pub struct Stacks {
    pub(super) tasks: Numbered<Task>,
    pub(super) lists: FrameLists,
    /// The branches, where they are reported in place of instructions.
    pub(super) branches: Option<Numbered<TakenBranch>>,
}

impl Stacks {
    /// Returns the task of a stack.
    pub fn task(&self, stack: Stack) -> &Task {
        self.tasks.get(stack.task)
    }

    /// Returns the branch that was taken into the function of a stack, where branches are reported.
    pub fn branch(&self, stack: Stack) -> Option<TakenBranch> {
        let branches = self.branches.as_ref()?;
        Some(*branches.get(stack.callers))
    }

    /// Returns the functions of a stack as positions in [`Functions`](super::profile::Functions), the innermost first.
    pub fn frames(&self, stack: Stack) -> impl DoubleEndedIterator<Item = usize> {
        let callers = match self.branches {
            Some(_) => FrameLists::EMPTY,
            None => stack.callers,
        };
        let (leaf, callers) = (self.lists.get(stack.leaf), self.lists.get(callers));
        leaf.iter().chain(callers).map(|frame| *frame as usize)
    }

    /// Returns the position of a function by its place from the outermost on.
    pub(super) fn frame(&self, stack: Stack, from_outermost: usize) -> Option<usize> {
        let callers = match self.branches {
            Some(_) => FrameLists::EMPTY,
            None => stack.callers,
        };
        let (leaf, callers) = (self.lists.get(stack.leaf), self.lists.get(callers));
        let at = (leaf.len() + callers.len()).checked_sub(from_outermost + 1)?;
        let frame = leaf.get(at).or_else(|| callers.get(at - leaf.len()))?;
        Some(*frame as usize)
    }

    /// Returns the stack of a task with these functions, the innermost first.
    #[cfg(test)]
    pub(crate) fn stack(&mut self, task: Task, frames: &[usize]) -> Stack {
        let frames: Vec<u32> = frames.iter().map(|frame| *frame as u32).collect();
        Stack {
            task: self.tasks.number(task),
            leaf: self.lists.number(&frames[..1]),
            callers: self.lists.number(&frames[1..]),
        }
    }

    /// Leaves out what none of these stacks is made of any more. Those that stay get other numbers.
    #[cfg(any(test, target_os = "linux", target_os = "freebsd"))]
    pub(super) fn shrink_to<'a>(&mut self, all: impl Iterator<Item = &'a mut Weights>) {
        let before = std::mem::take(self);
        for weights in all {
            for (stack, weight) in std::mem::take(weights).iter() {
                let stack = Stack {
                    task: self.tasks.number(before.task(stack).clone()),
                    leaf: self.lists.number(before.lists.get(stack.leaf)),
                    callers: self.lists.number(before.lists.get(stack.callers)),
                };
                weights.add(stack, weight);
            }
        }
    }
}

/// The weight of each stack.
#[derive(Debug, Default)]
pub struct Weights {
    stacks: Numbered<Stack>,
    weights: Vec<Weight>,
}

impl Weights {
    /// Returns true if there is no stack.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Returns all stacks with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (Stack, Weight)> {
        let stacks = self.stacks.all().iter().copied();
        stacks.zip(self.weights.iter().copied())
    }

    /// Adds to the weight of a stack.
    #[inline]
    pub(crate) fn add(&mut self, stack: Stack, weight: Weight) {
        let number = self.stacks.number(stack) as usize;
        match self.weights.get_mut(number) {
            Some(known) => known.add(weight),
            None => self.weights.push(weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_the_same_have_one_number() {
        let mut lists = FrameLists::default();
        assert_eq!(lists.number(&[]), FrameLists::EMPTY);
        let numbers: Vec<u32> = (0..1000).map(|i| lists.number(&[i, i / 2])).collect();
        for (i, number) in (0..1000).zip(numbers) {
            assert_eq!(lists.get(number), [i, i / 2]);
            assert_eq!(lists.number(&[i, i / 2]), number);
        }
        assert!(lists.get(FrameLists::EMPTY).is_empty());
    }

    #[test]
    fn lists_of_addresses_are_known_up_to_a_limit() {
        let mut known = KnownAddresses::default();
        let at = |n: u32| AtAddress {
            space: u64::from(n % 5) << 32 | u64::from(n % 3),
            address: u64::from(n / 15),
        };
        assert_eq!(known.get(at(0)), None);
        let most = KnownAddresses::MOST as u32;
        for n in 0..most {
            // A second time, which replaces the first.
            known.insert(at(n / 2), n / 2);
            known.insert(at(n), n);
        }
        for n in 0..most {
            assert_eq!(known.get(at(n)), Some(n));
        }
        assert_eq!(known.get(at(most)), None);
        // Beyond the limit all are forgotten first.
        known.insert(at(most), 7);
        assert_eq!((known.get(at(most)), known.get(at(0))), (Some(7), None));
        known.clear();
        assert_eq!(known.get(at(most)), None);
    }

    #[test]
    fn stacks_that_are_left_keep_their_tasks_and_functions() {
        let task = |command: &str| Task {
            command: command.into(),
            pid: None,
            tid: None,
            cpu: None,
        };
        let mut stacks = Stacks::default();
        let forgotten = stacks.stack(task("a"), &[1, 2, 3]);
        let kept = stacks.stack(task("b"), &[4, 5]);
        assert_ne!(forgotten, kept);
        let mut weights = Weights::default();
        weights.add(kept, Weight::of_sample(3));
        weights.add(kept, Weight::of_sample(4));
        stacks.shrink_to(std::iter::once(&mut weights));
        let all: Vec<_> = weights.iter().collect();
        let [(kept, weight)] = all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            weight,
            Weight {
                samples: 2,
                period: 7
            }
        );
        assert_eq!(&*stacks.task(kept).command, "b");
        assert!(stacks.frames(kept).eq([4, 5]));
        assert_eq!(stacks.tasks.all().len(), 1);
    }

    #[test]
    fn chains_are_known_by_their_words_and_what_else_they_depend_on() {
        let mut chains = KnownChains::default();
        let mode = ChainMode {
            space: 2,
            in_kernel: false,
            left_out: true,
            leaf: None,
        };
        let note = |chains: &mut KnownChains, mode, words: &[u8], list| {
            let (hash, found) = chains.find(mode, words);
            assert_eq!(found, None);
            chains.insert(hash, mode, words, list);
        };
        note(&mut chains, mode, b"12345678", 7);
        note(&mut chains, mode, b"", 8);
        let kernel = ChainMode {
            in_kernel: true,
            ..mode
        };
        note(&mut chains, kernel, b"12345678", 9);
        assert_eq!(chains.find(mode, b"12345678").1, Some(7));
        assert_eq!(chains.find(mode, b"").1, Some(8));
        assert_eq!(chains.find(kernel, b"12345678").1, Some(9));
        let other = ChainMode { space: 3, ..mode };
        assert_eq!(chains.find(other, b"12345678").1, None);
        let at_start = ChainMode {
            leaf: Some(FrameKind::Start),
            ..mode
        };
        assert_eq!(chains.find(at_start, b"12345678").1, None);
        // Beyond what is kept, it begins anew.
        let long = vec![1; KnownChains::MOST];
        note(&mut chains, mode, &long, 10);
        assert_eq!(chains.find(mode, &long).1, Some(10));
        assert_eq!(chains.find(mode, b"12345678").1, None);
    }
}
