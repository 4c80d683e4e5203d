//! read(2) as counters are read: on x86-64 without the C library's function, so that no return follows
//! the system call before the CPU's predictor of returns is in order again.
//!
//! A kernel that guards against speculative return stack overflow by "Safe RET" (AMD's Zen 1 to 4,
//! `Documentation/admin-guide/hw-vuln/srso.rst`) leaves addresses of its own in the return stack of the
//! CPU. The program's next `ret` is predicted by one of them; that costs 270 ns on a Zen 4 under a
//! hypervisor, where all else of a read of five counters takes 660 ns. Predictions that point into the
//! program are wrong as well, but cost 5 ns; a `call` for each of the next returns makes them.
//!
//! Two things differ from the C library's read(2): it is no cancellation point (pthreads(7)), so that no
//! thread ends inside of a read, and a library that is loaded before the C library does not see it.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::OnceLock;

/// Returns true if the kernel says that it leaves its own addresses in the return stack.
pub(super) fn leaves_returns() -> bool {
    static LEAVES: OnceLock<bool> = OnceLock::new();
    let find = || {
        // The first read must not allocate, so that the text has its place here.
        let path = "/sys/devices/system/cpu/vulnerabilities/spec_rstack_overflow";
        let mut text = [0; 128];
        let read = File::open(path).and_then(|mut file| file.read(&mut text));
        read.is_ok_and(|len| text[..len].windows(8).any(|words| words == b"Safe RET"))
    };
    cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) && *LEAVES.get_or_init(find)
}

/// Reads from a descriptor, as read(2) does: returns the number of bytes, with which the first words are filled, or the
/// errno below zero. After [`leaves_returns`], which is looked at after the call, the return stack is put in order.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub(super) fn read(fd: BorrowedFd<'_>, words: &mut [u64], leaves_returns: bool) -> isize {
    use std::arch::asm;

    let returned: isize;
    // SAFETY: the system call writes to the words, of which any bytes are valid, and changes no
    // registers but these (syscall(2), "Architecture calling conventions").
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") libc::SYS_read as isize => returned,
            in("rdi") fd.as_raw_fd() as isize,
            in("rsi") words.as_mut_ptr(),
            in("rdx") size_of_val(words),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if leaves_returns {
        // PERF: a read of one counter takes 467 ns and not 614, of five 705 and not 895 (an AMD EPYC with Safe RET,
        // `cargo bench -p quipu-linux --bench peers`). Eight returns are more than there are from here to a tool's own
        // loop. A shadow stack keeps account of every call, so that where the thread has one
        // (`Documentation/arch/x86/shstk.rst`) there are none: RDSSPQ reads it, and leaves the register alone where there
        // is not.
        // SAFETY: each call goes to what comes after it, and what they leave on the stack is taken off again; it is not
        // `nostack`, so that nothing is kept below the stack pointer.
        unsafe {
            asm!(
                "xor {shadow:e}, {shadow:e}",
                "rdsspq {shadow}",
                "test {shadow}, {shadow}",
                "jnz 3f",
                ".rept 8",
                "call 2f",
                "int3",
                "2:",
                ".endr",
                "add rsp, 64",
                "3:",
                shadow = out(reg) _,
            );
        }
    }
    returned
}

/// Reads from a descriptor by the C library.
#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
pub(super) fn read(fd: BorrowedFd<'_>, words: &mut [u64], _leaves_returns: bool) -> isize {
    let (to, length) = (words.as_mut_ptr().cast(), size_of_val(words));
    // SAFETY: the call writes to the words, of which any bytes are valid.
    match unsafe { libc::read(fd.as_raw_fd(), to, length) } {
        -1 => -(super::errno::last_errno() as isize),
        bytes => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    /// Both ways read what is there, go on where they were, and say the errno.
    #[test]
    fn reads_as_the_c_library_does() {
        for leaves_returns in [false, true] {
            let (reader, mut writer) = std::io::pipe().expect("a pipe");
            let mut words = [0; 3];
            for round in 1..=100_u64 {
                for word in [round, round << 32] {
                    writer
                        .write_all(&word.to_ne_bytes())
                        .expect("room in the pipe");
                }
                assert_eq!(read(reader.as_fd(), &mut words, leaves_returns), 16);
                assert_eq!(words, [round, round << 32, 0]);
            }
            let not_for_reading = read(writer.as_fd(), &mut words, leaves_returns);
            assert_eq!(not_for_reading, -libc::EBADF as isize);
            drop(writer);
            assert_eq!(read(reader.as_fd(), &mut words, leaves_returns), 0);
        }
    }
}
