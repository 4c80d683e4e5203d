//! Features of the machine: how its CPUs, caches and memory lie to each other (`HEADER_CPU_TOPOLOGY`,
//! `HEADER_NUMA_TOPOLOGY`, `HEADER_CACHE` and `HEADER_MEM_TOPOLOGY`, `tools/perf/util/header.c`).

use crate::Result;
use crate::section::{SectionCursor, push_string};

/// The version of the description of caches.
const CACHE_VERSION: u32 = 1;

/// The version of the description of memory's blocks.
const MEMORY_VERSION: u64 = 1;

/// Places of CPUs in sockets, dies and cores. Lists of CPUs are written as `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CpuTopology {
    /// The CPUs of each socket.
    pub sockets: Vec<String>,
    /// The CPUs of each die; none where that is not known.
    pub dies: Vec<String>,
    /// The CPUs of each core.
    pub cores: Vec<String>,
    /// The place of each CPU, by its number.
    pub places: Vec<CpuNumbers>,
}

/// Numbers of a CPU's core, die and socket; [`u32::MAX`] where the CPU is offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CpuNumbers {
    /// The number of its core.
    pub core: u32,
    /// The number of its die.
    pub die: u32,
    /// The number of its socket.
    pub socket: u32,
}

/// A node of memory (numa(7)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NumaNode {
    /// The node's number.
    pub node: u32,
    /// Size of its memory, in KiB.
    pub total: u64,
    /// Size of the part that was free, in KiB.
    pub free: u64,
    /// Its CPUs, as `0-3,8`.
    pub cpus: String,
}

/// The blocks that memory can be added and removed in (`/sys/devices/system/memory`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryTopology {
    /// Size of a block, in bytes.
    pub block_size: u64,
    /// The blocks of each node.
    pub nodes: Vec<MemoryBlocks>,
}

/// The blocks of memory of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryBlocks {
    /// The node's number.
    pub node: u64,
    /// A bit for each block that it has, from the lowest bit of the first word on.
    pub blocks: Vec<u64>,
}

/// A cache (`/sys/devices/system/cpu/cpu*/cache`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CpuCache {
    /// Its level, from 1.
    pub level: u32,
    /// Size of a line, in bytes.
    pub line_size: u32,
    /// The number of its sets.
    pub sets: u32,
    /// The number of its ways.
    pub ways: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size, as `32K`.
    pub size: String,
    /// The CPUs that share it, as `0-3,8`.
    pub cpus: String,
}

fn push_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_ne_bytes());
}

fn push_count<T>(out: &mut Vec<u8>, list: &[T]) {
    push_u32(out, u32::try_from(list.len()).unwrap_or(u32::MAX));
}

fn push_strings(out: &mut Vec<u8>, strings: &[String]) {
    push_count(out, strings);
    for string in strings {
        push_string(out, string.as_bytes());
    }
}

fn strings(cursor: &mut SectionCursor<'_>) -> Result<Vec<String>> {
    (0..cursor.u32()?).map(|_| cursor.string()).collect()
}

impl CpuTopology {
    pub(crate) fn section(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_strings(&mut out, &self.sockets);
        push_strings(&mut out, &self.cores);
        for place in &self.places {
            push_u32(&mut out, place.core);
            push_u32(&mut out, place.socket);
        }
        if !self.dies.is_empty() {
            push_strings(&mut out, &self.dies);
            for place in &self.places {
                push_u32(&mut out, place.die);
            }
        }
        out
    }

    /// Reads that of so many CPUs. Of earlier versions of perf it ends before the places of CPUs, or before dies.
    pub(crate) fn read(mut cursor: SectionCursor<'_>, cpus: u32) -> Result<Self> {
        let mut topology = Self {
            sockets: strings(&mut cursor)?,
            cores: strings(&mut cursor)?,
            ..Self::default()
        };
        if cursor.is_at_end() {
            return Ok(topology);
        }
        for _ in 0..cpus {
            topology.places.push(CpuNumbers {
                core: cursor.u32()?,
                socket: cursor.u32()?,
                die: 0,
            });
        }
        if !cursor.is_at_end() {
            topology.dies = strings(&mut cursor)?;
            for place in &mut topology.places {
                place.die = cursor.u32()?;
            }
        }
        Ok(topology)
    }
}

/// Returns the section of nodes, if there are any.
pub(crate) fn numa_section(nodes: &[NumaNode]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    push_count(&mut out, nodes);
    for node in nodes {
        push_u32(&mut out, node.node);
        out.extend_from_slice(&node.total.to_ne_bytes());
        out.extend_from_slice(&node.free.to_ne_bytes());
        push_string(&mut out, node.cpus.as_bytes());
    }
    (!nodes.is_empty()).then_some(out)
}

pub(crate) fn read_numa(mut cursor: SectionCursor<'_>) -> Result<Vec<NumaNode>> {
    let count = cursor.u32()?;
    let nodes = (0..count).map(|_| {
        Ok(NumaNode {
            node: cursor.u32()?,
            total: cursor.u64()?,
            free: cursor.u64()?,
            cpus: cursor.string()?,
        })
    });
    nodes.collect()
}

impl MemoryTopology {
    pub(crate) fn section(&self) -> Vec<u8> {
        let mut words = vec![MEMORY_VERSION, self.block_size, self.nodes.len() as u64];
        for node in &self.nodes {
            let size = 64 * node.blocks.len() as u64;
            let unused = node.blocks.last().map_or(0, |last| last.leading_zeros());
            let size = size - u64::from(unused);
            // For the node and for its bits.
            words.extend([node.node, size, size]);
            words.extend(&node.blocks);
        }
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// Reads blocks; `None` where they are described in a way that is not known.
    pub(crate) fn read(mut cursor: SectionCursor<'_>) -> Result<Option<Self>> {
        if cursor.u64()? != MEMORY_VERSION {
            return Ok(None);
        }
        let block_size = cursor.u64()?;
        let nodes = (0..cursor.u64()?).map(|_| {
            let (node, _) = (cursor.u64()?, cursor.u64()?);
            let words = cursor.u64()?.div_ceil(64);
            let blocks = (0..words).map(|_| cursor.u64());
            let blocks = blocks.collect::<Result<_>>()?;
            Ok(MemoryBlocks { node, blocks })
        });
        let nodes = nodes.collect::<Result<_>>()?;
        Ok(Some(Self { block_size, nodes }))
    }
}

/// Returns the section of caches, if there are any.
pub(crate) fn cache_section(caches: &[CpuCache]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    push_u32(&mut out, CACHE_VERSION);
    push_count(&mut out, caches);
    for cache in caches {
        for number in [cache.level, cache.line_size, cache.sets, cache.ways] {
            push_u32(&mut out, number);
        }
        for text in [&cache.kind, &cache.size, &cache.cpus] {
            push_string(&mut out, text.as_bytes());
        }
    }
    (!caches.is_empty()).then_some(out)
}

/// Reads caches; none where they are described in a way that is not known.
pub(crate) fn read_caches(mut cursor: SectionCursor<'_>) -> Result<Vec<CpuCache>> {
    if cursor.u32()? != CACHE_VERSION {
        return Ok(Vec::new());
    }
    let count = cursor.u32()?;
    let caches = (0..count).map(|_| {
        Ok(CpuCache {
            level: cursor.u32()?,
            line_size: cursor.u32()?,
            sets: cursor.u32()?,
            ways: cursor.u32()?,
            kind: cursor.string()?,
            size: cursor.string()?,
            cpus: cursor.string()?,
        })
    });
    caches.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_order::ByteOrder;

    fn read(section: &[u8], cpus: u32) -> Result<CpuTopology> {
        CpuTopology::read(SectionCursor::new(section, "CPUs", ByteOrder::Native), cpus)
    }

    #[test]
    fn blocks_of_memory_come_back() {
        let node = |node, blocks: &[u64]| MemoryBlocks {
            node,
            blocks: blocks.to_vec(),
        };
        let memory = MemoryTopology {
            block_size: 1 << 27,
            nodes: vec![node(0, &[u64::MAX, 0b101]), node(3, &[])],
        };
        let section = memory.section();
        let read = |section: &[u8]| {
            MemoryTopology::read(SectionCursor::new(section, "memory", ByteOrder::Native))
        };
        assert_eq!(section[40..48], 67_u64.to_ne_bytes());
        assert_eq!(read(&section).expect("whole"), Some(memory));
        assert!((1..8).all(|cut| read(&section[..section.len() - cut]).is_err()));
        let mut other = section;
        other[0] ^= 3;
        assert_eq!(read(&other).expect("another version"), None);
    }

    #[test]
    fn topologies_of_earlier_versions_end_before_what_they_do_not_tell() {
        let place = |core| CpuNumbers {
            core,
            ..CpuNumbers::default()
        };
        let mut topology = CpuTopology {
            sockets: vec!["0-1".into()],
            dies: vec!["0-1".into()],
            cores: vec!["0".into(), "1".into()],
            places: vec![place(0), place(1)],
        };
        topology.places[1].die = 1;
        assert_eq!(read(&topology.section(), 2).expect("whole"), topology);
        let whole = topology.section();
        assert!((1..8).all(|cut| read(&whole[..whole.len() - cut], 2).is_err()));
        topology.dies.clear();
        topology.places[1].die = 0;
        assert_eq!(read(&topology.section(), 2).expect("whole"), topology);
        topology.places.clear();
        assert_eq!(read(&topology.section(), 2).expect("whole"), topology);
    }
}
