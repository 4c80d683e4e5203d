//! Memory shared with the kernel: the pages of a counter that are mapped.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{CounterFd, last_errno};

/// What may be done with mapped pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading. The kernel then writes over what has not been read.
    Read,
    /// Reading, and telling the kernel how far.
    ReadWrite,
}

/// Mapped pages of a counter. Dropping it unmaps them.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    access: Access,
}

// SAFETY: the pages belong to this value alone and are not tied to a thread; what the kernel shares
// with us is touched with atomic operations only, or after the kernel has published it.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives atomic loads and stores, and slices only by an unsafe function.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of a counter from `offset`, both multiples of the page size.
    pub(crate) fn new(
        fd: &CounterFd,
        offset: usize,
        len: usize,
        access: Access,
    ) -> Result<Self, i32> {
        Self::map(fd.raw(), libc::MAP_SHARED, offset, len, access)
    }

    /// Zeroed memory instead of a counter's.
    #[cfg(test)]
    pub(crate) fn anonymous(len: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Self::map(-1, flags, 0, len, Access::ReadWrite).expect("memory")
    }

    fn map(fd: i32, flags: i32, offset: usize, len: usize, access: Access) -> Result<Self, i32> {
        let offset = libc::off_t::try_from(offset).map_err(|_| libc::EINVAL)?;
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(last_errno());
        }
        let start = NonNull::new(start.cast()).ok_or(libc::ENOMEM)?;
        Ok(Self { start, len, access })
    }

    /// How many bytes are mapped.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What may be done with them.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// The word at a byte offset.
    ///
    /// # Panics
    /// When the offset is not that of a word in the mapping.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len && self.len - offset >= 8);
        // SAFETY: the word lies within the mapping and is aligned, as a page is and by the assertion;
        // whoever else writes it (the kernel) does so as a whole, and we only through atomics.
        unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Loads a word; what the kernel wrote before it stored that value is seen by later reads.
    #[inline]
    pub(crate) fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Loads a word that may change at any time.
    #[inline]
    pub(crate) fn load_relaxed(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// Stores a word; what was read before is not read after.
    ///
    /// # Panics
    /// When the mapping is for reading only.
    #[inline]
    pub(crate) fn store(&self, offset: usize, value: u64) {
        assert_eq!(self.access, Access::ReadWrite);
        self.word(offset).store(value, Ordering::Release);
    }

    /// Some bytes of the mapping.
    ///
    /// # Panics
    /// When they are not in the mapping.
    ///
    /// # Safety
    /// Nobody may write these bytes as long as the slice lives.
    #[inline]
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: the bytes lie within the mapping, which lives as long as `self`, and by the
        // caller's promise they do not change.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own; references into it borrow `self` and are gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The size of a page, in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: the call takes a number and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stored_where_slices_show_them() {
        let mapping = Mapping::anonymous(page_size());
        mapping.store(16, u64::from_ne_bytes(*b"12345678"));
        // SAFETY: nothing is stored while the slice lives.
        assert_eq!(unsafe { mapping.slice(15, 10) }, b"\x0012345678\0");
        assert_eq!(mapping.load(16), mapping.load_relaxed(16));
    }

    #[test]
    fn what_is_outside_is_refused() {
        let mapping = Mapping::anonymous(page_size());
        for offset in [page_size(), page_size() - 4, usize::MAX - 7] {
            let outside = std::panic::catch_unwind(|| mapping.load(offset));
            assert!(outside.is_err(), "{offset}");
        }
    }
}
