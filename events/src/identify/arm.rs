//! The main id registers of ARM cores, from sysfs.

use std::fs;
use std::path::Path;

/// The different `MIDR_EL1` values of a machine, in the order of its CPUs
/// (`/sys/devices/system/cpu/cpu*/regs/identification/midr_el1`).
///
/// Revisions of one part count as one. `sysfs` is where sysfs is mounted.
pub fn midrs(sysfs: &Path) -> Vec<u64> {
    /// The variant and the revision.
    const REVISION: u64 = 0xf0_000f;
    let Ok(cpus) = fs::read_dir(sysfs.join("devices/system/cpu")) else {
        return Vec::new();
    };
    let mut numbered: Vec<(u32, u64)> = cpus
        .filter_map(|cpu| {
            let cpu = cpu.ok()?;
            let number = cpu
                .file_name()
                .to_str()?
                .strip_prefix("cpu")?
                .parse()
                .ok()?;
            let text = fs::read_to_string(cpu.path().join("regs/identification/midr_el1")).ok()?;
            let digits = text.trim();
            let digits = digits.strip_prefix("0x").unwrap_or(digits);
            Some((number, u64::from_str_radix(digits, 16).ok()?))
        })
        .collect();
    numbered.sort_unstable();
    let mut midrs: Vec<u64> = Vec::new();
    for (_, midr) in numbered {
        if !midrs
            .iter()
            .any(|known| known & !REVISION == midr & !REVISION)
        {
            midrs.push(midr);
        }
    }
    midrs
}
