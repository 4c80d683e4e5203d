//! The formats of tracepoints, for tools that print their data.

use std::fs::File;
use std::io::{self, Read};
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

/// Returns the content of a file of tracefs.
fn read(path: &Path) -> Option<Vec<u8>> {
    whole(File::open(path).ok()?).ok()
}

/// Reads a file of tracefs to its end. A read(2) returns no more than the kernel has put into one page, so a line that no
/// longer fits comes with the next one. Some files show themselves to the first read(2) only, which has to be large.
fn whole(mut file: impl Read) -> io::Result<Vec<u8>> {
    const MORE_THAN_ANY: usize = 64 << 10;
    let mut content = Vec::new();
    let mut piece = vec![0; MORE_THAN_ANY];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(content),
            Ok(len) => content.extend_from_slice(&piece[..len]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_that_comes_in_pieces_is_read_to_its_end() {
        let pieces = b"name: kmalloc\n".chain(&b"print fmt: \"\"\n"[..]);
        let content = whole(pieces).expect("slices can be read");
        assert_eq!(content, b"name: kmalloc\nprint fmt: \"\"\n");
    }

    #[test]
    fn every_format_of_this_kernel_is_whole() {
        let events = Tracefs::find().map(|tracefs| tracefs.root().join("events"));
        let systems = events.ok().and_then(|events| fs::read_dir(events).ok());
        let Some(systems) = systems else {
            let name = "every_format_of_this_kernel_is_whole";
            let _ = writeln!(io::stderr(), "SKIP {name}: this user may not read tracefs");
            return;
        };
        let directories = systems.flatten().map(|system| system.path());
        for system in directories.filter(|system| system.is_dir()) {
            let events = fs::read_dir(&system).expect("it may be read as the one above it");
            for event in events.flatten() {
                let format = event.path().join("format");
                let Ok(expected) = fs::read(&format) else {
                    continue;
                };
                let found = read(&format).expect("it was read before");
                assert!(found == expected, "{}", format.display());
            }
        }
    }
}
