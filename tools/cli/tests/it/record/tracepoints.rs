//! Every tracepoint of this kernel, recorded once.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;

use quipu_perf_data::{Reader, TracingData};

use super::{Bench, skip, stderr};

/// As many are recorded together.
const TOGETHER: usize = 50;

/// Returns the names of all tracepoints, which those who may record them may list.
fn all(events: &Path) -> Vec<String> {
    let names = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let names: Vec<_> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names
    };
    let of_system = |system: String| {
        let own = names(&events.join(&system)).into_iter();
        own.map(move |name| format!("{system}:{name}"))
    };
    let all = names(events).into_iter().flat_map(of_system);
    let path = |name: &String| events.join(name.replacen(':', "/", 1)).join("id");
    let mut all: Vec<_> = all.filter(|name| path(name).is_file()).collect();
    all.sort();
    all
}

/// Returns the formats in a recording of these tracepoints; why there is none.
fn formats(bench: &Bench, tracepoints: &[String]) -> Result<HashSet<Vec<u8>>, String> {
    let output = bench.record(&["-e", &tracepoints.join(",")], "true");
    if !output.status.success() {
        return Err(stderr(&output));
    }
    let file = File::open(bench.path("perf.data")).expect("it was recorded");
    let reader = Reader::new(file).expect("a recording");
    let data = reader.features().tracing_data.as_deref();
    let data = data.and_then(TracingData::from_bytes).expect("formats");
    Ok(data.formats.into_values().flatten().collect())
}

#[test]
#[ignore = "takes minutes; ci/long runs it"]
fn every_tracepoint_is_recorded_with_all_of_its_format() {
    const TEST: &str = "every_tracepoint_is_recorded_with_all_of_its_format";
    let events = Path::new("/sys/kernel/tracing/events");
    let (Some(bench), true) = (Bench::new(TEST), events.join("sched").is_dir()) else {
        return skip(TEST, "this user may not read tracefs");
    };
    let all = all(events);
    let mut refused = Vec::new();
    let check = |tracepoints: &[String]| -> bool {
        let Ok(found) = formats(&bench, tracepoints) else {
            return false;
        };
        for name in tracepoints {
            let path = events.join(name.replacen(':', "/", 1)).join("format");
            let expected = fs::read(path).expect("it is listed");
            assert!(found.contains(&expected), "{name}");
        }
        true
    };
    for some in all.chunks(TOGETHER) {
        if check(some) {
            continue;
        }
        for one in some {
            if !check(std::slice::from_ref(one)) {
                refused.push(one.clone());
            }
        }
    }
    // The function tracer's are for its own buffer, and a sample of the other one would raise it again
    // (`arch/x86/include/asm/trace/irq_vectors.h`).
    let may_be_refused =
        |name: &str| name.starts_with("ftrace:") || name == "irq_vectors:irq_work_exit";
    refused.retain(|name| !may_be_refused(name));
    assert_eq!(refused, [""; 0], "of {}", all.len());
    assert!(all.len() > 100, "{all:?}");
}
