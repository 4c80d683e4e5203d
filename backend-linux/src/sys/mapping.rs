//! Memory shared with the kernel: the pages of a counter that are mapped.

use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::calls::page_size;
use super::counter_fd::CounterFd;
use super::errno::last_errno;
use super::process::Process;
use crate::user_page::UserPage;

/// The access to mapped pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading. The kernel then writes over what has not been read.
    Read,
    /// Reading, and telling the kernel how far.
    ReadWrite,
}

/// Mapped pages of a counter. Dropping it unmaps them.
///
/// The kernel does not hand them on to forked processes (`VM_DONTCOPY`, `perf_mmap` in
/// `kernel/events/core.c`): there, nothing is at their address, or something else, which is left alone.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    access: Access,
    /// The process that has mapped them.
    owner: Process,
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
        let protection = match access {
            Access::Read => ProtFlags::PROT_READ,
            Access::ReadWrite => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
        };
        let size = NonZero::new(len).ok_or(libc::EINVAL)?;
        let offset = libc::off_t::try_from(offset).map_err(|_| libc::EOVERFLOW)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, fd, offset) };
        Ok(Self {
            start: mapped.map_err(|_| last_errno())?.cast(),
            len,
            access,
            owner: Process::this(),
        })
    }

    /// Zeroed memory instead of a counter's.
    #[cfg(test)]
    pub(crate) fn anonymous(len: usize) -> Result<Self, i32> {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(len as u64).expect("zeros");
        Self::new(&CounterFd::new(file.into()), 0, len, Access::ReadWrite)
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the access to the pages.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Returns true if the pages are mapped in the calling process.
    pub(crate) fn is_here(&self) -> bool {
        self.owner.is_this()
    }

    /// The word at a byte offset.
    ///
    /// # Panics
    /// When the offset is not that of a word in the mapping.
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len && self.len - offset >= 8);
        let word = self.start.as_ptr().wrapping_add(offset);
        // SAFETY: the word lies within the mapping and is aligned, as a page is and by the assertion;
        // the kernel, if it writes it, does so as a whole, and we only through atomics.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }

    /// Loads a word; what the kernel wrote before it stored that value is seen by later reads.
    pub(crate) fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Loads a word that may change at any time.
    pub(crate) fn load_relaxed(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// Stores a word; what was read before is not read after.
    ///
    /// # Panics
    /// When the mapping is for reading only.
    pub(crate) fn store(&self, offset: usize, value: u64) {
        assert_eq!(self.access, Access::ReadWrite);
        self.word(offset).store(value, Ordering::Release);
    }

    /// Replaces a word if it is what it is said to be; false if it is not.
    ///
    /// # Panics
    /// When the mapping is for reading only.
    pub(crate) fn exchange(&self, offset: usize, current: u64, new: u64) -> bool {
        assert_eq!(self.access, Access::ReadWrite);
        let (done, otherwise) = (Ordering::AcqRel, Ordering::Relaxed);
        let word = self.word(offset);
        word.compare_exchange(current, new, done, otherwise).is_ok()
    }

    /// Some bytes of the mapping.
    ///
    /// # Panics
    /// When they are not in the mapping.
    ///
    /// # Safety
    /// These bytes are not written, by the kernel or otherwise, as long as the slice lives.
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        let bytes = self.start.as_ptr().wrapping_add(offset);
        // SAFETY: the bytes lie within the mapping, which lives as long as `self`, and by the
        // caller's promise they do not change.
        unsafe { std::slice::from_raw_parts(bytes, len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        // SAFETY: the mapping is our own; references into it borrow `self` and are gone.
        let unmapped = unsafe { munmap(self.start.cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// The first page of a counter, mapped for reading.
///
/// Forked processes do not have it, as any [`Mapping`] of a counter.
#[derive(Debug, Clone)]
pub(crate) struct CounterPage(Arc<Mapping>);

impl CounterPage {
    /// Maps the page; the errno when the kernel refuses.
    pub(crate) fn map(counter: &CounterFd) -> Result<Self, i32> {
        Mapping::new(counter, 0, page_size(), Access::Read).map(|mapping| Self(Arc::new(mapping)))
    }

    /// The page.
    ///
    /// # Safety
    /// The calling process is the one that mapped it.
    pub(crate) unsafe fn get(&self) -> &UserPage {
        // SAFETY: in this process the mapping is there as long as `self`. It is a page long, page
        // aligned, and every field of a UserPage is an atomic of which any bits are valid, so the
        // kernel may write while we read.
        unsafe { self.0.start.cast().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stored_where_slices_show_them() {
        let mapping = Mapping::anonymous(page_size()).expect("memory");
        mapping.store(16, u64::from_ne_bytes(*b"12345678"));
        // SAFETY: nothing is stored while the slice lives.
        assert_eq!(unsafe { mapping.slice(15, 10) }, b"\x0012345678\0");
        assert_eq!(mapping.load(16), mapping.load_relaxed(16));
    }

    #[test]
    fn what_is_outside_is_refused() {
        let mapping = Mapping::anonymous(page_size()).expect("memory");
        for offset in [page_size(), page_size() - 4, usize::MAX - 7] {
            let outside = std::panic::catch_unwind(|| mapping.load(offset));
            assert!(outside.is_err(), "{offset}");
        }
    }
}
