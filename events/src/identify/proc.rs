//! Identification of CPUs of further architectures by what Linux says of them in procfs.
//!
//! The texts are those by which Linux's perf finds its tables (`get_cpuid_str`, tools/perf/arch/*/util/header.c).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use quipu_hal::CpuIdentity;

/// Returns the identities of a machine's CPUs, with procfs at a path.
pub(super) fn identities(procfs: &Path) -> Vec<CpuIdentity> {
    let read = |file: &str| fs::read_to_string(procfs.join(file)).unwrap_or_default();
    let of_s390 = from_sysinfo(&read("sysinfo"), &read("service_levels"));
    match of_s390 {
        Some(identity) => vec![identity],
        None => from_cpuinfo(&read("cpuinfo")),
    }
}

/// Returns the different CPUs of `/proc/cpuinfo` on RISC-V, POWER, LoongArch and 32-bit ARM, in their order.
///
/// | architecture | lines | identification |
/// | --- | --- | --- |
/// | `riscv` | `mvendorid`, `marchid`, `mimpid` | `0x489-0x8000000000000007-0x0` |
/// | `powerpc` | `revision : 2.2 (pvr 004e 1202)` | `0x004e1202`; `0x00ffffff` in the mode of an earlier POWER |
/// | `loongarch` | `PRID`, or `Model Name` | `0x0014c010`, `Loongson-3A5000` |
/// | ARM | `CPU implementer`, `CPU variant`, `CPU part`, `CPU revision` | as the main id register |
pub fn from_cpuinfo(text: &str) -> Vec<CpuIdentity> {
    let mut found: Vec<CpuIdentity> = Vec::new();
    // A POWER says its version once, after all CPUs; the others say theirs in each CPU's lines.
    let whole = [text];
    let cpus: Vec<&str> = match text.contains("(pvr ") {
        true => whole.to_vec(),
        false => text.split("\n\n").collect(),
    };
    for cpu in cpus {
        if let Some(identity) = one_cpu(cpu)
            && !found.contains(&identity)
        {
            found.push(identity);
        }
    }
    found
}

fn one_cpu(text: &str) -> Option<CpuIdentity> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut fields: HashMap<&str, &str> = HashMap::new();
    for (key, value) in lines {
        fields.entry(key.trim()).or_insert(value.trim());
    }
    let field = |key: &str| fields.get(key).copied();
    if let (Some(vendor), Some(architecture), Some(implementation)) =
        (field("mvendorid"), field("marchid"), field("mimpid"))
    {
        let id = format!("{vendor}-{architecture}-{implementation}");
        return Some(other("riscv", id));
    }
    if let Some((_, pvr)) = field("revision").and_then(|revision| revision.split_once("(pvr ")) {
        let digits: String = pvr.chars().filter(char::is_ascii_hexdigit).collect();
        let pvr = u32::from_str_radix(&digits, 16).ok()?;
        let pvr = match is_earlier_mode(pvr, field("cpu").unwrap_or_default()) {
            true => 0x00ff_ffff,
            false => pvr,
        };
        return Some(other("powerpc", format!("{pvr:#010x}")));
    }
    if field("CPU Family").is_some_and(|family| family.starts_with("Loongson")) {
        let prid = field("PRID").and_then(|prid| prid.split_once('(')?.1.strip_suffix(')'));
        let id = prid.map(|prid| format!("0x{prid}"));
        let id = id.or_else(|| field("Model Name").map(str::to_owned))?;
        return Some(other("loongarch", id));
    }
    let number = |key: &str| {
        let text = field(key)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let (implementer, part) = (number("CPU implementer")?, number("CPU part")?);
    let variant = number("CPU variant").unwrap_or(0);
    let revision = number("CPU revision").unwrap_or(0);
    Some(CpuIdentity::Arm {
        midr: (implementer & 0xff) << 24
            | (variant & 0xf) << 20
            | 0xf << 16
            | (part & 0xfff) << 4
            | revision & 0xf,
    })
}

/// Returns true if a POWER runs as an earlier one, whose name it then has: its counters take the events that all
/// have (`is_compat_mode`, tools/perf/arch/powerpc/util/header.c).
fn is_earlier_mode(pvr: u32, name: &str) -> bool {
    let own = match pvr >> 16 {
        0x004b..=0x004d | 0x0066 => 8,
        0x004e => 9,
        0x0080 => 10,
        0x0082 => 11,
        _ => return false,
    };
    let name = name.to_ascii_uppercase();
    let digits = name.strip_prefix("POWER").unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits.parse::<u32>().is_ok_and(|mode| mode < own)
}

/// Returns the identity of an s390 from `/proc/sysinfo` and `/proc/service_levels`: manufacturer, type, model,
/// and version and authorization of the counter facility, `IBM,8561,703,T01,3.6,002f`.
pub fn from_sysinfo(sysinfo: &str, service_levels: &str) -> Option<CpuIdentity> {
    let words = |key: &str, joint: &str| {
        let value = sysinfo.lines().find_map(|line| line.strip_prefix(key))?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(joint))
    };
    let mut id = words("Manufacturer:", "")?;
    for part in [words("Type:", "")?, words("Model:", ",")?] {
        id = format!("{id},{part}");
    }
    let facility = service_levels
        .lines()
        .find_map(|line| line.strip_prefix("CPU-MF:"));
    let value = |key: &str| {
        let mut words = facility?.split_whitespace();
        words.find_map(|word| word.strip_prefix(key))
    };
    if let (Some(version), Some(authorization)) = (value("version="), value("authorization=")) {
        id = format!("{id},{version},{authorization}");
    }
    Some(other("s390", id))
}

fn other(scheme: &'static str, id: String) -> CpuIdentity {
    CpuIdentity::Other { scheme, id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_its_files_say() {
        let procfs = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(procfs.path().join(file), text).unwrap();
        assert_eq!(identities(procfs.path()), []);
        write("cpuinfo", "processor : 0\nrevision : 2.2 (pvr 004e 1202)\n");
        let power = identities(procfs.path());
        assert_eq!(power.len(), 1);
        assert_eq!(super::super::describe(&power[0]), "powerpc 0x004e1202");
        // Of the two, a z has sysinfo.
        write("sysinfo", "Manufacturer: IBM\nType: 8561\nModel: 703 T01\n");
        let levels = "CPU-MF: Counter facility: version=3.6 authorization=002f\n";
        write("service_levels", levels);
        let z15 = identities(procfs.path());
        assert_eq!(z15.len(), 1);
        assert!(matches!(&z15[0], CpuIdentity::Other { scheme, .. } if *scheme == "s390"));
    }

    #[test]
    fn a_power_in_an_earlier_mode_has_its_name() {
        for (pvr, own) in [
            (0x004b_0201, 8),
            (0x004d_0200, 8),
            (0x0066_0000, 8),
            (0x004e_1202, 9),
            (0x0080_0200, 10),
            (0x0082_0000, 11),
        ] {
            for mode in 7..12 {
                let is_earlier = is_earlier_mode(pvr, &format!("POWER{mode} (raw)"));
                assert_eq!(is_earlier, mode < own, "{pvr:#x} {mode}");
            }
        }
        assert!(!is_earlier_mode(0x003f_0201, "POWER6"));
        assert!(!is_earlier_mode(0x004e_1202, "unknown"));
    }
}
