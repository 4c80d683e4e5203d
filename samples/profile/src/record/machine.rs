//! The description of the machine in a recording.

mod hardware;

use std::ffi::OsStr;
use std::fs;

use nix::sys::utsname::{UtsName, uname};
use quipu_linux::topology::Topology;
use quipu_perf_data::Features;
use quipu_text::parse_cpu_list;

/// Returns the machine, and the command line of this process.
pub fn features() -> Features {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let cpu_id: Option<Vec<&str>> = ["vendor_id", "cpu family", "model", "stepping"]
        .iter()
        .map(|key| value(&cpuinfo, key))
        .collect();
    let mut features = Features::default();
    let system = uname().ok();
    let system = |part: fn(&UtsName) -> &OsStr| Some(part(system.as_ref()?).to_str()?.to_owned());
    features.host_name = system(UtsName::nodename);
    features.os_release = system(UtsName::release);
    features.version = Some(format!("quipu {}", env!("CARGO_PKG_VERSION")));
    features.arch = system(UtsName::machine);
    features.cpus = cpus();
    features.cpu_description = value(&cpuinfo, "model name").map(str::to_owned);
    features.cpu_id = cpu_id.map(|parts| parts.join(","));
    features.total_memory =
        value(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    features.command_line = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some((cpus, _)) = features.cpus {
        features.cpu_topology = Some(hardware::cpu_topology(cpus));
        features.caches = hardware::caches(cpus);
    }
    features.numa_nodes = hardware::numa_nodes();
    features.memory = hardware::memory();
    features.pmus = hardware::pmus();
    features
}

/// Returns the number of CPUs, and of those that are online.
fn cpus() -> Option<(u32, u32)> {
    let online = Topology::new().online().ok()?.len();
    let present = fs::read_to_string("/sys/devices/system/cpu/present").ok();
    let present = present.and_then(|list| Some(parse_cpu_list(&list).ok()?.len()));
    // Without sysfs those that are online are the ones known.
    let present = present.unwrap_or(online);
    Some((present.try_into().ok()?, online.try_into().ok()?))
}

/// Returns the first value of a key in the lines `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_a_key_is_taken() {
        let text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: A CPU\n\nmodel : 18\n";
        assert_eq!(value(text, "model"), Some("17"));
        assert_eq!(value(text, "model name"), Some("A CPU"));
        assert_eq!(value(text, "mode"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let features = features();
        assert!(
            features
                .os_release
                .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
        );
        assert!(
            features
                .cpus
                .is_some_and(|(all, online)| online > 0 && all >= online)
        );
    }
}
