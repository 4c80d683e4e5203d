//! The owners of addresses in records: the kernel, a process, or others.

use quipu_perf_data::{Context, CpuMode, EventAttr};
use quipu_symbols::AddressOwner;

/// Addresses from here on are the kernel's.
const FIRST_OF_KERNEL: u64 = 1 << 63;

/// Returns the owner of the frames of a call chain in a context; `own` is that of the sample itself.
pub(super) fn owner_of(context: Context, own: AddressOwner, pid: i32) -> AddressOwner {
    match context {
        Context::Kernel => AddressOwner::Kernel,
        Context::User => AddressOwner::Process(pid),
        Context::Unknown => own,
        Context::GuestKernel => AddressOwner::GuestKernel,
        Context::Guest | Context::GuestUser => AddressOwner::Guest,
        Context::Hypervisor => AddressOwner::Hypervisor,
        _ => AddressOwner::Other,
    }
}

/// Returns the owner of the instruction of a sample.
pub(crate) fn owner(mode: CpuMode, pid: i32) -> AddressOwner {
    match mode {
        CpuMode::Kernel => AddressOwner::Kernel,
        CpuMode::User => AddressOwner::Process(pid),
        CpuMode::GuestKernel => AddressOwner::GuestKernel,
        CpuMode::GuestUser => AddressOwner::Guest,
        CpuMode::Hypervisor => AddressOwner::Hypervisor,
        _ => AddressOwner::Other,
    }
}

/// Returns the owner of an end of a branch, of which samples have the address alone.
pub(crate) fn owner_of_address(address: u64, pid: i32) -> AddressOwner {
    match address >= FIRST_OF_KERNEL {
        true => AddressOwner::Kernel,
        false => AddressOwner::Process(pid),
    }
}

/// Returns true for page faults of any sort: addresses of data in their samples have names (`sample_addr_correlates_sym`, `tools/perf/util/event.c`).
pub(crate) fn is_fault(attr: &EventAttr) -> bool {
    const SOFTWARE: u32 = 1;
    const FAULTS: [u64; 3] = [2, 5, 6];
    attr.event_type() == SOFTWARE && FAULTS.contains(&attr.config())
}
