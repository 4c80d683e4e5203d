//! Records of the state before the recording began: the kernel, and the threads and mappings of
//! processes.

use std::fs;
use std::path::Path;

use quipu::Target;
use quipu_perf_data::synthesized::{self, Mapping};
use quipu_symbols::{MapsLine, Reference};

/// Returns the records of the targets, and of processes that they have started, of mapped data too if they are asked for.
/// `trailer` is how many bytes the records of this recording end with.
pub(super) fn records(
    targets: &[Target],
    started: impl Iterator<Item = i32>,
    with_data: bool,
    trailer: usize,
) -> Vec<u8> {
    let mut out = kernel(trailer).unwrap_or_default();
    for pid in processes(targets, started) {
        process(pid, with_data, trailer, &mut out);
    }
    out
}

/// Returns the record of the kernel's mapping, if this process may know it.
fn kernel(trailer: usize) -> Option<Vec<u8>> {
    let Reference { name, address } = Reference::of_this_machine()?;
    let len = u64::MAX - address;
    Some(synthesized::kernel(
        address,
        len,
        name.as_bytes(),
        address,
        trailer,
    ))
}

fn processes(targets: &[Target], started: impl Iterator<Item = i32>) -> Vec<i32> {
    let mut pids: Vec<i32> = started.collect();
    for target in targets {
        match target {
            Target::Process(pid) => pids.push(*pid),
            Target::Thread(tid) => pids.extend(process_of(*tid)),
            _ => pids.extend(numbers_in(Path::new("/proc"))),
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Returns the process of a thread (proc_pid_status(5), `Tgid`).
fn process_of(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Returns the names in a directory that are numbers.
fn numbers_in(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Appends the records of one process, unless it has ended.
fn process(pid: i32, with_data: bool, trailer: usize, out: &mut Vec<u8>) {
    let directory = format!("/proc/{pid}");
    for tid in numbers_in(Path::new(&directory).join("task").as_path()) {
        if let Ok(name) = fs::read(format!("{directory}/task/{tid}/comm")) {
            out.extend(synthesized::comm(pid, tid, name.trim_ascii_end(), trailer));
        }
    }
    let maps = fs::read(format!("{directory}/maps")).unwrap_or_default();
    for line in maps.split(|byte| *byte == b'\n') {
        let is_wanted = |line: &MapsLine<'_>| with_data || line.is_executable();
        if let Some(line) = MapsLine::parse(line).filter(is_wanted) {
            out.extend(synthesized::mmap2(pid, pid, &mapping(&line), trailer));
        }
    }
}

/// Returns a mapping as records tell it.
fn mapping<'a>(line: &MapsLine<'a>) -> Mapping<'a> {
    const PROT: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];
    const MAP_SHARED: u32 = 1;
    const MAP_PRIVATE: u32 = 2;
    let rights = PROT
        .iter()
        .filter(|(letter, _)| line.rights.contains(*letter));
    Mapping {
        start: line.start,
        len: line.end - line.start,
        offset: line.offset,
        device: line.device,
        inode: line.inode,
        protection: rights.map(|(_, bit)| bit).sum(),
        flags: if line.rights.contains('s') {
            MAP_SHARED
        } else {
            MAP_PRIVATE
        },
        path: line.path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_become_flags() {
        let line = MapsLine::parse(b"1000-3000 r-xs 00000010 fe:01 12 /a").expect("a line");
        let expected = Mapping {
            start: 0x1000,
            len: 0x2000,
            offset: 0x10,
            device: (0xfe, 1),
            inode: 12,
            protection: 5,
            flags: 1,
            path: b"/a",
        };
        assert_eq!(mapping(&line), expected);
    }

    #[test]
    fn this_process_tells_its_own_program() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let mut records = Vec::new();
        process(pid, false, 0, &mut records);
        let own = std::env::current_exe().expect("it runs");
        let own = own.to_string_lossy().into_owned().into_bytes();
        assert!(records.windows(own.len()).any(|window| window == own));
        assert_eq!(process_of(pid), Some(pid));
    }
}
