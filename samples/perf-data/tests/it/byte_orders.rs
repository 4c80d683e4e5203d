//! Files of a machine of the other byte order: every record reads as the one that this machine would have written.

use std::io::Cursor;

use crate::forms::{Out, file_with, record};
use quipu_perf_data::record::kind;
use quipu_perf_data::{Reader, SampleType};

const HW_INDEX_AND_COUNTERS: u64 = 1 << 17 | 1 << 19;
const USER_REGISTERS: u64 = 0b101;
const INTERRUPT_REGISTERS: u64 = 1 << 40;

/// The attributes of an event that its records depend on.
#[derive(Debug, Clone, Copy)]
struct Event {
    sample_type: u64,
    read_format: u64,
    branches: u64,
}

/// Every field of `struct perf_event_attr`, with numbers that differ.
fn attr(swapped: bool, event: Event) -> Vec<u8> {
    let out = Out::new(swapped)
        .u32(1)
        .u32(144)
        .words(&[2, 3, event.sample_type, event.read_format])
        .bits(&[(0, 18), (1, 1), (0, 45)]) // sample_id_all
        .u32(4)
        .u32(5)
        .words(&[6, 7, event.branches, USER_REGISTERS])
        .u32(8)
        .u32(9)
        .words(&[INTERRUPT_REGISTERS])
        .u32(10)
        .u16(11)
        .u16(12);
    out.u32(13).u32(14).words(&[15, 16, 17]).bytes
}

/// A counter's values by its `read_format`.
fn values(out: Out, format: u64) -> Out {
    let has = |bit: u32| format >> bit & 1 != 0;
    let of_counter = |out: Out, value| {
        let out = out.u64(value);
        let out = if has(2) { out.u64(value + 1) } else { out };
        if has(4) { out.u64(value + 2) } else { out }
    };
    let times = |out: Out| {
        let out = if has(0) { out.u64(100) } else { out };
        if has(1) { out.u64(90) } else { out }
    };
    if has(3) {
        return of_counter(of_counter(times(out.u64(2)), 1000), 2000);
    }
    let more = [has(2), has(4)].iter().filter(|has| **has).count() as u64;
    let out = times(out.u64(1000));
    (1..=more).fold(out, |out, more| out.u64(1000 + more))
}

fn branches(out: Out, what: u64) -> Out {
    let count = 2;
    let out = out.u64(count);
    let out = if what >> 17 & 1 != 0 { out.u64(5) } else { out };
    let out = (0..count).fold(out, |out, i| {
        out.words(&[0xa000 + i, 0xb000 + i]).bits(&[
            (i, 1),
            (1 - i, 1),
            (i, 1),
            (0, 1),
            (0x1234 + i, 16),
            (9, 4),
            (2, 2),
            (5, 4),
            (3, 3),
            (0, 31),
        ])
    });
    match what >> 19 & 1 {
        0 => out,
        _ => out.words(&[77, 78]),
    }
}

/// A sample with the fields of its event, in the order of perf_event_open(2).
fn sample(swapped: bool, event: Event) -> Vec<u8> {
    let mut out = Out::new(swapped);
    let mut put = |of: SampleType, field: &dyn Fn(Out) -> Out| {
        if event.sample_type & of.bits() != 0 {
            let before = std::mem::replace(&mut out, Out::new(swapped));
            out = field(before);
        }
    };
    use SampleType as S;
    put(S::IDENTIFIER, &|out| out.u64(41));
    put(S::IP, &|out| out.u64(0x1000));
    put(S::TID, &|out| out.u32(7).u32(8));
    put(S::TIME, &|out| out.u64(12));
    put(S::ADDR, &|out| out.u64(0x2000));
    put(S::ID, &|out| out.u64(41));
    put(S::STREAM_ID, &|out| out.u64(42));
    put(S::CPU, &|out| out.u32(3).u32(0));
    put(S::PERIOD, &|out| out.u64(4));
    put(S::READ, &|out| values(out, event.read_format));
    put(S::CALLCHAIN, &|out| out.words(&[2, 0x1000, 0x1100]));
    put(S::RAW, &|out| out.u32(12).bytes(b"as they are!"));
    put(S::BRANCH_STACK, &|out| branches(out, event.branches));
    put(S::REGS_USER, &|out| out.words(&[2, 20, 22]));
    put(S::STACK_USER, &|out| out.u64(8).bytes(b"stack---").u64(5));
    put(S::WEIGHT | S::WEIGHT_STRUCT, &|out| {
        out.u64(33 << 48 | 34 << 32 | 35)
    });
    put(S::DATA_SRC, &|out| out.u64(2));
    put(S::TRANSACTION, &|out| out.u64(3 << 32 | 2));
    put(S::REGS_INTR, &|out| out.words(&[1, 40]));
    put(S::PHYS_ADDR, &|out| out.u64(0x3000));
    put(S::CGROUP, &|out| out.u64(44));
    put(S::DATA_PAGE_SIZE, &|out| out.u64(4096));
    put(S::CODE_PAGE_SIZE, &|out| out.u64(2 << 20));
    put(S::AUX, &|out| out.u64(3).bytes(b"aux"));
    record(swapped, kind::SAMPLE, 2, &out)
}

/// A record of each other type, with the trailer of its event.
fn others(swapped: bool, event: Event) -> Vec<Vec<u8>> {
    let new = || Out::new(swapped);
    let thread = || new().u32(7).u32(8);
    let mapped = || thread().words(&[0x1000, 0x2000, 0x3000]);
    let text = b"text\0\0\0\0";
    let task = || new().u32(7).u32(8).u32(9).u32(10).u64(11);
    let has = |of: SampleType| event.sample_type & of.bits() != 0;
    let trailer = |mut out: Out| {
        if has(SampleType::TID) {
            out = out.u32(7).u32(8);
        }
        for (of, word) in [
            (SampleType::TIME, 12),
            (SampleType::ID, 41),
            (SampleType::STREAM_ID, 42),
        ] {
            out = if has(of) { out.u64(word) } else { out };
        }
        if has(SampleType::CPU) {
            out = out.u32(3).u32(0);
        }
        if has(SampleType::IDENTIFIER) {
            out.u64(41)
        } else {
            out
        }
    };
    let inode = mapped().u32(8).u32(1).words(&[77, 3]).u32(5).u32(2);
    let build_id = mapped().bytes(&[20, 0, 0, 0]).bytes(&[9; 20]);
    [
        (kind::MMAP, 0, mapped().bytes(text)),
        (kind::MMAP2, 0, inode.bytes(text)),
        (kind::MMAP2, 1 << 14, build_id.u32(5).u32(2).bytes(text)),
        (kind::LOST, 0, new().words(&[1, 44])),
        (kind::COMM, 1 << 13, thread().bytes(text)),
        (kind::EXIT, 0, task()),
        (kind::FORK, 0, task()),
        (kind::THROTTLE, 0, new().words(&[99, 1, 2])),
        (kind::UNTHROTTLE, 0, new().words(&[99, 1, 2])),
        (kind::READ, 0, values(thread(), event.read_format)),
        (kind::AUX, 0, new().words(&[4096, 100, 5])),
        (kind::ITRACE_START, 0, thread()),
        (kind::LOST_SAMPLES, 0, new().u64(45)),
        (kind::SWITCH, 1 << 13, new()),
        (kind::SWITCH_CPU_WIDE, 0, thread()),
        (kind::NAMESPACES, 0, thread().u64(2).words(&[1, 2, 3, 4])),
        (
            kind::KSYMBOL,
            0,
            new().u64(0x1000).u32(64).u16(1).u16(2).bytes(text),
        ),
        (
            kind::BPF_EVENT,
            0,
            new().u16(1).u16(2).u32(5).bytes(b"tagtagta"),
        ),
        (kind::CGROUP, 0, new().u64(7).bytes(text)),
        (
            kind::TEXT_POKE,
            0,
            new().u64(0x1000).u16(2).u16(3).bytes(b"oonnn\0\0\0"),
        ),
        (kind::AUX_OUTPUT_HW_ID, 0, new().u64(6)),
        (
            kind::CALLCHAIN_DEFERRED,
            0,
            new().words(&[77, 2, 0x1000, 0x1100]),
        ),
    ]
    .map(|(of, misc, body)| record(swapped, of, misc, &trailer(body)))
    .to_vec()
}

/// Records of counts, which have no trailer.
fn counts(swapped: bool) -> Vec<Vec<u8>> {
    let new = || Out::new(swapped);
    let name = [&b"sleep"[..], &[0; 11]].concat();
    [
        (
            kind::THREAD_MAP,
            new().words(&[2, 12]).bytes(&name).u64(13).bytes(&name),
        ),
        // A list, masks of words of either size, and a range.
        (kind::CPU_MAP, new().u16(0).u16(2).u16(0).u16(4)),
        (
            kind::CPU_MAP,
            new().u16(1).u16(1).u16(8).u32(0).u64(0xf1).bytes(&[0; 6]),
        ),
        (
            kind::CPU_MAP,
            new().u16(1).u16(2).u16(4).u32(0xf1).u32(1).u16(0),
        ),
        (kind::CPU_MAP, new().u16(2).bytes(&[1, 0]).u16(3).u16(6)),
        (kind::STAT_CONFIG, new().words(&[1, 0, 1])),
        (kind::STAT, new().u64(41).u32(1).u32(2).words(&[5, 7, 6])),
        (kind::STAT_ROUND, new().words(&[1, 9])),
        (
            kind::EVENT_UPDATE,
            new().words(&[1, 41]).u64(0.5f64.to_bits()),
        ),
        (
            kind::EVENT_UPDATE,
            new().words(&[2, 41]).bytes(b"a name!\0"),
        ),
    ]
    .map(|(of, body)| record(swapped, of, 0, &body))
    .to_vec()
}

/// Checks that the records of a file of the other byte order are these.
fn check(event: Event, records: impl Fn(bool) -> Vec<Vec<u8>>) {
    let foreign = file_with(true, &attr(true, event), &records(true).concat(), &[]);
    let mut reader = Reader::new(Cursor::new(foreign)).expect("a file");
    assert_eq!(reader.events()[0].attr().bytes(), attr(false, event));
    let mut read = reader.records().expect("seeks");
    for expected in records(false) {
        let record = read.next_record().expect("good").expect("a record");
        assert_eq!(
            record.bytes(),
            expected,
            "{event:?}, type {}",
            record.kind()
        );
    }
    assert!(read.next_record().expect("good").is_none());
}

#[test]
fn records_of_the_other_byte_order_become_those_of_this_machine() {
    let all = SampleType::all() - SampleType::WEIGHT_STRUCT;
    let alone = SampleType::all().iter();
    let types = [all, SampleType::all() - SampleType::WEIGHT];
    for sample_type in types.into_iter().chain(alone) {
        for read_format in [0, 0b11111, 0b10111, 0b01000, 0b00100, 0b10011] {
            for branches in [0, 1 << 17, HW_INDEX_AND_COUNTERS] {
                let event = Event {
                    sample_type: sample_type.bits(),
                    read_format,
                    branches,
                };
                check(event, |swapped| {
                    let sample = sample(swapped, event);
                    [vec![sample], others(swapped, event), counts(swapped)].concat()
                });
            }
        }
    }
}

/// Registers of a thread that has none, a stack and branches that are empty.
#[test]
fn fields_that_are_left_out_are_not_looked_for() {
    let event = Event {
        sample_type: (SampleType::BRANCH_STACK
            | SampleType::REGS_USER
            | SampleType::STACK_USER
            | SampleType::PHYS_ADDR)
            .bits(),
        read_format: 0,
        branches: HW_INDEX_AND_COUNTERS,
    };
    check(event, |swapped| {
        let out = Out::new(swapped).words(&[0, 0, 0, 0x3000]);
        vec![record(swapped, kind::SAMPLE, 2, &out)]
    });
}
