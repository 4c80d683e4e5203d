//! Samples decoded from bytes: every field, and bytes that are none.

use crate::encoding::{Bytes, THREAD, everything, only, record};
use quipu_hal::ErrorKind;
use quipu_perf_data::record::kind;
use quipu_perf_data::{
    BranchSampleType, Context, CpuMode, DataSource, Misc, RawRecord, ReadFormat, ReadValues,
    Record, RecordLayout, Records, RegisterAbi, SampleType, Transaction, Weight,
};

/// A sample of the layout [`everything`].
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

#[test]
fn a_sample_shows_the_fields_that_it_has() {
    let bytes = full_sample();
    let shown = |layout: &RecordLayout| match only(&bytes).decode(layout) {
        Ok(Record::Sample(s)) => format!("{s:?}"),
        other => panic!("{other:?}"),
    };
    let all = shown(&everything());
    for field in [
        "Sample { id: 1, ip: 4096, thread: ThreadId { pid: 10, tid: 11 }, time: 12, addr: 8192",
        "callchain: [Frame { address: 4096, context: User }, Frame { address: 4352, context: User }]",
        "branches: BranchStack { hw_index: Some(5), branches: [Branch { from: 10, to: 11, ",
        "counters: Some([77])",
        "user_registers: {0: 20, 2: 22}",
        "interrupt_registers: {40: 40}",
        "aux: [97, 117, 120] }",
    ] {
        assert!(all.contains(field), "{field}: {all}");
    }
    assert_eq!(
        shown(&RecordLayout::new(SampleType::IP)),
        "Sample { ip: 1 }"
    );
}

/// `PERF_RECORD_MISC_CPUMODE_*` in their order, beside other bits.
#[test]
fn modes_of_the_cpu_are_the_kernels() {
    use CpuMode as M;
    let unknown = M::Unknown;
    let modes = [
        unknown,
        M::Kernel,
        M::User,
        M::Hypervisor,
        M::GuestKernel,
        M::GuestUser,
        unknown,
    ];
    for (number, mode) in (0..).zip(modes) {
        for others in [0, 1 << 13, 1 << 14, 0xfff8] {
            let misc = Misc(number | others);
            assert_eq!(misc.cpu_mode(), mode, "{misc:?}");
            assert_eq!(misc.is_exact_ip(), others & 1 << 14 != 0, "{misc:?}");
        }
    }
}

#[test]
fn a_layout_is_what_was_set() {
    let layout = everything().with_period(Some(9));
    assert_eq!(layout.read_format(), ReadFormat::all());
    let branches = BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS;
    assert_eq!(layout.branch_sample_type(), branches);
    let registers = (layout.user_registers(), layout.interrupt_registers());
    assert_eq!(registers, (0b101, 1 << 40));
    // Thread, time, id, stream, CPU and identifier.
    assert_eq!((layout.trailer_len(), layout.sample_id_all()), (48, true));
    assert_eq!(layout.period(), Some(9));
    let without = layout.with_sample_id_all(false);
    assert_eq!((without.trailer_len(), without.sample_id_all()), (0, false));
    let fields = SampleType::IP | SampleType::TIME | SampleType::CPU;
    let few = RecordLayout::new(fields).with_sample_id_all(true);
    assert_eq!(
        (few.sample_type(), few.trailer_len(), few.period()),
        (fields, 16, None)
    );
}

#[test]
fn values_are_as_many_as_there_are() {
    for (words, format, expected) in [
        (&[7u64][..], ReadFormat::empty(), 1),
        (&[0], ReadFormat::GROUP, 0),
        (&[2, 7, 8], ReadFormat::GROUP, 2),
        (&[2, 7, 1, 8, 2], ReadFormat::GROUP | ReadFormat::ID, 2),
        (
            &[1, 7, 1, 0],
            ReadFormat::GROUP | ReadFormat::ID | ReadFormat::LOST,
            1,
        ),
    ] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let values = ReadValues::from_bytes(&bytes, format).expect("whole");
        assert_eq!((values.len(), values.is_empty()), (expected, expected == 0));
        assert_eq!(values.iter().len(), expected);
        assert_eq!(values.get(expected), None);
        assert!(ReadValues::from_bytes(&bytes[1..], format).is_none());
    }
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

/// A stack that the kernel had not is a count of 0 alone; an empty one has its index.
#[test]
fn a_branch_stack_that_was_left_out_has_no_index() {
    let layout = RecordLayout::new(
        SampleType::BRANCH_STACK | SampleType::REGS_USER | SampleType::WEIGHT | SampleType::AUX,
    )
    .with_branches(BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS)
    .with_registers(0b11, 0);
    let left_out = || Bytes::new().u64(0);
    let registers = [Some(20), Some(21)];
    // Registers of a thread of a program, or of one that has none.
    for (behind, registers) in [(&[2, 20, 21, 33][..], registers), (&[0, 33], [None; 2])] {
        for (stack, index) in [
            (left_out(), None),
            // Not known, as most drivers say; and what could be taken for the fields behind.
            (left_out().u64(u64::MAX), None),
            (left_out().u64(0), Some(0)),
            (left_out().u64(2), Some(2)),
        ] {
            let body = stack.clone().words(behind).u64(8).bytes(b"auxiliar");
            let bytes = record(kind::SAMPLE, 0, &body);
            let Ok(Record::Sample(s)) = only(&bytes).decode(&layout) else {
                panic!("a sample: {stack:?} {behind:?}");
            };
            let branches = s.branches().expect("asked for");
            assert!(branches.is_empty() && branches.counters().is_some_and(|c| c.is_empty()));
            assert_eq!(branches.hw_index(), index, "{stack:?} {behind:?}");
            let seen = [0, 1].map(|r| s.user_registers().and_then(|all| all.get(r)));
            assert_eq!(seen, registers, "{stack:?} {behind:?}");
            assert_eq!(s.weight(), Some(Weight::Full(33)), "{stack:?} {behind:?}");
            assert_eq!(s.aux(), Some(&b"auxiliar"[..]), "{stack:?} {behind:?}");
        }
    }
}
