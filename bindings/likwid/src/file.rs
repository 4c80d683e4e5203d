//! The file in which LIKWID's command looks for what was counted: by region and group, a line for each thread.

use std::fmt::Write as _;
use std::time::Duration;

use quipu::Count;
use quipu_regions::{Counted, RegionReport, Report, ThreadReport};

use crate::events::EventGroup;

/// The sums of a region in a thread, over all regions in which it was entered.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RegionOfThread {
    pub(crate) calls: u64,
    pub(crate) elapsed: Duration,
    /// The events of a group. What has no value is no number (NaN).
    pub(crate) values: Vec<f64>,
}

/// Returns what a thread has counted in a region that it has left, of these events, or of all.
pub(crate) fn region_of(
    thread: &ThreadReport,
    name: &str,
    events: Option<&[String]>,
) -> Option<RegionOfThread> {
    let regions: Vec<&RegionReport> = thread
        .regions
        .iter()
        .filter(|region| region.name() == name)
        .collect();
    let first = regions.first()?;
    let all: Vec<String> = match events {
        Some(events) => events.to_vec(),
        None => first
            .events
            .iter()
            .map(|event| event.counted.event.clone())
            .collect(),
    };
    let value = |event: &String| {
        let values = regions.iter().map(|region| {
            let mut events = region.events.iter().map(|event| &event.counted);
            events
                .find(|counted| counted.event == *event)
                .and_then(number)
        });
        // What one of them lacks is missing in the sum.
        values.sum::<Option<f64>>().unwrap_or(f64::NAN)
    };
    Some(RegionOfThread {
        calls: regions
            .iter()
            .map(|region| region.calls - u64::from(region.not_left))
            .sum(),
        elapsed: regions.iter().map(|region| region.elapsed).sum(),
        values: all.iter().map(value).collect(),
    })
}

/// Returns the value of a count that is exact or an estimate of the whole. That of another kind would pass for one.
fn number(counted: &Counted) -> Option<f64> {
    match counted.count? {
        Count::Exact(value) | Count::Estimated(value) => Some(value as f64),
        _ => None,
    }
}

/// Returns the text of the file. `cpu` says on which CPU a thread was.
pub(crate) fn text(report: &Report, groups: &[EventGroup], cpu: impl Fn(u64) -> i32) -> String {
    let mut names: Vec<&str> = Vec::new();
    for region in report.threads.iter().flat_map(|thread| &thread.regions) {
        if !names.contains(&region.name()) {
            names.push(region.name());
        }
    }
    let groups: Vec<Option<&[String]>> = match groups {
        [] => vec![None],
        groups => groups.iter().map(|group| Some(&*group.events)).collect(),
    };
    let regions = || {
        let pairs = |name| (0..groups.len()).map(move |group| (name, group));
        names.iter().flat_map(pairs).enumerate()
    };
    let threads = report.threads.len();
    let mut text = format!(
        "{threads} {} {}\n",
        names.len() * groups.len(),
        groups.len()
    );
    for (id, (name, group)) in regions() {
        let _ = writeln!(text, "{id}:{name}-{group}");
    }
    for (id, (name, group)) in regions() {
        for thread in &report.threads {
            let Some(region) = region_of(thread, name, groups[group]) else {
                continue;
            };
            let (cpu, seconds) = (cpu(thread.id), region.elapsed.as_secs_f64());
            let _ = write!(
                text,
                "{id} {group} {cpu} {} {seconds:e} {} ",
                region.calls,
                region.values.len()
            );
            for value in region.values {
                let _ = match value.is_nan() {
                    true => write!(text, "nan "),
                    false => write!(text, "{value:e} "),
                };
            }
            text.push('\n');
        }
    }
    text
}
