//! Address spaces: under which number what is at an address is remembered, until mappings change.

use foldhash::HashMap;
use quipu_symbols::AddressOwner;

/// Numbers of the address spaces of owners. One whose mappings changed gets a new number, so that nothing that is
/// remembered under the old one is found again.
#[derive(Debug)]
pub(crate) struct Spaces {
    of_processes: HashMap<i32, u32>,
    next: u32,
    /// The process that was asked for last, and its number.
    last: Option<(i32, u32)>,
}

impl Default for Spaces {
    fn default() -> Self {
        Self {
            of_processes: HashMap::default(),
            next: Self::OTHER + 1,
            last: None,
        }
    }
}

impl Spaces {
    /// That of the kernel.
    const KERNEL: u32 = 0;
    /// That of guests and the hypervisor, of which nothing is known.
    const OTHER: u32 = 1;

    /// Returns the number of an owner's address space.
    #[inline]
    pub(crate) fn of(&mut self, owner: AddressOwner) -> u32 {
        let pid = match owner {
            AddressOwner::Kernel => return Self::KERNEL,
            AddressOwner::Process(pid) => pid,
            _ => return Self::OTHER,
        };
        if let Some((_, space)) = self.last.filter(|(last, _)| *last == pid) {
            return space;
        }
        let space = *self.of_processes.entry(pid).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        });
        self.last = Some((pid, space));
        space
    }

    /// Takes note that the mappings of a process changed.
    pub(crate) fn forget(&mut self, pid: i32) {
        self.of_processes.remove(&pid);
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_number_until_its_mappings_change() {
        let mut spaces = Spaces::default();
        let [one, two] = [1, 2].map(AddressOwner::Process);
        let of_one = spaces.of(one);
        let of_two = spaces.of(two);
        assert_ne!(of_one, of_two);
        spaces.forget(1);
        assert_eq!(spaces.of(two), of_two);
        let now = spaces.of(one);
        assert!(![of_one, of_two].contains(&now));
        assert_eq!(spaces.of(one), now);
        let kernel = spaces.of(AddressOwner::Kernel);
        assert!(![of_one, of_two, now, spaces.of(AddressOwner::Other)].contains(&kernel));
    }
}
