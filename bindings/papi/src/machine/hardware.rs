//! The machine: CPUs, their rate, caches, nodes and the virtual machine around, from `/proc/cpuinfo` and sysfs.

use std::ffi::{c_float, c_int};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::abi::{CacheInfo, HwInfo, MemoryHierarchy};
use crate::boundary::call::call_or;
use crate::boundary::pointer::put;
use crate::library::if_initialized;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Vendors by the words of `/proc/cpuinfo`, and PAPI's numbers.
const VENDORS: [(&str, c_int); 3] = [("GenuineIntel", 1), ("AuthenticAMD", 2), ("IBM", 3)];
const ARM: c_int = 7;

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// Returns the CPUs of a list like `0-3,8`.
fn listed(list: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse::<usize>()) {
            all.extend(first..=last.min(first + 0xffff));
        }
    }
    all
}

/// Returns the size of a text like `32K` in bytes.
fn size(text: &str) -> c_int {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => 1,
    };
    let bytes = digits.parse::<i64>().unwrap_or(0).saturating_mul(factor);
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

fn online() -> Vec<usize> {
    text(format!("{CPUS}/online")).map_or_else(|| vec![0], |list| listed(&list))
}

/// Returns the NUMA nodes that are online.
pub(crate) fn nodes() -> Vec<usize> {
    text(format!("{NODES}/online")).map_or_else(|| vec![0], |list| listed(&list))
}

/// Returns the CPUs of a node.
pub(crate) fn cpus_of_node(node: usize) -> Vec<usize> {
    text(format!("{NODES}/node{node}/cpulist")).map_or_else(online, |list| listed(&list))
}

/// Returns the memory of a node, in megabytes.
pub(crate) fn memory_of_node(node: usize) -> u32 {
    let lines = text(format!("{NODES}/node{node}/meminfo")).unwrap_or_default();
    let total = lines.lines().find_map(|line| line.split_once("MemTotal:"));
    let kilobytes = total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
    u32::try_from(kilobytes.unwrap_or(0) / 1024).unwrap_or(u32::MAX)
}

fn count(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// Fills in how many sockets, cores and threads there are.
fn topology(info: &mut HwInfo) {
    let cpus = online();
    let of = |cpu: &usize, what: &str| -> Option<c_int> {
        number(format!("{CPUS}/cpu{cpu}/topology/{what}"))
    };
    let distinct = |mut keys: Vec<(Option<c_int>, Option<c_int>)>| {
        keys.sort_unstable();
        keys.dedup();
        keys.len().max(1)
    };
    let sockets = distinct(
        cpus.iter()
            .map(|c| (of(c, "physical_package_id"), None))
            .collect(),
    );
    let core = |c: &usize| (of(c, "physical_package_id"), of(c, "core_id"));
    let cores = distinct(cpus.iter().map(core).collect());
    let nodes = nodes().len().max(1);
    info.totalcpus = count(cpus.len());
    info.sockets = count(sockets);
    info.cores = count((cores / sockets).max(1));
    info.threads = count((cpus.len() / cores).max(1));
    info.nnodes = count(nodes);
    info.ncpu = count((cpus.len() / nodes).max(1));
}

/// Returns the caches of the first CPU, level by level.
fn caches() -> MemoryHierarchy {
    let mut all = MemoryHierarchy::zeroed();
    let mut used = [0; 4];
    for index in 0.. {
        let path = format!("{CPUS}/cpu0/cache/index{index}");
        let Some(level) = number::<usize>(format!("{path}/level")) else {
            break;
        };
        let at = level.wrapping_sub(1);
        let (Some(places), Some(slot)) = (all.level.get_mut(at), used.get_mut(at)) else {
            continue;
        };
        let Some(cache) = places.cache.get_mut(*slot) else {
            continue;
        };
        *slot += 1;
        let kind = match text(format!("{path}/type")).as_deref() {
            Some("Instruction") => 1,
            Some("Data") => 2,
            _ => 3,
        };
        let size = size(&text(format!("{path}/size")).unwrap_or_default());
        let line_size = number(format!("{path}/coherency_line_size")).unwrap_or(0);
        *cache = CacheInfo {
            kind,
            size,
            line_size,
            num_lines: size.checked_div(line_size).unwrap_or(0),
            associativity: number(format!("{path}/ways_of_associativity")).unwrap_or(0),
        };
        all.levels = all.levels.max(count(level));
    }
    all
}

/// Fills in what `/proc/cpuinfo` says of the first CPU.
fn identity(info: &mut HwInfo, cpuinfo: &str) {
    let value = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(known, _)| known.trim() == key)
            .map(|(_, value)| value.trim())
    };
    let whole = |key: &str| {
        value(key)
            .and_then(|value| value.parse::<c_int>().ok())
            .unwrap_or(0)
    };
    let vendor = value("vendor_id").unwrap_or_default();
    put(&mut info.vendor_string, vendor);
    let known = VENDORS.iter().find(|(name, _)| vendor.starts_with(name));
    info.vendor = known.map_or(0, |(_, number)| *number);
    info.cpuid_family = whole("cpu family");
    info.cpuid_model = whole("model");
    info.cpuid_stepping = whole("stepping");
    if let Some(implementer) = value("CPU implementer") {
        let hexadecimal = |text: &str| c_int::from_str_radix(text.trim_start_matches("0x"), 16);
        info.vendor = ARM;
        put(&mut info.vendor_string, implementer);
        info.cpuid_family = whole("CPU architecture");
        info.cpuid_model = value("CPU part").map_or(0, |part| hexadecimal(part).unwrap_or(0));
        info.cpuid_stepping = whole("CPU revision");
    }
    info.model = info.cpuid_model;
    info.revision = info.cpuid_stepping as c_float;
    let name = value("model name").or(value("cpu")).or(value("Processor"));
    put(&mut info.model_string, name.unwrap_or_default());
    // The last is all that 64-bit ARM has, and what PAPI takes for the rate there.
    let now = value("cpu MHz").or(value("clock")).or(value("BogoMIPS"));
    let now = now
        .and_then(|mhz| mhz.trim_end_matches("MHz").parse::<f32>().ok())
        .unwrap_or(0.0);
    let limit = |which: &str| -> Option<c_int> {
        let kilohertz = number::<c_int>(format!("{CPUS}/cpu0/cpufreq/cpuinfo_{which}_freq"))?;
        Some(kilohertz / 1000)
    };
    info.cpu_max_mhz = limit("max").unwrap_or(now as c_int).max(1);
    info.cpu_min_mhz = limit("min").unwrap_or(now as c_int).max(1);
    info.mhz = info.cpu_max_mhz as c_float;
    info.clock_mhz = info.cpu_max_mhz;
    let flags = value("flags").unwrap_or_default();
    info.virtualized = c_int::from(flags.split_whitespace().any(|flag| flag == "hypervisor"));
}

/// Returns the name of the hypervisor from CPUID (leaf 0x40000000).
fn hypervisor() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every CPU of this architecture has the instruction, and any leaf may be asked for.
        #[allow(unused_unsafe, reason = "later compilers have it safe")]
        let leaf = unsafe { core::arch::x86_64::__cpuid(0x4000_0000) };
        let bytes = [leaf.ebx, leaf.ecx, leaf.edx]
            .map(u32::to_le_bytes)
            .concat();
        String::from_utf8_lossy(&bytes)
            .trim_end_matches('\0')
            .to_owned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        String::new()
    }
}

/// Returns the facts of the machine, which are read once.
pub(crate) fn info() -> &'static HwInfo {
    static INFO: OnceLock<HwInfo> = OnceLock::new();
    INFO.get_or_init(|| {
        let mut info = HwInfo::zeroed();
        topology(&mut info);
        identity(&mut info, &text("/proc/cpuinfo").unwrap_or_default());
        info.mem_hierarchy = caches();
        if info.virtualized != 0 {
            put(&mut info.virtual_vendor_string, &hypervisor());
        }
        info
    })
}

/// Returns the highest rate of the CPU, in MHz.
pub(crate) fn max_mhz() -> c_int {
    info().cpu_max_mhz
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_hardware_info() -> *const HwInfo {
    call_or(std::ptr::null(), || if_initialized(|| &raw const *info()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_sizes_are_read() {
        assert_eq!(listed("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(listed(""), [0; 0]);
        assert_eq!(
            [size("32K"), size("335544320"), size("1M"), size("")],
            [32768, 335_544_320, 1 << 20, 0]
        );
    }

    #[test]
    fn the_first_cpu_is_described() {
        let cpuinfo = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
            cpu MHz\t\t: 2596.146\nflags\t\t: fpu hypervisor\n";
        let mut info = HwInfo::zeroed();
        identity(&mut info, cpuinfo);
        assert_eq!(
            (info.vendor, info.cpuid_family, info.cpuid_model),
            (2, 25, 17)
        );
        assert_eq!((info.cpuid_stepping, info.virtualized), (1, 1));
        assert!(info.cpu_max_mhz > 0);
    }
}
