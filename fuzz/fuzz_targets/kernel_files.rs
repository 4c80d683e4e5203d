//! Files of sysfs and tracefs, texts of the input between NULs.
#![no_main]

use fuzz::written;
use libfuzzer_sys::fuzz_target;
use quipu_fuzz as fuzz;
use quipu_hal::{Event, PerfConfig};
use quipu_linux::sysfs::SysfsPmus;
use quipu_linux::topology::Topology;
use quipu_perf_data::TraceFormat;

fuzz_target!(|input: &[u8]| {
    let mut texts = input.split(|byte| *byte == 0);
    let mut file = |name: &str| written(name, texts.next().unwrap_or_default());
    for name in ["type", "cpus", "format/event", "format/umask", "events/one", "events/one.scale"] {
        file(&format!("pmus/cpu/{name}"));
    }
    for name in ["online", "cpu0/topology/physical_package_id"] {
        file(&format!("cpus/{name}"));
    }
    let request = texts.next().unwrap_or_default();
    let pmus = SysfsPmus::at(fuzz::scratch("pmus"));
    for pmu in pmus.pmus().unwrap_or_default() {
        for format in &pmu.formats {
            if let Ok(field) = format.field() {
                field.set(&mut PerfConfig::default(), u64::MAX);
            }
        }
    }
    let _ = pmus.core_pmus();
    if let Ok(text) = std::str::from_utf8(request)
        && let Ok(spec) = quipu_text::parse_spec(&format!("cpu/{text}/"), &quipu_text::NoNames)
        && let Event::Pmu(event) = &spec.event
    {
        let _ = pmus.resolve(event);
    }
    let topology = Topology::at(fuzz::scratch("cpus"));
    if let Ok(online) = topology.online()
        && online.len() < 100
    {
        let _ = (topology.places(), topology.sockets());
    }
    let rest = texts.next().unwrap_or_default();
    if let Ok(format) = TraceFormat::parse(&String::from_utf8_lossy(rest)) {
        let raw = texts.next().unwrap_or_default();
        for field in format.fields() {
            if let Some(value) = field.value(raw) {
                let _ = format!("{value:?}");
            }
        }
    }
});
