//! The text of tracepoints, by the formats in the file.

use std::collections::HashMap;

use quipu_perf_data::{FieldValue, TraceFormat, TracePrint, TracingData};

/// Printer of one tracepoint.
#[derive(Debug)]
pub(crate) struct Tracepoint {
    format: TraceFormat,
    /// `None` where it is not understood how: by the names of its fields then.
    print: Option<TracePrint>,
}

/// Returns the tracepoints of a file by their numbers.
pub(crate) fn of_file(data: Option<&[u8]>) -> HashMap<u64, Tracepoint> {
    let data = data.and_then(TracingData::from_bytes).unwrap_or_default();
    let formats = data.formats.values().flatten();
    formats
        .filter_map(|format| {
            let format = TraceFormat::parse(&String::from_utf8_lossy(format)).ok()?;
            let print = TracePrint::new(&format).ok();
            Some((format.id(), Tracepoint { format, print }))
        })
        .collect()
}

impl Tracepoint {
    /// Appends the text of a sample's data.
    pub(crate) fn print(
        &self,
        raw: &[u8],
        symbols: &mut dyn FnMut(u64) -> Option<(String, u64)>,
        out: &mut String,
    ) {
        match &self.print {
            Some(print) => print.print(raw, symbols, out),
            None => {
                out.push_str("[FAILED TO PARSE]");
                self.format.print_fields(raw, out);
            }
        }
    }

    /// Returns the fields by their names.
    pub(crate) fn values(&self, raw: &[u8]) -> serde_json::Map<String, serde_json::Value> {
        let own = self.format.fields().iter();
        let own = own.filter(|field| !field.name().starts_with("common_"));
        own.filter_map(|field| {
            let value = match field.value(raw)? {
                FieldValue::Signed(value) => value.into(),
                FieldValue::Unsigned(value) => value.into(),
                FieldValue::Text(text) => String::from_utf8_lossy(text).into(),
                _ => field.bytes(raw)?.into(),
            };
            Some((field.name().to_owned(), value))
        })
        .collect()
    }
}
