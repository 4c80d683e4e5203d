//! Stacks while they are added up: of numbers, so that adding a sample neither allocates nor compares texts.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtAddress {
    pub(super) space: u64,
    pub(super) address: u64,
}

/// Returns a hash of a number in its upper bits (Knuth, The Art of Computer Programming, 6.4: by the golden ratio).
#[inline]
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl AtAddress {
    #[inline(always)]
    fn bytes(self) -> [u8; 16] {
        (u128::from(self.address) << 64 | u128::from(self.space)).to_ne_bytes()
    }

    fn of_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_ne_bytes(bytes);
        Self {
            space: both as u64,
            address: (both >> 64) as u64,
        }
    }
}

/// The lists of functions at addresses: each in the first place that was free from the one on that its hash gives it.
#[derive(Debug, Default)]
pub(super) struct KnownAddresses {
    /// None, or as many as a power of two.
    places: Vec<KnownAddress>,
    len: usize,
    /// Bits of a hash that are not those of a place.
    shift: u32,
}

/// An address and its list, as bytes, which need not be aligned: without gaps there is room for a fifth more of them.
#[derive(Debug, Clone, Copy)]
struct KnownAddress {
    at: [u8; 16],
    /// The number of the list; that of no list in a place that is free.
    list: [u8; 4],
}

impl KnownAddress {
    const FREE: Self = Self {
        at: [u8::MAX; 16],
        list: [u8::MAX; 4],
    };

    fn is_free(&self) -> bool {
        self.list == Self::FREE.list
    }

    #[inline(always)]
    fn list(&self) -> Option<u32> {
        (!self.is_free()).then_some(u32::from_ne_bytes(self.list))
    }
}

impl KnownAddresses {
    /// As many addresses are known at once: a larger table costs more memory and time than to find some functions again.
    const MOST: usize = 7 << 15;

    /// Returns the list of an address.
    #[inline(always)]
    pub(super) fn get(&self, at: AtAddress) -> Option<u32> {
        let first = self.first_place(at);
        let known = self.places.get(first)?;
        match known.at == at.bytes() {
            true => known.list(),
            false => self.get_behind(first, at),
        }
    }

    #[inline(never)]
    fn get_behind(&self, first: usize, at: AtAddress) -> Option<u32> {
        self.places[self.place(first, at.bytes())].list()
    }

    #[inline(always)]
    fn first_place(&self, at: AtAddress) -> usize {
        (mixed(at.address ^ at.space << 40) >> self.shift) as usize
    }

    /// Returns the place of an address, or the free one for it, from a place on.
    #[inline]
    fn place(&self, mut place: usize, at: [u8; 16]) -> usize {
        let last = self.places.len() - 1;
        // An eighth is free.
        loop {
            let known = &self.places[place];
            if known.at == at || known.is_free() {
                return place;
            }
            place = (place + 1) & last;
        }
    }

    /// Takes note of the list of an address.
    pub(super) fn insert(&mut self, at: AtAddress, list: u32) {
        if self.len >= Self::MOST {
            self.clear();
        }
        if 8 * (self.len + 1) > 7 * self.places.len() {
            self.grow();
        }
        let place = self.place(self.first_place(at), at.bytes());
        self.len += usize::from(self.places[place].is_free());
        self.places[place] = KnownAddress {
            at: at.bytes(),
            list: list.to_ne_bytes(),
        };
    }

    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(1 << 10);
        let before = std::mem::replace(&mut self.places, vec![KnownAddress::FREE; len]);
        self.shift = u64::BITS - len.trailing_zeros();
        for known in before.iter().filter(|known| !known.is_free()) {
            let first = self.first_place(AtAddress::of_bytes(known.at));
            let place = self.place(first, known.at);
            self.places[place] = *known;
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.places.fill(KnownAddress::FREE);
        self.len = 0;
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
}

impl Hash for ChainMode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let modes = u64::from(self.in_kernel) << 1 | u64::from(self.left_out);
        state.write_u128(u128::from(modes) << 64 | u128::from(self.space));
    }
}

impl KnownChains {
    /// As many bytes of chains are known at once.
    const MOST: usize = 16 << 20;

    /// Returns the list of functions that a chain became, and the hash of the chain.
    #[inline]
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
    known: HashMap<TaskKey, u32>,
    last: Option<(TaskKey, u32)>,
}

/// A task; the name is that at an address, which the task in the list keeps alive.
type TaskKey = (*const u8, Option<i32>, Option<i32>, Option<u32>);

impl Tasks {
    /// Returns the number of a task.
    #[inline]
    pub(super) fn number(
        &mut self,
        command: &Arc<str>,
        pid: Option<i32>,
        tid: Option<i32>,
        cpu: Option<u32>,
    ) -> u32 {
        let key = (command.as_ptr(), pid, tid, cpu);
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return number;
        }
        let number = *self.known.entry(key).or_insert_with(|| {
            self.all.push(Task {
                command: command.clone(),
                pid,
                tid,
                cpu,
            });
            (self.all.len() - 1) as u32
        });
        self.last = Some((key, number));
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackKey {
    pub(super) task: u32,
    pub(super) leaf: u32,
    pub(super) callers: u32,
}

impl Hash for StackKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [task, leaf, callers] = [self.task, self.leaf, self.callers].map(u128::from);
        state.write_u128(task << 64 | leaf << 32 | callers);
    }
}

/// The weights of stacks.
#[derive(Debug, Clone, Default)]
pub(super) struct Weights {
    sums: Vec<(StackKey, Weight)>,
    /// The positions of stacks among the sums.
    known: HashMap<StackKey, u32>,
    /// Those of stacks that were added to of late, each in the one place that its hash gives it.
    recent: Vec<u32>,
}

impl Weights {
    const RECENT_BITS: u32 = 14;

    /// Adds to the weight of a stack.
    #[inline(always)]
    pub(super) fn add(&mut self, stack: StackKey, weight: Weight) {
        let number = u64::from(stack.leaf) << 32 | u64::from(stack.callers);
        let place = mixed(number ^ u64::from(stack.task) << 16) >> (u64::BITS - Self::RECENT_BITS);
        let recent = self.recent.get(place as usize);
        let sum = recent.and_then(|at| self.sums.get_mut(*at as usize));
        match sum {
            Some((known, sum)) if *known == stack => sum.add(weight),
            _ => self.add_to_other(stack, weight, place as usize),
        }
    }

    #[inline(never)]
    fn add_to_other(&mut self, stack: StackKey, weight: Weight, place: usize) {
        let at = *self.known.entry(stack).or_insert_with(|| {
            self.sums.push((stack, Weight::default()));
            (self.sums.len() - 1) as u32
        });
        self.sums[at as usize].1.add(weight);
        if self.recent.is_empty() {
            self.recent.resize(1 << Self::RECENT_BITS, 0);
        }
        self.recent[place] = at;
    }
}

/// Returns the stacks that the numbers stand for. Lists that are the same in other pieces become one.
pub(super) fn stacks_of(
    weights: Weights,
    tasks: &Tasks,
    lists: &FrameLists,
    branches: Option<&Branches>,
) -> std::collections::HashMap<Stack, Weight> {
    let mut stacks = std::collections::HashMap::with_capacity(weights.sums.len());
    for (
        StackKey {
            task,
            leaf,
            callers,
        },
        weight,
    ) in weights.sums
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
    fn lists_of_addresses_are_known_however_many_there_are() {
        let mut known = KnownAddresses::default();
        let at = |n: u32| AtAddress {
            space: u64::from(n % 5) << 32 | u64::from(n % 3),
            address: u64::from(n / 15),
        };
        assert_eq!(known.get(at(0)), None);
        let most = KnownAddresses::MOST as u32;
        for n in 0..most {
            // Another time, which makes no other one of it.
            known.insert(at(n / 2), n / 2);
            known.insert(at(n), n);
        }
        for n in 0..most {
            assert_eq!(known.get(at(n)), Some(n));
        }
        assert_eq!((known.get(at(most)), known.places.len()), (None, 1 << 18));
        // Beyond what is kept, it begins anew.
        known.insert(at(most), 7);
        assert_eq!((known.get(at(most)), known.get(at(0))), (Some(7), None));
    }

    #[test]
    fn an_address_that_looks_like_a_free_place_is_one_like_others() {
        let mut known = KnownAddresses::default();
        let at = AtAddress::of_bytes(KnownAddress::FREE.at);
        known.insert(AtAddress { space: 1, ..at }, 1);
        assert_eq!(known.get(at), None);
        known.insert(at, 2);
        assert_eq!(known.get(at), Some(2));
        known.clear();
        assert_eq!(known.get(at), None);
    }

    #[test]
    fn weights_of_each_stack_are_added_up() {
        let mut weights = Weights::default();
        // More than are recent, so that they take the places of one another.
        let stack = |n: u32| StackKey {
            task: n % 3,
            leaf: n / 1000,
            callers: n % 1000,
        };
        for round in 1..=3 {
            for n in 0..100_000 {
                weights.add(stack(n), Weight::of_sample(round * u64::from(n)));
            }
        }
        assert_eq!(weights.sums.len(), 100_000);
        for (n, (key, weight)) in (0..).zip(&weights.sums) {
            assert_eq!(*key, stack(n));
            assert_eq!((weight.samples, weight.period), (3, 6 * u64::from(n)));
        }
    }

    #[test]
    fn chains_are_known_by_their_words_and_what_else_they_depend_on() {
        let mut chains = KnownChains::default();
        let mode = ChainMode {
            space: 2,
            in_kernel: false,
            left_out: true,
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
        // Beyond what is kept, it begins anew.
        let long = vec![1; KnownChains::MOST];
        note(&mut chains, mode, &long, 10);
        assert_eq!(chains.find(mode, &long).1, Some(10));
        assert_eq!(chains.find(mode, b"12345678").1, None);
    }
}
