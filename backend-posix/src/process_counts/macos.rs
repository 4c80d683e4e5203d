//! proc_pid_rusage(2) of macOS 13 and later.

use std::ffi::CStr;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::ptr;

use nix::errno::Errno;
use quipu_hal::{Error, ErrorKind, Result};

use super::{Look, ProcessCounts};
use crate::Quantity;

/// The number of the structure: the first kernel that has it is the first that counts at each entry of the kernel. Those
/// before it count at switches of threads alone, so that the counts of a process that runs are those of some time ago.
const RUSAGE_INFO_V6: libc::c_int = 6;

/// `struct rusage_info_v6` of <sys/resource.h>, which begins with the fourth version. Later versions of the header name
/// more of what is reserved.
#[repr(C)]
struct RusageInfo {
    v4: libc::rusage_info_v4,
    flags: u64,
    user_ptime: u64,
    system_ptime: u64,
    pinstructions: u64,
    pcycles: u64,
    energy_nj: u64,
    penergy_nj: u64,
    reserved: [u64; 14],
}

// As that header has them on both architectures.
const _: () = {
    assert!(size_of::<RusageInfo>() == 464);
    assert!(offset_of!(libc::rusage_info_v4, ri_proc_exit_abstime) == 88);
    assert!(offset_of!(libc::rusage_info_v4, ri_child_elapsed_abstime) == 136);
    assert!(offset_of!(libc::rusage_info_v4, ri_instructions) == 248);
    assert!(offset_of!(libc::rusage_info_v4, ri_cycles) == 256);
    assert!(offset_of!(RusageInfo, flags) == 296);
    assert!(offset_of!(RusageInfo, pinstructions) == 320);
    assert!(offset_of!(RusageInfo, pcycles) == 328);
    assert!(offset_of!(RusageInfo, energy_nj) == 336);
    assert!(offset_of!(RusageInfo, penergy_nj) == 344);
};

/// Looks at a process of the same user that runs, or has ended and was not waited for.
///
/// # Errors
/// The system's refusal.
pub(crate) fn look(pid: i32) -> Result<Look> {
    let mut info = MaybeUninit::<RusageInfo>::zeroed();
    // SAFETY: the buffer is writable and as large as the kernel's structure of this number. The declaration has it as a
    // pointer to a pointer, and the kernel writes the structure where it points.
    let status = unsafe { libc::proc_pid_rusage(pid, RUSAGE_INFO_V6, info.as_mut_ptr().cast()) };
    Errno::result(status).map_err(|errno| {
        Error::new(
            ErrorKind::Os,
            format!("read what the kernel has counted of process {pid}"),
        )
        .with_io_error(&errno.into())
    })?;
    // SAFETY: it consists of integers, of which all zeros, and what the kernel writes, are values.
    let info = unsafe { info.assume_init() };
    Ok(Look {
        counts: ProcessCounts {
            instructions: info.v4.ri_instructions,
            cycles: info.v4.ri_cycles,
            p_core_instructions: info.pinstructions,
            p_core_cycles: info.pcycles,
            energy: info.energy_nj,
            p_core_energy: info.penergy_nj,
        },
        has_ended: info.v4.ri_proc_exit_abstime != 0,
        had_children: info.v4.ri_child_elapsed_abstime != 0,
    })
}

/// Returns the reason why a quantity is not counted here: a kernel without counters reports 0 for it.
pub(crate) fn can_count(quantity: Quantity) -> Result<(), &'static str> {
    let own = i32::try_from(std::process::id()).map_or(Err("this process has no number"), Ok)?;
    let Ok(own) = look(own) else {
        return Err("proc_pid_rusage(2) reports it since macOS 13");
    };
    if own.counts.instructions == 0 {
        return Err("this kernel counts nothing of processes, as in a virtual machine");
    }
    if quantity.is_energy() && number(c"kern.pervasive_energy") != Some(1) {
        return Err("this kernel adds up no energy of processes");
    }
    if quantity.is_of_p_cores() && number(c"hw.nperflevels").is_none_or(|levels| levels < 2) {
        return Err("all CPUs of this machine are of one kind");
    }
    Ok(())
}

/// Returns a number of sysctl(3), if there is one of this name.
fn number(name: &CStr) -> Option<libc::c_int> {
    let mut number: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>();
    // SAFETY: the name ends in NUL, the number is writable and `size` is its size; nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            (&raw mut number).cast(),
            &raw mut size,
            ptr::null_mut(),
            0,
        )
    };
    (status == 0 && size == size_of::<libc::c_int>()).then_some(number)
}
