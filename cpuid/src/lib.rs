#![doc = include_str!("../README.md")]
#![no_std]
#![deny(clippy::multiple_unsafe_ops_per_block)]
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]

#[cfg(target_arch = "x86")]
use core::arch::x86::__cpuid_count;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__cpuid_count;

/// The four registers of one leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// Returns a leaf of the CPU that the calling thread is on.
///
/// Beyond the highest leaf, CPUs answer as they like.
#[must_use]
pub fn cpuid(leaf: u32, subleaf: u32) -> Registers {
    // Not all compilers take it for unsafe.
    #[allow(unused_unsafe)]
    // SAFETY: every CPU that Rust's targets for x86 run on has the instruction, and it changes registers only.
    let found = unsafe { __cpuid_count(leaf, subleaf) };
    Registers {
        eax: found.eax,
        ebx: found.ebx,
        ecx: found.ecx,
        edx: found.edx,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_0_names_the_highest_leaf_and_the_vendor() {
        let first = cpuid(0, 0);
        assert!(first.eax >= 1);
        let vendor = [first.ebx, first.edx, first.ecx].map(u32::to_le_bytes);
        assert!(vendor.as_flattened().iter().all(u8::is_ascii_graphic));
    }
}
