//! The PMUs of the machine, and how its CPUs, caches and memory lie to each other, as sysfs tells them.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_hal::text::parse_cpu_list;
use quipu_linux::topology::Topology;
use quipu_perf_data::{CpuCache, CpuNumbers, CpuTopology, NumaNode};

/// Returns the text of a file without the end of its line.
fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

fn of_cpu(cpu: u32) -> PathBuf {
    PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"))
}

/// Returns the number and the name of each PMU, in the order of the numbers.
pub(super) fn pmus() -> Vec<(u32, String)> {
    let Ok(devices) = fs::read_dir("/sys/bus/event_source/devices") else {
        return Vec::new();
    };
    let mut pmus: Vec<_> = devices
        .flatten()
        .filter_map(|device| {
            let number = number(device.path().join("type"))?;
            Some((number, device.file_name().to_string_lossy().into_owned()))
        })
        .collect();
    pmus.sort_unstable();
    pmus
}

/// Returns the places of so many CPUs.
pub(super) fn cpu_topology(cpus: u32) -> CpuTopology {
    let topology = Topology::new();
    // By one name or the one that earlier kernels have.
    let lists = |names: [&str; 2]| {
        let mut lists = Vec::new();
        for cpu in 0..cpus {
            let directory = of_cpu(cpu).join("topology");
            let list = names.iter().find_map(|name| text(directory.join(name)));
            lists.extend(list.filter(|list| !lists.contains(list)));
        }
        lists
    };
    let mut found = CpuTopology::default();
    found.sockets = lists(["package_cpus_list", "core_siblings_list"]);
    found.dies = lists(["die_cpus_list"; 2]);
    found.cores = lists(["core_cpus_list", "thread_siblings_list"]);
    let places = (0..cpus).map(|cpu| {
        let place = topology.place(cpu).ok();
        let number = |number: Option<i32>| number.map_or(u32::MAX, i32::cast_unsigned);
        let mut numbers = CpuNumbers::default();
        numbers.core = number(place.as_ref().map(|place| place.core));
        numbers.die = number(place.as_ref().map(|place| place.die));
        numbers.socket = number(place.as_ref().map(|place| place.socket));
        numbers
    });
    found.places = places.collect();
    found
}

/// Returns the nodes of memory.
pub(super) fn numa_nodes() -> Vec<NumaNode> {
    let root = Path::new("/sys/devices/system/node");
    let online = text(root.join("online")).and_then(|list| parse_cpu_list(&list).ok());
    let nodes = online.unwrap_or_default().into_iter().filter_map(|number| {
        let directory = root.join(format!("node{number}"));
        let memory = text(directory.join("meminfo"))?;
        // Node 0 MemTotal:  1024 kB
        let size = |key: &str| {
            let line = memory.lines().find(|line| line.contains(key))?;
            line.split_whitespace().rev().nth(1)?.parse().ok()
        };
        let mut node = NumaNode::default();
        node.node = number;
        node.total = size("MemTotal:")?;
        node.free = size("MemFree:")?;
        node.cpus = text(directory.join("cpulist"))?;
        Some(node)
    });
    nodes.collect()
}

/// Returns the caches of so many CPUs, each once, those next to the cores first.
pub(super) fn caches(cpus: u32) -> Vec<CpuCache> {
    let mut caches: Vec<CpuCache> = Vec::new();
    for cpu in 0..cpus {
        let of_cpu =
            (0..).map_while(|index| cache(&of_cpu(cpu).join(format!("cache/index{index}"))));
        for cache in of_cpu {
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn cache(directory: &Path) -> Option<CpuCache> {
    let mut cache = CpuCache::default();
    cache.level = number(directory.join("level"))?;
    cache.line_size = number(directory.join("coherency_line_size")).unwrap_or(0);
    cache.sets = number(directory.join("number_of_sets")).unwrap_or(0);
    cache.ways = number(directory.join("ways_of_associativity")).unwrap_or(0);
    cache.kind = text(directory.join("type"))?;
    cache.size = text(directory.join("size"))?;
    cache.cpus = text(directory.join("shared_cpu_list"))?;
    Some(cache)
}
