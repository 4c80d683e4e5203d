//! Mappings of one process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::mapped_file::{FileIdentity, MappedFile};

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
    /// The file that was mapped.
    pub file: Arc<MappedFile>,
}

impl Mapped {
    /// Returns the mapping of a file, or of a name in brackets, at addresses, from an offset in the file on.
    pub fn new(addresses: Range<u64>, offset: u64, path: impl Into<Arc<[u8]>>) -> Self {
        Self {
            start: addresses.start,
            end: addresses.end,
            offset,
            file: Arc::new(MappedFile {
                path: path.into(),
                identity: FileIdentity::Unknown,
            }),
        }
    }

    /// Returns it with the identity of the file.
    #[must_use]
    pub fn of(mut self, identity: FileIdentity) -> Self {
        let path = self.file.path.clone();
        self.file = Arc::new(MappedFile { path, identity });
        self
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
    /// The program: the first file that was mapped.
    program: Option<Arc<MappedFile>>,
    /// The files in which just-in-time compilers list functions, the newest first.
    jitdumps: Vec<Arc<MappedFile>>,
}

/// As many compilers can write files in one process.
const MOST_JITDUMPS: usize = 16;

impl AddressSpace {
    /// Adds a mapping; one without extent is none.
    pub(crate) fn map(&mut self, mut mapped: Mapped) {
        let (start, end) = (mapped.start, mapped.end);
        if start >= end {
            return;
        }
        if let Some(copied) = self.copied(&mapped) {
            mapped = copied;
        }
        if self.program.is_none() && !mapped.file.is_anonymous() {
            self.program = Some(mapped.file.clone());
        }
        if mapped.file.is_jitdump() && !self.jitdumps.contains(&mapped.file) {
            self.jitdumps.insert(0, mapped.file.clone());
            self.jitdumps.truncate(MOST_JITDUMPS);
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

    /// Returns the part of a file that lay where memory is mapped now, if the memory has a copy of it: programs copy their code
    /// into larger pages. A file that was unmapped leaves its place to others without a record, so it has to be the program's own,
    /// which stays, or all of what was mapped.
    fn copied(&self, mapped: &Mapped) -> Option<Mapped> {
        if !mapped.file.is_anonymous() {
            return None;
        }
        let before = self.find(mapped.start)?;
        let is_own = self.program.as_ref() == Some(&before.file);
        let is_whole = (before.start, before.end) == (mapped.start, mapped.end);
        let fits = mapped.end <= before.end && !before.file.is_anonymous();
        (fits && (is_own || is_whole)).then(|| Mapped {
            end: mapped.end,
            ..before.clone().from(mapped.start)
        })
    }

    /// The mapping that an address is in.
    pub(crate) fn find(&self, address: u64) -> Option<&Mapped> {
        let (_, mapped) = self.by_start.range(..=address).next_back()?;
        (address < mapped.end).then_some(mapped)
    }

    /// Returns the mappings, by their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapped> {
        self.by_start.values()
    }

    /// Returns the files in which just-in-time compilers list functions, the newest first.
    pub(crate) fn jitdumps(&self) -> &[Arc<MappedFile>] {
        &self.jitdumps
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
        Mapped::new(start..end, offset, path.as_bytes())
    }

    /// The path and offset at each address.
    fn at(space: &AddressSpace, addresses: &[u64]) -> Vec<String> {
        let show = |address: &u64| match space.find(*address) {
            Some(m) => format!(
                "{}+{}",
                String::from_utf8_lossy(&m.file.path),
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
    fn files_of_compilers_are_kept_once_the_last_first() {
        let mut space = AddressSpace::default();
        let files = [
            "/tmp/jit-7.dump",
            "/lib/a",
            "/tmp/jit-7.dump",
            "/tmp/jit-8.dump",
        ];
        for (start, path) in (0..).zip(files) {
            space.map(mapped(start * 10, start * 10 + 10, 0, path));
        }
        let kept = |space: &AddressSpace| -> Vec<String> {
            let paths = space.jitdumps().iter().map(|file| &file.path);
            paths
                .map(|path| String::from_utf8_lossy(path).into())
                .collect()
        };
        assert_eq!(kept(&space), ["/tmp/jit-8.dump", "/tmp/jit-7.dump"]);
        for pid in 100..200 {
            space.map(mapped(pid, pid + 1, 0, &format!("/tmp/jit-{pid}.dump")));
        }
        let kept = kept(&space);
        assert_eq!(kept.len(), MOST_JITDUMPS);
        assert_eq!(kept[0], "/tmp/jit-199.dump");
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

    #[test]
    fn memory_that_has_a_copy_of_code_is_that_code() {
        let mut space = AddressSpace::default();
        space.map(mapped(0x1000, 0x9000, 0x1000, "/program"));
        space.map(mapped(0x2000, 0x3000, 0, "//anon"));
        assert_eq!(at(&space, &[0x2010]), ["/program+8208"]);
        // All of a library, or memory in the place that a part of one left.
        space.map(mapped(0x10_000, 0x20_000, 0, "/library"));
        space.map(mapped(0x10_000, 0x20_000, 0, "//anon"));
        assert_eq!(at(&space, &[0x10_010]), ["/library+16"]);
        space.map(mapped(0x11_000, 0x20_000, 0, "//anon"));
        assert_eq!(at(&space, &[0x11_010]), ["//anon+16"]);
        space.map(mapped(0x8000, 0xa000, 0, "//anon"));
        assert_eq!(at(&space, &[0x8000, 0x9000]), ["//anon+0", "//anon+4096"]);
    }
}
