//! cpuctl(4) of FreeBSD and DragonFly BSD: structs and request numbers of `sys/cpuctl.h`.

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
mod device;

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub use device::Cpuctl;

use std::ffi::c_int;

/// `cpuctl_msr_args_t`: 16 bytes where a 64-bit integer is aligned to 8 (amd64), 12 where it is
/// aligned to 4 (i386).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MsrArguments {
    msr: c_int,
    pub(super) data: u64,
}

impl MsrArguments {
    /// Arguments for a register; addresses from 0x80000000 on go in as the same 32 bits, signed.
    pub(super) const fn new(address: u32, data: u64) -> Self {
        Self {
            msr: address.cast_signed(),
            data,
        }
    }
}

/// `CPUCTL_RDMSR`.
const READ: u32 = number(nix::request_code_readwrite!(
    b'c',
    1,
    size_of::<MsrArguments>()
));
/// `CPUCTL_WRMSR`.
const WRITE: u32 = number(nix::request_code_readwrite!(
    b'c',
    2,
    size_of::<MsrArguments>()
));

/// Returns the number of a request, which has 32 bits in a type that may have more, or a sign.
#[allow(
    clippy::unnecessary_cast,
    reason = "the type differs from system to system"
)]
const fn number(request: nix::sys::ioctl::ioctl_num_type) -> u32 {
    request as u32
}

/// Checks the numbers of amd64 and of i386. Tests are built with this file on every system, of which Linux has the same
/// bits for a request that reads and writes.
const _: () = {
    let (size, read, write) = if align_of::<u64>() == 8 {
        (16, 0xc010_6301, 0xc010_6302)
    } else {
        (12, 0xc00c_6301, 0xc00c_6302)
    };
    assert!(size_of::<MsrArguments>() == size && READ == read && WRITE == write);
    assert!(std::mem::offset_of!(MsrArguments, data) == size - size_of::<u64>());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_addresses_keep_their_bits() {
        let arguments = MsrArguments::new(0xc001_0200, 7);
        assert_eq!(arguments.msr, -0x3ffe_fe00);
        assert_eq!(
            arguments,
            MsrArguments {
                msr: 0xc001_0200_u32 as i32,
                data: 7
            }
        );
    }
}
