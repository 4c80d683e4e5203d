//! Makes a long recording of a short one: its records again and again, each time later by as long as it is. Benches read
//! such files.
//!
//! `cargo run --release -p quipu-perf-data --example repeat -- IN OUT MEGABYTES`

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter};

use quipu_perf_data::record::kind;
use quipu_perf_data::{RawRecord, Reader, Record, RecordLayout, SampleType, Writer};

/// Bytes of the header of a record.
const HEADER: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output), Some(megabytes)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: repeat IN OUT MEGABYTES".into());
    };
    let len = megabytes.parse::<u64>()? * 1_000_000;
    let mut reader = Reader::new(BufReader::new(File::open(input)?))?;
    let layout = reader.events()[0].attr().layout();
    if reader.events().iter().any(|e| e.attr().layout() != layout) {
        return Err("the events of the recording have records of different layouts".into());
    }
    let (events, features) = (reader.events().to_vec(), reader.features().clone());
    let (mut first, mut last) = (u64::MAX, 0);
    let mut records = reader.records()?;
    while let Some(record) = records.next_record()? {
        if let Some((_, time)) = time_of(&record, &layout) {
            (first, last) = (first.min(time), last.max(time));
        }
    }
    let mut writer = Writer::new(BufWriter::new(File::create(output)?), events)?;
    let mut later = 0;
    while writer.data_len() < len {
        let mut records = reader.records()?;
        while let Some(record) = records.next_record()? {
            // Losses are told once, at the end.
            if record.kind() == kind::LOST_SAMPLES && later > 0 {
                continue;
            }
            let mut bytes = record.bytes().to_vec();
            match time_of(&record, &layout) {
                Some((at, time)) => {
                    bytes[at..at + 8].copy_from_slice(&(time + later).to_ne_bytes());
                }
                // What was there before the recording stays.
                None if later > 0 && record.kind() < kind::FIRST_OF_USER => continue,
                None => {}
            }
            writer.write(&[&bytes])?;
        }
        later += last.saturating_sub(first) + 1;
    }
    writer.finish(&features)?;
    Ok(())
}

/// Returns when a record of the recording was written, and the offset of that in its bytes.
fn time_of(record: &RawRecord<'_>, layout: &RecordLayout) -> Option<(usize, u64)> {
    let fields = layout.sample_type();
    let words = |before: SampleType| 8 * (fields & before).bits().count_ones() as usize;
    let (at, time) = if record.kind() == kind::SAMPLE {
        let Ok(Record::Sample(sample)) = record.decode(layout) else {
            return None;
        };
        let before = SampleType::IDENTIFIER | SampleType::IP | SampleType::TID;
        (HEADER + words(before), sample.time()?)
    } else {
        let trailer = words(SampleType::TRAILER);
        let start = record.bytes().len().checked_sub(trailer)?;
        let time = record.sample_id(layout)?.time?;
        (start + words(SampleType::TID), time)
    };
    (time > 0).then_some((at, time))
}
