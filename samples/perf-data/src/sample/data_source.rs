//! Data source of a sampled memory access (`union perf_mem_data_src`,
//! `include/uapi/linux/perf_event.h`).

use bitflags::bitflags;

/// Data source of a sampled memory access, and how the access went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataSource(pub u64);

bitflags! {
    /// `PERF_MEM_OP_*`: what the instruction did.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct MemoryOperation: u8 {
        /// Not available (`PERF_MEM_OP_NA`).
        const NOT_AVAILABLE = 1;
        /// A load.
        const LOAD = 1 << 1;
        /// A store.
        const STORE = 1 << 2;
        /// A prefetch.
        const PREFETCH = 1 << 3;
        /// An instruction fetch.
        const EXECUTE = 1 << 4;
    }
}

bitflags! {
    /// `PERF_MEM_LVL_*`: the level of the memory hierarchy, hit or missed, in the older form.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct MemoryLevels: u16 {
        /// Not available (`PERF_MEM_LVL_NA`).
        const NOT_AVAILABLE = 1;
        /// The level was hit.
        const HIT = 1 << 1;
        /// The level was missed.
        const MISS = 1 << 2;
        /// The first level.
        const L1 = 1 << 3;
        /// The line fill buffer.
        const LINE_FILL_BUFFER = 1 << 4;
        /// The second level.
        const L2 = 1 << 5;
        /// The third level.
        const L3 = 1 << 6;
        /// Local memory.
        const LOCAL_RAM = 1 << 7;
        /// Memory one hop away.
        const REMOTE_RAM_1 = 1 << 8;
        /// Memory two hops away.
        const REMOTE_RAM_2 = 1 << 9;
        /// A cache one hop away.
        const REMOTE_CACHE_1 = 1 << 10;
        /// A cache two hops away.
        const REMOTE_CACHE_2 = 1 << 11;
        /// Input and output.
        const IO = 1 << 12;
        /// Memory that is not cached.
        const UNCACHED = 1 << 13;
    }
}

bitflags! {
    /// `PERF_MEM_SNOOP_*` and, from bit 5, `PERF_MEM_SNOOPX_*`: the answer of other caches.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Snoop: u8 {
        /// Not available (`PERF_MEM_SNOOP_NA`).
        const NOT_AVAILABLE = 1;
        /// None was asked.
        const NONE = 1 << 1;
        /// One had the line.
        const HIT = 1 << 2;
        /// None had it.
        const MISS = 1 << 3;
        /// One had it modified.
        const HIT_MODIFIED = 1 << 4;
        /// One forwarded it.
        const FORWARD = 1 << 5;
        /// It came from a peer.
        const PEER = 1 << 6;
    }
}

bitflags! {
    /// `PERF_MEM_TLB_*`: how the address was translated.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct TlbAccess: u8 {
        /// Not available (`PERF_MEM_TLB_NA`).
        const NOT_AVAILABLE = 1;
        /// The level was hit.
        const HIT = 1 << 1;
        /// The level was missed.
        const MISS = 1 << 2;
        /// The first level.
        const L1 = 1 << 3;
        /// The second level.
        const L2 = 1 << 4;
        /// The hardware walked the page tables.
        const WALKER = 1 << 5;
        /// The operating system handled a fault.
        const OS = 1 << 6;
    }
}

bitflags! {
    /// `PERF_MEM_BLK_*`: why a load was blocked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Blocked: u8 {
        /// Not available (`PERF_MEM_BLK_NA`).
        const NOT_AVAILABLE = 1;
        /// Data could not be forwarded from a store.
        const DATA = 1 << 1;
        /// Its address conflicted with that of a store.
        const ADDRESS = 1 << 2;
    }
}

/// `PERF_MEM_LVLNUM_*`: the one place that the data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryLevel {
    /// Not available (`PERF_MEM_LVLNUM_NA`), or unknown to this version.
    Unknown,
    /// The level below the first.
    L0,
    /// The first level.
    L1,
    /// The second level.
    L2,
    /// The third level.
    L3,
    /// The fourth level.
    L4,
    /// The buffer that handles misses of the second level.
    L2MissBuffer,
    /// A cache at the memory.
    MemorySideCache,
    /// Memory that is not cached.
    Uncached,
    /// Memory behind CXL.
    Cxl,
    /// Input and output.
    Io,
    /// Some cache.
    AnyCache,
    /// The line fill buffer.
    LineFillBuffer,
    /// Memory.
    Ram,
    /// Persistent memory.
    PersistentMemory,
}

impl DataSource {
    /// `len` bits from `first`; C numbers bit-fields from the other end on big-endian machines, but
    /// the kernel declares them in the opposite order there, so the places are the same.
    fn bits(self, first: u32, len: u32) -> u16 {
        (self.0 >> first & ((1 << len) - 1)) as u16
    }

    /// Returns the operation of the instruction.
    pub fn operation(self) -> MemoryOperation {
        MemoryOperation::from_bits_retain(self.bits(0, 5) as u8)
    }

    /// Returns the levels of the memory hierarchy, in the older form.
    pub fn levels(self) -> MemoryLevels {
        MemoryLevels::from_bits_retain(self.bits(5, 14))
    }

    /// Returns the answer of other caches.
    pub fn snoop(self) -> Snoop {
        Snoop::from_bits_retain((self.bits(19, 5) | self.bits(38, 2) << 5) as u8)
    }

    /// Returns true if the instruction had the bus locked; `None` if the CPU does not report it.
    pub fn locked(self) -> Option<bool> {
        match self.bits(24, 2) {
            lock if lock & 1 != 0 => None,
            lock => Some(lock & 2 != 0),
        }
    }

    /// Returns the translation of the address.
    pub fn tlb(self) -> TlbAccess {
        TlbAccess::from_bits_retain(self.bits(26, 7) as u8)
    }

    /// Returns the one place that the data came from.
    pub fn level(self) -> MemoryLevel {
        match self.bits(33, 4) {
            1 => MemoryLevel::L1,
            2 => MemoryLevel::L2,
            3 => MemoryLevel::L3,
            4 => MemoryLevel::L4,
            5 => MemoryLevel::L2MissBuffer,
            6 => MemoryLevel::MemorySideCache,
            7 => MemoryLevel::L0,
            8 => MemoryLevel::Uncached,
            9 => MemoryLevel::Cxl,
            10 => MemoryLevel::Io,
            11 => MemoryLevel::AnyCache,
            12 => MemoryLevel::LineFillBuffer,
            13 => MemoryLevel::Ram,
            14 => MemoryLevel::PersistentMemory,
            _ => MemoryLevel::Unknown,
        }
    }

    /// Returns true if the data source is remote.
    pub fn remote(self) -> bool {
        self.bits(37, 1) != 0
    }

    /// Returns why a load was blocked.
    pub fn blocked(self) -> Blocked {
        Blocked::from_bits_retain(self.bits(40, 3) as u8)
    }

    /// Returns the distance of a remote data source (`PERF_MEM_HOPS_*`): 1 another core of the node,
    /// 2 another node of the socket, 3 another socket, 4 another board; 0 if the CPU does not report it.
    pub fn hops(self) -> u8 {
        self.bits(43, 3) as u8
    }

    /// Returns the region of a cache or of memory (`PERF_MEM_REGION_*`); 0 if the CPU does not report it.
    pub fn region(self) -> u8 {
        self.bits(46, 5) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | ...`, with the shifts of the header.
    #[test]
    fn every_field_is_where_the_header_shifts_it() {
        let source = DataSource(
            2 | 0x42 << 5
                | 0x10 << 19
                | 2 << 24
                | 0x0a << 26
                | 0xd << 33
                | 1 << 37
                | 2 << 38
                | 4 << 40
                | 3 << 43
                | 9 << 46,
        );
        assert_eq!(source.operation(), MemoryOperation::LOAD);
        assert_eq!(source.levels(), MemoryLevels::HIT | MemoryLevels::L3);
        assert_eq!(source.snoop(), Snoop::HIT_MODIFIED | Snoop::PEER);
        assert_eq!(source.locked(), Some(true));
        assert_eq!(source.tlb(), TlbAccess::HIT | TlbAccess::L1);
        assert_eq!(source.level(), MemoryLevel::Ram);
        assert!(source.remote());
        assert_eq!(source.blocked(), Blocked::ADDRESS);
        assert_eq!((source.hops(), source.region()), (3, 9));
        assert_eq!(DataSource(1 << 24).locked(), None);
        assert_eq!(DataSource(0).locked(), Some(false));
        assert!(!DataSource(!(1 << 37)).remote());
    }

    /// `PERF_MEM_LVLNUM_*` in their order.
    #[test]
    fn places_are_the_kernels() {
        use MemoryLevel as L;
        let levels = [
            L::Unknown,
            L::L1,
            L::L2,
            L::L3,
            L::L4,
            L::L2MissBuffer,
            L::MemorySideCache,
            L::L0,
            L::Uncached,
            L::Cxl,
            L::Io,
            L::AnyCache,
            L::LineFillBuffer,
            L::Ram,
            L::PersistentMemory,
            L::Unknown,
        ];
        for (number, expected) in (0..).zip(levels) {
            assert_eq!(DataSource(number << 33).level(), expected);
        }
    }
}
