//! Bytes of records in any layout: an input is a layout of 32 bytes and the records, all of which is
//! decoded and looked at.
#![no_main]

use std::fmt::Write as _;

use libfuzzer_sys::fuzz_target;
use quipu_perf_data::{
    BranchSampleType, RawRecord, ReadFormat, Record, RecordLayout, Records, SampleType,
};

/// Length of the layout in front of the records.
const LAYOUT: usize = 32;

/// Text that is thrown away, but counted.
#[derive(Default)]
struct Thrown(usize);

impl std::fmt::Write for Thrown {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn word(input: &[u8], at: usize) -> u64 {
    let bytes = input.get(at..).and_then(<[u8]>::first_chunk);
    u64::from_ne_bytes(*bytes.unwrap_or(&[0; 8]))
}

/// The layout that an input starts with.
fn layout(input: &[u8]) -> RecordLayout {
    let first = word(input, 0);
    RecordLayout::new(SampleType::from_bits_truncate(first & 0xffff_ffff))
        .with_read_format(ReadFormat::from_bits_truncate(first >> 32 & 0xff))
        .with_sample_id_all(first >> 40 & 1 != 0)
        .with_registers(word(input, 8), word(input, 16))
        .with_branches(BranchSampleType::from_bits_truncate(word(input, 24)))
}

fuzz_target!(|input: &[u8]| {
    let layout = layout(input);
    let bytes = input.get(LAYOUT..).unwrap_or_default();
    let mut records = Records::new(bytes);
    let mut seen = 0;
    while let Some(record) = records.next() {
        let Ok(record) = record else {
            assert!(records.next().is_none(), "an error ends it");
            return;
        };
        assert!(record.bytes().len() >= 8);
        assert_eq!(record.bytes(), &bytes[seen..seen + record.bytes().len()]);
        seen += record.bytes().len();
        assert_eq!(records.rest().len(), bytes.len() - seen);
        look_at(&record, &layout);
    }
    assert_eq!(seen, bytes.len());
});

/// Looks at everything in a record.
fn look_at(record: &RawRecord<'_>, layout: &RecordLayout) {
    let mut text = Thrown::default();
    let _ = write!(text, "{:?}", (record.identifier(), record.sample_id(layout)));
    let Ok(decoded) = record.decode(layout) else {
        return;
    };
    let _ = write!(text, "{decoded:?}");
    // Every byte is shown once or twice, as at most a few letters.
    assert!(text.0 <= 8192 + 64 * record.bytes().len(), "{}", text.0);
    let Record::Sample(sample) = decoded else {
        return;
    };
    if let Some(chain) = sample.callchain() {
        assert!(chain.frames().count() <= chain.entries().len());
        let _ = chain.deferred();
    }
    if let Some(stack) = sample.user_stack() {
        assert!(stack.bytes().len() <= stack.capacity());
    }
    if let Some(branches) = sample.branches() {
        for branch in branches.iter() {
            let kinds = (branch.branch_type(), branch.privilege(), branch.speculation());
            let _ = write!(text, "{kinds:?}");
        }
        let _ = (branches.hw_index(), branches.counters());
    }
    if let Some(source) = sample.data_source() {
        let levels = (source.levels(), source.level());
        let _ = write!(text, "{:?}", (source.operation(), levels, source.snoop()));
    }
    for registers in [sample.user_registers(), sample.interrupt_registers()] {
        let Some(registers) = registers else { continue };
        let there = (0..64).filter(|r| registers.get(*r).is_some()).count();
        assert_eq!(there, registers.values().len());
    }
    if let Some(values) = sample.values() {
        assert!(values.get(values.len()).is_none());
    }
}
