//! Records in sequence: the end of one and the start of the next.

use crate::encoding::{Bytes, record};
use quipu_perf_data::record::kind;
use quipu_perf_data::{RecordLayout, Records, SampleType};

#[test]
fn records_follow_one_another_until_one_is_none() {
    let mut bytes = record(kind::SWITCH, 0, &Bytes::new());
    bytes.extend(record(kind::LOST_SAMPLES, 0, &Bytes::new().u64(3)));
    let layout = RecordLayout::new(SampleType::empty());
    let kinds = |bytes: &[u8]| {
        let records = Records::new(bytes).map(|r| r.map(|r| r.kind()));
        records.collect::<Vec<_>>()
    };
    assert_eq!(kinds(&bytes), [Ok(kind::SWITCH), Ok(kind::LOST_SAMPLES)]);
    for record in Records::new(&bytes) {
        assert!(record.expect("whole").decode(&layout).is_ok());
    }
    // A header of zeros, or one that says it is shorter than a header.
    for size in [0u8, 7] {
        let mut more = bytes.clone();
        more.extend([1, 0, 0, 0, 0, 0, size, 0, 1, 2]);
        let mut found = Records::new(&more).skip(2);
        let e = found.next().expect("something").expect_err("no record");
        assert!(e.to_string().contains("10 bytes are left"), "{e}");
        assert!(found.next().is_none());
    }
}
