//! Records other than samples decoded from bytes: every type, and bytes that are none.

use crate::encoding::{Bytes, THREAD, everything, only, record};
use quipu_perf_data::record::{
    AuxFlags, BpfChange, FileIdentity, KsymbolKind, NamespaceKind, SwitchDirection, kind,
};
use quipu_perf_data::{Record, SampleId, ThreadId};

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
    let mut expected = SampleId::default();
    expected.thread = Some(THREAD);
    expected.time = Some(12);
    expected.id = Some(1);
    expected.stream_id = Some(2);
    expected.cpu = Some(3);
    assert_eq!(raw.sample_id(&layout), Some(expected));
    assert_eq!(raw.identifier(), Some(1));
    check(raw.decode(&layout).expect("decodes"));
    for len in 0..48 + fixed {
        let mut short = bytes[..8 + len].to_vec();
        short[6..8].copy_from_slice(&(8 + len as u16).to_ne_bytes());
        let raw = only(&short);
        // Any bytes give a result without a panic.
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
    let check = |task: quipu_perf_data::record::Task| {
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
    let check = |t: quipu_perf_data::record::Throttle| {
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
    for other in [0, 23, 63, 64, 68, kind::FIRST_OF_SIMPLEPERF - 1] {
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
