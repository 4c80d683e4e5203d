//! Features: what a file says of the machine and the recording (`HEADER_*`,
//! `tools/perf/util/header.h`; their contents in `tools/perf/util/header.c`).

use crate::Result;
use crate::attr::EventAttr;
use crate::bpf_features::{self, BpfProgram, BpfTypes};
use crate::build_ids::{BuildId, build_id_section, read_build_ids};
use crate::byte_order::ByteOrder;
use crate::bytes::u64_at;
use crate::compression::Compression;
use crate::machine_features::{self, CpuCache, CpuTopology, MemoryTopology, NumaNode};
use crate::pmu_features::{self, PmuCapabilities, PmuCpus};
use crate::recorded_event::RecordedEvent;
use crate::section::{SectionCursor, push_string};
use crate::simpleperf::{self, RecordedFile};

/// The numbers of the features known here.
mod number {
    pub(super) const TRACING_DATA: u32 = 1;
    pub(super) const BUILD_ID: u32 = 2;
    pub(super) const HOST_NAME: u32 = 3;
    pub(super) const OS_RELEASE: u32 = 4;
    pub(super) const VERSION: u32 = 5;
    pub(super) const ARCH: u32 = 6;
    pub(super) const CPUS: u32 = 7;
    pub(super) const CPU_DESCRIPTION: u32 = 8;
    pub(super) const CPU_ID: u32 = 9;
    pub(super) const TOTAL_MEMORY: u32 = 10;
    pub(super) const COMMAND_LINE: u32 = 11;
    pub(super) const EVENT_DESC: u32 = 12;
    pub(super) const CPU_TOPOLOGY: u32 = 13;
    pub(super) const NUMA_TOPOLOGY: u32 = 14;
    pub(super) const BRANCH_STACK: u32 = 15;
    pub(super) const PMU_MAPPINGS: u32 = 16;
    pub(super) const GROUP_DESC: u32 = 17;
    pub(super) const AUXTRACE: u32 = 18;
    pub(super) const STAT: u32 = 19;
    pub(super) const CACHE: u32 = 20;
    pub(super) const SAMPLE_TIME: u32 = 21;
    pub(super) const MEM_TOPOLOGY: u32 = 22;
    pub(super) const BPF_PROG_INFO: u32 = 25;
    pub(super) const BPF_BTF: u32 = 26;
    pub(super) const COMPRESSED: u32 = 27;
    pub(super) const CPU_PMU_CAPS: u32 = 28;
    pub(super) const HYBRID_TOPOLOGY: u32 = 30;
    pub(super) const PMU_CAPS: u32 = 31;
    /// simpleperf's own (`record_file_format.h` of simpleperf).
    pub(super) const FILE: u32 = 128;
    pub(super) const META_INFO: u32 = 129;
    pub(super) const FILE2: u32 = 132;
}

/// Description of the machine and the recording. All of it may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Features {
    /// Formats of tracepoints; [`TracingData`](crate::TracingData) makes them.
    pub tracing_data: Option<Vec<u8>>,
    /// The build ids of what was mapped.
    pub build_ids: Vec<BuildId>,
    /// The machine's name (uname(2), `nodename`).
    pub host_name: Option<String>,
    /// The kernel's release (uname(2), `release`).
    pub os_release: Option<String>,
    /// The version of what recorded.
    pub version: Option<String>,
    /// The machine's architecture (uname(2), `machine`).
    pub arch: Option<String>,
    /// Number of CPUs, and of those that were online.
    pub cpus: Option<(u32, u32)>,
    /// The CPU's name.
    pub cpu_description: Option<String>,
    /// The CPU's vendor, family, model and stepping.
    pub cpu_id: Option<String>,
    /// Size of the memory, in KiB.
    pub total_memory: Option<u64>,
    /// The command line that recorded.
    pub command_line: Vec<String>,
    /// The places of the CPUs.
    pub cpu_topology: Option<CpuTopology>,
    /// The nodes of memory.
    pub numa_nodes: Vec<NumaNode>,
    /// The kernel's PMUs: the number of each as a type of events, and its name.
    pub pmus: Vec<(u32, String)>,
    /// The CPUs of each core PMU of a hybrid machine. Not written.
    pub hybrid: Vec<PmuCpus>,
    /// Capabilities of the core PMUs. Not written.
    pub pmu_capabilities: Vec<PmuCapabilities>,
    /// The BPF programs that there were. Not written.
    pub bpf_programs: Vec<BpfProgram>,
    /// The types of BPF programs. Not written.
    pub bpf_types: Vec<BpfTypes>,
    /// The caches.
    pub caches: Vec<CpuCache>,
    /// The events that were scheduled together.
    pub groups: Vec<EventGroup>,
    /// True where samples have branches.
    pub has_branches: bool,
    /// True where there is a hardware trace. Not written.
    pub has_traces: bool,
    /// True for a file of [counts](crate::stat) without samples.
    pub has_counts: bool,
    /// The times of the first and the last sample, in ns of the clock of the recording.
    pub sample_time: Option<(u64, u64)>,
    /// The blocks of memory.
    pub memory: Option<MemoryTopology>,
    /// The compression of the records, where they are compressed.
    pub compression: Option<Compression>,
    /// Names of simpleperf's and values: what it recorded on which device. Not written.
    pub simpleperf: Vec<(String, String)>,
    /// The files that were mapped, with their symbols, as simpleperf records them. Not written.
    pub files: Vec<RecordedFile>,
    /// The sections that are malformed, and so left out: their names (`HEADER_CPUDESC`) and their offsets in bytes from
    /// the start of the file.
    pub left_out: Vec<(&'static str, u64)>,
}

/// Events that were scheduled together: a leader and the events after it (perf_event_open(2), `group_fd`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventGroup {
    /// Its name; `{anon_group}` where it was given none.
    pub name: String,
    /// The position of the leader in the list of events.
    pub leader: u32,
    /// The number of events, with the leader.
    pub len: u32,
}

impl EventGroup {
    /// Returns the group of `len` events from the position of its leader on, without a name of its own.
    pub fn new(leader: u32, len: u32) -> Self {
        let name = "{anon_group}".to_owned();
        Self { name, leader, len }
    }
}

impl Features {
    /// The sections to write, in the order of their numbers.
    pub(crate) fn sections(&self, events: &[RecordedEvent]) -> Vec<(u32, Vec<u8>)> {
        let string = |text: &Option<String>| {
            text.as_ref().map(|text| {
                let mut out = Vec::new();
                push_string(&mut out, text.as_bytes());
                out
            })
        };
        let words = |words: (u64, u64)| [words.0.to_ne_bytes(), words.1.to_ne_bytes()].concat();
        let sections = [
            (number::TRACING_DATA, self.tracing_data.clone()),
            (number::BUILD_ID, build_id_section(&self.build_ids)),
            (number::HOST_NAME, string(&self.host_name)),
            (number::OS_RELEASE, string(&self.os_release)),
            (number::VERSION, string(&self.version)),
            (number::ARCH, string(&self.arch)),
            (
                number::CPUS,
                self.cpus
                    .map(|(all, online)| [all.to_ne_bytes(), online.to_ne_bytes()].concat()),
            ),
            (number::CPU_DESCRIPTION, string(&self.cpu_description)),
            (number::CPU_ID, string(&self.cpu_id)),
            (
                number::TOTAL_MEMORY,
                self.total_memory.map(|kib| kib.to_ne_bytes().to_vec()),
            ),
            (
                number::COMMAND_LINE,
                command_line_section(&self.command_line),
            ),
            (number::EVENT_DESC, event_section(events)),
            (
                number::CPU_TOPOLOGY,
                self.cpu_topology.as_ref().map(CpuTopology::section),
            ),
            (
                number::NUMA_TOPOLOGY,
                machine_features::numa_section(&self.numa_nodes),
            ),
            (number::BRANCH_STACK, self.has_branches.then(Vec::new)),
            (number::PMU_MAPPINGS, pmu_features::pmu_section(&self.pmus)),
            (number::GROUP_DESC, group_section(&self.groups)),
            (number::STAT, self.has_counts.then(Vec::new)),
            (number::CACHE, machine_features::cache_section(&self.caches)),
            (number::SAMPLE_TIME, self.sample_time.map(words)),
            (
                number::MEM_TOPOLOGY,
                self.memory.as_ref().map(MemoryTopology::section),
            ),
            (
                number::COMPRESSED,
                self.compression.map(compression_section),
            ),
        ];
        sections
            .into_iter()
            .filter_map(|(number, section)| Some((number, section?)))
            .collect()
    }

    /// Takes up a section that was read from an offset of the file, or leaves it out. Numbers not known here are passed over.
    pub(crate) fn take(
        &mut self,
        number: u32,
        (offset, section): (u64, &[u8]),
        events: &mut [RecordedEvent],
        order: ByteOrder,
    ) {
        if self.read(number, section, events, order).is_err() {
            self.leave_out(number, offset);
        }
    }

    /// Returns true for the section of the events' names, which may come before the events in a stream.
    pub(crate) fn has_names(number: u32) -> bool {
        number == number::EVENT_DESC
    }

    /// Leaves a section out.
    pub(crate) fn leave_out(&mut self, number: u32, offset: u64) {
        self.left_out.push((name_of(number), offset));
    }

    fn read(
        &mut self,
        number: u32,
        section: &[u8],
        events: &mut [RecordedEvent],
        order: ByteOrder,
    ) -> Result<()> {
        const WHAT: &str = "a description of the machine or the recording";
        let mut cursor = SectionCursor::new(section, WHAT, order);
        match number {
            number::TRACING_DATA => self.tracing_data = Some(section.to_owned()),
            number::BUILD_ID => self.build_ids = read_build_ids(section, order)?,
            number::HOST_NAME => self.host_name = Some(cursor.string()?),
            number::OS_RELEASE => self.os_release = Some(cursor.string()?),
            number::VERSION => self.version = Some(cursor.string()?),
            number::ARCH => self.arch = Some(cursor.string()?),
            number::CPUS => self.cpus = Some((cursor.u32()?, cursor.u32()?)),
            number::CPU_DESCRIPTION => self.cpu_description = Some(cursor.string()?),
            number::CPU_ID => self.cpu_id = Some(cursor.string()?),
            number::TOTAL_MEMORY => self.total_memory = Some(cursor.u64()?),
            number::COMMAND_LINE => {
                let words = (0..cursor.u32()?).map(|_| cursor.string());
                self.command_line = words.collect::<Result<_>>()?;
            }
            number::EVENT_DESC => read_names(cursor, events, order)?,
            number::CPU_TOPOLOGY => {
                let cpus = self.cpus.map_or(0, |(all, _)| all);
                self.cpu_topology = Some(CpuTopology::read(cursor, cpus)?);
            }
            number::NUMA_TOPOLOGY => self.numa_nodes = machine_features::read_numa(cursor)?,
            number::BRANCH_STACK => self.has_branches = true,
            number::AUXTRACE => self.has_traces = true,
            number::PMU_MAPPINGS => self.pmus = pmu_features::read_pmus(cursor)?,
            number::HYBRID_TOPOLOGY => self.hybrid = pmu_features::read_hybrid(cursor)?,
            number::CPU_PMU_CAPS => {
                let capabilities = PmuCapabilities::read_of_cpu(cursor)?;
                self.pmu_capabilities.push(capabilities);
            }
            number::PMU_CAPS => {
                let capabilities = PmuCapabilities::read_all(cursor)?;
                self.pmu_capabilities.extend(capabilities);
            }
            number::BPF_PROG_INFO => {
                self.bpf_programs = bpf_features::read_programs(cursor, order)?;
            }
            number::BPF_BTF => self.bpf_types = bpf_features::read_types(cursor, order)?,
            number::FILE => self.files.extend(simpleperf::read_files(cursor)?),
            number::FILE2 => self.files.extend(simpleperf::read_messages(cursor)?),
            number::META_INFO => self.simpleperf = simpleperf::read_meta_info(cursor)?,
            number::CACHE => self.caches = machine_features::read_caches(cursor)?,
            number::STAT => self.has_counts = true,
            number::GROUP_DESC => {
                let groups = (0..cursor.u32()?).map(|_| {
                    let (name, leader, len) = (cursor.string()?, cursor.u32()?, cursor.u32()?);
                    Ok(EventGroup { name, leader, len })
                });
                self.groups = groups.collect::<Result<_>>()?;
            }
            number::COMPRESSED => {
                let [_, _, level, ratio, longest] = [(); 5].map(|()| cursor.u32());
                self.compression = Some(Compression {
                    level: level?,
                    ratio: ratio?,
                    longest: longest?,
                });
            }
            number::MEM_TOPOLOGY => self.memory = MemoryTopology::read(cursor)?,
            number::SAMPLE_TIME => self.sample_time = Some((cursor.u64()?, cursor.u64()?)),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the name of a feature in `tools/perf/util/header.h`.
fn name_of(number: u32) -> &'static str {
    match number {
        number::TRACING_DATA => "HEADER_TRACING_DATA",
        number::BUILD_ID => "HEADER_BUILD_ID",
        number::HOST_NAME => "HEADER_HOSTNAME",
        number::OS_RELEASE => "HEADER_OSRELEASE",
        number::VERSION => "HEADER_VERSION",
        number::ARCH => "HEADER_ARCH",
        number::CPUS => "HEADER_NRCPUS",
        number::CPU_DESCRIPTION => "HEADER_CPUDESC",
        number::CPU_ID => "HEADER_CPUID",
        number::TOTAL_MEMORY => "HEADER_TOTAL_MEM",
        number::COMMAND_LINE => "HEADER_CMDLINE",
        number::EVENT_DESC => "HEADER_EVENT_DESC",
        number::CPU_TOPOLOGY => "HEADER_CPU_TOPOLOGY",
        number::NUMA_TOPOLOGY => "HEADER_NUMA_TOPOLOGY",
        number::BRANCH_STACK => "HEADER_BRANCH_STACK",
        number::PMU_MAPPINGS => "HEADER_PMU_MAPPINGS",
        number::AUXTRACE => "HEADER_AUXTRACE",
        number::STAT => "HEADER_STAT",
        number::BPF_PROG_INFO => "HEADER_BPF_PROG_INFO",
        number::BPF_BTF => "HEADER_BPF_BTF",
        number::CPU_PMU_CAPS => "HEADER_CPU_PMU_CAPS",
        number::HYBRID_TOPOLOGY => "HEADER_HYBRID_TOPOLOGY",
        number::PMU_CAPS => "HEADER_PMU_CAPS",
        number::FILE => "FEAT_FILE",
        number::META_INFO => "FEAT_META_INFO",
        number::FILE2 => "FEAT_FILE2",
        number::GROUP_DESC => "HEADER_GROUP_DESC",
        number::CACHE => "HEADER_CACHE",
        number::SAMPLE_TIME => "HEADER_SAMPLE_TIME",
        number::MEM_TOPOLOGY => "HEADER_MEM_TOPOLOGY",
        number::COMPRESSED => "HEADER_COMPRESSED",
        _ => "another feature",
    }
}

fn command_line_section(words: &[String]) -> Option<Vec<u8>> {
    let count = u32::try_from(words.len()).ok().filter(|n| *n > 0)?;
    let mut out = count.to_ne_bytes().to_vec();
    for word in words {
        push_string(&mut out, word.as_bytes());
    }
    Some(out)
}

fn event_section(events: &[RecordedEvent]) -> Option<Vec<u8>> {
    let longest = events.iter().map(|e| e.attr().bytes().len()).max()?;
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, n: usize| {
        out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes());
    };
    number(&mut out, events.len());
    number(&mut out, longest);
    for event in events {
        let end = out.len() + longest;
        out.extend_from_slice(event.attr().bytes());
        out.resize(end, 0);
        number(&mut out, event.ids().len());
        push_string(&mut out, event.name().unwrap_or_default().as_bytes());
        event
            .ids()
            .iter()
            .for_each(|id| out.extend_from_slice(&id.to_ne_bytes()));
    }
    Some(out)
}

/// The version of the description, the method (`PERF_COMP_ZSTD`), and what the [`Compression`] says.
fn compression_section(compression: Compression) -> Vec<u8> {
    let Compression {
        level,
        ratio,
        longest,
    } = compression;
    [0, 1, level, ratio, longest]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect()
}

/// Returns true for the features that records of a stream hold: the others are known at the end, or have records of their
/// own.
pub(crate) fn is_of_streams(number: u32) -> bool {
    let others = [number::TRACING_DATA, number::BUILD_ID, number::SAMPLE_TIME];
    !others.contains(&number)
}

fn group_section(groups: &[EventGroup]) -> Option<Vec<u8>> {
    let count = u32::try_from(groups.len()).ok().filter(|n| *n > 0)?;
    let mut out = count.to_ne_bytes().to_vec();
    for group in groups {
        push_string(&mut out, group.name.as_bytes());
        out.extend_from_slice(&group.leader.to_ne_bytes());
        out.extend_from_slice(&group.len.to_ne_bytes());
    }
    Some(out)
}

/// The names of the events, which come in the order of their attributes or with ids to find them by.
fn read_names(
    mut cursor: SectionCursor<'_>,
    events: &mut [RecordedEvent],
    order: ByteOrder,
) -> Result<()> {
    let count = cursor.u32()?;
    let attr_size = cursor.u32()? as usize;
    for i in 0..count {
        let attr = EventAttr::read(cursor.bytes(attr_size)?, order)?;
        let ids = cursor.u32()? as usize;
        let name = cursor.string()?;
        let ids = cursor.bytes(ids.checked_mul(8).ok_or_else(|| cursor.error())?)?;
        let first = u64_at(ids, 0).map(|id| order.u64(id));
        let by_id = first.and_then(|id| events.iter().position(|e| e.ids().contains(&id)));
        let place = by_id.or(Some(i as usize).filter(|i| {
            let same = |e: &RecordedEvent| {
                (e.attr().event_type(), e.attr().config()) == (attr.event_type(), attr.config())
            };
            first.is_none() && events.get(*i).is_some_and(same)
        }));
        if let Some(event) = place.and_then(|i| events.get_mut(i)) {
            event.set_name(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuildIdOwner;

    fn event(config: u64, ids: &[u64], name: &str) -> RecordedEvent {
        let mut attr = vec![0; 72];
        attr[4..8].copy_from_slice(&72u32.to_ne_bytes());
        attr[8..16].copy_from_slice(&config.to_ne_bytes());
        let attr = EventAttr::from_bytes(&attr).expect("good");
        RecordedEvent::new(attr, ids.to_vec(), name)
    }

    fn full() -> Features {
        let text = |text: &str| Some(text.to_owned());
        Features {
            tracing_data: Some(vec![1, 2, 3]),
            build_ids: vec![
                BuildId {
                    owner: BuildIdOwner::Kernel,
                    id: vec![7; 20],
                    path: b"[kernel.kallsyms]".to_vec(),
                },
                BuildId {
                    owner: BuildIdOwner::User,
                    id: vec![9; 8],
                    path: vec![b'x'; 100],
                },
            ],
            host_name: text("host"),
            os_release: text("6.1"),
            version: text("1"),
            arch: text("x86_64"),
            cpus: Some((8, 4)),
            cpu_description: text("a CPU"),
            cpu_id: text("GenuineIntel,6,1,2"),
            total_memory: Some(1 << 20),
            command_line: vec!["quipu".into(), "record".into(), String::new()],
            cpu_topology: Some(CpuTopology::default()),
            numa_nodes: vec![NumaNode {
                node: 1,
                total: 2,
                free: 1,
                cpus: "0-7".into(),
            }],
            pmus: vec![(1, "software".into()), (4, "cpu".into())],
            caches: vec![CpuCache {
                level: 1,
                line_size: 64,
                sets: 128,
                ways: 8,
                kind: "Data".into(),
                size: "64K".into(),
                cpus: "0-1".into(),
            }],
            groups: vec![EventGroup::new(0, 2)],
            has_counts: true,
            memory: Some(MemoryTopology::default()),
            sample_time: Some((3, 4)),
            compression: Some(Compression {
                level: 1,
                ratio: 4,
                longest: 9,
            }),
            has_branches: true,
            ..Features::default()
        }
    }

    #[test]
    fn features_come_back() {
        let events = [event(1, &[5, 6], "a"), event(2, &[7], "b")];
        let sections = full().sections(&events);
        assert!(sections.is_sorted_by_key(|(number, _)| *number));
        let mut nameless: Vec<_> = events
            .iter()
            .map(|e| RecordedEvent::nameless(e.attr().clone(), e.ids().to_vec()))
            .collect();
        let mut features = Features::default();
        for (number, section) in &sections {
            features
                .read(*number, section, &mut nameless, ByteOrder::Native)
                .expect("good");
        }
        assert_eq!(features, full());
        assert_eq!(nameless, events);
    }

    #[test]
    fn nothing_to_tell_is_no_section() {
        assert_eq!(Features::default().sections(&[]), []);
    }

    #[test]
    fn sections_that_end_too_early_are_errors() {
        for (number, section) in full().sections(&[event(1, &[5], "a")]) {
            if number == number::TRACING_DATA {
                continue;
            }
            for len in 0..section.len() {
                // A build id and all before it are whole again where one ends.
                let whole = number == number::BUILD_ID && (len == 0 || len == 100);
                let taken =
                    Features::default().read(number, &section[..len], &mut [], ByteOrder::Native);
                assert_eq!(taken.is_ok(), whole, "{number} {len}");
            }
        }
    }

    /// The numbers of `tools/perf/util/header.h`, from `HEADER_TRACING_DATA` on, and of simpleperf's `record_file_format.h`.
    #[test]
    fn sections_that_are_left_out_have_the_names_of_perf() {
        const OTHER: &str = "another feature";
        let of_perf = "TRACING_DATA BUILD_ID HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC CPUID TOTAL_MEM \
            CMDLINE EVENT_DESC CPU_TOPOLOGY NUMA_TOPOLOGY BRANCH_STACK PMU_MAPPINGS GROUP_DESC AUXTRACE STAT CACHE \
            SAMPLE_TIME MEM_TOPOLOGY - - BPF_PROG_INFO BPF_BTF COMPRESSED CPU_PMU_CAPS - HYBRID_TOPOLOGY PMU_CAPS";
        let of_perf = of_perf.split_whitespace().map(|name| match name {
            "-" => OTHER.to_owned(),
            name => format!("HEADER_{name}"),
        });
        let of_simpleperf = ["FEAT_FILE", "FEAT_META_INFO", OTHER, OTHER, "FEAT_FILE2"];
        let expected: Vec<_> = (1..)
            .zip(of_perf)
            .chain((128..).zip(of_simpleperf.map(str::to_owned)))
            .collect();
        let mut features = Features::default();
        for (number, _) in &expected {
            features.leave_out(*number, u64::from(*number) << 8);
        }
        for ((number, expected), (name, offset)) in expected.iter().zip(features.left_out) {
            assert_eq!((name, offset), (expected.as_str(), u64::from(*number) << 8));
        }
    }

    #[test]
    fn counts_that_cannot_be_true_are_errors() {
        let huge = [255; 64];
        for number in [
            number::COMMAND_LINE,
            number::EVENT_DESC,
            number::BUILD_ID,
            number::GROUP_DESC,
            number::CPU_TOPOLOGY,
            number::NUMA_TOPOLOGY,
            number::PMU_MAPPINGS,
            number::HYBRID_TOPOLOGY,
            number::CPU_PMU_CAPS,
            number::PMU_CAPS,
            number::BPF_PROG_INFO,
            number::BPF_BTF,
            number::FILE,
            number::FILE2,
            number::META_INFO,
        ] {
            let taken = Features::default().read(number, &huge, &mut [], ByteOrder::Native);
            assert!(taken.is_err(), "{number}");
        }
        // Sections of a later perf are none of ours.
        assert!(
            Features::default()
                .read(127, &huge, &mut [], ByteOrder::Native)
                .is_ok()
        );
    }
}
