//! The source of data that an instruction touched (`perf_script__meminfo_scnprintf`, `tools/perf/util/mem-events.c`).

use quipu_perf_data::{
    Blocked, DataSource, MemoryLevel, MemoryLevels, MemoryOperation, Snoop, TlbAccess,
};

/// Appends the source in words, as perf has them: `|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A`.
pub(super) fn push(text: &mut String, source: DataSource) {
    text.push_str("|OP ");
    text.push_str(operation(source.operation()));
    text.push_str("|LVL ");
    push_level(text, source);
    text.push_str("|SNP ");
    push_snoop(text, source.snoop());
    text.push_str("|TLB ");
    push_tlb(text, source.tlb());
    text.push_str("|LCK ");
    text.push_str(match source.locked() {
        Some(true) => "Yes",
        Some(false) => "No",
        None => "N/A",
    });
    text.push_str("|BLK ");
    push_blocked(text, source.blocked());
}

/// Returns the source in words, if the sample is of an instruction that touched data.
pub(super) fn known(source: DataSource) -> Option<String> {
    if source.operation().contains(MemoryOperation::NOT_AVAILABLE) {
        return None;
    }
    let mut text = String::new();
    push(&mut text, source);
    Some(text)
}

fn operation(operation: MemoryOperation) -> &'static str {
    let names = [
        (MemoryOperation::NOT_AVAILABLE, "N/A"),
        (MemoryOperation::LOAD, "LOAD"),
        (MemoryOperation::STORE, "STORE"),
        (MemoryOperation::PREFETCH, "PFETCH"),
        (MemoryOperation::EXECUTE, "EXEC"),
    ];
    let first = names.into_iter().find(|(bit, _)| operation.contains(*bit));
    first.map_or("No", |(_, name)| name)
}

/// Appends names, or what stands for none of them.
fn push_names(text: &mut String, names: impl Iterator<Item = &'static str>) {
    let from = text.len();
    for name in names {
        if text.len() > from {
            text.push_str(" or ");
        }
        text.push_str(name);
    }
    if text.len() == from {
        text.push_str("N/A");
    }
}

fn push_level(text: &mut String, source: DataSource) {
    const LEVELS: [(MemoryLevels, &str); 12] = [
        (MemoryLevels::NOT_AVAILABLE, "N/A"),
        (MemoryLevels::L1, "L1"),
        (MemoryLevels::LINE_FILL_BUFFER, "LFB/MAB"),
        (MemoryLevels::L2, "L2"),
        (MemoryLevels::L3, "L3"),
        (MemoryLevels::LOCAL_RAM, "Local RAM"),
        (MemoryLevels::REMOTE_RAM_1, "Remote RAM (1 hop)"),
        (MemoryLevels::REMOTE_RAM_2, "Remote RAM (2 hops)"),
        (MemoryLevels::REMOTE_CACHE_1, "Remote Cache (1 hop)"),
        (MemoryLevels::REMOTE_CACHE_2, "Remote Cache (2 hops)"),
        (MemoryLevels::IO, "I/O"),
        (MemoryLevels::UNCACHED, "Uncached"),
    ];
    let levels = source.levels();
    if source.remote() {
        text.push_str("Remote ");
    }
    // Where the distance is known, the older form says no more.
    let distance = match source.hops() {
        0 => None,
        1 => Some("core, same node"),
        2 => Some("node, same socket"),
        3 => Some("socket, same board"),
        4 => Some("board"),
        _ => Some("at a distance that is not known"),
    };
    let older = LEVELS
        .into_iter()
        .filter(|(bit, _)| distance.is_none() && levels.contains(*bit))
        .map(|(_, name)| name);
    if let Some(distance) = distance {
        text.push_str(distance);
        text.push(' ');
    }
    let mut names = older.chain(one_level(source)).peekable();
    if names.peek().is_some() || !(source.remote() || distance.is_some()) {
        push_names(text, names);
    }
    if levels.contains(MemoryLevels::HIT) {
        text.push_str(" hit");
    }
    if levels.contains(MemoryLevels::MISS) {
        text.push_str(" miss");
    }
}

/// Returns the one level that the data came from, in the newer form.
fn one_level(source: DataSource) -> Option<&'static str> {
    Some(match source.level() {
        MemoryLevel::L0 => "L0",
        MemoryLevel::L1 => "L1",
        MemoryLevel::L2 => "L2",
        MemoryLevel::L3 => "L3",
        MemoryLevel::L4 => "L4",
        MemoryLevel::L2MissBuffer => "L2 MHB",
        MemoryLevel::MemorySideCache => "Memory-side Cache",
        MemoryLevel::Uncached => "Uncached",
        MemoryLevel::Cxl => "CXL",
        MemoryLevel::Io => "I/O",
        MemoryLevel::AnyCache => "Any cache",
        MemoryLevel::LineFillBuffer => "LFB/MAB",
        MemoryLevel::Ram => "RAM",
        MemoryLevel::PersistentMemory => "PMEM",
        // `PERF_MEM_LVLNUM_NA`; the older form stands alone where the newer one is not used.
        _ if source.0 >> 33 & 0xf == 0xf => "N/A",
        _ => return None,
    })
}

fn push_snoop(text: &mut String, snoop: Snoop) {
    const NAMES: [(Snoop, &str); 7] = [
        (Snoop::NOT_AVAILABLE, "N/A"),
        (Snoop::NONE, "None"),
        (Snoop::HIT, "Hit"),
        (Snoop::MISS, "Miss"),
        (Snoop::HIT_MODIFIED, "HitM"),
        (Snoop::FORWARD, "Fwd"),
        (Snoop::PEER, "Peer"),
    ];
    let names = NAMES.into_iter().filter(|(bit, _)| snoop.contains(*bit));
    push_names(text, names.map(|(_, name)| name));
}

fn push_tlb(text: &mut String, tlb: TlbAccess) {
    const NAMES: [(TlbAccess, &str); 5] = [
        (TlbAccess::NOT_AVAILABLE, "N/A"),
        (TlbAccess::L1, "L1"),
        (TlbAccess::L2, "L2"),
        (TlbAccess::WALKER, "Walker"),
        (TlbAccess::OS, "Fault"),
    ];
    let names = NAMES.into_iter().filter(|(bit, _)| tlb.contains(*bit));
    push_names(text, names.map(|(_, name)| name));
    if tlb.contains(TlbAccess::HIT) {
        text.push_str(" hit");
    }
    if tlb.contains(TlbAccess::MISS) {
        text.push_str(" miss");
    }
}

fn push_blocked(text: &mut String, blocked: Blocked) {
    if blocked.is_empty() || blocked.contains(Blocked::NOT_AVAILABLE) {
        text.push_str(" N/A");
        return;
    }
    if blocked.contains(Blocked::DATA) {
        text.push_str(" Data");
    }
    if blocked.contains(Blocked::ADDRESS) {
        text.push_str(" Addr");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: u64) -> String {
        let mut text = String::new();
        push(&mut text, DataSource(source));
        text
    }

    /// The words are those of perf 6.1.
    #[test]
    fn a_source_is_in_perfs_words() {
        for (source, expected) in [
            (0, "|OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  N/A"),
            (
                0x6810_0442,
                "|OP LOAD|LVL L2 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A",
            ),
            (
                0x0200_0000_0040 | 0x0200_0000 | 1 << 26,
                "|OP No|LVL N/A hit|SNP N/A|TLB N/A|LCK Yes|BLK  Data",
            ),
            (
                1 << 37,
                "|OP No|LVL Remote |SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                1 << 37 | 1 << 43 | 0xb << 33 | 2 << 5 | 8 << 5,
                "|OP No|LVL Remote core, same node Any cache hit|SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                0xf << 33 | 8 << 5 | 1 << 24 | 7 << 40,
                "|OP No|LVL L1 or N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A",
            ),
            (
                3 << 38 | 4 << 19 | 6 << 40 | 4 << 5 | 4,
                "|OP STORE|LVL N/A miss|SNP Hit or Fwd or Peer|TLB N/A|LCK No|BLK  Data Addr",
            ),
        ] {
            assert_eq!(words(source), expected, "{source:#x}");
            assert_eq!(known(DataSource(source)).as_deref(), Some(expected));
        }
        // As the kernel has it of other events (`PERF_MEM_NA`).
        assert_eq!(known(DataSource(0x508_0021)), None);
    }
}
