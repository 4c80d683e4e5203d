//! The time stamp counter, read in user space.

/// Returns the time stamp counter of the CPU that the calling thread is on: RDTSC of x86, CNTVCT_EL0 of 64-bit ARM; `None` on
/// other CPUs.
///
/// It takes no system call, device or permission. What differences of it mean:
///
/// - It counts time at a rate of its own, whatever the frequency of the CPU is, on CPUs that say so (`constant_tsc` and
///   `nonstop_tsc` of Linux), and cycles on older ones. To count cycles of the CPU, count the event `cycles`.
/// - It counts for the CPU, not for the thread: time for which the thread was not running is in the difference, and CPUs of
///   old machines do not agree, so that the difference is of two CPUs where the thread moved.
/// - The CPU may execute it before or after instructions beside it: a difference over a few instructions means little.
/// - A hypervisor may intercept it, which takes a microsecond and more, or shift it when the machine is moved.
/// - In a process that has disabled it (prctl(2), `PR_SET_TSC`) it ends the program with SIGSEGV.
///
/// Counters of events are read without a system call by a group of the calling thread, where the kernel allows it
/// ([`Group::user_reads`](quipu_hal::Group::user_reads)).
///
/// ```
/// if let Some(begin) = quipu_posix::time_stamp() {
///     let text = "x".repeat(1000);
///     let end = quipu_posix::time_stamp().unwrap_or(begin);
///     println!("{} bytes in {} ticks", text.len(), end.wrapping_sub(begin));
/// }
/// ```
pub fn time_stamp() -> Option<u64> {
    cfg_if::cfg_if! {
        if #[cfg(target_arch = "x86_64")] {
            // SAFETY: every CPU of this architecture has the instruction, and Linux and the BSDs permit it.
            Some(unsafe { core::arch::x86_64::_rdtsc() })
        } else if #[cfg(target_arch = "aarch64")] {
            let ticks: u64;
            // SAFETY: every CPU of this architecture has the register, and Linux and the BSDs permit to read it. The
            // instruction changes nothing but the register named.
            unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
            Some(ticks)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_on_and_not_backwards_on_one_thread() {
        let Some(begin) = time_stamp() else {
            return println!("SKIP the time stamp counter: this CPU has none that is known");
        };
        // Whatever its rate is, it ticks in a millisecond.
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(time_stamp().is_some_and(|end| end > begin));
    }
}
