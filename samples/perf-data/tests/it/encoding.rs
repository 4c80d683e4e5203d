//! Records put together the way the kernel lays them out.

use quipu_perf_data::{
    BranchSampleType, RawRecord, ReadFormat, RecordLayout, SampleType, ThreadId,
};

/// Thread that wrote the records.
pub(crate) const THREAD: ThreadId = ThreadId { pid: 10, tid: 11 };

/// A layout of all there is; the weight is one number.
pub(crate) fn everything() -> RecordLayout {
    RecordLayout::new(SampleType::all() - SampleType::WEIGHT_STRUCT)
        .with_read_format(ReadFormat::all())
        .with_branches(BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS)
        .with_registers(0b101, 1 << 40)
        .with_sample_id_all(true)
}

/// The body of a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn words(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.u64(*value))
    }

    /// Text with a NUL, padded as the kernel does it.
    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[0]).padded()
    }

    pub(crate) fn padded(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self
    }

    pub(crate) fn append(self, more: &Self) -> Self {
        self.bytes(&more.0)
    }
}

/// A whole record.
pub(crate) fn record(kind: u32, misc: u16, body: &Bytes) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("not longer than records can be");
    Bytes::new().u32(kind).u16(misc).u16(size).append(body).0
}

/// The only record in these bytes.
pub(crate) fn only(bytes: &[u8]) -> RawRecord<'_> {
    let record = RawRecord::at_start(bytes).expect("a record");
    assert_eq!(record.bytes().len(), bytes.len());
    record
}
