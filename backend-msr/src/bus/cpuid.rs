//! The CPUID instruction.

use quipu_hal::Result;

/// A leaf on the CPU the calling thread is on; zeros beyond the highest leaf.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[allow(unused_unsafe, reason = "safe to call since Rust 1.94 only")]
pub(super) fn cpuid(leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::__cpuid_count;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::__cpuid_count;

    // SAFETY: every x86 that Rust's standard library runs on has CPUID; it changes no memory.
    let execute = |leaf, subleaf| unsafe { __cpuid_count(leaf, subleaf) };
    let highest = execute(leaf & 0x8000_0000, 0).eax;
    if leaf > highest {
        return Ok([0; 4]);
    }
    let found = execute(leaf, subleaf);
    Ok([found.eax, found.ebx, found.ecx, found.edx])
}

/// Other CPUs have no such instruction, and no model-specific registers.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub(super) fn cpuid(_leaf: u32, _subleaf: u32) -> Result<[u32; 4]> {
    Err(super::elsewhere::not_here())
}
