//! The formats of tracepoints, for tools that print their data.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use nix::unistd::{SysconfVar, sysconf};
use quipu::Event;
use quipu_linux::tracefs::Tracefs;
use quipu_perf_data::TracingData;

/// Returns the system and name of a tracepoint.
pub(super) fn parts(event: &Event) -> Option<(&str, &str)> {
    match event {
        Event::Tracepoint { system, name } => Some((system, name)),
        Event::Named(name) => name.split_once(':'),
        _ => None,
    }
}

/// Returns the content of a file of tracefs. Some show it to the first read(2) only.
fn read(path: &Path) -> Option<Vec<u8>> {
    const MORE_THAN_ANY: usize = 64 << 10;
    let mut content = vec![0; MORE_THAN_ANY];
    let len = File::open(path).ok()?.read(&mut content).ok()?;
    content.truncate(len);
    Some(content)
}

/// Returns the formats of the tracepoints among these events, or `None` without tracepoints.
pub(super) fn formats<'a>(events: impl Iterator<Item = &'a Event>) -> Option<TracingData> {
    let tracepoints: Vec<_> = events.filter_map(parts).collect();
    if tracepoints.is_empty() {
        return None;
    }
    let root = Tracefs::find().ok()?.root().join("events");
    let read = |path: &str| read(&root.join(path));
    let mut data = TracingData::default();
    let page_size = sysconf(SysconfVar::PAGE_SIZE).ok()??;
    data.page_size = page_size.try_into().ok()?;
    data.header_page = read("header_page")?;
    data.header_event = read("header_event")?;
    for (system, name) in tracepoints {
        // A native event may be written the same way.
        if let Some(format) = read(&format!("{system}/{name}/format")) {
            data.formats
                .entry(system.to_owned())
                .or_default()
                .push(format);
        }
    }
    Some(data).filter(|data| !data.formats.is_empty())
}
