//! The instructions a program needs beside the driver: CPUID, RDPMC, RDTSC.

use quipu_hal::Result;

cfg_if::cfg_if! {
    if #[cfg(any(target_arch = "x86", target_arch = "x86_64"))] {
        use std::arch::asm;

        use raw_cpuid::native_cpuid;

        /// Returns the APIC id of the CPU that the calling thread is on: leaf 0xB where the CPU has it, else
        /// leaf 1 (Intel SDM volume 2, "CPUID").
        pub(crate) fn apic_id() -> Result<u32> {
            const X2APIC: u32 = 0xb;
            let highest = native_cpuid::cpuid_count(0, 0).eax;
            if highest >= X2APIC {
                let topology = native_cpuid::cpuid_count(X2APIC, 0);
                // A leaf that is there in name only has no processors at its first level.
                if topology.ebx & 0xffff != 0 {
                    return Ok(topology.edx);
                }
            }
            Ok(native_cpuid::cpuid_count(1, 0).ebx >> 24)
        }

        /// Returns the vendor's name and the family, with what extends it (Intel SDM volume 2, "CPUID").
        pub(crate) fn vendor_and_family() -> Option<(String, u16)> {
            let vendor = native_cpuid::cpuid_count(0, 0);
            let bytes: Vec<u8> = [vendor.ebx, vendor.edx, vendor.ecx]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect();
            let signature = native_cpuid::cpuid_count(1, 0).eax;
            let family = match signature >> 8 & 0xf {
                0xf => 0xf + (signature >> 20 & 0xff),
                family => family,
            };
            Some((String::from_utf8(bytes).ok()?, family as u16))
        }

        /// Reads a counter of this CPU.
        pub(crate) fn rdpmc(counter: u8) -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: the instruction reads a counter into EDX:EAX and touches nothing else. Where
            // the kernel has not allowed it, it raises a fault that ends the process.
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
            // SAFETY: the instruction reads the time stamp counter into EDX:EAX and touches nothing
            // else. Every CPU with counters has it.
            unsafe {
                asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
            }
            u64::from(high) << 32 | u64::from(low)
        }
    } else {
        use quipu_hal::{Error, ErrorKind};

        pub(crate) fn apic_id() -> Result<u32> {
            Err(Error::new(ErrorKind::UnsupportedFeature, "tell which CPU this thread is on")
                .with_reason("that takes the CPUID instruction of x86"))
        }

        pub(crate) fn vendor_and_family() -> Option<(String, u16)> {
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
    fn vendor_and_family_are_those_that_linux_knows() {
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else {
            let _ = writeln!(
                std::io::stderr(),
                "SKIP vendor_and_family_are_those_that_linux_knows: no /proc/cpuinfo"
            );
            return;
        };
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|l| l.starts_with(name)).unwrap();
            line.split(": ").nth(1).unwrap().to_owned()
        };
        let (vendor, family) = vendor_and_family().unwrap();
        assert_eq!(vendor, field("vendor_id"));
        assert_eq!(family.to_string(), field("cpu family"));
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
