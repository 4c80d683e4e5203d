//! Decodes each input and looks at everything in it.
//!
//! An input is a layout of 32 bytes and the bytes of records.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quipu_perf_data::{
    BranchSampleType, RawRecord, ReadFormat, Record, RecordLayout, Records, SampleType,
};

/// Length of the layout in front of the records.
pub(crate) const LAYOUT: usize = 32;

/// Kinds of results that an input has led to: a new kind makes it worth keeping.
pub(crate) type Traits = BTreeSet<u64>;

/// Mark, in bits 48 to 55, of a record that was not decoded.
pub(crate) const FAILED: u64 = 1;

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
pub(crate) fn layout(input: &[u8]) -> RecordLayout {
    let first = word(input, 0);
    RecordLayout::new(SampleType::from_bits_truncate(first & 0xffff_ffff))
        .with_read_format(ReadFormat::from_bits_truncate(first >> 32 & 0xff))
        .with_sample_id_all(first >> 40 & 1 != 0)
        .with_registers(word(input, 8), word(input, 16))
        .with_branches(BranchSampleType::from_bits_truncate(word(input, 24)))
}

/// Decodes an input.
///
/// # Panics
/// When the decoder does, or promises something that is not so.
pub(crate) fn exercise(input: &[u8]) -> Traits {
    let layout = layout(input);
    let bytes = input.get(LAYOUT..).unwrap_or_default();
    let mut traits = Traits::new();
    let mut records = Records::new(bytes);
    let mut seen = 0;
    while let Some(record) = records.next() {
        let Ok(record) = record else {
            assert!(records.next().is_none(), "an error ends it");
            traits.insert(1);
            return traits;
        };
        assert!(record.bytes().len() >= 8);
        assert_eq!(record.bytes(), &bytes[seen..seen + record.bytes().len()]);
        seen += record.bytes().len();
        assert_eq!(records.rest().len(), bytes.len() - seen);
        look_at(&record, &layout, &mut traits);
    }
    assert_eq!(seen, bytes.len());
    traits
}

/// Looks at everything in a record, and adds what it is like: its type, and which field did not fit or
/// how long each is.
fn look_at(record: &RawRecord<'_>, layout: &RecordLayout, traits: &mut Traits) {
    let kind = u64::from(record.kind().min(70));
    let mut add = |what: u64, detail: u64| {
        traits.insert(kind << 56 | what << 48 | detail);
    };
    let mut text = Thrown::default();
    let _ = write!(
        text,
        "{:?}",
        (record.identifier(), record.sample_id(layout))
    );
    let decoded = match record.decode(layout) {
        Ok(decoded) => decoded,
        Err(e) => {
            let reason = e.reason().unwrap_or_default();
            let letters = reason.bytes().filter(u8::is_ascii_alphabetic);
            let sum = letters.fold(0u64, |sum, b| sum.wrapping_mul(31) + u64::from(b));
            return add(FAILED, sum & 0xffff_ffff);
        }
    };
    let _ = write!(text, "{decoded:?}");
    // Every byte is shown once or twice, as at most a few letters.
    assert!(text.0 <= 8192 + 64 * record.bytes().len(), "{}", text.0);
    add(0, u64::from(text.0.max(1).ilog2()));
    let Record::Sample(sample) = decoded else {
        return;
    };
    if let Some(chain) = sample.callchain() {
        let frames = chain.frames().count();
        assert!(frames <= chain.entries().len());
        add(2, frames.min(9) as u64);
        add(3, chain.deferred().is_some().into());
    }
    if let Some(stack) = sample.user_stack() {
        assert!(stack.bytes().len() <= stack.capacity());
        add(4, (stack.bytes().len() < stack.capacity()).into());
    }
    if let Some(branches) = sample.branches() {
        for branch in branches.iter() {
            let _ = write!(
                text,
                "{:?}",
                (
                    branch.branch_type(),
                    branch.privilege(),
                    branch.speculation()
                )
            );
        }
        add(5, branches.len().min(9) as u64);
        add(6, branches.hw_index().is_some().into());
        add(7, branches.counters().map_or(0, |c| c.len().min(9) as u64));
    }
    if let Some(source) = sample.data_source() {
        let _ = write!(
            text,
            "{:?}",
            (
                source.operation(),
                source.levels(),
                source.level(),
                source.snoop()
            )
        );
    }
    for registers in [sample.user_registers(), sample.interrupt_registers()] {
        let Some(registers) = registers else { continue };
        let there = (0..64).filter(|r| registers.get(*r).is_some()).count();
        assert_eq!(there, registers.values().len());
        add(8, there as u64);
    }
    if let Some(values) = sample.values() {
        assert!(values.get(values.len()).is_none());
        add(9, values.len().min(9) as u64);
    }
    for field in layout.sample_type().iter() {
        add(10, field.bits());
    }
}
