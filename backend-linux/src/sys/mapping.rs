//! Memory shared with the kernel: the pages of a counter that are mapped, and a page that forked
//! processes find cleared.

use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::{CounterFd, Process, last_errno, page_size};
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
    /// The process that has mapped them; `None` if its children have them too.
    owner: Option<Process>,
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
        let mut mapping = Self::map(Some((fd, offset)), len, access)?;
        mapping.owner = Some(Process::this());
        Ok(mapping)
    }

    /// Zeroed memory instead of a counter's.
    pub(crate) fn anonymous(len: usize) -> Result<Self, i32> {
        Self::map(None, len, Access::ReadWrite)
    }

    fn map(counter: Option<(&CounterFd, usize)>, len: usize, access: Access) -> Result<Self, i32> {
        let protection = match access {
            Access::Read => ProtFlags::PROT_READ,
            Access::ReadWrite => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
        };
        let size = NonZero::new(len).ok_or(libc::EINVAL)?;
        let mapped = match counter {
            Some((counter, offset)) => {
                let offset = libc::off_t::try_from(offset).map_err(|_| libc::EOVERFLOW)?;
                let flags = MapFlags::MAP_SHARED;
                // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
                unsafe { mmap(None, size, protection, flags, counter, offset) }
            }
            // SAFETY: as above.
            None => unsafe { mmap_anonymous(None, size, protection, MapFlags::MAP_PRIVATE) },
        };
        let start = mapped.map_err(|_| last_errno())?.cast();
        Ok(Self {
            start,
            len,
            access,
            owner: None,
        })
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
        self.owner.is_none_or(|owner| owner.is_this())
    }

    /// The word at a byte offset.
    ///
    /// # Panics
    /// When the offset is not that of a word in the mapping.
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len && self.len - offset >= 8);
        // SAFETY: the word lies within the mapping and is aligned, as a page is and by the assertion;
        // whoever else writes it (the kernel) does so as a whole, and we only through atomics.
        unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU64>() }
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
    /// Nobody may write these bytes as long as the slice lives.
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: the bytes lie within the mapping, which lives as long as `self`, and by the
        // caller's promise they do not change.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) }
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
#[derive(Debug)]
pub(crate) struct CounterPage(Mapping);

impl CounterPage {
    /// Maps the page; the errno when the kernel refuses.
    pub(crate) fn map(counter: &CounterFd) -> Result<Self, i32> {
        Mapping::new(counter, 0, page_size(), Access::Read).map(Self)
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

/// Returns a page of zeros that a forked process finds zero again whatever was written to it (madvise(2),
/// `MADV_WIPEONFORK`); `None` where the kernel has no such page (before 4.14) or no memory.
pub(super) fn wiped_on_fork() -> Option<Mapping> {
    let page = Mapping::anonymous(page_size()).ok()?;
    let advice = MmapAdvise::MADV_WIPEONFORK;
    // SAFETY: the mapping was just made and nothing refers to it; a forked process has it too.
    let advised = unsafe { madvise(page.start.cast(), page.len, advice) };
    advised.is_ok().then_some(page)
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
