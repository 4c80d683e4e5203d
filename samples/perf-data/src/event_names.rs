//! Names of events that are not where the events are: in records before all others, and in descriptions of tracepoints and
//! of simpleperf.

use std::collections::HashMap;
use std::io::Read;

use crate::byte_order::ByteOrder;
use crate::bytes::{u32_at, u64_at};
use crate::features::Features;
use crate::file_records::Source;
use crate::record::{RawRecord, kind};
use crate::recorded_event::RecordedEvent;
use crate::simpleperf;
use crate::synthesized::NAME;
use crate::text::until_nul;
use crate::trace_format::TraceFormat;
use crate::tracing::TracingData;

/// `PERF_TYPE_TRACEPOINT` of `include/uapi/linux/perf_event.h`.
const TRACEPOINT: u32 = 2;

/// Takes the names, and simpleperf's formats of tracepoints, that come before all other records of a file, as far as they
/// can be read.
pub(crate) fn read_first(
    mut source: Source<impl Read>,
    events: &mut [RecordedEvent],
    features: &mut Features,
) {
    let mut record = Vec::new();
    while let Ok(true) = source.read(&mut record)
        && let Some(read) = RawRecord::at_start(&record)
    {
        match read.kind() {
            kind::EVENT_UPDATE => take(&record, events, source.order),
            kind::HEADER_TRACING_DATA => {
                let formats = formats_in(read.body(), source.order);
                features.tracing_data = features.tracing_data.take().or(formats);
            }
            _ => break,
        }
    }
}

/// Returns the formats in the body of simpleperf's record, which holds them; after perf's they follow.
pub(crate) fn formats_in(body: &[u8], order: ByteOrder) -> Option<Vec<u8>> {
    let len = order.u32(u32_at(body, 0)?) as usize;
    body.get(4..)?.get(..len).map(<[u8]>::to_owned)
}

/// Takes the name in a record, if it is an `EVENT_UPDATE` and its event has none yet.
pub(crate) fn take(record: &[u8], events: &mut [RecordedEvent], order: ByteOrder) {
    let Some(record) = RawRecord::at_start(record) else {
        return;
    };
    let body = record.body();
    let word = |at| u64_at(body, at).map(|word| order.u64(word));
    let (kind::EVENT_UPDATE, Some(NAME), Some(id)) = (record.kind(), word(0), word(8)) else {
        return;
    };
    let name = String::from_utf8_lossy(until_nul(&body[16..])).into_owned();
    let mut nameless = events.iter_mut().filter(|event| event.name().is_none());
    if let Some(event) = nameless.find(|event| event.ids().contains(&id))
        && !name.is_empty()
    {
        event.set_name(name);
    }
}

/// Names the events that have no name by the description of the recording: simpleperf's of events, and that of tracepoints.
pub(crate) fn complete(events: &mut [RecordedEvent], features: &Features) {
    let nameless = || |event: &&mut RecordedEvent| event.name().is_none();
    for event in events.iter_mut().filter(nameless()) {
        let (event_type, config) = (event.attr().event_type(), event.attr().config());
        if let Some(name) = simpleperf::event_name(&features.simpleperf, event_type, config) {
            event.set_name(name.to_owned());
        }
    }
    let is_tracepoint = |event: &RecordedEvent| event.attr().event_type() == TRACEPOINT;
    if !events
        .iter()
        .any(|event| event.name().is_none() && is_tracepoint(event))
    {
        return;
    }
    let tracepoints = tracepoints(features.tracing_data.as_deref());
    let nameless = events.iter_mut().filter(nameless());
    for event in nameless.filter(|event| is_tracepoint(event)) {
        if let Some(name) = tracepoints.get(&event.attr().config()) {
            event.set_name(name.clone());
        }
    }
}

/// Returns the names of tracepoints by their numbers.
fn tracepoints(data: Option<&[u8]>) -> HashMap<u64, String> {
    let data = data.and_then(TracingData::from_bytes).unwrap_or_default();
    let all = data.formats.iter();
    let all = all.flat_map(|(system, formats)| formats.iter().map(move |format| (system, format)));
    all.filter_map(|(system, format)| {
        let format = TraceFormat::parse(&String::from_utf8_lossy(format)).ok()?;
        Some((format.id(), format!("{system}:{}", format.name())))
    })
    .collect()
}
