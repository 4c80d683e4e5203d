//! The identity of this process, which a forked child does not share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::{Mapping, wiped_on_fork};

/// A process, told from the children that it forks.
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
    /// Returns the calling process; `None` where it can be told by a system call only.
    pub(crate) fn this() -> Option<Self> {
        static PAGE: OnceLock<Option<Mapping>> = OnceLock::new();
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mark = PAGE.get_or_init(wiped_on_fork).as_ref()?.word(0);
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
