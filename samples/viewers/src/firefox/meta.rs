//! Description of a profile as a whole.

use serde::Serialize;
use serde_json::{Value, json};

use crate::Recording;

/// The type of all markers.
pub(super) const TEXT: &str = "tracepoint";

/// Positions of the categories.
pub(super) const USER: usize = 1;
pub(super) const KERNEL: usize = 2;
pub(super) const ASLEEP: usize = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    categories: Value,
    debug: bool,
    extensions: Value,
    /// Milliseconds between samples.
    interval: f64,
    preprocessed_profile_version: u32,
    process_type: u32,
    product: &'a str,
    #[serde(rename = "oscpu", skip_serializing_if = "str::is_empty")]
    system: &'a str,
    sample_units: Value,
    start_time: f64,
    symbolicated: bool,
    version: u32,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    marker_schema: Value,
}

impl<'a> Meta<'a> {
    /// Returns the description of a recording.
    pub(super) fn new(recording: &'a Recording, interval: f64) -> Self {
        let category = |name: &str, colour: &str| json!({"name": name, "color": colour, "subcategories": ["Other"]});
        Self {
            categories: json!([
                category("Other", "grey"),
                category("User", "yellow"),
                category("Kernel", "orange"),
                category("Off CPU", "blue"),
            ]),
            debug: false,
            extensions: json!({"length": 0, "baseURL": [], "id": [], "name": []}),
            interval: if interval.is_finite() { interval } else { 1.0 },
            preprocessed_profile_version: 55,
            process_type: 0,
            product: &recording.title,
            system: &recording.system,
            sample_units: json!({"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}),
            start_time: recording.began,
            symbolicated: true,
            version: 24,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
            marker_schema: json!([{
                "name": TEXT,
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "chartLabel": "{marker.data.text}",
                "tooltipLabel": "{marker.name}",
                "tableLabel": "{marker.data.text}",
                "fields": [{"key": "text", "label": "Text", "format": "string", "searchable": true}],
            }]),
        }
    }
}
