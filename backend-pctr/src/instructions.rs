//! The instructions a program needs beside the driver: CPUID, RDPMC, RDTSC.

use quipu_hal::Result;

/// The facts of a CPU in CPUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuFacts {
    pub(crate) vendor: String,
    /// The family, with what extends it.
    pub(crate) family: u16,
    /// A hypervisor is there and says so (leaf 1, ECX bit 31).
    pub(crate) hypervisor: bool,
    /// AMD's `PerfCtrExtCore` (leaf 8000_0001h, ECX bit 23).
    pub(crate) perfctr_core: bool,
}

cfg_if::cfg_if! {
    if #[cfg(any(target_arch = "x86", target_arch = "x86_64"))] {
        use std::arch::asm;

        use raw_cpuid::native_cpuid::cpuid_count as cpuid;

        /// Returns the APIC id of the CPU that the calling thread is on: leaf 0xB where the CPU has it, else
        /// leaf 1 (Intel SDM volume 2, "CPUID").
        pub(crate) fn apic_id() -> Result<u32> {
            const X2APIC: u32 = 0xb;
            let highest = cpuid(0, 0).eax;
            if highest >= X2APIC {
                let topology = cpuid(X2APIC, 0);
                // A leaf that is there in name only has no processors at its first level.
                if topology.ebx & 0xffff != 0 {
                    return Ok(topology.edx);
                }
            }
            Ok(cpuid(1, 0).ebx >> 24)
        }

        /// Reads the CPUID of this CPU (Intel SDM volume 2, "CPUID"; AMD APM volume 3, appendix E).
        pub(crate) fn cpu_facts() -> Option<CpuFacts> {
            const EXTENDED: u32 = 0x8000_0000;
            let vendor = cpuid(0, 0);
            let bytes: Vec<u8> = [vendor.ebx, vendor.edx, vendor.ecx]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect();
            let basic = cpuid(1, 0);
            let family = match basic.eax >> 8 & 0xf {
                0xf => 0xf + (basic.eax >> 20 & 0xff),
                family => family,
            };
            let highest = cpuid(EXTENDED, 0).eax;
            let extended = match highest > EXTENDED && highest >> 16 == EXTENDED >> 16 {
                true => cpuid(EXTENDED + 1, 0).ecx,
                false => 0,
            };
            Some(CpuFacts {
                vendor: String::from_utf8(bytes).ok()?,
                family: family as u16,
                hypervisor: basic.ecx >> 31 == 1,
                perfctr_core: extended >> 23 & 1 == 1,
            })
        }

        /// Reads a counter of this CPU.
        pub(crate) fn rdpmc(counter: u8) -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: it reads a counter into EDX:EAX and touches nothing else. Where the kernel has not allowed it, it
            // raises a fault that ends the process.
            unsafe {
                asm!(
                    "rdpmc",
                    in("ecx") u32::from(counter),
                    out("eax") low,
                    out("edx") high,
                    options(nomem, nostack, preserves_flags),
                );
            }
            u64::from(high) << 32 | u64::from(low)
        }

        /// Reads the time stamp counter of this CPU.
        pub(crate) fn rdtsc() -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: it reads the counter, which every CPU with others has, into EDX:EAX and touches nothing else.
            unsafe {
                asm!(
                    "rdtsc",
                    out("eax") low,
                    out("edx") high,
                    options(nomem, nostack, preserves_flags),
                );
            }
            u64::from(high) << 32 | u64::from(low)
        }
    } else {
        use quipu_hal::{Error, ErrorKind};

        pub(crate) fn apic_id() -> Result<u32> {
            Err(Error::new(ErrorKind::UnsupportedFeature, "find out which CPU this thread is on")
                .with_reason("that takes the CPUID instruction of x86"))
        }

        pub(crate) fn cpu_facts() -> Option<CpuFacts> {
            None
        }

        /// Returns 0: other CPUs have no such instruction, and none is offered.
        pub(crate) fn rdpmc(_counter: u8) -> u64 {
            0
        }

        pub(crate) fn rdtsc() -> u64 {
            0
        }
    }
}

#[cfg(all(test, any(target_arch = "x86", target_arch = "x86_64")))]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn time_goes_on() {
        let first = rdtsc();
        assert!(rdtsc() > first);
    }

    #[test]
    fn a_cpu_is_what_linux_knows_of_it() {
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else {
            let _ = writeln!(
                std::io::stderr(),
                "SKIP a_cpu_is_what_linux_knows_of_it: no /proc/cpuinfo"
            );
            return;
        };
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|l| l.starts_with(name)).unwrap();
            line.split(": ").nth(1).unwrap().to_owned()
        };
        let cpu = cpu_facts().unwrap();
        assert_eq!(cpu.vendor, field("vendor_id"));
        assert_eq!(cpu.family.to_string(), field("cpu family"));
        let flags = field("flags");
        let has = |flag: &str| flags.split(' ').any(|known| known == flag);
        assert_eq!(cpu.hypervisor, has("hypervisor"));
        assert_eq!(cpu.perfctr_core, has("perfctr_core"));
    }

    #[test]
    fn the_apic_id_is_one_that_linux_knows() {
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else {
            let _ = writeln!(
                std::io::stderr(),
                "SKIP the_apic_id_is_one_that_linux_knows: no /proc/cpuinfo"
            );
            return;
        };
        let ids: Vec<u32> = cpuinfo
            .lines()
            .filter(|l| l.starts_with("apicid"))
            .filter_map(|l| l.split(':').nth(1)?.trim().parse().ok())
            .collect();
        let id = apic_id().unwrap();
        assert!(ids.contains(&id), "{id} is none of {ids:?}");
    }
}
