//! CPUs on which reading the device may stop the kernel: the driver takes them for others.

use std::ffi::OsStr;

use quipu_hal::{Error, ErrorKind};

use crate::instructions::CpuFacts;

/// The environment variable that has the device opened on a CPU where that may stop the kernel, if it is `1`.
pub const OPEN_ANYWAY: &str = "QUIPU_PCTR_OPEN_ANYWAY";

/// Returns the reason not to open the device on this CPU, or `None`: reading it would make the driver read
/// registers that the CPU may not have, which stops the kernel, whoever asks.
///
/// - To the driver every AMD CPU of family 6 and later has the four counters of the K7 (`amd64/pctr.c`,
///   `usepctr`), and it reads them with an `rdpmc` that no fault handler guards. A hypervisor that runs no
///   counters answers with a fault. One that does says so by `PerfCtrExtCore` (CPUID 8000_0001h, ECX bit 23).
/// - On a Pentium 4 some kernels read the registers of other Intel CPUs, whose CPUID leaf 0Ah it does not have.
pub(crate) fn hazard(cpu: &CpuFacts, override_: Option<&OsStr>) -> Option<Error> {
    const PENTIUM_4: u16 = 0xf;
    if override_.is_some_and(|value| value == "1") {
        return None;
    }
    let reason = match cpu.vendor.as_str() {
        "AuthenticAMD" if cpu.hypervisor && !cpu.perfctr_core && cpu.family >= 6 => {
            "this is a virtual machine with an AMD CPU that shows no performance counters (CPUID 8000_0001h, \
             ECX bit 23), and if the hypervisor has none for it, reading the device stops the kernel"
        }
        "GenuineIntel" if cpu.family == PENTIUM_4 => {
            "this is a Pentium 4, which some kernels take for a CPU with other registers, and then reading \
             the device stops the kernel"
        }
        _ => return None,
    };
    Some(
        Error::new(ErrorKind::NoSuchDevice, "open the counters of pctr(4)")
            .with_reason(reason)
            .with_hint(format!(
                "if it is known to be safe here, as where pctr(1) works, set {OPEN_ANYWAY}=1"
            )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(vendor: &str, family: u16, hypervisor: bool, perfctr_core: bool) -> CpuFacts {
        CpuFacts {
            vendor: vendor.to_owned(),
            family,
            hypervisor,
            perfctr_core,
        }
    }

    #[test]
    fn only_cpus_that_the_driver_mistakes_are_refused() {
        for (vendor, family, hypervisor, perfctr_core, dangerous) in [
            ("AuthenticAMD", 0x17, true, false, true),
            ("AuthenticAMD", 0xf, true, false, true),
            ("AuthenticAMD", 6, true, false, true),
            ("AuthenticAMD", 5, true, false, false),
            ("AuthenticAMD", 0x17, true, true, false),
            ("AuthenticAMD", 0x17, false, false, false),
            ("AuthenticAMD", 0x10, false, false, false),
            ("HygonGenuine", 0x18, true, false, false),
            ("GenuineIntel", 0xf, false, false, true),
            ("GenuineIntel", 0xf, true, false, true),
            ("GenuineIntel", 6, true, false, false),
            ("GenuineIntel", 5, false, false, false),
            ("CentaurHauls", 6, true, false, false),
        ] {
            let cpu = cpu(vendor, family, hypervisor, perfctr_core);
            assert_eq!(hazard(&cpu, None).is_some(), dangerous, "{cpu:?}");
            assert!(hazard(&cpu, Some(OsStr::new("1"))).is_none(), "{cpu:?}");
            let other = Some(OsStr::new("0"));
            assert_eq!(hazard(&cpu, other).is_some(), dangerous, "{cpu:?}");
        }
    }
}
