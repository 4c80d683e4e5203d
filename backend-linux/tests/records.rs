//! Records decoded from bytes: every type and every field, and bytes that are none.

mod encoding;

use encoding::{Bytes, record};
use quipu_hal::ErrorKind;
use quipu_linux::sampling::record::{
    AuxFlags, BpfChange, FileIdentity, KsymbolKind, NamespaceKind, SwitchDirection, kind,
};
use quipu_linux::sampling::{
    BranchSampleType, Context, CpuMode, DataSource, RawRecord, ReadFormat, Record, RecordLayout,
    Records, RegisterAbi, SampleId, SampleType, ThreadId, Transaction, Weight,
};

const THREAD: ThreadId = ThreadId { pid: 10, tid: 11 };

/// A layout of all there is; the weight is one number.
fn everything() -> RecordLayout {
    RecordLayout::new(SampleType::all() - SampleType::WEIGHT_STRUCT)
        .with_read_format(ReadFormat::all())
        .with_branches(BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS)
        .with_registers(0b101, 1 << 40)
        .with_sample_id_all(true)
}

/// A sample of that layout.
fn full_sample() -> Vec<u8> {
    let body = Bytes::new()
        .u64(1) // identifier
        .u64(0x1000) // ip
        .u32(10)
        .u32(11)
        .u64(12) // time
        .u64(0x2000) // address
        .u64(1) // id
        .u64(2) // stream id
        .u32(3) // CPU
        .u32(0)
        .u64(4) // period
        .u64(2) // values of a group of two
        .u64(100)
        .u64(90)
        .u64(50)
        .u64(1)
        .u64(0)
        .u64(60)
        .u64(2)
        .u64(7)
        .u64(3) // call chain
        .u64(-512_i64 as u64)
        .u64(0x1000)
        .u64(0x1100)
        .u32(4) // raw
        .bytes(b"rawd")
        .u64(1) // branch stack
        .u64(5)
        .u64(0xa)
        .u64(0xb)
        .u64(1)
        .u64(77)
        .u64(2) // user registers
        .u64(20)
        .u64(22)
        .u64(8) // user stack
        .bytes(b"stack---")
        .u64(5)
        .u64(33) // weight
        .u64(2) // data source
        .u64(3 << 32 | 2) // transaction
        .u64(1) // interrupt registers
        .u64(40)
        .u64(0x3000) // physical address
        .u64(44) // cgroup
        .u64(4096) // page sizes
        .u64(2 << 20)
        .u64(3) // AUX data
        .bytes(b"aux");
    record(kind::SAMPLE, 2 | 1 << 14, &body)
}

fn only(bytes: &[u8]) -> RawRecord<'_> {
    let record = RawRecord::at_start(bytes).expect("a record");
    assert_eq!(record.bytes().len(), bytes.len());
    record
}

#[test]
fn every_field_of_a_sample_is_where_the_kernel_puts_it() {
    let layout = everything();
    let bytes = full_sample();
    let Ok(Record::Sample(s)) = only(&bytes).decode(&layout) else {
        panic!("a sample");
    };
    assert_eq!(s.misc().cpu_mode(), CpuMode::User);
    assert!(s.misc().is_exact_ip());
    assert_eq!((s.id(), s.stream_id()), (Some(1), Some(2)));
    assert_eq!((s.ip(), s.addr()), (Some(0x1000), Some(0x2000)));
    assert_eq!((s.thread(), s.time()), (Some(THREAD), Some(12)));
    assert_eq!((s.cpu(), s.period()), (Some(3), Some(4)));
    let values = s.values().expect("there");
    let times = (values.time_enabled(), values.time_running());
    assert_eq!(times, (Some(100), Some(90)));
    let each: Vec<_> = values.iter().map(|c| (c.value, c.id, c.lost)).collect();
    assert_eq!(each, [(50, Some(1), Some(0)), (60, Some(2), Some(7))]);
    let chain = s.callchain().expect("there");
    let frames: Vec<_> = chain.frames().map(|f| (f.address, f.context)).collect();
    assert_eq!(frames, [(0x1000, Context::User), (0x1100, Context::User)]);
    assert_eq!(s.raw(), Some(&b"rawd"[..]));
    let branches = s.branches().expect("there");
    assert_eq!(branches.hw_index(), Some(5));
    let branch = branches.iter().next().expect("one");
    assert_eq!((branch.from, branch.to), (0xa, 0xb));
    assert!(cfg!(target_endian = "big") || branch.mispredicted());
    assert_eq!(branches.counters().and_then(|c| c.get(0)), Some(77));
    let registers = s.user_registers().expect("there");
    assert_eq!(registers.abi(), RegisterAbi::Bits64);
    let get = |r| registers.get(r);
    assert_eq!((get(0), get(1), get(2)), (Some(20), None, Some(22)));
    let stack = s.user_stack().expect("there");
    assert_eq!((stack.bytes(), stack.capacity()), (&b"stack"[..], 8));
    assert_eq!(s.weight(), Some(Weight::Full(33)));
    assert_eq!(s.data_source(), Some(DataSource(2)));
    assert_eq!(s.transaction(), Some(Transaction(3 << 32 | 2)));
    let registers = s.interrupt_registers().expect("there");
    assert_eq!(registers.abi(), RegisterAbi::Bits32);
    assert_eq!(registers.get(40), Some(40));
    assert_eq!((s.physical_address(), s.cgroup()), (Some(0x3000), Some(44)));
    let pages = (s.data_page_size(), s.code_page_size());
    assert_eq!(pages, (Some(4096), Some(2 << 20)));
    assert_eq!(s.aux(), Some(&b"aux"[..]));
}

/// Each field alone: it is found, and nothing else is.
#[test]
fn a_field_that_was_not_asked_for_is_not_there() {
    for field in SampleType::all().iter() {
        let layout = RecordLayout::new(field);
        // Counts and sizes of zero, no registers.
        let bytes = record(kind::SAMPLE, 0, &Bytes::new().u64(0));
        let Ok(Record::Sample(s)) = only(&bytes).decode(&layout) else {
            panic!("a sample of {field:?}");
        };
        let there = [
            (SampleType::IP, s.ip().is_some()),
            (SampleType::TID, s.thread().is_some()),
            (SampleType::TIME, s.time().is_some()),
            (SampleType::ADDR, s.addr().is_some()),
            (SampleType::READ, s.values().is_some()),
            (SampleType::CALLCHAIN, s.callchain().is_some()),
            (SampleType::ID | SampleType::IDENTIFIER, s.id().is_some()),
            (SampleType::CPU, s.cpu().is_some()),
            (SampleType::PERIOD, s.period().is_some()),
            (SampleType::STREAM_ID, s.stream_id().is_some()),
            (SampleType::RAW, s.raw().is_some()),
            (SampleType::BRANCH_STACK, s.branches().is_some()),
            // There are none where the kernel says so.
            (SampleType::empty(), s.user_registers().is_some()),
            (SampleType::empty(), s.interrupt_registers().is_some()),
            (SampleType::STACK_USER, s.user_stack().is_some()),
            (
                SampleType::WEIGHT | SampleType::WEIGHT_STRUCT,
                s.weight().is_some(),
            ),
            (SampleType::DATA_SRC, s.data_source().is_some()),
            (SampleType::TRANSACTION, s.transaction().is_some()),
            (SampleType::PHYS_ADDR, s.physical_address().is_some()),
            (SampleType::AUX, s.aux().is_some()),
            (SampleType::CGROUP, s.cgroup().is_some()),
            (SampleType::DATA_PAGE_SIZE, s.data_page_size().is_some()),
            (SampleType::CODE_PAGE_SIZE, s.code_page_size().is_some()),
        ];
        for (of, is_there) in there {
            assert_eq!(
                is_there,
                of.contains(field) && !of.is_empty(),
                "{field:?} {of:?}"
            );
        }
    }
}

/// A sample that ends anywhere before its end is an error that says where.
#[test]
fn a_sample_cut_short_is_an_error_at_every_length() {
    let layout = everything();
    let whole = full_sample();
    for len in 8..whole.len() {
        let mut bytes = whole[..len].to_vec();
        bytes[6..8].copy_from_slice(&(len as u16).to_ne_bytes());
        let e = only(&bytes).decode(&layout).expect_err("cut short");
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{e}");
        assert!(e.to_string().contains("of type 9"), "{e}");
    }
    // A record that is not all there is none.
    for len in 0..whole.len() {
        assert_eq!(RawRecord::at_start(&whole[..len]), None);
        let mut records = Records::new(&whole[..len]);
        assert_eq!(records.next().is_some(), len > 0);
        assert!(records.next().is_none());
    }
}

/// Counts and sizes that no record can hold.
#[test]
fn counts_that_do_not_fit_are_errors() {
    let counted = [
        (SampleType::CALLCHAIN, "call chain"),
        (SampleType::BRANCH_STACK, "branch stack"),
        (SampleType::STACK_USER, "user stack"),
        (SampleType::AUX, "AUX data"),
        (SampleType::RAW, "raw data"),
    ];
    for (field, name) in counted {
        let layout = RecordLayout::new(field);
        for count in [2, 1 << 16, 1 << 32 | 9, 1 << 60, 1 << 61, 1 << 63, u64::MAX] {
            // Raw data has a size of 32 bits, in the first half of the word.
            let count = if field == SampleType::RAW {
                count | 0xfff0_0000_fff0
            } else {
                count
            };
            let body = Bytes::new().u64(count);
            let bytes = record(kind::SAMPLE, 0, &body);
            let e = only(&bytes).decode(&layout).expect_err("too many");
            assert!(e.to_string().contains(name), "{count:x}: {e}");
        }
    }
}

/// The trailer of [`everything`].
fn trailer() -> Bytes {
    Bytes::new()
        .u32(10)
        .u32(11)
        .u64(12)
        .u64(1)
        .u64(2)
        .u32(3)
        .u32(0)
        .u64(1)
}

/// Decodes a record with a trailer, which it also checks; and every shorter form of it, which must
/// fail or be the same with less text.
fn with_trailer(kind: u32, misc: u16, body: Bytes, check: impl Fn(Record<'_>)) {
    let layout = everything();
    let fixed = body.len();
    let bytes = record(kind, misc, &body.append(&trailer()));
    let raw = only(&bytes);
    let expected = SampleId {
        thread: Some(THREAD),
        time: Some(12),
        id: Some(1),
        stream_id: Some(2),
        cpu: Some(3),
    };
    assert_eq!(raw.sample_id(&layout), Some(expected));
    assert_eq!(raw.identifier(), Some(1));
    check(raw.decode(&layout).expect("decodes"));
    for len in 0..48 + fixed {
        let mut short = bytes[..8 + len].to_vec();
        short[6..8].copy_from_slice(&(8 + len as u16).to_ne_bytes());
        let raw = only(&short);
        // Whatever it is, it is told without a panic.
        let _ = (
            raw.decode(&layout),
            raw.sample_id(&layout),
            raw.identifier(),
        );
        if len < 48 {
            assert!(raw.decode(&layout).is_err(), "{kind}: {len} bytes");
        }
    }
}

macro_rules! expect {
    ($pattern:pat => $($check:tt)*) => {
        |record| match record {
            $pattern => { $($check)* }
            other => panic!("{other:?}"),
        }
    };
}

#[test]
fn records_about_threads() {
    let ids = || Bytes::new().u32(10).u32(11);
    with_trailer(
        kind::COMM,
        1 << 13,
        ids().text("make"),
        expect!(Record::Comm(c) => {
            assert_eq!((c.thread, c.name, c.is_exec), (THREAD, &b"make"[..], true));
        }),
    );
    let task = || Bytes::new().u32(10).u32(8).u32(11).u32(9).u64(99);
    let check = |task: quipu_linux::sampling::record::Task| {
        assert_eq!((task.thread, task.time), (THREAD, 99));
        assert_eq!(task.parent, ThreadId { pid: 8, tid: 9 });
    };
    with_trailer(kind::FORK, 0, task(), expect!(Record::Fork(t) => check(t)));
    with_trailer(kind::EXIT, 0, task(), expect!(Record::Exit(t) => check(t)));
    for (misc, direction) in [
        (0, SwitchDirection::In),
        (1 << 13, SwitchDirection::Out),
        (3 << 13, SwitchDirection::OutPreempted),
    ] {
        with_trailer(
            kind::SWITCH,
            misc,
            Bytes::new(),
            expect!(Record::Switch(s) => {
                assert_eq!((s.direction, s.other), (direction, None));
            }),
        );
        with_trailer(
            kind::SWITCH_CPU_WIDE,
            misc,
            ids(),
            expect!(Record::Switch(s) => {
                assert_eq!((s.direction, s.other), (direction, Some(THREAD)));
            }),
        );
    }
    let namespaces = ids().u64(8).words(&(0..16).collect::<Vec<_>>());
    with_trailer(
        kind::NAMESPACES,
        0,
        namespaces,
        expect!(Record::Namespaces(n) => {
            assert_eq!(n.thread, THREAD);
            let all: Vec<_> = n.iter().collect();
            assert_eq!(all.len(), 8);
            assert_eq!((all[0].kind, all[0].device, all[0].inode), (NamespaceKind::Net, 0, 1));
            assert_eq!((all[6].kind, all[6].inode), (NamespaceKind::Cgroup, 13));
            assert_eq!(all[7].kind, NamespaceKind::Other(7));
        }),
    );
    let values = ids().u64(1).u64(100).u64(90).u64(5).u64(1).u64(0);
    with_trailer(
        kind::READ,
        0,
        values,
        expect!(Record::Read(thread, values) => {
            assert_eq!(thread, THREAD);
            assert_eq!(values.get(0).map(|c| c.value), Some(5));
            assert_eq!(values.get(1), None);
        }),
    );
    let cgroup = Bytes::new().u64(7).text("/user.slice");
    with_trailer(
        kind::CGROUP,
        0,
        cgroup,
        expect!(Record::Cgroup(c) => {
            assert_eq!((c.id, c.path), (7, &b"/user.slice"[..]));
        }),
    );
}

#[test]
fn records_about_mappings() {
    let range = || {
        Bytes::new()
            .u32(10)
            .u32(11)
            .u64(0x1000)
            .u64(0x2000)
            .u64(0x3000)
    };
    with_trailer(
        kind::MMAP,
        1 << 13,
        range().text("/bin/sh"),
        expect!(Record::Mapping(m) => {
            assert_eq!((m.thread, m.address, m.len, m.file_offset), (THREAD, 0x1000, 0x2000, 0x3000));
            assert_eq!((m.path, m.is_data), (&b"/bin/sh"[..], true));
            assert_eq!((m.file, m.protection, m.flags), (None, None, None));
        }),
    );
    let inode = range()
        .u32(8)
        .u32(1)
        .u64(77)
        .u64(3)
        .u32(5)
        .u32(2)
        .text("/bin/sh");
    with_trailer(
        kind::MMAP2,
        0,
        inode,
        expect!(Record::Mapping(m) => {
            let file = FileIdentity::Inode { major: 8, minor: 1, inode: 77, generation: 3 };
            assert_eq!((m.file, m.protection, m.flags), (Some(file), Some(5), Some(2)));
            assert_eq!((m.path, m.is_data), (&b"/bin/sh"[..], false));
        }),
    );
    for (size, len) in [(16, 16), (20, 20), (255, 20)] {
        let id = range()
            .bytes(&[size, 0, 0, 0])
            .bytes(&[9; 20])
            .u32(5)
            .u32(2)
            .text("/bin/sh");
        with_trailer(
            kind::MMAP2,
            1 << 14,
            id,
            expect!(Record::Mapping(m) => {
                assert_eq!(m.file, Some(FileIdentity::BuildId(&[9; 20][..len])));
                assert_eq!(m.path, b"/bin/sh");
            }),
        );
    }
}

#[test]
fn records_about_what_is_missing() {
    with_trailer(
        kind::LOST,
        0,
        Bytes::new().u64(1).u64(44),
        expect!(Record::Lost(lost) => {
            assert_eq!((lost.id, lost.records), (1, 44));
        }),
    );
    with_trailer(
        kind::LOST_SAMPLES,
        0,
        Bytes::new().u64(45),
        expect!(Record::LostSamples(lost) => {
            assert_eq!(lost.samples, 45);
        }),
    );
    let throttle = || Bytes::new().u64(99).u64(1).u64(2);
    let check = |t: quipu_linux::sampling::record::Throttle| {
        assert_eq!((t.time, t.id, t.stream_id), (99, 1, 2));
    };
    with_trailer(
        kind::THROTTLE,
        0,
        throttle(),
        expect!(Record::Throttle(t) => check(t)),
    );
    with_trailer(
        kind::UNTHROTTLE,
        0,
        throttle(),
        expect!(Record::Unthrottle(t) => check(t)),
    );
}

#[test]
fn records_about_the_kernel() {
    let symbol = |of: u16, flags: u16| {
        Bytes::new()
            .u64(0x1000)
            .u32(64)
            .u16(of)
            .u16(flags)
            .text("bpf_prog_1")
    };
    for (of, expected) in [
        (1, KsymbolKind::Bpf),
        (2, KsymbolKind::OutOfLine),
        (9, KsymbolKind::Other(9)),
    ] {
        with_trailer(
            kind::KSYMBOL,
            0,
            symbol(of, of & 1),
            expect!(Record::Ksymbol(s) => {
                assert_eq!((s.address, s.len, s.kind), (0x1000, 64, expected));
                assert_eq!((s.is_removed, s.name), (of & 1 != 0, &b"bpf_prog_1"[..]));
            }),
        );
    }
    for (change, expected) in [
        (1, BpfChange::Loaded),
        (2, BpfChange::Unloaded),
        (7, BpfChange::Other(7)),
    ] {
        let event = Bytes::new().u16(change).u16(0).u32(5).bytes(b"tagtagta");
        with_trailer(
            kind::BPF_EVENT,
            0,
            event,
            expect!(Record::BpfEvent(e) => {
                assert_eq!((e.change, e.flags, e.id, &e.tag), (expected, 0, 5, b"tagtagta"));
            }),
        );
    }
    let poke = Bytes::new()
        .u64(0x1000)
        .u16(2)
        .u16(3)
        .bytes(b"oonnn")
        .padded();
    with_trailer(
        kind::TEXT_POKE,
        0,
        poke,
        expect!(Record::TextPoke(p) => {
            assert_eq!((p.address, p.old, p.new), (0x1000, &b"oo"[..], &b"nnn"[..]));
        }),
    );
}

#[test]
fn records_about_the_aux_area_and_deferred_call_chains() {
    let aux = Bytes::new().u64(4096).u64(100).u64(5);
    with_trailer(
        kind::AUX,
        0,
        aux,
        expect!(Record::Aux(a) => {
            assert_eq!((a.offset, a.len), (4096, 100));
            assert_eq!(a.flags, AuxFlags::TRUNCATED | AuxFlags::PARTIAL);
        }),
    );
    let thread = Bytes::new().u32(10).u32(11);
    with_trailer(
        kind::ITRACE_START,
        0,
        thread,
        expect!(Record::ItraceStart(start) => {
            assert_eq!(start.thread, THREAD);
        }),
    );
    with_trailer(
        kind::AUX_OUTPUT_HW_ID,
        0,
        Bytes::new().u64(6),
        expect!(Record::AuxOutputHwId(id) => {
            assert_eq!(id.hw_id, 6);
        }),
    );
    let deferred = Bytes::new().u64(77).u64(2).u64(0x1000).u64(0x1100);
    with_trailer(
        kind::CALLCHAIN_DEFERRED,
        0,
        deferred,
        expect!(Record::CallchainDeferred(d) => {
            assert_eq!(d.cookie, 77);
            assert_eq!(d.callchain.frames().count(), 2);
        }),
    );
}

#[test]
fn records_of_other_types_are_passed_through() {
    let layout = everything();
    for other in [0, 23, 63, 64, 68, u32::MAX] {
        let bytes = record(
            other,
            7,
            &Bytes::new().bytes(b"whatever").append(&trailer()),
        );
        let Ok(Record::Unknown(raw)) = only(&bytes).decode(&layout) else {
            panic!("unknown");
        };
        assert_eq!(
            (raw.kind(), raw.misc().0, raw.bytes()),
            (other, 7, &bytes[..])
        );
        assert!(raw.body().starts_with(b"whatever"));
        // The records of perf's own have no trailer.
        assert_eq!(
            raw.sample_id(&layout).is_some(),
            other < kind::FIRST_OF_USER
        );
    }
    // Those may be as short as they like.
    let bytes = record(68, 0, &Bytes::new());
    assert!(matches!(
        only(&bytes).decode(&layout),
        Ok(Record::Unknown(_))
    ));
}
