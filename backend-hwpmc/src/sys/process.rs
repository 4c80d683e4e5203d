//! Processes and threads (`sysctl kern.proc`).

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use nix::errno::Errno;

use crate::driver::{State, Task};

/// `P_SUGID` of `ki_flag`: a program that it executed has changed its user or group.
const CHANGED_USER: i64 = 0x100;

/// The most threads of a process that are looked at.
const THREADS: usize = 16;

/// Returns a process.
pub(super) fn task(pid: i32) -> Result<Task, Errno> {
    let mut process = None;
    records::<1>(libc::KERN_PROC_PID, pid, |record| {
        process = Some(of(record));
    })?;
    process.ok_or(Errno::ESRCH)
}

/// Returns the name of the program of a process, which is cut (`ki_comm`).
///
/// # Errors
/// `ESRCH` if there is no such process; else the errno of the call.
pub fn command_name(pid: i32) -> Result<Vec<u8>, Errno> {
    let mut name = None;
    records::<1>(libc::KERN_PROC_PID, pid, |record| {
        let bytes = record.ki_comm.iter().map(|byte| byte.to_ne_bytes()[0]);
        name = Some(bytes.take_while(|byte| *byte != 0).collect());
    })?;
    name.ok_or(Errno::ESRCH)
}

/// Returns true if there is no such process, or it has ended and waits for its parent. One that cannot be looked at runs.
pub fn has_ended(pid: i32) -> bool {
    match task(pid) {
        Ok(task) => task.state == State::Ended,
        Err(errno) => errno == Errno::ESRCH,
    }
}

/// Calls a function for each thread of a process.
pub(super) fn threads(pid: i32, each: &mut dyn FnMut(i32, &Task)) -> Result<(), Errno> {
    let what = libc::KERN_PROC_PID | libc::KERN_PROC_INC_THREAD;
    records::<THREADS>(what, pid, |record| each(record.ki_tid, &of(record)))
}

/// Returns the id of the calling thread.
pub(super) fn own_thread() -> i32 {
    // SAFETY: it takes no argument and does not fail.
    unsafe { libc::pthread_getthreadid_np() }
}

/// Calls a function for each of at most `N` records.
fn records<const N: usize>(
    what: c_int,
    pid: i32,
    mut each: impl FnMut(&libc::kinfo_proc),
) -> Result<(), Errno> {
    const SIZE: usize = size_of::<libc::kinfo_proc>();
    let name = [libc::CTL_KERN, libc::KERN_PROC, what, pid];
    let mut records = [const { MaybeUninit::<libc::kinfo_proc>::zeroed() }; N];
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
    Errno::result(status)?;
    for record in &records[..bytes / SIZE] {
        // SAFETY: it consists of integers, arrays and pointers, of which all zeros, and what the kernel writes, are values.
        let record = unsafe { record.assume_init_ref() };
        // A kernel with another structure says so by its size.
        if record.ki_structsize as usize != SIZE {
            return Err(Errno::EPROTO);
        }
        each(record);
    }
    Ok(())
}

#[allow(
    clippy::unnecessary_cast,
    reason = "times and flags have 32 bits on i386"
)]
fn of(record: &libc::kinfo_proc) -> Task {
    let usage = &record.ki_rusage;
    let count = |number| u64::try_from(number).unwrap_or(0);
    let of_children = &record.ki_rusage_ch;
    let children_time = micros(of_children.ru_utime).saturating_add(micros(of_children.ru_stime));
    let state = match record.ki_stat {
        libc::SSLEEP | libc::SSTOP | libc::SWAIT => State::Asleep,
        libc::SZOMB => State::Ended,
        _ => State::Running,
    };
    // A process that ends adds those of its children to its own (`exit1`, sys/kern/kern_exit.c). How often they switched the kernel
    // does not report.
    let added = match state {
        State::Ended => children_time,
        _ => 0,
    };
    let nanoseconds = |micros: u64| micros.saturating_mul(1_000);
    Task {
        state,
        switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        cpu_time: nanoseconds(record.ki_runtime.saturating_sub(added)),
        children_time: nanoseconds(children_time),
        started: (
            record.ki_start.tv_sec as i64,
            record.ki_start.tv_usec as i64,
        ),
        owner: (record.ki_ruid, record.ki_flag as i64 & CHANGED_USER != 0),
    }
}

fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
