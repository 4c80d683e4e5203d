//! Processes and threads (`sysctl kern.proc`).

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use nix::errno::Errno;

use crate::driver::{State, Task};

/// `P_SUGID` of `ki_flag`: a program that it executed has changed its user or group.
const CHANGED_USER: i64 = 0x100;

/// Returns a process.
pub(super) fn task(pid: i32) -> Result<Task, Errno> {
    let [first, _] = records(libc::KERN_PROC_PID, pid)?.ok_or(Errno::EOVERFLOW)?;
    first.map(|record| of(&record)).ok_or(Errno::ESRCH)
}

/// Returns the thread of a process that has only one.
pub(super) fn only_thread(pid: i32) -> Result<Option<Task>, Errno> {
    Ok(match records(libc::KERN_PROC_PID | libc::KERN_PROC_INC_THREAD, pid)? {
        Some([Some(only), None]) => Some(of(&only)),
        _ => None,
    })
}

/// Returns at most two records, `None` if there are more.
fn records(what: c_int, pid: i32) -> Result<Option<[Option<libc::kinfo_proc>; 2]>, Errno> {
    const SIZE: usize = size_of::<libc::kinfo_proc>();
    let name = [libc::CTL_KERN, libc::KERN_PROC, what, pid];
    let mut records = [const { MaybeUninit::<libc::kinfo_proc>::zeroed() }; 2];
    let mut bytes = size_of_val(&records);
    // SAFETY: sysctl(3) reads the four numbers and writes at most `bytes` bytes into the records.
    let status = unsafe {
        libc::sysctl(
            name.as_ptr(),
            4,
            records.as_mut_ptr().cast(),
            &raw mut bytes,
            ptr::null(),
            0,
        )
    };
    match Errno::result(status) {
        Err(Errno::ENOMEM) => return Ok(None),
        other => other?,
    };
    let [first, second] = records.map(|record| {
        // SAFETY: it consists of integers, arrays and pointers, of which all zeros, and what the kernel writes, are values.
        unsafe { record.assume_init() }
    });
    // A kernel with another structure says so by its size.
    if bytes >= SIZE && first.ki_structsize as usize != SIZE {
        return Err(Errno::EPROTO);
    }
    Ok(Some([
        (bytes >= SIZE).then_some(first),
        (bytes >= 2 * SIZE).then_some(second),
    ]))
}

fn of(record: &libc::kinfo_proc) -> Task {
    let usage = &record.ki_rusage;
    let count = |number| u64::try_from(number).unwrap_or(0);
    Task {
        state: match record.ki_stat {
            libc::SSLEEP | libc::SSTOP | libc::SWAIT => State::Asleep,
            libc::SZOMB => State::Ended,
            _ => State::Running,
        },
        threads: u32::try_from(record.ki_numthreads).unwrap_or(u32::MAX),
        switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        cpu_time: record.ki_runtime.saturating_mul(1_000),
        children_time: micros(record.ki_rusage_ch.ru_utime)
            .saturating_add(micros(record.ki_rusage_ch.ru_stime))
            .saturating_mul(1_000),
        started: (record.ki_start.tv_sec as i64, record.ki_start.tv_usec as i64),
        owner: (record.ki_ruid, record.ki_flag as i64 & CHANGED_USER != 0),
    }
}

fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
