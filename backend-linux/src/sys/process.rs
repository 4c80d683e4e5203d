//! The identity of this process, which a forked child does not share.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous};

use super::calls::page_size;

/// A process, as distinct from the children that it forks.
///
/// The number is kept in a page that the kernel clears in a child (madvise(2), `MADV_WIPEONFORK`), so that
/// it is checked without a system call. Before Linux 4.14 there is no such page; the process id is
/// asked for instead.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Process {
    Marked(MarkedProcess),
    /// The process id.
    Id(u32),
}

/// A process by the number in the marked page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkedProcess {
    mark: &'static AtomicU64,
    number: u64,
}

impl Process {
    /// Returns the calling process.
    pub(crate) fn this() -> Self {
        match MarkedProcess::this() {
            Some(marked) => Self::Marked(marked),
            None => Self::Id(std::process::id()),
        }
    }

    /// Returns true in this process.
    pub(crate) fn is_this(&self) -> bool {
        match self {
            Self::Marked(marked) => marked.is_this(),
            Self::Id(id) => std::process::id() == *id,
        }
    }
}

impl MarkedProcess {
    /// Returns the calling process; `None` where only a system call says which it is.
    pub(crate) fn this() -> Option<Self> {
        static MARK: OnceLock<Option<&AtomicU64>> = OnceLock::new();
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mark = (*MARK.get_or_init(wiped_on_fork))?;
        let number = match mark.load(Ordering::Relaxed) {
            0 => {
                let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
                mark.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed)
                    .map_or_else(|others| others, |_| next)
            }
            known => known,
        };
        Some(Self { mark, number })
    }

    /// Returns true in this process.
    pub(crate) fn is_this(&self) -> bool {
        self.mark.load(Ordering::Relaxed) == self.number
    }
}

/// Returns a number, at first 0, that a forked process finds 0 again whatever was written to it (madvise(2),
/// `MADV_WIPEONFORK`); `None` where the kernel cannot do so (before 4.14) or has no memory. Its page stays mapped.
fn wiped_on_fork() -> Option<&'static AtomicU64> {
    let (size, access) = (page_size(), ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
    let (length, private) = (NonZero::new(size)?, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let page = unsafe { mmap_anonymous(None, length, access, private) }.ok()?;
    // SAFETY: the mapping was just made and nothing refers to it; a forked process has it too.
    let advised = unsafe { madvise(page, size, MmapAdvise::MADV_WIPEONFORK) };
    advised.ok()?;
    // SAFETY: the page begins with an aligned number, stays mapped for good, and is touched through this reference alone.
    Some(unsafe { AtomicU64::from_ptr(page.cast().as_ptr()) })
}
