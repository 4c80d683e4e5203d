//! The lines on PMUs and on the places of CPUs, caches and memory.

use std::fmt::Write;

use quipu_perf_data::Features;

use super::line;
use quipu_shell::terminal::escaped;

/// Appends a line that says how to see what is left out.
fn available(out: &mut String, what: &str) {
    let _ = writeln!(out, "# {what} info available, use -I to display");
}

/// Appends the places of CPUs and of memory if they are told in full, and the PMUs.
pub(super) fn places(out: &mut String, features: &Features, in_full: bool) {
    match &features.cpu_topology {
        Some(_) if !in_full => available(out, "CPU_TOPOLOGY"),
        Some(topology) => {
            for (name, lists) in [
                ("sibling sockets ", &topology.sockets),
                ("sibling dies    ", &topology.dies),
                ("sibling threads ", &topology.cores),
            ] {
                for list in lists {
                    line(out, name, Some(list.clone()));
                }
            }
            for (cpu, place) in topology.places.iter().enumerate() {
                // As signed numbers: -1 is one that is not known.
                let [core, die, socket] =
                    [place.core, place.die, place.socket].map(u32::cast_signed);
                let die = match topology.dies.is_empty() {
                    true => String::new(),
                    false => format!("Die ID {die}, "),
                };
                let _ = writeln!(out, "# CPU {cpu}: Core ID {core}, {die}Socket ID {socket}");
            }
        }
        None => {}
    }
    if !in_full && !features.numa_nodes.is_empty() {
        available(out, "NUMA_TOPOLOGY");
    }
    for node in features.numa_nodes.iter().filter(|_| in_full) {
        let name = format!("node{}", node.node);
        let memory = format!("total = {} kB, free = {} kB", node.total, node.free);
        line(out, &format!("{name} meminfo  "), Some(memory));
        line(out, &format!("{name} cpu list "), Some(node.cpus.clone()));
    }
    if features.has_branches {
        out.push_str("# contains samples with branch stack\n");
    }
    let pmus = features.pmus.iter();
    let pmus: Vec<_> = pmus
        .map(|(number, name)| format!("{name} = {number}"))
        .collect();
    line(
        out,
        "pmu mappings",
        (!pmus.is_empty()).then(|| pmus.join(", ")),
    );
}

/// Appends the CPUs of the core PMUs of a hybrid machine if they are told in full, and what core PMUs are capable of.
pub(super) fn core_pmus(out: &mut String, features: &Features, in_full: bool) {
    match features.hybrid.as_slice() {
        [] => {}
        _ if !in_full => available(out, "HYBRID_TOPOLOGY"),
        pmus => {
            out.push_str("# hybrid cpu system:\n");
            for pmu in pmus {
                line(
                    out,
                    &format!("{} cpu list ", pmu.pmu),
                    Some(pmu.cpus.clone()),
                );
            }
        }
    }
    for pmu in &features.pmu_capabilities {
        let list = pmu.list.iter();
        let list: Vec<_> = list
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let list = match list.is_empty() {
            true => "not available".to_owned(),
            false => list.join(", "),
        };
        line(out, &format!("{} pmu capabilities", pmu.pmu), Some(list));
    }
}

/// Appends the blocks of memory, if they are told in full.
pub(super) fn memory(out: &mut String, features: &Features, in_full: bool) {
    let Some(memory) = &features.memory else {
        return;
    };
    if !in_full {
        return available(out, "MEM_TOPOLOGY");
    }
    let (nodes, size) = (memory.nodes.len(), memory.block_size);
    let _ = writeln!(out, "# memory nodes (nr {nodes}, block size {size:#x}):");
    for node in &memory.nodes {
        let words = node.blocks.iter().zip(0..);
        let set = words.flat_map(|(word, at)| {
            let bits = (0..64_u64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| 64 * at + bit)
        });
        let (mut ranges, mut blocks) = (Vec::<(u64, u64)>::new(), 0_u64);
        for block in set {
            blocks += 1;
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == block => *last = block,
                _ => ranges.push((block, block)),
            }
        }
        let ranges = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        // In the largest unit of which there is one.
        let bytes = blocks.saturating_mul(size);
        let units = [(30, 'G'), (20, 'M'), (10, 'K')];
        let unit = units.into_iter().find(|(bits, _)| bytes >> bits > 0);
        let (bits, unit) = unit.unwrap_or((0, 'B'));
        let amount = bytes >> bits;
        let ranges = ranges.collect::<Vec<_>>().join(",");
        let _ = writeln!(out, "# {:4} [{amount}{unit}]: {ranges}", node.node);
    }
}

/// Appends the caches, if they are told in full.
pub(super) fn caches(out: &mut String, features: &Features, in_full: bool) {
    match features.caches.as_slice() {
        [] => {}
        _ if !in_full => available(out, "CACHE"),
        caches => {
            out.push_str("# CPU cache info:\n");
            for cache in caches {
                let texts = [&cache.kind, &cache.size, &cache.cpus];
                let [kind, size, cpus] = texts.map(|text| escaped(text));
                let _ = writeln!(out, "#  L{} {kind:<15} {size:>8} [{cpus}]", cache.level);
            }
        }
    }
}
