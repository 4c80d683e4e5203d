//! Stacks while they are added up: of numbers, so that adding a sample neither allocates nor compares texts.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::recording::FrameKind;

use super::profile::{Stack, TakenBranch, Task, Weight};

/// Lists of functions, each once, by their numbers.
#[derive(Debug)]
pub(super) struct FrameLists {
    functions: Vec<u32>,
    /// The position at which each list begins; the last is that of the next one.
    starts: Vec<usize>,
    known: HashTable<u32>,
    hasher: RandomState,
}

impl FrameLists {
    /// The list of no function.
    pub(super) const EMPTY: u32 = 0;

    pub(super) fn new() -> Self {
        let mut lists = Self {
            functions: Vec::new(),
            starts: vec![0],
            known: HashTable::new(),
            hasher: RandomState::default(),
        };
        lists.number(&[]);
        lists
    }

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
    #[cfg(target_os = "linux")]
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
    /// As many addresses are known at once, which take some 25 MB: a build of a large program hits half as many.
    const MOST: usize = 7 << 17;

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
    #[cfg(any(test, target_os = "linux"))]
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
    const MOST: usize = 16 << 20;

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

/// Tasks by their numbers.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
    known: HashMap<Task, u32>,
}

impl Tasks {
    /// Returns the number of a task.
    pub(super) fn number(&mut self, task: Task) -> u32 {
        if let Some(number) = self.known.get(&task) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(task.clone());
        self.known.insert(task, number);
        number
    }
}

/// Branches by their numbers.
#[derive(Debug, Default)]
pub(super) struct Branches {
    all: Vec<TakenBranch>,
    known: HashMap<TakenBranch, u32>,
}

impl Branches {
    /// Returns the number of a branch.
    pub(super) fn number(&mut self, branch: TakenBranch) -> u32 {
        *self.known.entry(branch).or_insert_with(|| {
            self.all.push(branch);
            (self.all.len() - 1) as u32
        })
    }
}

/// A stack: the numbers of its task, of the list of functions of the sampled instruction, and of that of its callers; where
/// branches are reported, of the list of functions of a branch's target, and of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    pub(super) task: u32,
    pub(super) leaf: u32,
    pub(super) callers: u32,
}

/// The weights of stacks.
pub(super) type Weights = HashMap<StackKey, Weight>;

/// Returns the stacks that the numbers stand for. Lists that are the same in other pieces become one.
pub(super) fn stacks_of(
    weights: Weights,
    tasks: &Tasks,
    lists: &FrameLists,
    branches: Option<&Branches>,
) -> std::collections::HashMap<Stack, Weight> {
    let mut stacks = std::collections::HashMap::with_capacity(weights.len());
    for (
        StackKey {
            task,
            leaf,
            callers,
        },
        weight,
    ) in weights
    {
        let branch = branches.map(|branches| branches.all[callers as usize]);
        let callers = if branch.is_some() {
            FrameLists::EMPTY
        } else {
            callers
        };
        let (leaf, callers) = (lists.get(leaf), lists.get(callers));
        let frames = leaf.iter().chain(callers);
        let stack = Stack {
            task: tasks.all[task as usize].clone(),
            branch,
            frames: frames.map(|function| *function as usize).collect(),
        };
        let sum: &mut Weight = stacks.entry(stack).or_default();
        sum.add(weight);
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_the_same_have_one_number() {
        let mut lists = FrameLists::new();
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
    fn tasks_that_are_the_same_have_one_number() {
        let mut tasks = Tasks::default();
        let task = |command: &str, tid| Task {
            command: command.into(),
            pid: None,
            tid,
            cpu: None,
        };
        assert_eq!(tasks.number(task("a", None)), 0);
        assert_eq!(tasks.number(task("b", None)), 1);
        assert_eq!(tasks.number(task("a", Some(7))), 2);
        // By the name's text, wherever it is stored.
        assert_eq!(tasks.number(task("a", None)), 0);
        assert_eq!(tasks.all.len(), 3);
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
