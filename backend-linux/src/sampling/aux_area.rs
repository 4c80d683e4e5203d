//! The AUX area: a second ring, of bytes that only the PMU understands (perf_event_open(2), "AUX").

use quipu_hal::{Error, ErrorKind, Result};

use super::batch::{elsewhere, whole_pages};
use super::spec::WhenFull;
use crate::machine::privileges::{Capability, Privileges};
use crate::sys::{Access, CounterFd, Mapping};

/// Offsets in the first page of the counter (`struct perf_event_mmap_page`).
const AUX_HEAD: usize = 1056;
const AUX_TAIL: usize = 1064;
const AUX_OFFSET: usize = 1072;
const AUX_SIZE: usize = 1080;

/// The mapped AUX area of a ring.
#[derive(Debug)]
pub(super) struct AuxArea {
    mapping: Mapping,
    when_full: WhenFull,
    tail: u64,
}

impl AuxArea {
    pub(super) fn map(
        control: &Mapping,
        fd: &CounterFd,
        bytes: usize,
        when_full: WhenFull,
    ) -> Result<Self> {
        let fail = |kind| Error::new(kind, "map an AUX area");
        let invalid = |reason| fail(ErrorKind::InvalidConfiguration).with_reason(reason);
        if !control.is_here() {
            return Err(elsewhere());
        }
        let size = whole_pages(bytes).ok_or_else(|| invalid("it is too large"))?;
        if control.access() == Access::Read {
            return Err(invalid("its ring overwrites records"));
        }
        if control.load(AUX_SIZE) != 0 {
            return Err(invalid("an AUX area is mapped already"));
        }
        // Behind the records, from where the kernel takes any multiple of a page.
        let offset = control.len().next_multiple_of(size);
        control.store(AUX_OFFSET, offset as u64);
        control.store(AUX_SIZE, size as u64);
        let access = match when_full {
            WhenFull::Lose => Access::ReadWrite,
            WhenFull::Overwrite => Access::Read,
        };
        let mapped = Mapping::new(fd, offset, size, access);
        let mapping = mapped.map_err(|errno| {
            control.store(AUX_SIZE, 0);
            match errno {
                libc::EOPNOTSUPP | libc::ENODEV => fail(ErrorKind::UnsupportedFeature)
                    .with_reason("the event's PMU has no AUX area"),
                libc::EPERM => fail(ErrorKind::NoPermission)
                    .with_reason("it is more locked memory than this process may have")
                    .with_hint(format!(
                        "ask for less, or {}",
                        Privileges::rights(false).run_with(Capability::IpcLock)
                    )),
                libc::EINVAL => fail(ErrorKind::InvalidConfiguration),
                _ => fail(ErrorKind::Os),
            }
            .with_errno(errno)
        })?;
        Ok(Self {
            mapping,
            when_full,
            tail: control.load(AUX_TAIL),
        })
    }

    /// Returns its size in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.mapping.len()
    }

    fn place(&self, position: u64) -> usize {
        (position & (self.capacity() as u64 - 1)) as usize
    }

    /// Shows the bytes that have not been consumed, in two pieces, and gives back as many as `read`
    /// says. Of an area that is written over nothing can be shown in place.
    pub(super) fn read(&mut self, control: &Mapping, read: impl FnOnce(&[u8], &[u8]) -> usize) {
        if !control.is_here() {
            read(&[], &[]);
            return;
        }
        let written = match self.when_full {
            WhenFull::Lose => control.load(AUX_HEAD).wrapping_sub(self.tail),
            WhenFull::Overwrite => 0,
        };
        let written = usize::try_from(written).unwrap_or(usize::MAX);
        let len = written.min(self.capacity());
        let start = self.place(self.tail);
        let first = len.min(self.capacity() - start);
        let part = |from, len| {
            // SAFETY: the PMU writes nothing between the tail and the head as long as the tail stays.
            // It is moved below, after the last use of the slices, which the closure cannot keep.
            unsafe { self.mapping.slice(from, len) }
        };
        let consumed = read(part(start, first), part(0, len - first)).min(len);
        self.tail = self.tail.wrapping_add(consumed as u64);
        if self.when_full == WhenFull::Lose {
            control.store(AUX_TAIL, self.tail);
        }
    }

    /// Appends a copy of the whole area, the oldest byte first.
    pub(super) fn copy(&self, control: &Mapping, out: &mut Vec<u8>) {
        if !control.is_here() {
            return;
        }
        // The head is where the next byte goes, and so the oldest one is.
        let head = self.place(control.load(AUX_HEAD)) & !7;
        out.reserve(self.capacity());
        for at in (0..self.capacity()).step_by(8) {
            let from = self.place((head + at) as u64);
            out.extend(self.mapping.load_relaxed(from).to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::page_size;

    fn area(when_full: WhenFull) -> (Mapping, AuxArea) {
        let control = Mapping::anonymous(page_size()).expect("memory");
        let mapping = Mapping::anonymous(page_size()).expect("memory");
        for at in (0..page_size()).step_by(8) {
            mapping.store(at, at as u64);
        }
        let area = AuxArea {
            mapping,
            when_full,
            tail: 0,
        };
        (control, area)
    }

    #[test]
    fn what_is_consumed_is_given_back_and_the_rest_is_shown_again() {
        let (control, mut area) = area(WhenFull::Lose);
        let size = page_size() as u64;
        control.store(AUX_HEAD, 100);
        let mut seen = (0, 0);
        area.read(&control, |first, second| {
            seen = (first.len(), second.len());
            60
        });
        assert_eq!((seen, control.load(AUX_TAIL)), ((100, 0), 60));
        // Up to the end and over it.
        control.store(AUX_HEAD, size + 16);
        area.read(&control, |first, second| {
            seen = (first.len(), second.len());
            usize::MAX
        });
        assert_eq!(seen, (page_size() - 60, 16));
        assert_eq!(control.load(AUX_TAIL), size + 16);
    }

    #[test]
    fn an_area_that_is_written_over_is_copied_from_its_oldest_byte() {
        let (control, area) = area(WhenFull::Overwrite);
        control.store(AUX_HEAD, 24);
        let mut copy = Vec::new();
        area.copy(&control, &mut copy);
        assert_eq!(copy.len(), page_size());
        assert_eq!(copy[..8], 24u64.to_ne_bytes());
        assert_eq!(copy[page_size() - 8..], 16u64.to_ne_bytes());
    }

    /// Without a PMU that has an AUX area there is nothing else to see of it.
    #[test]
    fn a_second_area_and_one_beside_a_ring_that_overwrites_are_refused() {
        let control = Mapping::anonymous(2 * page_size()).expect("memory");
        control.store(AUX_SIZE, 4096);
        let mut options = std::fs::File::options();
        let null = options.read(true).write(true).open("/dev/null");
        let null = null.expect("every Linux has it");
        let fd = CounterFd::new(null.into());
        let map = |bytes| {
            let refused = AuxArea::map(&control, &fd, bytes, WhenFull::Lose);
            refused.expect_err("refused").kind()
        };
        assert_eq!(map(1), ErrorKind::InvalidConfiguration);
        assert_eq!(map(usize::MAX), ErrorKind::InvalidConfiguration);
        control.store(AUX_SIZE, 0);
        // The null device maps nothing.
        assert_eq!(map(1), ErrorKind::UnsupportedFeature);
        assert_eq!(control.load(AUX_SIZE), 0);
    }
}
