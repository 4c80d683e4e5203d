//! The requirements of tests on the machine, and the report of a test that was skipped.

#![allow(dead_code, reason = "every test program uses some of it")]

use std::hint::black_box;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_hal::{
    Breakpoint, BreakpointAccess, ErrorKind, EventSpec, Filter, GroupSpec, ReadBuf, Result, Target,
};
use quipu_linux::{LinuxBackend, LinuxGroup};

/// Says that a check did not run, and why.
pub(crate) fn skip(test: &str, reason: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIP {test}: {reason}");
}

/// The backend, or the reason why there is none.
pub(crate) fn backend(test: &str) -> Option<LinuxBackend> {
    LinuxBackend::new().map_err(|e| skip(test, e)).ok()
}

/// Opens a group, or says why this machine or user cannot.
///
/// # Panics
/// When it fails for another reason than that the machine lacks something.
pub(crate) fn open(test: &str, spec: &GroupSpec, target: &Target) -> Option<LinuxGroup> {
    unless_lacking(test, backend(test)?.open_group(spec, target))
}

/// Returns what was opened, or reports why this machine or user cannot.
///
/// # Panics
/// When it fails for another reason than that the machine lacks something.
pub(crate) fn unless_lacking<T>(test: &str, opened: Result<T>) -> Option<T> {
    opened
        .map_err(|e| {
            let lacking = matches!(
                e.kind(),
                ErrorKind::NoPermission
                    | ErrorKind::UnsupportedEvent
                    | ErrorKind::UnsupportedFeature
                    | ErrorKind::NoSuchDevice
                    | ErrorKind::Busy
            );
            assert!(lacking, "{e:#}");
            skip(test, e);
        })
        .ok()
}

/// An event counted in user mode only, which every user may.
pub(crate) fn user(event: impl Into<quipu_hal::Event>) -> EventSpec {
    EventSpec::new(event).with_filter(Filter::USER_ONLY)
}

/// Reads a group.
pub(crate) fn read(group: &mut LinuxGroup) -> ReadBuf {
    use quipu_hal::Group;
    let mut buf = group.read_buf();
    group.read(&mut buf).expect("an open group can be read");
    buf
}

/// The address of a function, as an event that counts its calls.
pub(crate) fn calls_of(function: extern "C" fn(u64) -> u64) -> EventSpec {
    user(Breakpoint::execute(function as *const () as u64))
}

/// Writes to a variable, as an event.
pub(crate) fn writes_to(variable: *const u64) -> EventSpec {
    user(Breakpoint {
        address: variable as u64,
        len: 8,
        access: BreakpointAccess::Write,
    })
}

/// Calls a function `times` times.
pub(crate) fn call(function: extern "C" fn(u64) -> u64, times: u64) {
    for i in 0..times {
        black_box(function(black_box(i)));
    }
}

/// Pages that nobody has touched yet, never huge ones. Unmapped when dropped.
pub(crate) struct FreshPages {
    start: *mut u8,
    count: usize,
}

impl FreshPages {
    /// Maps `count` pages.
    pub(crate) fn map(count: usize) -> Self {
        let len = count * page_size();
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED, "no memory");
        // SAFETY: the range is the mapping just made. Kernels without huge pages refuse, rightly.
        unsafe { libc::madvise(start, len, libc::MADV_NOHUGEPAGE) };
        Self {
            start: start.cast(),
            count,
        }
    }

    /// Returns the first address and the one behind the last.
    pub(crate) fn range(&self) -> (u64, u64) {
        let start = self.start as u64;
        (start, start + (self.count * page_size()) as u64)
    }

    /// Writes one byte to each page.
    pub(crate) fn touch(&self) {
        for page in 0..self.count {
            // SAFETY: the page lies within the mapping, which is writable.
            unsafe { self.start.add(page * page_size()).write_volatile(1) };
        }
    }
}

impl Drop for FreshPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.count * page_size()) };
    }
}

/// The size of a page, in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: the call takes a number and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("every system has a page size")
}

/// Moves the calling thread to a CPU, and leaves it there.
pub(crate) fn move_to_cpu(cpu: u32) {
    // SAFETY: a set of CPUs is plain bits, of which all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let cpu = usize::try_from(cpu).expect("a CPU's number");
    // SAFETY: the set is a live local; a number beyond it is ignored.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is a live local of the length given.
    let moved = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(moved, 0, "CPU {cpu} is online");
}

/// Counts the open descriptors of this process.
pub(crate) fn open_descriptors() -> usize {
    let dir = std::fs::read_dir("/proc/self/fd").expect("proc is mounted");
    // The directory itself is one of them while it is read.
    dir.count() - 1
}

/// Held while a test has breakpoints: a CPU has four or so.
pub(crate) fn debug_registers() -> MutexGuard<'static, ()> {
    static TAKEN: Mutex<()> = Mutex::new(());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
