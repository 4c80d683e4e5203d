//! The records of the driver's log (`sys/pmclog.h`), as FreeBSD 12 to 15 write those that are read here.

/// Bytes in the log that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRecord;

/// The bytes of a header: a word, padding, and the time.
const HEADER: usize = 16;
const MAGIC: u32 = 0xee;

/// The bytes of an address, in programs as in the kernel that they run on.
const ADDRESS: usize = size_of::<usize>();

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// `PMCLOG_TYPE_INITIALIZE`: the log begins.
    Begin {
        /// Ticks of its clock in a second.
        frequency: u64,
    },
    /// `PMCLOG_TYPE_CALLCHAIN`: a sample.
    Sample(RawSample<'a>),
    /// `PMCLOG_TYPE_PROCFORK`: a process that is sampled has a child, which is too.
    Fork { parent: i32, child: i32 },
    /// `PMCLOG_TYPE_PROCEXEC`: a process has executed a program.
    Exec { pid: i32, program: Program<'a> },
    /// `PMCLOG_TYPE_MAP_IN`: a file was mapped to be executed, or a file of the kernel was loaded, of which the process is -1.
    Map {
        pid: i32,
        start: u64,
        path: &'a [u8],
    },
    /// `PMCLOG_TYPE_PROCEXIT`, for each counter, and `PMCLOG_TYPE_SYSEXIT`: a process has ended.
    Exit { pid: i32 },
    /// `PMCLOG_TYPE_PROC_CREATE`: the name of a process.
    Process { pid: i32, name: &'a [u8] },
    /// `PMCLOG_TYPE_THR_CREATE`: the name of a thread.
    Thread { pid: i32, tid: i32, name: &'a [u8] },
    /// `PMCLOG_TYPE_USERDATA`: a mark that this process has set.
    Mark(u32),
    /// `PMCLOG_TYPE_DROPNOTIFY`: records were lost.
    Lost,
    /// Another one.
    Other,
}

/// A program that was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program<'a> {
    /// Its file; empty if the kernel does not know it.
    pub path: &'a [u8],
    /// The address at which the process was entered: in the program, or in the interpreter that starts it, the dynamic linker. With
    /// [`moved`](Self::moved) it is where the interpreter begins.
    pub address: u64,
    /// The number that is added to the addresses of its file, where the driver logs it.
    pub moved: Option<u64>,
}

/// A sample as it is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawSample<'a> {
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The id of the counter.
    pub(super) counter: u32,
    pub(super) cpu: u32,
    pub(super) in_kernel: bool,
    chain: &'a [u8],
}

impl RawSample<'_> {
    /// Returns the address of the instruction, and the addresses to which the calls return, the innermost first.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.chain.chunks_exact(ADDRESS);
        words.map(|word| address(word, 0).unwrap_or(0))
    }
}

/// A record with its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Logged<'a> {
    /// Ticks of the clock of the log.
    pub(super) ticks: u64,
    pub(super) record: Record<'a>,
    /// Its bytes in the log.
    pub(super) len: usize,
}

impl<'a> Logged<'a> {
    /// Reads the record at the start of some bytes; `None` if it is not there as a whole.
    pub(super) fn at_start(bytes: &'a [u8]) -> Result<Option<Self>, NoRecord> {
        let Some(head) = word(bytes, 0) else {
            return Ok(None);
        };
        let (magic, kind, len) = (head >> 24, head >> 16 & 0xff, (head & 0xffff) as usize);
        if magic != MAGIC || len < HEADER || len % 4 != 0 {
            return Err(NoRecord);
        }
        let Some(whole) = bytes.get(..len) else {
            return Ok(None);
        };
        let record = decode(kind, &whole[HEADER..]).ok_or(NoRecord)?;
        Ok(Some(Self {
            ticks: long(whole, 8).ok_or(NoRecord)?,
            record,
            len,
        }))
    }
}

/// Returns what a record of a kind (`enum pmclog_type`) says; `None` if it is too short.
fn decode(kind: u32, body: &[u8]) -> Option<Record<'_>> {
    let id = |at| word(body, at).map(u32::cast_signed);
    Some(match kind {
        // The version and the kind of CPU are before it.
        3 => Record::Begin {
            frequency: long(body, 8)?,
        },
        16 => {
            let chain = body.get(16..)?;
            // At least the instruction.
            if chain.len() < ADDRESS || chain.len() % ADDRESS != 0 {
                return None;
            }
            let flags = word(body, 12)?;
            Record::Sample(RawSample {
                pid: id(0)?,
                tid: id(4)?,
                counter: word(body, 8)?,
                cpu: flags >> 16,
                in_kernel: flags & USER_MODE == 0,
                chain,
            })
        }
        11 => Record::Fork {
            parent: id(0)?,
            child: id(4)?,
        },
        // The counter is behind the process.
        9 => Record::Exec {
            pid: id(0)?,
            program: program(body.get(8..)?)?,
        },
        14 => Record::Map {
            pid: id(0)?,
            start: address(body, 8)?,
            path: text(body.get(8 + ADDRESS..)?),
        },
        // The counter is before the process.
        10 => Record::Exit { pid: id(4)? },
        12 => Record::Exit { pid: id(0)? },
        20 => Record::Process {
            pid: id(0)?,
            name: text(body.get(8..)?),
        },
        18 => Record::Thread {
            tid: id(0)?,
            pid: id(4)?,
            name: text(body.get(16..)?),
        },
        13 => Record::Mark(word(body, 0)?),
        2 => Record::Lost,
        _ => Record::Other,
    })
}

/// Reads the addresses and the path of a program: later versions have two addresses, of which the second is that of a page, or 0.
fn program(bytes: &[u8]) -> Option<Program<'_>> {
    let first = address(bytes, 0)?;
    let rest = bytes.get(ADDRESS..)?;
    let has_one = rest.first() == Some(&b'/');
    let (moved, path) = match rest.split_at_checked(ADDRESS) {
        Some((_, path)) if !has_one && !path.is_empty() => (address(rest, 0), path),
        _ => (None, rest),
    };
    Some(Program {
        address: first,
        moved,
        path: text(path),
    })
}

/// Returns text up to the zero at its end.
fn text(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().position(|byte| *byte == 0);
    &bytes[..len.unwrap_or(bytes.len())]
}

/// `PMC_CC_F_USERSPACE` in the lower half of the flags.
const USER_MODE: u32 = 1;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn address(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + ADDRESS)?;
    Some(usize::from_ne_bytes(bytes.try_into().ok()?) as u64)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, body: &[u32]) -> Vec<u8> {
        let len = HEADER + 4 * body.len();
        let mut words = vec![MAGIC << 24 | kind << 16 | len as u32, 0, 7, 1];
        words.extend_from_slice(body);
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sample_has_its_thread_its_mode_and_its_chain() {
        let address = |low: u32| match ADDRESS {
            8 => vec![low, 0],
            _ => vec![low],
        };
        let chain = [address(0x1000), address(0x2000)].concat();
        let body = |flags| [vec![12, 13, 99, flags], chain.clone()].concat();
        for (flags, cpu, in_kernel) in [(3 << 16 | 1, 3, false), (5 << 16, 5, true)] {
            let bytes = record(16, &body(flags));
            let logged = Logged::at_start(&bytes).expect("a record").expect("whole");
            assert_eq!((logged.ticks, logged.len), (7 | 1 << 32, bytes.len()));
            let Record::Sample(sample) = logged.record else {
                panic!("{logged:?}");
            };
            let found = (sample.pid, sample.tid, sample.counter, sample.cpu);
            assert_eq!((found, sample.in_kernel), ((12, 13, 99, cpu), in_kernel));
            assert_eq!(sample.addresses().collect::<Vec<_>>(), [0x1000, 0x2000]);
            for end in 0..bytes.len() {
                assert_eq!(Logged::at_start(&bytes[..end]), Ok(None), "{end} bytes");
            }
        }
    }

    /// A record of numbers, addresses and text, as long as the driver makes it: text goes on to the end of a word.
    fn with_text(kind: u32, numbers: &[u32], addresses: &[usize], text: &str) -> Vec<u8> {
        let mut body: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        body.extend(addresses.iter().flat_map(|address| address.to_ne_bytes()));
        body.extend_from_slice(text.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(4), 0);
        let words = body.chunks_exact(4);
        let words: Vec<_> = words
            .map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))
            .collect();
        record(kind, &words)
    }

    #[test]
    fn programs_files_and_names_are_read() {
        let read = |bytes: &[u8]| {
            let logged = Logged::at_start(bytes).expect("a record").expect("whole");
            format!("{:?}", logged.record)
        };
        let is = |bytes: &[u8], record: Record<'_>| assert_eq!(read(bytes), format!("{record:?}"));
        let path = &b"/bin/sh"[..];
        for (addresses, moved) in [
            (&[0x40_1000][..], None),
            (&[0x1000, 0], Some(0)),
            (&[0x1000, 0x2f_2000], Some(0x2f_2000)),
        ] {
            let program = Program {
                address: addresses[0] as u64,
                moved,
                path,
            };
            let exec = with_text(9, &[7, u32::MAX], addresses, "/bin/sh");
            is(&exec, Record::Exec { pid: 7, program });
        }
        // The driver does not know every path.
        let program = Program {
            address: 5,
            moved: None,
            path: b"",
        };
        is(
            &with_text(9, &[7, 1], &[5], ""),
            Record::Exec { pid: 7, program },
        );
        let map = |pid| Record::Map {
            pid,
            start: 0x80_0000,
            path,
        };
        let all = u32::MAX;
        is(&with_text(14, &[7, 0], &[0x80_0000], "/bin/sh"), map(7));
        is(&with_text(14, &[all, 0], &[0x80_0000], "/bin/sh"), map(-1));
        let name = &b"intr"[..];
        is(
            &with_text(20, &[12, 0], &[], "intr"),
            Record::Process { pid: 12, name },
        );
        let thread = Record::Thread {
            pid: 12,
            tid: 100_007,
            name,
        };
        is(&with_text(18, &[100_007, 12, 0, 0], &[], "intr"), thread);
    }

    #[test]
    fn the_records_that_are_read() {
        let read = |bytes: &[u8]| Logged::at_start(bytes).map(|logged| logged.map(|l| l.len));
        let meaning = |bytes: &[u8]| match Logged::at_start(bytes) {
            Ok(Some(logged)) => format!("{:?}", logged.record),
            other => format!("{other:?}"),
        };
        assert_eq!(
            meaning(&record(3, &[0x0903_0000, 0x80, 1000, 0, 1, 2])),
            "Begin { frequency: 1000 }"
        );
        assert_eq!(
            meaning(&record(11, &[5, 6])),
            "Fork { parent: 5, child: 6 }"
        );
        assert_eq!(meaning(&record(13, &[8, 0])), "Mark(8)");
        assert_eq!(meaning(&record(2, &[])), "Lost");
        assert_eq!(meaning(&record(15, &[1, 0, 2, 3])), "Other");
        assert_eq!(meaning(&record(10, &[9, 6, 1, 2])), "Exit { pid: 6 }");
        assert_eq!(meaning(&record(12, &[6, 0])), "Exit { pid: 6 }");
        // Another magic number, a length that is none, and too little in it.
        let mut other = record(2, &[]);
        other[3] = 0xef;
        other[0] = if cfg!(target_endian = "big") {
            0xef
        } else {
            other[0]
        };
        assert_eq!(read(&other), Err(NoRecord));
        for (kind, body) in [
            (3, &[1][..]),
            (9, &[1, 2]),
            (11, &[5]),
            (13, &[]),
            (14, &[1, 2]),
            (16, &[1, 2, 3, 4]),
            (18, &[1, 2, 3]),
            (20, &[1]),
        ] {
            assert_eq!(read(&record(kind, body)), Err(NoRecord), "kind {kind}");
        }
        let short = MAGIC << 24 | 2 << 16 | 12;
        assert_eq!(read(&short.to_ne_bytes()), Err(NoRecord));
    }

    proptest! {
        #[test]
        fn no_bytes_are_read_beyond_a_record(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u32..24) {
            let mut bytes = bytes;
            let _ = Logged::at_start(&bytes);
            let len = bytes.len() / 4 * 4;
            if len >= HEADER {
                bytes[..4].copy_from_slice(&(MAGIC << 24 | kind << 16 | len as u32).to_ne_bytes());
                if let Ok(Some(logged)) = Logged::at_start(&bytes) {
                    prop_assert_eq!(logged.len, len);
                }
            }
        }
    }
}
