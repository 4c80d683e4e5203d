//! Mapped memory: the page of a counter, and a page that forked processes find cleared.

use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use super::{CounterFd, last_errno, page_size};
use crate::user_read::UserPage;

/// The first page of a counter, mapped for reading.
///
/// The kernel does not hand it on to forked processes (`VM_DONTCOPY`, `perf_mmap` in
/// `kernel/events/core.c`): there is nothing at its address, or something else.
#[derive(Debug)]
pub(crate) struct CounterPage(NonNull<UserPage>);

// SAFETY: the page is shared memory that is only read, atomically, and unmapped by its one owner;
// neither depends on the thread.
unsafe impl Send for CounterPage {}
// SAFETY: as above.
unsafe impl Sync for CounterPage {}

impl CounterPage {
    /// Maps the page; the errno when the kernel refuses.
    pub(crate) fn map(counter: &CounterFd) -> Result<Self, i32> {
        // SAFETY: a new mapping, of which the kernel chooses the place.
        let place = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_size(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                counter.raw(),
                0,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(last_errno());
        }
        NonNull::new(place.cast()).map(Self).ok_or(libc::EFAULT)
    }

    /// The page.
    ///
    /// # Safety
    /// The calling process is the one that mapped it.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> &UserPage {
        // SAFETY: in this process the mapping is there until `unmap`, which takes `self`. It is a
        // page long, page aligned, and every field of a UserPage is an atomic of which any bits are
        // valid, so the kernel may write while we read.
        unsafe { self.0.as_ref() }
    }

    /// Gives the page back.
    ///
    /// # Safety
    /// The calling process is the one that mapped it.
    pub(crate) unsafe fn unmap(self) {
        // SAFETY: the mapping was made by `map`, is this long, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), page_size()) };
    }
}

/// A zero in a page that a forked process finds zero again whatever it was (madvise(2),
/// `MADV_WIPEONFORK`). It stays for as long as the process does. `None` where the kernel has no such
/// page (before 4.14) or no memory.
pub(crate) fn wiped_on_fork() -> Option<&'static AtomicU32> {
    // SAFETY: a new mapping, of which the kernel chooses the place.
    let place = unsafe {
        libc::mmap(
            ptr::null_mut(),
            page_size(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if place == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping was just made, is a page long, and nothing refers to it.
    if unsafe { libc::madvise(place, page_size(), libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above.
        unsafe { libc::munmap(place, page_size()) };
        return None;
    }
    // SAFETY: the mapping is writable, aligned, zeroed, at least as long, and never unmapped; a
    // forked process has it too.
    Some(unsafe { AtomicU32::from_ptr(place.cast()) })
}
