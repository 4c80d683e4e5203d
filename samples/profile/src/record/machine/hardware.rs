//! The PMUs of the machine, and how its CPUs, caches and memory lie to each other, as sysfs tells them.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_linux::topology::Topology;
use quipu_perf_data::{CpuCache, CpuNumbers, CpuTopology, MemoryBlocks, MemoryTopology, NumaNode};
use quipu_text::parse_cpu_list;

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

/// Returns the blocks of memory of each node, where the kernel can add and remove memory.
pub(super) fn memory() -> Option<MemoryTopology> {
    let size = text("/sys/devices/system/memory/block_size_bytes")?;
    let mut memory = MemoryTopology::default();
    memory.block_size = u64::from_str_radix(&size, 16).ok()?;
    let numbers = |directory: &Path, prefix: &str| -> Option<Vec<u64>> {
        let names = fs::read_dir(directory).ok()?.flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let numbers = names.filter_map(|name| name.strip_prefix(prefix)?.parse().ok());
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        Some(numbers)
    };
    let root = Path::new("/sys/devices/system/node");
    for node in numbers(root, "node")? {
        let blocks = numbers(&root.join(format!("node{node}")), "memory")?;
        let mut of_node = MemoryBlocks::default();
        of_node.node = node;
        for block in blocks {
            let word = (block / 64) as usize;
            let len = of_node.blocks.len().max(word + 1);
            of_node.blocks.resize(len, 0);
            of_node.blocks[word] |= 1 << (block % 64);
        }
        memory.nodes.push(of_node);
    }
    Some(memory)
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
