//! Records that Linux did not write: what was there before the recording began, and what another system has sampled.
//!
//! Each is in the kernel's layout (`include/uapi/linux/perf_event.h`), with `trailer` bytes of zeros
//! where `sample_id_all` puts ids and time: readers take time 0 for "before everything else". [`stamp`] writes others.

use crate::record::{HEADER_LEN, Misc, kind};
use crate::{RecordLayout, SampleId, SampleType};

/// A mapping of memory.
///
/// Exhaustive: these are the fields of `PERF_RECORD_MMAP2`. With a build ID the record has that in place of the device and the
/// inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapping<'a> {
    /// The first address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset of its start in the file, in bytes.
    pub offset: u64,
    /// The file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub inode: u64,
    /// The file's build ID, of 20 bytes at most.
    pub build_id: Option<&'a [u8]>,
    /// `PROT_*` of mmap(2).
    pub protection: u32,
    /// `MAP_*` of mmap(2).
    pub flags: u32,
    /// The file's path, or a name in brackets.
    pub path: &'a [u8],
}

/// A record that is being put together.
struct Draft(Vec<u8>);

impl Draft {
    fn new(kind: u32, misc: Misc) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&misc.0.to_ne_bytes());
        bytes.extend_from_slice(&[0; 2]);
        Self(bytes)
    }

    fn ids(mut self, ids: &[i32]) -> Self {
        for id in ids {
            self.0.extend_from_slice(&id.to_ne_bytes());
        }
        self
    }

    fn words(mut self, words: &[u64]) -> Self {
        for word in words {
            self.0.extend_from_slice(&word.to_ne_bytes());
        }
        self
    }

    /// The record with text at its end, cut where it would be longer than a path can be.
    fn end(mut self, text: &[u8], trailer: usize) -> Vec<u8> {
        const LONGEST_PATH: usize = 4095;
        self.0
            .extend_from_slice(text.get(..LONGEST_PATH).unwrap_or(text));
        let padded = (self.0.len() + 1).next_multiple_of(8);
        self.0.resize(padded, 0);
        self.close(trailer)
    }

    fn close(mut self, trailer: usize) -> Vec<u8> {
        let len = self.0.len() + trailer.min(256);
        self.0.resize(len, 0);
        // At most a path, fixed fields and 256 bytes of trailer.
        let size = (len as u16).to_ne_bytes();
        self.0[HEADER_LEN - 2..HEADER_LEN].copy_from_slice(&size);
        self.0
    }
}

/// `PERF_RECORD_COMM`: a thread has a name.
pub fn comm(pid: i32, tid: i32, name: &[u8], trailer: usize) -> Vec<u8> {
    Draft::new(kind::COMM, Misc::default())
        .ids(&[pid, tid])
        .end(name, trailer)
}

/// `PERF_RECORD_COMM` with `PERF_RECORD_MISC_COMM_EXEC`: a process has executed a program of this name.
pub fn exec(pid: i32, name: &[u8], trailer: usize) -> Vec<u8> {
    Draft::new(kind::COMM, Misc(Misc::BIT_13))
        .ids(&[pid, pid])
        .end(name, trailer)
}

/// `PERF_RECORD_FORK`: a thread belongs to a process.
pub fn fork(pid: i32, parent: i32, tid: i32, parent_tid: i32, trailer: usize) -> Vec<u8> {
    Draft::new(kind::FORK, Misc::default())
        .ids(&[pid, parent, tid, parent_tid])
        .words(&[0])
        .close(trailer)
}

/// `PERF_RECORD_EXIT`: a process has ended.
pub fn exit(pid: i32, trailer: usize) -> Vec<u8> {
    // Its parent is not known.
    Draft::new(kind::EXIT, Misc::default())
        .ids(&[pid, 0, pid, 0])
        .words(&[0])
        .close(trailer)
}

/// Writes ids and a time into the trailer of a record that has one of this layout.
pub fn stamp(record: &mut [u8], layout: &RecordLayout, id: &SampleId) {
    let fields = Fields {
        id: *id,
        ..Fields::default()
    };
    let trailer = fields.bytes(layout.sample_type() & SampleType::TRAILER, Identifier::Last);
    if let Some(at) = record.len().checked_sub(trailer.len()) {
        record[at..].copy_from_slice(&trailer);
    }
}

/// Fields of a sample.
///
/// Exhaustive: [`sample`] writes these.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// The mode that was interrupted.
    pub misc: Misc,
    /// The thread, the time, the CPU, and the counter.
    pub id: SampleId,
    /// The address of the instruction.
    pub ip: u64,
    /// The number of events it stands for.
    pub period: u64,
    /// The call chain, with marks of the mode of what follows (`PERF_CONTEXT_*`).
    pub chain: &'a [u64],
}

/// `PERF_RECORD_SAMPLE`, of the fields that a layout has and that are known here.
pub fn sample(layout: &RecordLayout, fields: &Fields<'_>) -> Vec<u8> {
    let words = fields.bytes(layout.sample_type(), Identifier::First);
    let mut draft = Draft::new(kind::SAMPLE, fields.misc);
    draft.0.extend_from_slice(&words);
    draft.close(0)
}

/// Place of the identifier: in samples it is before the other fields, and in trailers behind them.
#[derive(Clone, Copy)]
enum Identifier {
    First,
    Last,
}

impl Fields<'_> {
    /// The fields of a type in their order.
    fn bytes(&self, fields: SampleType, identifier: Identifier) -> Vec<u8> {
        type S = SampleType;
        let pair = |low: [u8; 4], high: [u8; 4]| {
            let ([a, b, c, d], [e, f, g, h]) = (low, high);
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        let id = self.id;
        let counter = id.id.unwrap_or(0);
        let thread = id.thread.map_or([0, 0], |thread| [thread.pid, thread.tid]);
        let [pid, tid] = thread.map(i32::to_ne_bytes);
        let one = [
            (S::IP, self.ip),
            (S::TID, pair(pid, tid)),
            (S::TIME, id.time.unwrap_or(0)),
            (S::ID, counter),
            (S::STREAM_ID, id.stream_id.unwrap_or(counter)),
            (S::CPU, pair(id.cpu.unwrap_or(0).to_ne_bytes(), [0; 4])),
            (S::PERIOD, self.period),
        ];
        let mut words: Vec<u64> = one
            .into_iter()
            .filter(|(field, _)| fields.contains(*field))
            .map(|(_, word)| word)
            .collect();
        if fields.contains(S::CALLCHAIN) {
            words.push(self.chain.len() as u64);
            words.extend(self.chain);
        }
        if fields.contains(S::IDENTIFIER) {
            match identifier {
                Identifier::First => words.insert(0, counter),
                Identifier::Last => words.push(counter),
            }
        }
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// `PERF_RECORD_EVENT_UPDATE`: the event that has a counter of this id has a name. Features have it, too, but are
/// written last: of a recording that was killed, a reader knows the events whose names come before all other
/// records.
pub fn event_name(id: u64, name: &str) -> Vec<u8> {
    Draft::new(kind::EVENT_UPDATE, Misc::default())
        .words(&[NAME, id])
        .end(name.as_bytes(), 0)
}

/// `PERF_EVENT_UPDATE__NAME` (`tools/lib/perf/include/perf/event.h`).
pub(crate) const NAME: u64 = 2;

/// `PERF_RECORD_LOST_SAMPLES`: so many samples of the counter with this id were lost until the end of the
/// recording, as the counter itself says (`PERF_FORMAT_LOST`).
pub fn lost_samples(count: u64, layout: &RecordLayout, id: u64) -> Vec<u8> {
    let is_id = |field| field == SampleType::ID || field == SampleType::IDENTIFIER;
    let fields = layout.sample_type() & SampleType::TRAILER;
    let fields = fields.iter().filter(|_| layout.sample_id_all());
    // In the order of the trailer, in which the identifier is last, as in `sample_type`.
    let trailer: Vec<u64> = fields
        .map(|field| if is_id(field) { id } else { 0 })
        .collect();
    Draft::new(kind::LOST_SAMPLES, Misc::default())
        .words(&[count])
        .words(&trailer)
        .close(0)
}

/// `PERF_RECORD_MMAP2` of a process, of data where it is not executable (`PERF_RECORD_MISC_MMAP_DATA`).
pub fn mmap2(pid: i32, tid: i32, mapping: &Mapping<'_>, trailer: usize) -> Vec<u8> {
    let word = |low: u32, high: u32| {
        let (low, high) = (low.to_ne_bytes(), high.to_ne_bytes());
        let [a, b, c, d] = low;
        let [e, f, g, h] = high;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    };
    const PROT_EXEC: u32 = 4;
    const LONGEST_ID: usize = 20;
    let (major, minor) = mapping.device;
    let id = mapping.build_id.filter(|id| id.len() <= LONGEST_ID);
    let identity = match id {
        Some(id) => {
            // The length, three bytes that mean nothing, and the ID.
            let mut bytes = [0; 24];
            bytes[0] = id.len() as u8;
            bytes[4..4 + id.len()].copy_from_slice(id);
            let words = bytes.chunks_exact(8);
            let mut words = words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
            std::array::from_fn(|_| words.next().unwrap_or_default())
        }
        None => [word(major, minor), mapping.inode, 0],
    };
    let mut misc = Misc::USER;
    if mapping.protection & PROT_EXEC == 0 {
        misc.0 |= Misc::BIT_13;
    }
    if id.is_some() {
        misc.0 |= Misc::BIT_14;
    }
    Draft::new(kind::MMAP2, misc)
        .ids(&[pid, tid])
        .words(&[mapping.start, mapping.len, mapping.offset])
        .words(&identity)
        .words(&[word(mapping.protection, mapping.flags)])
        .end(mapping.path, trailer)
}

/// `PERF_RECORD_MMAP` of the kernel itself: from `start` to the end of the address space or the first
/// module, with the address of the symbol `reference`, by which readers see where the kernel was.
pub fn kernel(start: u64, len: u64, reference: &[u8], address: u64, trailer: usize) -> Vec<u8> {
    let path = [b"[kernel.kallsyms]", reference].concat();
    kernel_mapping(start, len, address, &path, trailer)
}

/// `PERF_RECORD_MMAP` of a kernel module, by its name in brackets or its path; from an offset in its file other than 0 on it is the
/// section of the file that begins there, as quipu records those of FreeBSD.
pub fn kernel_module(start: u64, len: u64, offset: u64, name: &[u8], trailer: usize) -> Vec<u8> {
    kernel_mapping(start, len, offset, name, trailer)
}

/// `PERF_RECORD_KSYMBOL`: a BPF program, or a trampoline of such, is in the kernel's memory.
pub fn bpf_symbol(start: u64, len: u32, name: &[u8], trailer: usize) -> Vec<u8> {
    /// `PERF_RECORD_KSYMBOL_TYPE_BPF`.
    const BPF: u16 = 1;
    let ([a, b, c, d], [e, f]) = (len.to_ne_bytes(), BPF.to_ne_bytes());
    let word = u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]);
    Draft::new(kind::KSYMBOL, Misc::default())
        .words(&[start, word])
        .end(name, trailer)
}

fn kernel_mapping(start: u64, len: u64, offset: u64, path: &[u8], trailer: usize) -> Vec<u8> {
    /// The pid by which records mean the host's kernel (`HOST_KERNEL_ID`).
    const HOST: i32 = -1;
    Draft::new(kind::MMAP, Misc::KERNEL)
        .ids(&[HOST, 0])
        .words(&[start, len, offset])
        .end(path, trailer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawRecord;
    use crate::bytes::{u32_at, u64_at};
    use crate::record::{FileIdentity, KsymbolKind, Record};
    use crate::text::until_nul;

    #[test]
    fn records_are_in_the_kernels_layout() {
        let mapping = Mapping {
            start: 0x1000,
            len: 0x2000,
            offset: 0x3000,
            device: (8, 1),
            inode: 77,
            build_id: None,
            protection: 5,
            flags: 2,
            path: b"/bin/true",
        };
        let bytes = mmap2(3, 4, &mapping, 16);
        let record = RawRecord::at_start(&bytes).expect("whole");
        assert_eq!(record.bytes().len(), bytes.len());
        assert_eq!((record.kind(), record.misc()), (kind::MMAP2, Misc::USER));
        let body = record.body();
        let ids = [u32_at(body, 0), u32_at(body, 4)];
        assert_eq!(ids, [Some(3), Some(4)]);
        let words: Vec<_> = (1..4).filter_map(|i| u64_at(body, 8 * i)).collect();
        assert_eq!(words, [0x1000, 0x2000, 0x3000]);
        let device = [u32_at(body, 32), u32_at(body, 36)];
        assert_eq!((device, u64_at(body, 40)), ([Some(8), Some(1)], Some(77)));
        let rights = [u32_at(body, 56), u32_at(body, 60)];
        assert_eq!(rights, [Some(5), Some(2)]);
        assert_eq!(until_nul(&body[64..]), b"/bin/true");
        assert_eq!(body.len(), 64 + 16 + 16);

        let layout = RecordLayout::new(SampleType::IP);
        let with_id = Mapping {
            build_id: Some(&[9; 16]),
            ..mapping
        };
        let bytes = mmap2(3, 4, &with_id, 0);
        let record = RawRecord::at_start(&bytes).expect("whole");
        let Ok(Record::Mapping(mapping)) = record.decode(&layout) else {
            panic!("{record:?}");
        };
        assert_eq!(mapping.file, Some(FileIdentity::BuildId(&[9; 16])));
        assert_eq!((mapping.path, mapping.is_data), (&b"/bin/true"[..], false));
        let bytes = bpf_symbol(0x1000, 64, b"bpf_prog_1", 0);
        let record = RawRecord::at_start(&bytes).expect("whole");
        let Ok(Record::Ksymbol(symbol)) = record.decode(&layout) else {
            panic!("{record:?}");
        };
        let expected = (0x1000, 64, KsymbolKind::Bpf, false, &b"bpf_prog_1"[..]);
        let found = (
            symbol.address,
            symbol.len,
            symbol.kind,
            symbol.is_removed,
            symbol.name,
        );
        assert_eq!(found, expected);

        let bytes = comm(3, 4, b"sixteen_letters_", 0);
        assert_eq!(bytes.len(), 8 + 8 + 24);
        let bytes = fork(3, 1, 4, 1, 8);
        assert_eq!(bytes.len(), 8 + 16 + 8 + 8);
        let bytes = event_name(7, "sched:sched_switch");
        assert_eq!(bytes.len(), 8 + 16 + 24);
        let body = RawRecord::at_start(&bytes).expect("whole").body();
        assert_eq!([u64_at(body, 0), u64_at(body, 8)], [Some(2), Some(7)]);
        assert_eq!(until_nul(&body[16..]), b"sched:sched_switch");
        let layout = RecordLayout::new(SampleType::IP | SampleType::TIME | SampleType::IDENTIFIER);
        let bytes = lost_samples(5, &layout.with_sample_id_all(true), 9);
        let body = RawRecord::at_start(&bytes).expect("whole").body();
        let words: Vec<_> = (0..4).map(|i| u64_at(body, 8 * i)).collect();
        assert_eq!(words, [Some(5), Some(0), Some(9), None]);
        assert_eq!(lost_samples(5, &layout, 9).len(), 16);
        let bytes = kernel(1, 2, b"_text", 3, 0);
        let body = RawRecord::at_start(&bytes).expect("whole").body();
        assert_eq!(u32_at(body, 0), Some(u32::MAX));
        assert_eq!(until_nul(&body[32..]), b"[kernel.kallsyms]_text");
    }

    #[test]
    fn samples_and_trailers_are_read_as_they_were_written() {
        use crate::ThreadId;
        type S = SampleType;
        let (pid, tid) = (7, 100_009);
        let id = SampleId {
            thread: Some(ThreadId { pid, tid }),
            time: Some(5_000),
            id: Some(2),
            stream_id: None,
            cpu: Some(3),
        };
        let user = -512_i64 as u64;
        let chain = [user, 0x1000, 0x2000];
        let fields = Fields {
            misc: Misc::USER,
            id,
            ip: 0x1000,
            period: 100_003,
            chain: &chain,
        };
        let some = S::IP | S::TID | S::TIME | S::CPU | S::PERIOD;
        for sample_type in [
            some,
            some | S::IDENTIFIER | S::CALLCHAIN,
            some | S::ID | S::STREAM_ID,
        ] {
            let layout = RecordLayout::new(sample_type).with_sample_id_all(true);
            let bytes = sample(&layout, &fields);
            let record = RawRecord::at_start(&bytes).expect("whole");
            let read = record.decode_sample(&layout).expect("of the layout");
            let read = read.expect("a sample");
            assert_eq!((read.ip(), read.thread()), (Some(0x1000), id.thread));
            assert_eq!((read.time(), read.cpu()), (Some(5_000), Some(3)));
            assert_eq!(read.period(), Some(100_003));
            let has_id = sample_type.intersects(S::IDENTIFIER | S::ID);
            assert_eq!(read.id(), has_id.then_some(2));
            let entries = read
                .callchain()
                .map(|chain| chain.entries().iter().collect());
            let with_chain = sample_type.contains(S::CALLCHAIN);
            assert_eq!(entries, with_chain.then(|| chain.to_vec()));

            let trailer = 8 * (sample_type & S::TRAILER).bits().count_ones() as usize;
            let mut bytes = exec(pid, b"name", trailer);
            stamp(&mut bytes, &layout, &id);
            let record = RawRecord::at_start(&bytes).expect("whole");
            let stamped = record.sample_id(&layout).expect("a trailer");
            assert_eq!((stamped.thread, stamped.time), (id.thread, id.time));
            assert_eq!((stamped.cpu, stamped.id), (id.cpu, has_id.then_some(2)));
            let Ok(Record::Comm(comm)) = record.decode(&layout) else {
                panic!("{record:?}");
            };
            assert_eq!((comm.name, comm.is_exec), (&b"name"[..], true));
            let bytes = exit(pid, trailer);
            let record = RawRecord::at_start(&bytes).expect("whole");
            let Ok(Record::Exit(task)) = record.decode(&layout) else {
                panic!("{record:?}");
            };
            assert_eq!((task.thread.pid, task.thread.tid), (pid, pid));
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let bytes = comm(1, 1, &vec![b'x'; 1 << 20], 0);
        let record = RawRecord::at_start(&bytes).expect("whole");
        assert_eq!(record.bytes().len(), 8 + 8 + 4096);
    }
}
