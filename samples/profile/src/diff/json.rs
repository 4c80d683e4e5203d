//! The differences for programs: a JSON object for each row.

use std::borrow::Cow;

use serde::Serialize;

use crate::report::{Identity, rounded};

use super::compute::{Compute, Part};
use super::matched::Matched;
use super::{DiffForm, ReadRecording};

/// One line. What lacks the row is left out.
#[derive(Serialize)]
struct JsonDifference<'a> {
    event: &'a str,
    #[serde(flatten)]
    identity: Identity<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Share<'a>>,
    compared: Vec<Comparison<'a>>,
}

/// Weight of a row in a recording.
#[derive(Serialize)]
struct Share<'a> {
    file: Cow<'a, str>,
    overhead: f64,
    samples: u64,
    period: u64,
}

/// Weight of a row in a recording beside the baseline.
#[derive(Serialize)]
struct Comparison<'a> {
    #[serde(flatten)]
    share: Share<'a>,
    /// Percentage points.
    delta: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wdiff: Option<i128>,
}

/// Appends the rows of one event.
pub(super) fn write(
    out: &mut String,
    recordings: &[ReadRecording],
    event: &str,
    matched: &Matched<'_>,
    form: &DiffForm<'_>,
) {
    for row in &matched.rows {
        let share = |at: usize, part: Part| Share {
            file: recordings[at].path.to_string_lossy(),
            overhead: rounded(part.percent()),
            samples: part.weight.samples,
            period: part.weight.period,
        };
        let old = matched.part(row, 0);
        let compared = (1..recordings.len()).filter_map(|at| {
            let new = matched.part(row, at)?;
            Some(Comparison {
                share: share(at, new),
                delta: rounded(Compute::Delta.value(matched.baseline(row), new)),
                ratio: old.map(|old| Compute::Ratio.value(old, new)),
                wdiff: old
                    .filter(|_| matches!(form.compute, Compute::Weighted { .. }))
                    .map(|old| form.compute.weighted(old, new)),
            })
        });
        let profile = &recordings[row.of].profile;
        let line = JsonDifference {
            event,
            identity: Identity::new(profile, row.entry, form.keys),
            baseline: old.map(|old| share(0, old)),
            compared: compared.collect(),
        };
        // Numbers and text always have a form.
        if let Ok(line) = serde_json::to_string(&line) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}
