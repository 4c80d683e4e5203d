//! The owner of a mapped page: the thread that is measured, in the process that mapped it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::MarkedProcess;

/// A thread of this process, distinguished from every other without a system call.
///
/// Threads get a number of ours when they first ask, and no number twice: unlike ids and addresses
/// of threads it is not used again after one has ended. A process that was forked has none of its
/// parent's threads, though its memory says otherwise; the mark, in a page that the kernel clears
/// in the child (madvise(2), `MADV_WIPEONFORK`), shows that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    thread: u64,
    process: MarkedProcess,
}

thread_local! {
    /// The calling thread's number; 0 before it asked.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

impl Owner {
    /// The calling thread. `None` where the kernel cannot distinguish forked processes (before 4.14).
    pub(super) fn this_thread() -> Option<Self> {
        static LAST_THREAD: AtomicU64 = AtomicU64::new(0);
        let process = MarkedProcess::this()?;
        let thread = NUMBER.get();
        let thread = match thread {
            0 => LAST_THREAD.fetch_add(1, Ordering::Relaxed) + 1,
            known => known,
        };
        NUMBER.set(thread);
        Some(Self { thread, process })
    }

    /// Returns true on this thread.
    pub(super) fn is_this_thread(&self) -> bool {
        NUMBER.get() == self.thread && self.is_this_process()
    }

    /// Returns true in the process of this thread.
    pub(super) fn is_this_process(&self) -> bool {
        self.process.is_this()
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;

    /// A forked process has the memory of its parent's thread, and is another.
    #[test]
    fn a_forked_process_is_another() {
        let Some(parent) = Owner::this_thread() else {
            return;
        };
        // SAFETY: the child reads memory, makes no call that needs a lock, and ends at once.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Child => {
                let denies = !parent.is_this_thread() && !parent.is_this_process();
                let knows_itself = Owner::this_thread().is_some_and(|own| own.is_this_thread());
                let denies_still = !parent.is_this_thread();
                let status = i32::from(!(denies && knows_itself && denies_still));
                // SAFETY: it ends the child without anything of the parent's being run.
                unsafe { libc::_exit(status) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            }
        }
        assert!(parent.is_this_thread());
    }

    #[test]
    fn a_thread_is_itself_and_no_other() {
        let Some(main) = Owner::this_thread() else {
            return;
        };
        assert!(main.is_this_thread());
        assert_eq!(Owner::this_thread().expect("again").thread, main.thread);
        let numbers: Vec<u64> = (0..20)
            .map(|_| {
                // One after the other, so that the C library uses ids and stacks again.
                let other = std::thread::spawn(move || {
                    assert!(!main.is_this_thread());
                    assert!(main.is_this_process());
                    let other = Owner::this_thread().expect("as on the first thread");
                    assert!(other.is_this_thread() && !main.is_this_thread());
                    other.thread
                });
                other.join().expect("no panic")
            })
            .collect();
        let mut unique = numbers.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), numbers.len());
    }
}
