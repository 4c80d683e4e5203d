//! Mappings of one process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapped {
    /// Its first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Offset of its start in the file, in bytes.
    pub offset: u64,
    /// The file's path, or a name in brackets.
    pub path: Arc<[u8]>,
}

impl Mapped {
    /// Returns the mapping of a file, or of a name in brackets, at addresses, from an offset in the file on.
    pub fn new(addresses: Range<u64>, offset: u64, path: impl Into<Arc<[u8]>>) -> Self {
        Self {
            start: addresses.start,
            end: addresses.end,
            offset,
            path: path.into(),
        }
    }

    /// Returns the offset of an address in the file.
    pub fn offset_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }

    /// The part of it from an address on.
    fn from(mut self, start: u64) -> Self {
        self.offset = self.offset_of(start);
        self.start = start;
        self
    }
}

/// The mappings of a process. A new one takes the place of what it covers, as mmap(2) does.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressSpace {
    /// Number, the same for all that were made of the same mappings in the same order.
    pub(crate) number: u32,
    by_start: BTreeMap<u64, Mapped>,
}

impl AddressSpace {
    /// Adds a mapping; one without extent is none.
    pub(crate) fn map(&mut self, mapped: Mapped) {
        let (start, end) = (mapped.start, mapped.end);
        if start >= end {
            return;
        }
        if let Some((_, before)) = self.by_start.range_mut(..start).next_back()
            && before.end > start
        {
            let behind = before.clone();
            before.end = start;
            if behind.end > end {
                self.by_start.insert(end, behind.from(end));
            }
        }
        while let Some((&first, _)) = self.by_start.range(start..end).next() {
            if let Some(covered) = self.by_start.remove(&first)
                && covered.end > end
            {
                self.by_start.insert(end, covered.from(end));
            }
        }
        self.by_start.insert(start, mapped);
    }

    /// The mapping that an address is in.
    pub(crate) fn find(&self, address: u64) -> Option<&Mapped> {
        let (_, mapped) = self.by_start.range(..=address).next_back()?;
        (address < mapped.end).then_some(mapped)
    }

    /// Returns the number of mappings.
    pub(crate) fn len(&self) -> usize {
        self.by_start.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(start: u64, end: u64, offset: u64, path: &str) -> Mapped {
        Mapped {
            start,
            end,
            offset,
            path: path.as_bytes().into(),
        }
    }

    /// The path and offset at each address.
    fn at(space: &AddressSpace, addresses: &[u64]) -> Vec<String> {
        let show = |address: &u64| match space.find(*address) {
            Some(m) => format!(
                "{}+{}",
                String::from_utf8_lossy(&m.path),
                m.offset_of(*address)
            ),
            None => "-".into(),
        };
        addresses.iter().map(show).collect()
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers() {
        let mut space = AddressSpace::default();
        space.map(mapped(100, 200, 1000, "a"));
        space.map(mapped(140, 160, 0, "b"));
        assert_eq!(
            at(&space, &[99, 100, 139, 140, 159, 160, 199, 200]),
            [
                "-", "a+1000", "a+1039", "b+0", "b+19", "a+1060", "a+1099", "-"
            ]
        );
        space.map(mapped(120, 180, 0, "c"));
        assert_eq!(
            at(&space, &[119, 120, 179, 180]),
            ["a+1019", "c+0", "c+59", "a+1080"]
        );
        assert_eq!(space.len(), 3);
        space.map(mapped(0, 1000, 5, "d"));
        assert_eq!(
            (at(&space, &[0, 999]), space.len()),
            (vec!["d+5".into(), "d+1004".into()], 1)
        );
    }

    #[test]
    fn mappings_without_extent_are_none() {
        let mut space = AddressSpace::default();
        space.map(mapped(10, 10, 0, "a"));
        space.map(mapped(u64::MAX, 3, 0, "b"));
        assert_eq!(space.len(), 0);
        space.map(mapped(0, u64::MAX, u64::MAX, "c"));
        assert_eq!(at(&space, &[1]), ["c+0"]);
    }
}
