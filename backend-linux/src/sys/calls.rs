//! System calls of the calling thread that refer to no counter.

use std::ffi::{CStr, c_ulong};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::last_errno;

/// A call, with the memory that the kernel reads or writes for it.
pub(super) enum Call<'a> {
    ThreadId,
    RealUser,
    EffectiveUser,
    CurrentCpu,
    PageSize,
    /// `PR_TASK_PERF_EVENTS_ENABLE` and `PR_TASK_PERF_EVENTS_DISABLE` of prctl(2).
    SetOwnCounters(bool),
    /// `PR_GET_TSC` of prctl(2).
    TimeStampSetting(&'a mut i32),
    Entries(&'a File, &'a mut [u8]),
    Link(&'a File, &'a CStr, &'a mut [u8]),
    Affinity(&'a mut CpuMask),
    KeepOn(&'a CpuMask),
    /// With the milliseconds to wait at most, without end if they are below 0.
    Poll(&'a mut [libc::pollfd], i32),
}

/// A set of CPUs, those below 1024 (sched_setaffinity(2)).
#[derive(Default, Clone, Copy)]
pub(crate) struct CpuMask([c_ulong; 1024 / c_ulong::BITS as usize]);

/// Makes a call, and returns what it returns: below 0 if it failed.
#[cold]
#[inline(never)]
pub(super) fn call(call: Call<'_>) -> i32 {
    const MASK: usize = size_of::<CpuMask>();
    // SAFETY: what they touch of our memory are as many bytes or entries as they are told, or one int, and is borrowed for
    // as long as the call lasts; the name of a link ends in a zero, and descriptors are open as long as their files are
    // borrowed. Those that change something change whether counters count, or where this thread runs.
    unsafe {
        match call {
            Call::ThreadId => libc::syscall(libc::SYS_gettid) as i32,
            Call::RealUser => libc::getuid().cast_signed(),
            Call::EffectiveUser => libc::geteuid().cast_signed(),
            Call::CurrentCpu => libc::sched_getcpu(),
            Call::PageSize => libc::sysconf(libc::_SC_PAGESIZE) as i32,
            Call::SetOwnCounters(true) => libc::prctl(libc::PR_TASK_PERF_EVENTS_ENABLE),
            Call::SetOwnCounters(false) => libc::prctl(libc::PR_TASK_PERF_EVENTS_DISABLE),
            Call::TimeStampSetting(setting) => {
                libc::prctl(libc::PR_GET_TSC, std::ptr::from_mut(setting))
            }
            Call::Entries(dir, to) => {
                let (dir, length) = (dir.as_raw_fd(), to.len());
                libc::syscall(libc::SYS_getdents64, dir, to.as_mut_ptr(), length) as i32
            }
            Call::Link(dir, name, to) => {
                let (dir, length) = (dir.as_raw_fd(), to.len());
                let (name, to) = (name.as_ptr(), to.as_mut_ptr());
                libc::syscall(libc::SYS_readlinkat, dir, name, to, length) as i32
            }
            Call::Affinity(mask) => {
                libc::syscall(libc::SYS_sched_getaffinity, 0, MASK, mask.0.as_mut_ptr()) as i32
            }
            Call::KeepOn(mask) => {
                libc::syscall(libc::SYS_sched_setaffinity, 0, MASK, mask.0.as_ptr()) as i32
            }
            Call::Poll(descriptors, milliseconds) => {
                // A slice has no more elements than fit an nfds_t.
                let count = descriptors.len() as libc::nfds_t;
                libc::poll(descriptors.as_mut_ptr(), count, milliseconds)
            }
        }
    }
}

/// Makes a call, and returns the errno if it failed.
fn checked(done: Call<'_>) -> Result<usize, i32> {
    usize::try_from(call(done)).map_err(|_| last_errno())
}

/// Returns the id of the calling thread.
pub(crate) fn thread_id() -> i32 {
    call(Call::ThreadId)
}

/// Returns the user whose rights the process has.
pub(crate) fn effective_user() -> u32 {
    call(Call::EffectiveUser).cast_unsigned()
}

/// Returns the user that started the process.
pub(crate) fn real_user() -> u32 {
    call(Call::RealUser).cast_unsigned()
}

/// Returns the CPU that the calling thread runs on.
pub(crate) fn current_cpu() -> u32 {
    // The kernel numbers CPUs with an unsigned int.
    call(Call::CurrentCpu).cast_unsigned()
}

/// Returns the size of a page of memory.
#[inline]
pub(crate) fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            let size = call(Call::PageSize) as usize;
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        known => known,
    }
}

/// Starts or stops every counter that the calling thread has created (prctl(2), `PR_TASK_PERF_EVENTS_ENABLE`).
pub(crate) fn set_own_counters(count: bool) -> Result<(), i32> {
    checked(Call::SetOwnCounters(count)).map(|_| ())
}

/// Returns true if this thread may read the CPU's cycle counter: PR_SET_TSC of prctl(2) takes it away.
/// Architectures without that setting always allow it.
pub(crate) fn has_time_stamps() -> bool {
    let mut setting = 0;
    let told = checked(Call::TimeStampSetting(&mut setting));
    told.is_err() || setting != libc::PR_TSC_SIGSEGV
}

/// Fills room with the next entries of a directory (`struct linux_dirent64`, getdents64(2)); returns the number of bytes.
pub(crate) fn directory_entries(dir: &File, room: &mut [u8]) -> io::Result<usize> {
    checked(Call::Entries(dir, room)).map_err(io::Error::from_raw_os_error)
}

/// Fills room with the target of a link in a directory (readlinkat(2)); returns the number of bytes.
pub(crate) fn link_target(dir: &File, name: &CStr, room: &mut [u8]) -> io::Result<usize> {
    checked(Call::Link(dir, name, room)).map_err(io::Error::from_raw_os_error)
}

impl CpuMask {
    const BITS: u32 = c_ulong::BITS;

    /// Returns the CPUs that the calling thread may run on.
    pub(crate) fn of_this_thread() -> Result<Self, i32> {
        let mut mask = Self::default();
        checked(Call::Affinity(&mut mask)).map(|_| mask)
    }

    /// Returns those of some CPUs that are in this set.
    pub(crate) fn only(&self, cpus: &[u32]) -> Self {
        let mut both = Self::default();
        for cpu in cpus {
            let (word, bit) = ((cpu / Self::BITS) as usize, 1 << (cpu % Self::BITS));
            if let (Some(own), Some(word)) = (self.0.get(word), both.0.get_mut(word)) {
                *word |= own & bit;
            }
        }
        both
    }

    /// Returns true if no CPU is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Keeps the calling thread on these CPUs.
    pub(crate) fn keep_this_thread(&self) -> Result<(), i32> {
        checked(Call::KeepOn(self)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_those_of_its_cpus_that_it_is_kept_on() {
        let kept = std::thread::spawn(|| {
            let all = CpuMask::of_this_thread().expect("the kernel tells");
            let cpu = current_cpu();
            let one = all.only(&[cpu, 5000]);
            assert!(!one.is_empty() && all.only(&[5000]).is_empty());
            one.keep_this_thread().expect("one that it may run on");
            let left = CpuMask::of_this_thread().expect("the kernel tells");
            assert_eq!(left.0, one.0);
            assert_eq!(current_cpu(), cpu);
            CpuMask::default().keep_this_thread()
        });
        assert_eq!(kept.join().expect("no panic"), Err(libc::EINVAL));
    }

    #[test]
    fn ids_are_those_that_the_kernel_shows() {
        use std::os::unix::fs::MetadataExt as _;

        let link = std::fs::read_link("/proc/thread-self").expect("every Linux has it");
        let task = format!("{}/task/{}", std::process::id(), thread_id());
        assert_eq!(link.to_str(), Some(&*task));
        let own = std::fs::metadata("/proc/self").expect("every Linux has it");
        assert_eq!(
            (own.uid(), real_user()),
            (effective_user(), effective_user())
        );
    }
}
