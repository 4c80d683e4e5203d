//! The rights of this process by system calls, where no `/proc` is mounted.

use super::errno::last_errno;

/// `_LINUX_CAPABILITY_VERSION_3` (`include/uapi/linux/capability.h`): two words of 32 bits each.
const VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    /// 0 is the calling thread.
    pid: i32,
}

/// `struct __user_cap_data_struct`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Returns the effective capabilities of the calling thread, a bit each (capget(2)).
pub(crate) fn effective_capabilities() -> Result<u64, i32> {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut data = [Data::default(); 2];
    // SAFETY: both pointers are to live locals; of this version the kernel writes two data structures.
    let rc = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    if rc < 0 {
        return Err(last_errno());
    }
    let [low, high] = data.map(|word| u64::from(word.effective));
    Ok(high << 32 | low)
}

/// Returns the mode of seccomp(2) of the calling thread: 0 without a filter, 2 with one. It makes no call in strict mode.
pub(crate) fn seccomp_mode() -> Result<i32, i32> {
    // SAFETY: the request takes no further argument.
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP) };
    if mode < 0 {
        Err(last_errno())
    } else {
        Ok(mode)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn they_are_those_of_proc() {
        let status = fs::read_to_string("/proc/thread-self/status").expect("it is mounted");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect("every kernel has it").trim().to_owned()
        };
        let capabilities = effective_capabilities().expect("anybody may ask");
        assert_eq!(format!("{capabilities:016x}"), field("CapEff:"));
        assert_eq!(
            seccomp_mode().map(|mode| mode.to_string()),
            Ok(field("Seccomp:"))
        );
    }
}
